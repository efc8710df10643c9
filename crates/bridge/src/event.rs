//! What a session tells its readers.

use std::sync::Arc;

use crate::announcement::Announcement;
use crate::policy::Tally;
use crate::prompt::PromptId;
use crate::recording::Recording;
use crate::session::steering::Said;
use crate::{Clipped, Decision, Expiry, Forbidden, InputWritten, Resolution};

/// An event before it has a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The prompt that runs, or the one that the event is about.
    pub(crate) prompt_id: Option<PromptId>,
    /// The client that caused it.
    pub(crate) originator: Option<Arc<str>>,
    /// What happened.
    pub(crate) news: News,
}

/// What happened (wire specification, sections 8.3 to 8.6, 11 and 12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// One content block of a prompt that starts to run: raw JSON text.
    Echo { block: String },
    /// What the agent says: raw JSON text of the update.
    Update { raw: String },
    /// A prompt waits behind another.
    PendingAdded { text: Clipped, queued_at_ms: u64 },
    /// A prompt that waited runs now.
    PendingStarted { text: Clipped },
    /// A prompt leaves the list of those that wait, after its end or before it.
    PendingCompleted { removed: bool },
    /// The agent took these messages into the running turn.
    MidTurnInjected { said: Vec<Said> },
    /// A cancel was requested, or (`forward_failed`) the agent refused the prompt. Not an end.
    PromptCancelled { forward_failed: bool },
    /// The end of a prompt that was answered, cancelled or removed.
    TurnComplete {
        stop_reason: String,
        branch_point: Option<String>,
        cancel: Option<CancelNote>,
        input_written: InputWritten,
    },
    /// The end of a prompt that failed.
    TurnError { message: String, code: Option<String>, input_written: InputWritten, expiry: Option<Expiry> },
    /// The agent asks before it acts; tool call and options are raw JSON text.
    PermissionRequest { request_id: Arc<str>, tool_call: String, options: String, response_timeout_ms: Option<u64> },
    /// A vote of several counts and decides nothing yet.
    PermissionPartialVote { request_id: Arc<str>, tally: Tally },
    /// Somebody voted who has no vote there.
    PermissionForbidden { request_id: Arc<str>, client_id: Option<Arc<str>>, why: Forbidden },
    /// A request is decided.
    PermissionResolved { request_id: Arc<str>, resolution: Resolution },
    /// Somebody voted on a request that had been decided.
    PermissionAlreadyResolved { request_id: Arc<str>, decision: Decision },
    /// The agent did not stop, and another process has taken its place. `memory` is what that one remembers.
    AgentReplaced { reason: StopCause, memory: Option<String> },
    /// The agent does not stop, and nothing could take its place: the queue waits for it, or for a close.
    AgentKept { reason: StopCause, code: String, message: String },
    /// A change that the crates above brought about.
    Announced(Announcement),
    /// The disk refuses records of the transcript, or takes them again.
    Recording(Recording),
    /// The session was closed on request. Nothing follows.
    SessionClosed { reason: String, closed_by: Option<String> },
    /// The session ended by itself or with the daemon. Nothing follows.
    SessionDied { reason: &'static str, exit: Option<Exit> },
}

/// Why an agent was to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// A client said so.
    Cancel,
    /// Its prompt's caller was released, and another prompt waits.
    Deadline,
}

impl StopCause {
    /// The word on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Deadline => "deadline",
        }
    }
}

/// When the running turn was cancelled, and how long it had run by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CancelNote {
    /// Epoch milliseconds.
    pub(crate) cancelled_at_ms: u64,
    /// Milliseconds.
    pub(crate) elapsed_ms: u64,
}

/// How the agent's process ended, as its host saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Its exit code.
    pub(crate) code: Option<i64>,
    /// The signal that killed it.
    pub(crate) signal: Option<i64>,
}

impl Exit {
    /// The stream ended and nobody said why.
    pub(crate) const UNKNOWN: Self = Self { code: None, signal: None };
}
