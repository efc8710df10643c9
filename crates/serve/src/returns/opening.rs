//! How the daemon comes to its store: at once, or as soon as whoever has it lets go of it and its disk has room. Until then its callers are
//! told why there is none, and everything else is served. What no time mends is not tried again: a damage, another version.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use request::Request;
use request::store::{OpenError, Store, StoreError};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::admission;
use crate::clock::now_ms;
use crate::limits::{CLOCK_SET_BACK_MS, RETURNS_REOPEN_FIRST_MS, RETURNS_REOPEN_LAST_MS};
use crate::refusal::Refusal;
use crate::returns::{Returns, options, refusal};
use crate::sync::lock;
use crate::tasks::blocking;

/// A store that was opened: it, what it left open, and the name of its stream.
type Opened = (Store, Vec<Request>, String);

impl Returns {
    /// Opens the store in a folder, whatever time that takes, and gives the requests in it that have not ended. A daemon whose store cannot
    /// be opened has none, and says so to whoever asks. To look through a store of a million requests takes long: nothing but they waits
    /// for it.
    pub(crate) async fn open(&self, folder: PathBuf) -> Vec<Request> {
        let mut pause = RETURNS_REOPEN_FIRST_MS;
        let mut over = self.follow_end();
        loop {
            let error = match self.open_once(folder.clone()).await {
                Ok(open) => return open,
                Err(error) => error,
            };
            if !is_passing(&error) {
                return Vec::new();
            }
            tokio::select! {
                () = sleep(Duration::from_millis(pause)) => {}
                _ = over.wait_for(|over| *over) => {}
            }
            if self.is_draining() {
                return Vec::new();
            }
            pause = (pause * 2).min(RETURNS_REOPEN_LAST_MS);
        }
    }

    /// Tries it.
    ///
    /// # Errors
    /// Why there is no store; callers are told that from here on.
    pub(super) async fn open_once(&self, folder: PathBuf) -> Result<Vec<Request>, OpenError> {
        let opened = blocking(move || -> Result<Opened, OpenError> {
            let (store, open) = Store::open(&folder, options(), now_ms())?;
            let stream_id = store.head()?.stream_id;
            Ok((store, open, stream_id))
        });
        let opened = opened.await.unwrap_or(Err(OpenError::Store(StoreError::Closed)));
        let (store, open, stream_id) = opened.inspect_err(|error| {
            let told = refusal::of_opening(error);
            if lock(&self.why_not).replace(told.clone()) != Some(told) {
                tracing::error!(%error, "the request store cannot be opened; return requests are refused");
            }
            // What is open in it is not known. Sessions do not wait for that: what they do is not taken for an earlier turn's.
            self.recovering.begin(&[]);
        })?;
        if lock(&self.why_not).is_some() {
            tracing::info!("the request store is open after all");
        }
        note_last_life(store.was_clean(), store.clock_behind_ms(now_ms()));
        self.listen(&store);
        let _ = self.stream_id.set(stream_id);
        // It is opened once; a second time would change nothing.
        let _ = self.store.set(Arc::new(store));
        self.recovering.begin(&open);
        Ok(open)
    }

    /// Has the store tell its newest number.
    fn listen(&self, store: &Store) {
        let head = self.head.clone();
        let raise = move |number: u64| {
            head.send_if_modified(|head| {
                let is_new = number > *head;
                *head = number.max(*head);
                is_new
            });
        };
        raise(store.newest());
        store.on_commit(Arc::new(raise));
    }

    /// What keeps every new request out: what is wrong with the open store, or that no ledger takes the line of an admission.
    pub(crate) fn trouble(&self, of_store: Option<&StoreError>) -> Option<Refusal> {
        let is_full = || self.neighbours().all().any(|workspace| workspace.sink.is_full());
        of_store.map(refusal::of_store).or_else(|| is_full().then(admission::no_room))
    }

    /// How the store is, for whoever asks how the daemon is.
    pub(crate) fn health(&self) -> Value {
        let why_not = match self.store() {
            Ok(store) => self.trouble(store.trouble().as_ref()),
            Err(refusal) => Some(refusal),
        };
        match why_not {
            None => json!({ "status": "ok" }),
            Some(refusal) => {
                let mut told = json!({ "status": "unavailable", "code": &*refusal.code });
                if let Some((_, reason)) = refusal.fields.iter().find(|(key, _)| *key == refusal::REASON) {
                    told[refusal::REASON] = reason.clone();
                }
                told
            }
        }
    }
}

/// Tells the log what the last life left: no number and no deadline of this life depends on it, but times in receipts do.
fn note_last_life(was_clean: bool, behind_ms: u64) {
    if !was_clean {
        tracing::info!("the last life of the request store was not ended in order");
    }
    if is_set_back(behind_ms) {
        tracing::warn!(behind_ms, "the clock was set back since the request store was written last");
    }
}

/// Whether a clock stands further back than what keeping it right does to it.
const fn is_set_back(behind_ms: u64) -> bool {
    behind_ms >= CLOCK_SET_BACK_MS
}

/// Whether time may mend it.
pub(super) const fn is_passing(error: &OpenError) -> bool {
    matches!(error, OpenError::Locked | OpenError::Store(StoreError::Busy | StoreError::Full | StoreError::Io(_)))
}

#[cfg(test)]
mod tests;
