//! What is old enough is forgotten: requests become tombstones, and tombstones go (return requests, section 2.15).

use std::sync::Weak;
use std::time::Duration;

use request::store::{Pruned, Retention};
use tokio::time::sleep;

use crate::clock::now_ms;
use crate::limits::RETURNS_PRUNE_MS;
use crate::returns::Returns;

/// Looks every now and then for what may go, as long as there are requests.
pub(crate) async fn keep(returns: Weak<Returns>) {
    loop {
        sleep(Duration::from_millis(RETURNS_PRUNE_MS)).await;
        let Some(returns) = returns.upgrade() else { return };
        if returns.is_draining() {
            return;
        }
        let pruned = returns.read(|store| store.prune(Retention::default(), now_ms())).await;
        match pruned {
            Ok(pruned) if pruned == Pruned::default() => {}
            Ok(pruned) => tracing::info!(?pruned, "old return requests are forgotten"),
            // A store in trouble keeps everything.
            Err(refusal) => tracing::debug!(code = &*refusal.code, "nothing is forgotten now"),
        }
    }
}
