//! Everything that can happen to a session.

use std::collections::BTreeSet;
use std::sync::Arc;

use acp::RequestId;

use crate::announcement::Announcement;
use crate::event::Exit;
use crate::incoming::{Ask, Update};
use crate::outcome::Answer;
use crate::prompt::{Prompt, PromptId, Receipt};
use crate::recording::Recording;
use crate::session::steering::Drain;
use crate::succession::Succession;
use crate::{Deadline, Meanwhile, Vote, Voter};

/// Something that happened. What is random or read from a clock comes with it.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A client submits a prompt. The receipt is the one it gets if the prompt is accepted.
    Admit { prompt: Prompt, receipt: Receipt },
    /// A client says something into the running turn. The receipt is the one of the prompt that it becomes if the agent does not ask for it.
    Steer { prompt: Prompt, receipt: Receipt },
    /// A client wants the running prompt cancelled; if it names one, only that one.
    Cancel { prompt_id: Option<String>, by: Option<Arc<str>> },
    /// A client wants one prompt gone.
    Remove { prompt_id: String, by: Option<Arc<str>> },
    /// A client answers a permission request.
    Vote { request_id: String, vote: Vote, voter: Voter },
    /// A client is no longer registered.
    ClientGone { client_id: String },
    /// The readers are told of a change that was brought about elsewhere.
    Announced { announcement: Announcement, by: Option<Arc<str>> },
    /// Nothing is to be handed to the agent until [`Input::Release`], because somebody changes what it remembers.
    Hold { meanwhile: Meanwhile },
    /// Whoever held the session is done, or gave up.
    Release,
    /// The conversation was taken back while it was held: what ended before is not remembered here any more.
    Rewound { announcement: Announcement, by: Option<Arc<str>> },
    /// The witness lets the prompt that waits for it run, or does not.
    Dispatch { prompt_id: String, go: bool },
    /// The witness has the outcome that it was told of.
    Confirm { prompt_id: String },
    /// A pause in which stray words are listened for is over.
    PauseOver,
    /// The session is to be closed.
    Close { reason: String, closed_by: Option<String> },
    /// The session is given up.
    Kill,
    /// The daemon is stopping.
    Shutdown,

    /// The host says how the recording goes.
    Recording(Recording),
    /// The agent sends an update.
    Updated(Update),
    /// The agent asks for permission; `request_id` is our name for that, and `registered` are the session's clients at that time.
    Asked { ask: Ask, request_id: Arc<str>, registered: BTreeSet<Arc<str>> },
    /// The agent asks for what was said into its turn.
    Drain(Drain),
    /// The agent asks for something that nobody here does.
    AskedUnknown { agent_request: RequestId, method: String },
    /// The host says that the whole of a witnessed prompt is in the agent's input.
    Written { prompt_id: String },
    /// The host says that the agent has said words outside of its turns which it has handed on to nobody.
    Strayed,
    /// The agent wrote something that cannot be read, or not exactly, and may have been words of an answer.
    Unreadable,
    /// The agent answered a prompt.
    Settled { prompt_id: PromptId, answer: Answer },
    /// The agent's stream ended. The host may have said how the agent's process ended.
    ChannelLost { exit: Option<Exit> },

    /// The host answered the request to replace the agent.
    Replaced(Succession),

    /// A prompt's deadline has come.
    DeadlineExpired { prompt_id: PromptId, deadline: Deadline },
    /// Nobody has decided a permission request in time.
    PermissionExpired { request_id: Arc<str> },
    /// The agent has had time enough to stop.
    GraceOver,
    /// The host has had time enough to replace the agent.
    ReplaceOver,
    /// The running turn of a daemon that stops has had its time to answer undisturbed.
    ChanceOver,
    /// A session that is being closed, or whose daemon stops, has given its running turn time enough to settle.
    SettleOver,
    /// An ending session has given the host time enough to close its stream.
    EndOver,
}
