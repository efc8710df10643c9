//! The end of the daemon's life: nothing new is taken, what runs ends with its session and is on record before the store is closed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use request::Input;
use tokio::time::timeout;

use crate::clock::now_ms;
use crate::limits::{RETURNS_CLOSE_MS, STAGE_WAIT_MS};
use crate::returns::Returns;
use crate::returns::tracked::Standing;
use crate::tasks::blocking;

impl Returns {
    /// Takes no new requests any more.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    /// Closes the store once everything that its sessions said is on disk. Those are over by now; a request whose prompt was never heard of
    /// again ends as what it is: ended by the daemon. One whose end was told is only waited for, since a second word on it would be kept as
    /// late evidence; what is not on disk by then is found by the next life.
    pub(crate) async fn close(self: &Arc<Self>) {
        self.opened().await;
        let Ok(store) = self.store().cloned() else {
            self.over.send_replace(true);
            return;
        };
        let (told, unheard): (Vec<_>, Vec<_>) =
            self.tracked.all().into_iter().partition(|entry| entry.is_prompt_over());
        for entry in unheard.iter().filter(|entry| !entry.standing().is_over()) {
            let written = request::InputWritten::Maybe;
            self.tell_of(entry, Input::SessionEnded { cause: request::Cause::DaemonShutdown, written });
        }
        let written = async {
            for entry in told {
                // The entry has the sender, so waiting cannot fail.
                let _ = entry.follow().wait_for(Standing::is_over).await;
            }
        };
        if timeout(Duration::from_millis(STAGE_WAIT_MS), written).await.is_err() {
            tracing::warn!("outcomes wait for the request store");
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
