//! What a client submits, what it is told, and how a prompt looks while it is unfinished.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

use crate::{Clipped, InputWritten};

/// What identifies a prompt: chosen by the client, or a UUID. Cheap to clone, as every event of a turn carries it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PromptId(Arc<str>);

impl PromptId {
    /// The text, shared.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl From<&str> for PromptId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Deref for PromptId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PromptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A prompt as a client submits it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The content blocks: the raw text of a JSON array, passed on as it is.
    pub content: String,
    /// The same for people: the text blocks joined, `[image]` for an image.
    pub text: String,
    /// The client's own id for it, already checked for form; without one the bridge makes a UUID.
    pub prompt_id: Option<String>,
    /// The client that submits it.
    pub originator: Option<String>,
    /// Further members for the agent: the raw text of a JSON object. Its `sessionId` and `prompt` are ignored, its `_meta` is merged.
    pub extra: Option<String>,
    /// The prompt repeats a failed one whose text is already in the history, so it is not echoed.
    pub retry: bool,
    /// It is about how the conversation stands, so it is not admitted while another prompt runs or waits. It may be while the session is
    /// held, and is the first to run when it is released.
    pub alone: bool,
    /// Somebody outside keeps a record of it, and is asked before it runs and before it ends: see [`Witness`](crate::Witness). In a bridge
    /// without one, and for words into a running turn, this means nothing.
    pub witnessed: bool,
    /// Milliseconds from admission, the time in the queue included, after which the caller is released.
    pub deadline_ms: Option<u64>,
    /// Milliseconds from dispatch after which the caller is released.
    pub run_deadline_ms: Option<u64>,
}

/// The answer to an admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The prompt's id from here on.
    pub prompt_id: String,
    /// The newest event before the prompt's own: subscribing with it replays all of them.
    pub last_event_id: u64,
    /// The life of the event stream that number belongs to.
    pub event_epoch: String,
}

/// Why a prompt was not accepted. Nothing was recorded, nothing published.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AdmitError {
    /// The session holds as many prompts as it may.
    #[error("prompt queue is full ({pending}/{limit} pending)")]
    QueueFull {
        /// Prompts a session may hold.
        limit: usize,
        /// Prompts it holds.
        pending: usize,
    },
    /// The session already knows a prompt of this id.
    #[error("prompt id is already in use in this session")]
    Known {
        /// The receipt given then.
        first: Receipt,
        /// The content and the further members were the same, so that the caller is merely asking again.
        same_content: bool,
    },
    /// The content is not a JSON array, or the further members are not a JSON object.
    #[error("prompt content is not a JSON array")]
    NotContent,
    /// It is to be alone, and another prompt runs or waits; or the session is held by somebody who lets nothing come meanwhile.
    #[error("session is busy")]
    Busy,
    /// The session is being closed.
    #[error("session is closing")]
    Closing,
    /// The session is gone.
    #[error("session is gone")]
    Gone,
}

/// The session takes no more orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotOpen {
    /// It is being closed.
    #[error("session is closing")]
    Closing,
    /// It is gone.
    #[error("session is gone")]
    Gone,
}

impl From<NotOpen> for AdmitError {
    fn from(not_open: NotOpen) -> Self {
        match not_open {
            NotOpen::Closing => Self::Closing,
            NotOpen::Gone => Self::Gone,
        }
    }
}

/// Where an unfinished prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptState {
    /// Waiting for its turn.
    Queued,
    /// The agent has it.
    Running,
}

impl PromptState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
        }
    }
}

/// One entry of the list of unfinished prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPrompt {
    /// The prompt.
    pub prompt_id: String,
    /// Its text for people.
    pub text: String,
    /// Its content blocks, the raw text of a JSON array.
    pub content: String,
    /// Admission, epoch milliseconds.
    pub queued_at_ms: u64,
    /// Running or queued.
    pub state: PromptState,
    /// The client that submitted it.
    pub originator: Option<String>,
    /// Whether the agent has its input.
    pub input_written: InputWritten,
}

/// What a running prompt waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When the oldest of them was asked, epoch milliseconds.
    pub since_ms: u64,
    /// The open permission requests, oldest first.
    pub request_ids: Vec<String>,
}

/// An unfinished prompt as the poll sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePrompt {
    /// The prompt.
    pub prompt_id: String,
    /// Running or queued.
    pub state: PromptState,
    /// Its text, bounded.
    pub prompt_text: Clipped,
    /// Admission, epoch milliseconds.
    pub queued_at_ms: u64,
    /// Dispatch, epoch milliseconds; only of a running prompt.
    pub started_at_ms: Option<u64>,
    /// The last sign of the agent in this turn, epoch milliseconds: a turn may be silent without being dead.
    pub heard_at_ms: Option<u64>,
    /// Milliseconds since that sign, or since dispatch; only of a running prompt, and only where somebody looks at it with a clock.
    pub silent_for_ms: Option<u64>,
    /// The questions of the agent that nobody has decided.
    pub waiting: Option<Waiting>,
    /// When a client's wish to cancel it went on record, epoch milliseconds; only of a running prompt.
    pub wished_at_ms: Option<u64>,
    /// The client that submitted it.
    pub originator: Option<String>,
    /// Whether the agent has its input.
    pub input_written: InputWritten,
}

impl LivePrompt {
    /// The same, looked at at that time: how long the agent has said nothing is counted.
    pub(crate) fn seen_at(self, now_ms: u64) -> Self {
        let last_sign_ms = self.started_at_ms.max(self.heard_at_ms);
        Self { silent_for_ms: last_sign_ms.map(|sign_ms| now_ms.saturating_sub(sign_ms)), ..self }
    }
}
