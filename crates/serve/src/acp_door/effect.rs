//! All that can come of what happens at the ACP door.

use acp::RequestId;
use bridge::Vote;
use bytes::Bytes;

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Say this to the editor: one message.
    Say(Bytes),
    /// Open a session; [`super::Input::Opened`] follows.
    Open { request: RequestId, opening: Opening },
    /// Begin to read a session's events.
    Follow { session: String },
    /// Admit a prompt; [`super::Input::Admitted`] follows before anything else does. `body` is what the HTTP route takes.
    Admit { request: RequestId, session: String, body: String },
    /// Cancel these prompts of a session, running or waiting; without any, the one that runs.
    Cancel { session: String, prompts: Vec<String> },
    /// Vote on a question.
    Vote { session: String, question: String, vote: Vote },
    /// Ask the agent; [`super::Input::Answered`] follows. The parameters still name our session.
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
