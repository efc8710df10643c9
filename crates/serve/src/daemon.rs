//! One daemon: its door, its routes, and the workspaces behind them. A session belongs to the workspace it was made in, and no request
//! about it is answered from another one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bridge::Session;
use tokio::sync::watch;

use crate::hosts::HostStarter;
use crate::options::ServeOptions;
use crate::rate::Gate;
use crate::refusal::Refusal;
use crate::requests::Place;
use crate::returns::Returns;
use crate::router::Router;
use crate::wall::Wall;
use crate::webhooks::{Outside, Webhooks};
use crate::workspace::Workspace;

/// What stands before every route, and what lies behind them.
pub(crate) struct Daemon {
    pub(crate) options: Arc<ServeOptions>,
    pub(crate) wall: Wall,
    pub(crate) gate: Gate,
    pub(crate) router: Router,
    /// Set once all sessions are over, for connections that have more than one request.
    pub(crate) over: watch::Sender<bool>,
    pub(crate) returns: Arc<Returns>,
    /// None before somebody asks for them, and where there is no store.
    webhooks: OnceLock<Webhooks>,
    primary: Arc<Workspace>,
    further: Vec<Arc<Workspace>>,
}

impl Daemon {
    /// A daemon of `primary` and `further` folders that listens at `address`, with the return requests of all of them.
    ///
    /// # Errors
    /// When the table of routes contradicts itself, which a test rules out.
    pub(crate) fn new(
        options: ServeOptions,
        (primary, further): (&Path, &[PathBuf]),
        hosts: Arc<dyn HostStarter>,
        address: SocketAddr,
        returns: Arc<Returns>,
    ) -> Result<Self, matchit::InsertError> {
        let options = Arc::new(options);
        let workspace = |folder: &Path| {
            Arc::new(Workspace::new(folder, Arc::clone(&options), Arc::clone(&hosts), Arc::clone(&returns)))
        };
        let primary = workspace(primary);
        let further: Vec<_> = further.iter().map(|folder| workspace(folder)).collect();
        returns.neighbours().introduce(std::iter::once(&primary).chain(&further));
        Ok(Self {
            wall: Wall::new(address, &options.allow_origins, options.token.clone(), options.require_auth),
            gate: Gate::new(options.rates, address.ip().is_loopback()),
            router: Router::new()?,
            over: watch::Sender::new(false),
            webhooks: OnceLock::new(),
            returns,
            primary,
            further,
            options,
        })
    }

    /// The endpoints that terminal events are posted to.
    ///
    /// # Errors
    /// 503 `store_corrupt`, `store_unavailable` or `store_busy`.
    pub(crate) fn webhooks(&self) -> Result<&Webhooks, Refusal> {
        let store = self.returns.store()?;
        Ok(self.webhooks.get_or_init(|| {
            let outside = Outside::network(&self.options.version);
            Webhooks::new(Arc::clone(store), self.returns.follow(), outside)
        }))
    }

    /// Opens the store of return requests in a folder, serves the endpoints in it, and decides what earlier lives left open.
    pub(crate) async fn take_up_returns(self: Arc<Self>, folder: PathBuf) {
        let open = self.returns.open(folder).await;
        if let Ok(webhooks) = self.webhooks()
            && !self.returns.is_draining()
        {
            webhooks.start().await;
        }
        Arc::clone(&self.returns).recover(open).await;
    }

    /// The workspace that a request means that names none.
    pub(crate) fn primary(&self) -> &Arc<Workspace> {
        &self.primary
    }

    /// All workspaces, the primary one first.
    pub(crate) fn workspaces(&self) -> impl Iterator<Item = &Arc<Workspace>> {
        std::iter::once(&self.primary).chain(&self.further)
    }

    /// The workspace that a path means, under any spelling.
    pub(crate) fn serving(&self, cwd: &str) -> Option<&Arc<Workspace>> {
        let exact = self.workspaces().find(|workspace| workspace.cwd == cwd);
        exact.or_else(|| {
            let place = Place::of(cwd);
            self.workspaces().find(|workspace| place.is(&workspace.cwd))
        })
    }

    /// The workspace in which a session lives, is being opened or is being closed.
    pub(crate) fn home(&self, session: &str) -> Option<&Arc<Workspace>> {
        self.workspaces().find(|workspace| workspace.knows(session))
    }

    /// All live sessions, in no order.
    pub(crate) fn sessions(&self) -> Vec<Session> {
        self.workspaces().flat_map(|workspace| workspace.bridge.sessions()).collect()
    }

    /// Writes what the disk refused before, as far as it takes it now.
    pub(crate) fn retry_held(&self) {
        for workspace in self.workspaces() {
            workspace.sink.retry_held();
        }
    }

    /// Ends every prompt of every workspace as `daemon_shutdown`, and tells hosts and readers. Return requests that run have a while to
    /// be answered, all of them at once, and none any more as soon as `hurry` resolves.
    pub(crate) async fn shutdown(&self, hurry: impl Future<Output = ()>) {
        self.returns.drain();
        let ended = self.end_sessions();
        tokio::pin!(ended);
        tokio::select! {
            () = &mut ended => {}
            () = hurry => {
                // Told twice, sessions wait for no answer.
                drop(self.end_sessions());
                ended.await;
            }
        }
        self.over.send_replace(true);
        self.retry_held();
        if let Some(webhooks) = self.webhooks.get() {
            webhooks.end().await;
        }
        self.returns.close().await;
    }

    /// Tells every session to end, and gives what resolves when all have.
    fn end_sessions(&self) -> impl Future<Output = ()> + use<> {
        let ending: Vec<_> = self.workspaces().map(|workspace| workspace.bridge.shutdown()).collect();
        async move {
            for ended in ending {
                ended.await;
            }
        }
    }
}
