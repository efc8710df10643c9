//! All live sessions of a daemon.

use std::sync::Arc;

use super::open::{OpenError, OpenSession, Opened, Streams};
use super::session::Session;
use crate::limits::{Limits, Timeouts};
use crate::{Clock, PromptLedger};

/// What a bridge needs from outside.
#[derive(Clone)]
pub struct Options {
    /// Where admissions and outcomes are recorded.
    pub ledger: Arc<dyn PromptLedger>,
    /// The time.
    pub clock: Clock,
    /// The bounds that flags change.
    pub limits: Limits,
    /// How long to wait for an agent in matters other than a prompt.
    pub timeouts: Timeouts,
}

/// The live sessions. Clones are the same bridge.
#[derive(Clone)]
pub struct Bridge {
    #[expect(dead_code, reason = "the shell follows")]
    options: Options,
}

impl Bridge {
    /// A bridge with no session.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Greets the agent at the other end of the streams and opens the session there. What the agent says meanwhile is kept.
    ///
    /// # Errors
    /// See [`OpenError`]; the streams are closed then.
    pub async fn open(&self, _open: OpenSession, _streams: Streams) -> Result<Opened, OpenError> {
        Err(OpenError::ShuttingDown)
    }

    /// The live session of that id.
    pub fn session(&self, _session_id: &str) -> Option<Session> {
        None
    }

    /// All live sessions, in no order.
    pub fn sessions(&self) -> Vec<Session> {
        Vec::new()
    }

    /// The session that a permission request belongs to, decided ones included.
    pub fn session_of_permission(&self, _request_id: &str) -> Option<Session> {
        None
    }

    /// Ends every prompt as `daemon_shutdown`, tells everybody, and resolves when the agents' streams have ended or the time
    /// for that is over. No session can be opened afterwards.
    pub async fn shutdown(&self) {}
}
