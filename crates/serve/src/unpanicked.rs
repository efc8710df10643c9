//! A fault of ours that ends what it happened in and nothing more.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// What `future` gives, or none when it panicked. The panic's own message is in the log already.
pub(crate) async fn unpanicked<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_absent_answer() {
        assert_eq!(unpanicked(async { 1 }).await, Some(1));
        assert_eq!(unpanicked(async { panic!("on purpose") }).await, None::<u8>);
    }
}
