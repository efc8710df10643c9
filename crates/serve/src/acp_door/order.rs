//! All that can happen at the ACP door, and all that can come of it.

use acp::{RequestId, RpcError};
use bridge::{Terminal, Vote};
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

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Say this to the editor: one message.
    Say(Bytes),
    /// Open a session; [`Input::Opened`] follows.
    Open { request: RequestId, opening: Opening },
    /// Begin to read a session's events.
    Follow { session: String },
    /// Admit a prompt; [`Input::Admitted`] follows before anything else does. `body` is what the HTTP route takes.
    Admit { request: RequestId, session: String, body: String },
    /// Cancel these prompts of a session, running or waiting; without any, the one that runs.
    Cancel { session: String, prompts: Vec<String> },
    /// Vote on a question.
    Vote { session: String, question: String, vote: Vote },
    /// Ask the agent; [`Input::Answered`] follows. The parameters still name our session.
    Ask { request: RequestId, session: String, method: String, params: String },
    /// End the connection.
    HangUp(Goodbye),
}

/// Which session is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The folder, as the editor names it.
    pub(crate) cwd: String,
    pub(crate) which: Which,
}

/// A new session or one that was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// A new one, under the editor's id if it has one.
    New { id: Option<String> },
    /// With its history.
    Load { id: String },
    /// Without.
    Resume { id: String },
}

/// Why a connection is ended from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goodbye {
    /// The editor reads too slowly: events were lost for it. It may come back and load.
    TooSlow,
    /// A message was no text.
    NotText,
    /// A message was larger than any may be.
    TooLarge,
    /// Nothing was heard for too long.
    Silent,
    /// The daemon goes.
    Leaving,
    /// A fault of ours.
    Fault,
}
