//! The end of the daemon's life: nothing new is taken, what runs ends with its session and is on record before the store is closed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use request::Input;
use tokio::time::timeout;

use crate::clock::now_ms;
use crate::limits::RETURNS_CLOSE_MS;
use crate::returns::Returns;
use crate::tasks::blocking;

impl Returns {
    /// Takes no new requests any more.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    /// Closes the store once everything that its sessions said is on disk. Those are over by now; a request whose prompt was never heard of
    /// again ends as what it is: ended by the daemon.
    pub(crate) async fn close(self: &Arc<Self>) {
        self.opened().await;
        let Ok(store) = self.store().cloned() else {
            self.over.send_replace(true);
            return;
        };
        for entry in self.tracked.all() {
            if !entry.standing().is_over() {
                let written = request::InputWritten::Maybe;
                self.tell_of(&entry, Input::SessionEnded { cause: request::Cause::DaemonShutdown, written });
            }
        }
        let closed = timeout(Duration::from_millis(RETURNS_CLOSE_MS), blocking(move || store.close(now_ms()))).await;
        match closed {
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(error))) => tracing::error!(%error, "the request store did not close cleanly"),
            Ok(None) | Err(_) => tracing::error!("the request store did not close in time"),
        }
        // Readers take what there is, and are done.
        self.over.send_replace(true);
    }
}
