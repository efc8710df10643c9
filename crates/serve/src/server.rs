//! Accepting connections until the caller says it is over, then letting everybody finish.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use transcript::{LockError, Owner, SessionLock};

use crate::caller::Place;
use crate::clock::now_ms;
use crate::connection;
use crate::daemon::Daemon;
use crate::folders::{FoldersError, distinct, in_lock_order};
use crate::hosts::{HostStarter, ProcessStarter};
use crate::layout::Layout;
use crate::limits::{ACCEPT_BACKOFF_MS, DRAIN_MS, HELD_RETRY_MS, STORE_LOOK_MS, STORE_LOOKS};
use crate::options::ServeOptions;
use crate::reaper;
use crate::returns::{Returns, housekeeping};
use crate::tasks::spawn;
use crate::turned_away::TurnedAway;

/// The daemon did not run.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The listener has no address.
    #[error("cannot tell the listening address: {0}")]
    Address(#[source] io::Error),
    /// The workspaces cannot be served together.
    #[error(transparent)]
    Folders(#[from] FoldersError),
    /// Another daemon serves a workspace from this store, or the store cannot be written.
    #[error("cannot take the store for {}: {cause}", folder.display())]
    Store {
        /// The workspace whose turn it was. No other one is kept.
        folder: PathBuf,
        /// What kept us out.
        #[source]
        cause: LockError,
    },
    /// The route table contradicts itself.
    #[error("cannot build the route table: {0}")]
    Routes(#[source] matchit::InsertError),
}

/// A daemon that has its store and may be called; nobody is answered before it runs.
pub struct Server {
    listener: TcpListener,
    daemon: Arc<Daemon>,
    permits: Arc<Semaphore>,
    /// The folder of the return requests.
    requests: PathBuf,
    /// Held until the end: one daemon a workspace of a store.
    _stores: Vec<SessionLock>,
}

impl Server {
    /// A daemon on `listener` whose hosts are processes.
    ///
    /// # Errors
    /// When the store is another daemon's, or nothing can begin.
    pub async fn open(listener: TcpListener, options: ServeOptions) -> Result<Self, ServeError> {
        let starter = ProcessStarter { launcher: options.host_launcher.clone() };
        Self::with_hosts(listener, options, Arc::new(starter)).await
    }

    /// A daemon on `listener` whose hosts come from `hosts`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn with_hosts(
        listener: TcpListener,
        options: ServeOptions,
        hosts: Arc<dyn HostStarter>,
    ) -> Result<Self, ServeError> {
        let address = listener.local_addr().map_err(ServeError::Address)?;
        let folders = distinct(&options.workspaces)?;
        let (primary, further) = folders.split_first().ok_or(FoldersError::None)?;
        let stores = take_stores(&options.store, &folders).await?;
        let permits = Arc::new(Semaphore::new(options.limits.max_connections));
        let requests = Layout::new(&options.store, primary).requests();
        let returns = Returns::new(Arc::default());
        let daemon = Daemon::new(options, (primary, further), hosts, address, returns).map_err(ServeError::Routes)?;
        Ok(Self { listener, daemon: Arc::new(daemon), permits, requests, _stores: stores })
    }

    /// Serves until `shutdown` resolves.
    ///
    /// At the end nothing new is accepted, every unfinished prompt ends as `daemon_shutdown` on disk and towards its readers,
    /// hosts are told, and what is still open gets a bounded time to finish. The turn of a return request has some seconds to be answered
    /// (return requests, section 2.11), or until `hurry` resolves.
    pub async fn run(self, shutdown: impl Future<Output = ()>, hurry: impl Future<Output = ()>) {
        let Self { listener, daemon, permits, requests, _stores } = self;
        spawn(Arc::clone(&daemon).take_up_returns(requests));
        spawn(housekeeping::keep(Arc::downgrade(&daemon.returns)));
        let mut retry = interval(Duration::from_millis(HELD_RETRY_MS));
        retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let idleness = daemon.options.idleness;
        let mut reap = interval(Duration::from_millis(idleness.reap_interval_ms.max(1)));
        reap.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (away, mut shutdown) = (TurnedAway::new(), pin!(shutdown));
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => admit(&daemon, &permits, &away, stream),
                    Err(error) => back_off(&error).await,
                },
                _ = retry.tick() => daemon.retry_held(),
                _ = reap.tick(), if idleness.reaps() => reaper::reap(&daemon),
            }
        }
        drop(listener);
        daemon.shutdown(hurry).await;
        // Each connection holds its place until it is over.
        let all = permits.acquire_many(u32::try_from(daemon.options.limits.max_connections).unwrap_or(u32::MAX));
        if timeout(Duration::from_millis(DRAIN_MS), all).await.is_err() {
            tracing::info!("connections were still open at the end");
        }
    }
}

/// Takes every workspace's part of the store, or none.
async fn take_stores(store: &Path, folders: &[PathBuf]) -> Result<Vec<SessionLock>, ServeError> {
    let mut locks = Vec::new();
    for folder in in_lock_order(folders) {
        let taken = take_store(&Layout::new(store, folder).daemon_lock()).await;
        locks.push(taken.map_err(|cause| ServeError::Store { folder: folder.to_owned(), cause })?);
    }
    Ok(locks)
}

/// Takes one part of the store. A daemon that was killed a moment ago may still be on its way out, and its lock with it.
async fn take_store(lock: &Path) -> Result<SessionLock, LockError> {
    for _ in 0..STORE_LOOKS {
        match SessionLock::acquire(lock, &this_process()) {
            Err(LockError::Held { .. }) => sleep(Duration::from_millis(STORE_LOOK_MS)).await,
            taken => return taken,
        }
    }
    SessionLock::acquire(lock, &this_process())
}

/// Who holds the store, or a session, for whoever comes second.
pub(crate) fn this_process() -> Owner {
    Owner { pid: std::process::id(), started_at: now_ms(), start_ticks: None }
}

/// Errors of one connection are its own; running out of descriptors is ours, and passes.
async fn back_off(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::warn!(%error, "cannot accept a connection");
    sleep(Duration::from_millis(ACCEPT_BACKOFF_MS)).await;
}

/// Gives a connection a task of its own. Nothing of it is waited for here, a handshake neither.
fn admit(daemon: &Arc<Daemon>, permits: &Arc<Semaphore>, away: &TurnedAway, stream: TcpStream) {
    let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
        // Somebody who expects TLS hears nothing that he understands, and that it is over.
        if daemon.options.tls.is_none() {
            away.tell(stream);
        }
        return;
    };
    let daemon = Arc::clone(daemon);
    spawn(async move {
        connection::serve(daemon, stream, Place::new(permit)).await;
    });
}
