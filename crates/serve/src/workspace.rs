//! One workspace: its live sessions and its files. What one holds, no other one reaches.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bridge::{Bridge, Session};

use crate::catalog::Catalog;
use crate::chosen::Chosen;
use crate::cursors::Cursors;
use crate::desk::Desk;
use crate::digest::{Digest, Digests};
use crate::endings::Endings;
use crate::hosts::HostStarter;
use crate::layout::Layout;
use crate::neighbours::Neighbours;
use crate::options::ServeOptions;
use crate::polled::Polled;
use crate::recalled::Recalled;
use crate::refusal::Refusal;
use crate::restored::Restored;
use crate::returns::{Eyewitness, Returns};
use crate::room::Room;
use crate::shells::Shells;
use crate::sink::LedgerSink;
use crate::sync::lock;
use crate::tasks::spawn;
use crate::wiring::wire;

/// The sessions of one folder.
pub(crate) struct Workspace {
    pub(crate) options: Arc<ServeOptions>,
    neighbours: Arc<Neighbours>,
    /// The return requests of the daemon, those of its other workspaces included.
    pub(crate) returns: Arc<Returns>,
    /// The folder that every session of it runs in: an absolute path.
    pub(crate) folder: PathBuf,
    /// The folder as clients name it.
    pub(crate) cwd: String,
    /// The same in a form that fits a path: 16 hexadecimal digits, the same in every life of every daemon.
    pub(crate) id: String,
    pub(crate) layout: Layout,
    pub(crate) bridge: Bridge,
    pub(crate) sink: Arc<LedgerSink>,
    pub(crate) hosts: Arc<dyn HostStarter>,
    /// Which session ids are in transition, and which session is the default one.
    pub(crate) desk: Desk,
    /// The prompt ids that callers chose.
    pub(crate) chosen: Chosen,
    /// Which ended prompts have been combined with what is on disk.
    pub(crate) polled: Polled,
    /// The digests of whole answers.
    pub(crate) digests: Digests,
    /// Where whole answers stand.
    pub(crate) recalled: Recalled,
    /// What a restore found, for those who attach later.
    pub(crate) restored: Restored,
    /// How the last prompts of live sessions ended, for those who attach.
    pub(crate) endings: Endings,
    /// The cursors of transcript pages.
    pub(crate) cursors: Cursors,
    /// What the agent that was opened last said of itself.
    welcome: Mutex<Option<Arc<str>>>,
    /// What is remembered of its lists.
    pub(crate) catalog: Catalog,
    /// The commands of users that run.
    pub(crate) shells: Shells,
    /// Sessions that are being opened.
    opening: AtomicUsize,
}

impl Workspace {
    /// The workspace at `folder`, with no live session, among those that the daemon's return requests are about.
    pub(crate) fn new(
        folder: &Path,
        options: Arc<ServeOptions>,
        hosts: Arc<dyn HostStarter>,
        returns: Arc<Returns>,
    ) -> Self {
        let layout = Layout::new(&options.store, folder);
        let sink = LedgerSink::new(layout.clone(), options.durability, Room::new(layout.room_probe()));
        let sink = Arc::new(sink);
        Self {
            folder: folder.to_owned(),
            cwd: folder.to_string_lossy().into_owned(),
            id: Digest::of(folder.as_os_str().as_encoded_bytes()).short(),
            bridge: wire(Arc::clone(&sink), Eyewitness(Arc::clone(&returns)), &options),
            sink,
            hosts,
            desk: Desk::default(),
            chosen: Chosen::new(layout.clone(), options.durability),
            polled: Polled::default(),
            digests: Digests::default(),
            recalled: Recalled::default(),
            restored: Restored::default(),
            endings: Endings::default(),
            cursors: Cursors::default(),
            welcome: Mutex::default(),
            catalog: Catalog::default(),
            shells: Shells::default(),
            opening: AtomicUsize::new(0),
            layout,
            neighbours: Arc::clone(returns.neighbours()),
            returns,
            options,
        }
    }

    /// Whether a session of that id lives here, or is on its way in or out.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.bridge.session(id).is_some() || self.desk.busy(id).is_some()
    }

    /// The other workspace in which a session of that id lives, or is on its way in or out. Whoever takes an id asks this behind his
    /// own taking of it: of two that do so at once neither can miss the other.
    pub(crate) fn elsewhere(&self, id: &str) -> Option<Arc<Self>> {
        self.neighbours.of(self).find(|other| other.knows(id))
    }

    /// The other workspaces of the daemon.
    pub(crate) fn others(&self) -> impl Iterator<Item = Arc<Self>> {
        self.neighbours.of(self)
    }

    /// Live sessions, those being opened included.
    pub(crate) fn occupied(&self) -> usize {
        self.bridge.sessions().len() + self.opening.load(Ordering::SeqCst)
    }

    /// Notes what an agent that was greeted said of itself: raw JSON object text.
    pub(crate) fn greeted(&self, welcome: &str) {
        *lock(&self.welcome) = Some(welcome.into());
    }

    /// What the agent that was greeted last said of itself; none before the first.
    pub(crate) fn welcome(&self) -> Option<Arc<str>> {
        lock(&self.welcome).clone()
    }

    /// The live session of that id.
    ///
    /// # Errors
    /// 404 `session_not_found`.
    pub(crate) fn session(&self, id: &str) -> Result<Session, Refusal> {
        self.bridge.session(id).ok_or_else(|| Refusal::session_not_found(id))
    }

    /// Lets go of what is kept for `session` once it is over, for whatever reason.
    pub(crate) fn watch(self: &Arc<Self>, session: &Session) {
        let (workspace, session) = (Arc::clone(self), session.clone());
        let life = session.epoch().to_owned();
        spawn(async move {
            session.ended().await;
            drop(session);
            // Asked by what lives and not by id: the same session may be back in another life already.
            let live = |id: &str| workspace.bridge.session(id).is_some();
            workspace.chosen.retain(live);
            workspace.polled.retain(live);
            workspace.recalled.retain(live);
            workspace.restored.retain(live);
            workspace.endings.retain(live);
            workspace.sink.retain(live);
            workspace.returns.session_ended(&life);
        });
    }

    /// A place for one more live session, held until it is dropped.
    ///
    /// # Errors
    /// 503 `session_limit_exceeded`.
    pub(crate) fn slot(self: &Arc<Self>) -> Result<Slot, Refusal> {
        self.opening.fetch_add(1, Ordering::SeqCst);
        let slot = Slot { workspace: Arc::clone(self) };
        let (own, total) = (self.options.limits.max_sessions, self.options.limits.max_total_sessions);
        if self.occupied() > own {
            return Err(session_limit(own, "workspace"));
        }
        if self.neighbours.occupied() > total { Err(session_limit(total, "total")) } else { Ok(slot) }
    }
}

/// A reserved place for a session that is being opened.
pub(crate) struct Slot {
    workspace: Arc<Workspace>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.workspace.opening.fetch_sub(1, Ordering::SeqCst);
    }
}

/// 503 for a workspace, or for all of a daemon in `total`, that holds as many sessions as it may.
pub(crate) fn session_limit(limit: usize, scope: &'static str) -> Refusal {
    let message = format!("Session limit reached ({limit})");
    Refusal::new(hyper::StatusCode::SERVICE_UNAVAILABLE, "session_limit_exceeded", message)
        .with("limit", limit)
        .with("scope", scope)
        .retry_later()
}
