//! Who is first with an id: of several callers of one id, one at a time looks it up, and what it makes of it stands before the next one
//! looks. Otherwise a second caller would find a row that the first is about to take back, and be promised what there never is.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use request::RequestId;
use tokio::sync::Notify;

use crate::sync::lock;

/// The ids that somebody is at, each with those who wait for him.
type Ids = Mutex<HashMap<RequestId, Arc<Notify>>>;

/// Who calls under which id.
#[derive(Debug, Default)]
pub(super) struct Callers(Arc<Ids>);

/// The caller who is first with an id, until it is dropped.
#[derive(Debug)]
pub(super) struct Foremost {
    ids: Arc<Ids>,
    request_id: RequestId,
}

impl Callers {
    /// Waits until nobody is before one with an id.
    pub(super) async fn take(&self, request_id: &RequestId) -> Foremost {
        loop {
            let waiting;
            let left = {
                let mut ids = lock(&self.0);
                match ids.entry(request_id.clone()) {
                    Entry::Vacant(free) => {
                        free.insert(Arc::default());
                        return Foremost { ids: Arc::clone(&self.0), request_id: request_id.clone() };
                    }
                    Entry::Occupied(taken) => waiting = Arc::clone(taken.get()),
                }
                // Made while the table is held: whoever leaves after that wakes it.
                waiting.notified()
            };
            left.await;
        }
    }
}

impl Drop for Foremost {
    fn drop(&mut self) {
        if let Some(waiting) = lock(&self.ids).remove(&self.request_id) {
            waiting.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_has_an_id_and_none_of_it_stays() {
        let callers = Arc::new(Callers::default());
        let [x, y] = ["X", "Y"].map(|id| RequestId::parse(id).unwrap());
        let first = callers.take(&x).await;
        let _other = callers.take(&y).await;
        let waiting = crate::tasks::spawn({
            let (callers, x) = (Arc::clone(&callers), x.clone());
            async move { drop(callers.take(&x).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap();
        assert_eq!(lock(&callers.0).keys().collect::<Vec<_>>(), [&y]);
    }
}
