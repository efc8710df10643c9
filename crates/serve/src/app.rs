//! What every route reaches: the options, the live sessions, the files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bridge::{Bridge, Session};

use crate::chosen::Chosen;
use crate::desk::Desk;
use crate::digest::Digests;
use crate::hosts::HostStarter;
use crate::layout::Layout;
use crate::options::ServeOptions;
use crate::polled::Polled;
use crate::rate::Gate;
use crate::recalled::Recalled;
use crate::refusal::Refusal;
use crate::restored::Restored;
use crate::room::Room;
use crate::router::Router;
use crate::sink::LedgerSink;
use crate::tasks::spawn;
use crate::wall::Wall;
use crate::wiring::wire;

/// One daemon.
pub(crate) struct App {
    pub(crate) options: ServeOptions,
    /// The workspace as clients name it.
    pub(crate) workspace: String,
    pub(crate) layout: Layout,
    pub(crate) bridge: Bridge,
    pub(crate) sink: Arc<LedgerSink>,
    pub(crate) hosts: Arc<dyn HostStarter>,
    pub(crate) wall: Wall,
    pub(crate) gate: Gate,
    pub(crate) router: Router,
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
    /// What a load gave, for those who attach later.
    pub(crate) restored: Restored,
    /// Sessions that are being opened.
    opening: AtomicUsize,
}

impl App {
    /// A daemon that listens at `address`.
    pub(crate) fn new(
        options: ServeOptions,
        hosts: Arc<dyn HostStarter>,
        address: SocketAddr,
    ) -> Result<Self, matchit::InsertError> {
        let layout = Layout::new(&options.store, &options.workspace);
        let sink = LedgerSink::new(layout.clone(), options.durability, Room::new(layout.room_probe()));
        let sink = Arc::new(sink);
        let wall = Wall::new(address, &options.allow_origins, options.token.clone(), options.require_auth);
        Ok(Self {
            workspace: options.workspace.to_string_lossy().into_owned(),
            bridge: wire(Arc::clone(&sink), &options),
            sink,
            hosts,
            wall,
            gate: Gate::new(options.rates, address.ip().is_loopback()),
            router: Router::new()?,
            desk: Desk::default(),
            chosen: Chosen::new(layout.clone(), options.durability),
            polled: Polled::default(),
            digests: Digests::default(),
            recalled: Recalled::default(),
            restored: Restored::default(),
            opening: AtomicUsize::new(0),
            layout,
            options,
        })
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
        let (app, session) = (Arc::clone(self), session.clone());
        spawn(async move {
            session.ended().await;
            drop(session);
            // Asked by what lives and not by id: the same session may be back in another life already.
            let live = |id: &str| app.bridge.session(id).is_some();
            app.chosen.retain(live);
            app.polled.retain(live);
            app.recalled.retain(live);
            app.restored.retain(live);
            app.sink.retain(live);
        });
    }

    /// A place for one more live session, held until it is dropped.
    ///
    /// # Errors
    /// 503 `session_limit_exceeded`.
    pub(crate) fn slot(self: &Arc<Self>) -> Result<Slot, Refusal> {
        let opening = self.opening.fetch_add(1, Ordering::SeqCst) + 1;
        let slot = Slot { app: Arc::clone(self) };
        let limit = self.options.limits.max_sessions;
        if self.bridge.sessions().len() + opening > limit { Err(session_limit(limit)) } else { Ok(slot) }
    }
}

/// A reserved place for a session that is being opened.
pub(crate) struct Slot {
    app: Arc<App>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.app.opening.fetch_sub(1, Ordering::SeqCst);
    }
}

/// 503 for a daemon that holds as many sessions as it may.
pub(crate) fn session_limit(limit: usize) -> Refusal {
    let message = format!("Session limit reached ({limit})");
    Refusal::new(hyper::StatusCode::SERVICE_UNAVAILABLE, "session_limit_exceeded", message)
        .with("limit", limit)
        .with("scope", "workspace")
        .retry_later()
}
