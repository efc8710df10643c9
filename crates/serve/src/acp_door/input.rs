//! All that can happen at the ACP door.

use acp::{RequestId, RpcError};
use bridge::Terminal;
use bytes::Bytes;

/// What happens.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// The editor says something: one message.
    Said(Bytes),
    /// A session that it asked for is there, or is not.
    Opened { request: RequestId, outcome: Result<Entrance, RpcError> },
    /// An event of a session.
    Event {
        session: String,
        /// Its number; a frame about the stream itself has none.
        id: Option<u64>,
        kind: &'static str,
        /// Its envelope.
        json: Bytes,
    },
    /// Nothing more will come from a session: it is over.
    Ended { session: String },
    /// A prompt was admitted, or it was not.
    Admitted { request: RequestId, session: String, outcome: Result<Admitted, RpcError> },
    /// The agent's answer to what was passed on to it: raw JSON.
    Answered { request: RequestId, outcome: Result<String, RpcError> },
}

/// A session as it is when an editor comes to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entrance {
    pub(crate) session: String,
    /// Whether it was made for this request: the editor does not know its id yet.
    pub(crate) fresh: bool,
    /// The id under which the editor is registered there.
    pub(crate) client: String,
    /// What the agent said of itself when the session was opened: raw JSON object.
    pub(crate) state: String,
    /// The updates that are shown to it first, raw JSON objects, oldest first.
    pub(crate) replay: Vec<String>,
    /// Whether older ones are left out.
    pub(crate) cut: bool,
    /// The last event that the replay contains.
    pub(crate) shown: u64,
    /// What the agent has asked and nobody decided.
    pub(crate) questions: Vec<Question>,
}

/// An open permission request.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// Our id for it.
    pub(crate) id: String,
    /// Raw JSON object.
    pub(crate) tool_call: String,
    /// Raw JSON array.
    pub(crate) options: String,
}

/// What became of a prompt that was sent.
#[derive(Clone, Debug)]
pub(crate) enum Admitted {
    /// It waits or runs; its end is an event.
    Open { prompt: String },
    /// It was sent before, and has ended.
    Over { prompt: String, terminal: Terminal },
    /// It was sent before, and what became of it is not known.
    Lost { prompt: String },
}
