//! The one place of this crate that starts a task, so that every task has an owner to be found by.

use std::future::Future;

/// Starts `future` beside the caller. Its panics end the task and nothing else.
#[expect(clippy::disallowed_methods, reason = "the shell of this crate starts its tasks here and nowhere else")]
pub(crate) fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

/// Starts `future` on a runtime, also from a thread that is none of its own.
pub(crate) fn spawn_on<F>(runtime: &tokio::runtime::Handle, future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    runtime.spawn(future)
}

/// Runs `work`, which reads or writes files, where it may block. `None` when it panicked.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
