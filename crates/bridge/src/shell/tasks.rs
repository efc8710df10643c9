//! The only place where a task begins.

use std::future::Future;

/// Starts a session's driver. It ends by itself when the session is over, and `Live::ended` tells when.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this shell that spawns; every task is one session's driver"
)]
pub(super) fn start(driver: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(driver);
}
