//! How a question of the agent was decided, by whom, and why.

use std::sync::Arc;

use crate::FlushOrigin;

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This option.
    Selected {
        /// The option's id.
        option_id: String,
    },
    /// None: a vote, a cancel, or the end of the turn refused it.
    Cancelled,
}

/// Why it was decided then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A vote decided.
    Vote,
    /// Nobody decided in time, and the default is to deny.
    Timeout,
    /// The votes that could still come could not decide.
    Undecidable,
    /// The agent asked something else under the same id, so that no answer could say which of the two it meant.
    IdReused,
    /// The prompt was cancelled.
    PromptCancelled,
    /// The prompt's deadline passed.
    DeadlineExceeded,
    /// The agent answered the prompt and left the question open.
    TurnEnded,
    /// The agent that asked does not stop, and its process is ended.
    AgentReplaced,
    /// The session ended.
    Flushed(FlushOrigin),
}

impl Reason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vote => "vote",
            Self::Timeout => "timeout",
            Self::Undecidable => "undecidable",
            Self::IdReused => "id_reused",
            Self::PromptCancelled => "prompt_cancelled",
            Self::DeadlineExceeded => "prompt_deadline_exceeded",
            Self::AgentReplaced => "agent_replaced",
            Self::TurnEnded => "turn_ended",
            Self::Flushed(origin) => origin.code(),
        }
    }
}

/// A decision with all that a late voter may want to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// What was decided.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
    /// The client whose vote decided, if a vote did and its voter said who it is.
    pub voter: Option<Arc<str>>,
    /// When, epoch milliseconds.
    pub at_ms: u64,
}

impl Resolution {
    /// Nobody chose an option.
    pub(crate) fn cancelled(reason: Reason, at_ms: u64) -> Self {
        Self { decision: Decision::Cancelled, reason, voter: None, at_ms }
    }
}
