//! One daemon: its door, its routes, and the workspaces behind them. A session belongs to the workspace it was made in, and no request
//! about it is answered from another one.

use std::net::SocketAddr;
use std::sync::Arc;

use bridge::Session;

use crate::hosts::HostStarter;
use crate::options::ServeOptions;
use crate::rate::Gate;
use crate::router::Router;
use crate::wall::Wall;
use crate::workspace::Workspace;

/// What stands before every route, and what lies behind them.
pub(crate) struct Daemon {
    pub(crate) options: Arc<ServeOptions>,
    pub(crate) wall: Wall,
    pub(crate) gate: Gate,
    pub(crate) router: Router,
    primary: Arc<Workspace>,
}

impl Daemon {
    /// A daemon that listens at `address`.
    ///
    /// # Errors
    /// When the table of routes contradicts itself, which a test rules out.
    pub(crate) fn new(
        options: ServeOptions,
        hosts: Arc<dyn HostStarter>,
        address: SocketAddr,
    ) -> Result<Self, matchit::InsertError> {
        let options = Arc::new(options);
        let primary = Workspace::new(&options.workspace, Arc::clone(&options), hosts);
        Ok(Self {
            wall: Wall::new(address, &options.allow_origins, options.token.clone(), options.require_auth),
            gate: Gate::new(options.rates, address.ip().is_loopback()),
            router: Router::new()?,
            primary: Arc::new(primary),
            options,
        })
    }

    /// The workspace that a request means that names none.
    pub(crate) fn primary(&self) -> &Arc<Workspace> {
        &self.primary
    }

    /// All workspaces, the primary one first.
    pub(crate) fn workspaces(&self) -> impl Iterator<Item = &Arc<Workspace>> {
        std::iter::once(&self.primary)
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

    /// Ends every prompt of every workspace as `daemon_shutdown`, and tells hosts and readers.
    pub(crate) async fn shutdown(&self) {
        for workspace in self.workspaces() {
            workspace.bridge.shutdown().await;
        }
        self.retry_held();
    }
}
