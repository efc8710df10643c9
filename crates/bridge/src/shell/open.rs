//! From a connected pair of streams to a session that is ready.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::bridge::{Options, Seat};
use super::greeting::Greeting;
use super::live::{AgentSession, Live, Oddities, State};
use super::outbox::Outbox;
use super::{Session, driver, tasks};
use crate::bus::Bus;
use crate::clients::Clients;
use crate::compaction::{Compaction, Seed};
use crate::settings::Settings;
use crate::witness::Process;
use crate::{incoming, outgoing, session};

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
    /// The agent speaks another version of the protocol.
    #[error("agent speaks version {answered} of the protocol, and only version 1 is spoken here")]
    Protocol {
        /// The version it answered with, as JSON text.
        answered: String,
    },
    /// The agent chose another id where it had to take ours.
    #[error("agent opened {} instead of the session asked for", named(answered.as_deref()))]
    IdNotHonored {
        /// Its id.
        answered: Option<String>,
    },
    /// The agent sent more before its answer than is kept.
    #[error("agent sent too much before its session was open")]
    TooMuchEarly,
}

fn named(session: Option<&str>) -> String {
    session.map_or_else(|| "none".to_owned(), |session| format!("session {session:?}"))
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
            Self::Protocol { .. } => "agent_protocol_unsupported",
            Self::TooMuchEarly => "agent_unavailable",
        }
    }
}

/// A session whose agent is ready and which nobody can reach yet. Dropping it closes the streams.
pub struct Opened {
    open: OpenSession,
    agent_session_id: String,
    welcome: String,
    agent_state: String,
    process: Option<Process>,
    greeting: Greeting,
    created_at_ms: u64,
    options: Options,
    seat: Seat,
}

impl Opened {
    /// Speaks to a fresh agent until it has a session.
    pub(super) async fn greet(
        open: OpenSession,
        streams: Streams,
        options: &Options,
        seat: Seat,
    ) -> Result<Self, OpenError> {
        let mut greeting = Greeting::new(streams);
        let timeouts = options.timeouts;
        let restore_ms = timeouts.restore_ms;
        // A host that waits for the host before it to let go of the session answers nothing until then.
        let initialize_ms = match open.kind {
            Kind::New => timeouts.initialize_ms,
            Kind::Restore => timeouts.initialize_ms.max(restore_ms),
        };
        let welcome = greeting.ask("initialize", initialize_ms, outgoing::initialize).await?;
        check_protocol(&welcome)?;
        let (id, cwd) = (&open.session_id, &open.workspace_cwd);
        let agent_state = match open.kind {
            Kind::New => {
                greeting.ask("session/new", initialize_ms, |number| outgoing::new_session(number, id, cwd)).await?
            }
            Kind::Restore => {
                greeting.ask("session/load", restore_ms, |number| outgoing::load_session(number, id, cwd)).await?
            }
        };
        let agent_session_id = agent_session_id(&open, &agent_state)?;
        let (agent_state, process) = incoming::without_process(&agent_state);
        let created_at_ms = options.clock.now_ms();
        Ok(Self {
            open,
            agent_session_id,
            welcome,
            agent_state: agent_state.into_owned(),
            process,
            greeting,
            created_at_ms,
            options: options.clone(),
            seat,
        })
    }

    /// Makes the session live, its events numbered after `seeded_events`, and `seed` being what came before them. What the agent said
    /// meanwhile is published first, so the newest event may have a higher number.
    pub fn activate(self, seeded_events: u64, seed: Seed) -> Session {
        let Self { open, agent_session_id, agent_state, process, greeting, created_at_ms, options, seat, .. } = self;
        let now_ms = options.clock.now_ms();
        let Greeting { streams, frames, asked, early, exit, .. } = greeting;
        let state = State {
            machine: session::Session::new(
                options.limits.pending_prompts,
                options.timeouts,
                options.mediation,
                // What the agent says from its answer on is listened for from here on.
                options.clock.moment(now_ms),
            ),
            agent: AgentSession {
                id: agent_session_id,
                process,
                settings: Settings::new(agent_state),
                writes_transcript: open.same_id,
            },
            bus: Bus::new(seeded_events, options.limits),
            compaction: Compaction::new(seed, options.limits.compaction),
            asked,
            generations: HashMap::default(),
            clients: Clients::default(),
            background: None,
            exit,
            oddities: Oddities::default(),
        };
        let live = Arc::new(Live {
            id: open.session_id,
            workspace_cwd: open.workspace_cwd,
            created_at_ms,
            epoch: Uuid::new_v4().to_string(),
            clock: options.clock,
            timeouts: options.timeouts,
            ledger: options.ledger,
            witness: options.witness,
            registry: Arc::downgrade(&seat.registry),
            state: Mutex::new(state),
            outbox: Outbox::default(),
            alarm: Notify::new(),
            endings: watch::Sender::new(0),
            over: watch::Sender::new(false),
        });
        for message in early {
            driver::take_message(&live, &message, now_ms);
        }
        let session = Session { live: Arc::clone(&live) };
        seat.take(&session);
        tasks::start(driver::drive(live, streams, frames));
        session
    }

    /// The agent's answer to `initialize`, raw JSON object text: what it is and what it can do.
    pub fn welcome(&self) -> &str {
        &self.welcome
    }

    /// The agent's `{modes, models, configOptions, _meta, …}`: its whole answer, raw JSON object text.
    pub fn agent_state(&self) -> &str {
        &self.agent_state
    }

    /// How a restored agent got its memory back, in the host's word: `resumed`, `loaded` or `fresh`.
    pub fn memory(&self) -> Option<String> {
        acp::string_at(&self.agent_state, &["_meta", "turnd/memory"])
    }
}

/// An agent that names no version is taken at its word to speak ours; one that names another would be misunderstood.
fn check_protocol(welcome: &str) -> Result<(), OpenError> {
    match acp::raw_at(welcome, &["protocolVersion"]) {
        None | Some("1") => Ok(()),
        Some(answered) => Err(OpenError::Protocol { answered: answered.to_owned() }),
    }
}

/// The agent's id of the session. A restored session has ours unless the agent says otherwise.
fn agent_session_id(open: &OpenSession, agent_state: &str) -> Result<String, OpenError> {
    let answered = acp::string_at(agent_state, &["sessionId"]);
    let id = match (open.kind, &answered) {
        (_, Some(id)) => id,
        (Kind::Restore, None) => &open.session_id,
        (Kind::New, None) => return Err(OpenError::IdNotHonored { answered }),
    };
    if open.same_id && *id != open.session_id {
        return Err(OpenError::IdNotHonored { answered });
    }
    Ok(id.clone())
}
