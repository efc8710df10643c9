//! Whose turn it is with an id: of several callers of one id, one at a time looks it up, and what it makes of it stands before the next one
//! looks. Otherwise a second caller would find a row that the first is about to take back, and be promised what there never is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use request::RequestId;
use tokio::sync::OwnedMutexGuard;

use crate::sync::lock;

type Turns = Mutex<HashMap<RequestId, Arc<tokio::sync::Mutex<()>>>>;

/// The ids that somebody is at.
#[derive(Debug, Default)]
pub(super) struct Claims(Arc<Turns>);

/// One caller's turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    turns: Arc<Turns>,
    request_id: RequestId,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Claims {
    /// Waits for one's turn with an id.
    pub(super) async fn take(&self, request_id: &RequestId) -> Claim {
        let turn = Arc::clone(lock(&self.0).entry(request_id.clone()).or_default());
        let turn = Some(turn.lock_owned().await);
        Claim { turns: Arc::clone(&self.0), request_id: request_id.clone(), turn }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut turns = lock(&self.turns);
        self.turn = None;
        // Nobody takes it up, or comes to wait for it, while the table is held.
        if turns.get(&self.request_id).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.request_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_has_an_id_and_none_of_it_stays() {
        let claims = Arc::new(Claims::default());
        let [x, y] = ["X", "Y"].map(|id| RequestId::parse(id).unwrap());
        let first = claims.take(&x).await;
        let _other = claims.take(&y).await;
        let waiting = crate::tasks::spawn({
            let (claims, x) = (Arc::clone(&claims), x.clone());
            async move { drop(claims.take(&x).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap();
        assert_eq!(lock(&claims.0).keys().collect::<Vec<_>>(), [&y]);
    }
}
