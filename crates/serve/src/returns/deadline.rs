//! Deadlines of requests: a timer in the daemon, and nobody has to ask. While the daemon lives it runs on the monotonic clock.

use std::sync::Arc;
use std::time::Duration;

use request::{Input, Phase};
use tokio::time::{Instant, sleep_until};

use crate::returns::Returns;
use crate::returns::tracked::Entry;

impl Returns {
    /// Lets a request end so many milliseconds after that moment, unless it ends before. One that is too far away to be named never comes.
    pub(crate) fn arm(self: &Arc<Self>, entry: &Arc<Entry>, from: Instant, in_ms: u64) {
        let Some(due) = from.checked_add(Duration::from_millis(in_ms)) else { return };
        let (returns, watched) = (Arc::clone(self), Arc::clone(entry));
        let timer = self.spawn(async move {
            sleep_until(due).await;
            // From here on it is not stopped by the end that it brings about.
            returns.spawn(expire(Arc::clone(&returns), watched));
        });
        entry.keep_deadline(due, timer.abort_handle());
    }
}

/// Ends a request at its deadline. What waits in a queue goes; what runs goes on, unless its caller wants otherwise.
async fn expire(returns: Arc<Returns>, entry: Arc<Entry>) {
    let Ok(applied) = returns.applied(&entry, Input::Deadline).await else { return };
    if applied.event.is_none() {
        return;
    }
    let Some(session) = returns.session(&entry.session_id) else { return };
    if applied.request.phase < Phase::Dispatching {
        // One that ends with its session is gone all the same.
        let _ = session.remove(&entry.prompt_id, None);
    } else if entry.cancel_on_timeout {
        let _ = session.cancel(Some(&entry.prompt_id), None);
    }
}
