//! Durable return requests: the promise of one terminal for one prompt, kept through every crash (return requests, part 2).
//!
//! The crate `request` decides and keeps; here its store meets the sessions. Read in this order: `submit.rs` (how a request is made and its
//! prompt admitted), `witness.rs` (what the bridge tells of the prompt, and what waits for the disk), `tracked.rs` (what is known beside
//! the rows), `deadline.rs`, `recovery.rs` (what is said after a crash, with `evidence.rs`), `stream.rs` (what consumers read).

mod afterwards;
mod callers;
mod deadline;
mod evidence;
mod final_text;
#[cfg(test)]
pub(crate) mod fixture;
mod following;
mod host_word;
pub(crate) mod housekeeping;
mod incarnation;
mod opening;
mod prompt_ids;
mod recovery;
pub(crate) mod refusal;
mod shutdown;
pub(crate) mod stream;
pub(crate) mod submit;
pub(crate) mod tracked;
pub(crate) mod understood;
mod witness;

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bridge::Session;
use request::RequestId;
use request::store::{Entry as Known, Options, Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::limits::{RETURNS_OPEN_MS, RETURNS_SUBSCRIBERS_MAX};
use crate::neighbours::Neighbours;
use crate::refusal::Refusal;
use crate::sync::lock;
use crate::tasks::{blocking, spawn_on};
use crate::workspace::Workspace;
use callers::Callers;
use recovery::Recovering;
pub(crate) use tracked::Tracked;
pub(crate) use witness::Eyewitness;

/// The member of a request's options that holds what its user record hashes to.
const RECORD_HASH: &str = "recordHash";

/// The return requests of one daemon.
pub(crate) struct Returns {
    /// None while it is not open.
    store: OnceLock<Arc<Store>>,
    /// Why it is not, once that was tried.
    why_not: Mutex<Option<Refusal>>,
    pub(crate) tracked: Tracked,
    callers: Callers,
    recovering: Recovering,
    neighbours: Arc<Neighbours>,
    /// The agents' processes that are on record, each with the life of its session.
    noted: Mutex<HashMap<String, String>>,
    /// The newest number of the stream, for whoever waits for one.
    head: watch::Sender<u64>,
    pub(crate) subscribers: Arc<Semaphore>,
    /// Which stream it is; empty without a store.
    stream_id: OnceLock<String>,
    is_draining: AtomicBool,
    /// Set once nothing more will come into the stream in this life.
    over: watch::Sender<bool>,
    runtime: Handle,
}

impl Returns {
    /// The requests of a daemon, before its store is open.
    pub(crate) fn new(neighbours: Arc<Neighbours>) -> Arc<Self> {
        Arc::new(Self {
            store: OnceLock::new(),
            why_not: Mutex::default(),
            tracked: Tracked::default(),
            callers: Callers::default(),
            recovering: Recovering::default(),
            neighbours,
            noted: Mutex::default(),
            head: watch::Sender::new(0),
            subscribers: Arc::new(Semaphore::new(RETURNS_SUBSCRIBERS_MAX)),
            stream_id: OnceLock::new(),
            is_draining: AtomicBool::new(false),
            over: watch::Sender::new(false),
            runtime: Handle::current(),
        })
    }

    /// Waits until the store is open or known to be none, for a bounded time.
    pub(crate) async fn opened(&self) {
        let _ = timeout(Duration::from_millis(RETURNS_OPEN_MS), self.recovering.begun()).await;
    }

    /// The store.
    ///
    /// # Errors
    /// 503 `store_corrupt` or `store_unavailable`; `store_busy` while it is being opened.
    pub(crate) fn store(&self) -> Result<&Arc<Store>, Refusal> {
        self.store.get().ok_or_else(|| lock(&self.why_not).clone().unwrap_or_else(refusal::opening))
    }

    /// Which stream the store has; nothing before it is open.
    pub(crate) fn stream_id(&self) -> &str {
        self.stream_id.get().map_or("", String::as_str)
    }

    /// The workspaces that they are about.
    pub(crate) fn neighbours(&self) -> &Arc<Neighbours> {
        &self.neighbours
    }

    /// The live session of that id.
    pub(crate) fn session(&self, id: &str) -> Option<Session> {
        self.neighbours.all().find_map(|workspace| workspace.bridge.session(id))
    }

    /// The workspace in which that session lives.
    pub(crate) fn home(&self, session: &str) -> Option<Arc<Workspace>> {
        self.neighbours.all().find(|workspace| workspace.bridge.session(session).is_some())
    }

    /// What is known of an id.
    ///
    /// # Errors
    /// When the store cannot say.
    pub(crate) async fn known(&self, request_id: &RequestId) -> Result<Option<Known>, Refusal> {
        let request_id = request_id.clone();
        self.read(move |store| store.get(&request_id)).await
    }

    /// Looks into the store.
    ///
    /// # Errors
    /// When the store cannot say.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let store = Arc::clone(self.store()?);
        let looked = blocking(move || look(&store)).await.ok_or_else(Refusal::internal)?;
        looked.map_err(|error| refusal::of_store(&error))
    }

    /// Follows the newest number of the stream.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// Follows whether anything more can come.
    pub(crate) fn follow_end(&self) -> watch::Receiver<bool> {
        self.over.subscribe()
    }

    /// Whether no new ones are taken any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    /// Starts a task, from whatever thread.
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_on(&self.runtime, future)
    }
}

/// Asks the store for something and waits for its reply.
///
/// # Errors
/// What the store says; that it is closed, when it says nothing.
pub(crate) async fn asked<T: Send + 'static>(
    ask: impl FnOnce(Box<dyn FnOnce(Result<T, StoreError>) + Send>),
) -> Result<T, StoreError> {
    let (sender, receiver) = oneshot::channel();
    // Whoever does not wait any more misses nothing that is not on disk.
    ask(Box::new(move |reply| drop(sender.send(reply))));
    receiver.await.unwrap_or(Err(StoreError::Closed))
}

#[cfg(not(feature = "fail-points"))]
fn options() -> Options {
    Options::default()
}

#[cfg(feature = "fail-points")]
fn options() -> Options {
    Options { fail_points: Arc::new(request::fail_points::FailPoints::from_env()), ..Options::default() }
}
