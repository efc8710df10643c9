//! What an end is, and what is told of a turn's.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits::FINAL_BYTES_MAX;
use crate::{Category, Cause, Code, Evidence, Hash, InputWritten, State};

/// The end of a request: decided once, never changed. Only `completed` has a final text, and it always has one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terminal {
    /// A terminal one.
    pub state: State,
    /// None with `completed`, and only there.
    pub code: Option<Code>,
    /// A fixed word beside the code, where there is more to say.
    pub detail: Option<&'static str>,
    /// Whether the complete prompt reached the agent.
    pub input_written: InputWritten,
    /// The agent's word, where it said one that may be passed on.
    pub stop_reason: Option<String>,
    /// The answer.
    pub final_text: Option<FinalText>,
    /// What ties the turn to the request.
    pub evidence: Option<Evidence>,
    /// When that was, in epoch milliseconds.
    pub at_ms: u64,
}

/// A final message, cut to [`FINAL_BYTES_MAX`], and what the whole was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalText {
    /// As much as is kept.
    pub text: String,
    /// Bytes of the whole.
    pub full_bytes: u64,
    /// Of the whole.
    pub sha256: Hash,
    /// Whether something is missing here.
    pub is_truncated: bool,
}

impl FinalText {
    /// The final text that a turn's whole answer is; none when it says nothing, which is no final message.
    #[must_use]
    pub fn new(whole: &str) -> Option<Self> {
        if whole.trim().is_empty() {
            return None;
        }
        let kept = whole.floor_char_boundary(FINAL_BYTES_MAX);
        Some(Self {
            text: whole[..kept].to_owned(),
            full_bytes: whole.len() as u64,
            sha256: Hash(Sha256::digest(whole).into()),
            is_truncated: kept < whole.len(),
        })
    }
}

/// How a turn ended, as it was told by whoever saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent answered with a stop reason.
    Ended {
        /// The agent's word; an open set.
        stop_reason: String,
        /// The answer, where there was one.
        final_text: Option<FinalText>,
        /// What ties it to the prompt.
        evidence: Evidence,
    },
    /// An error which means that the call never started: unknown method, invalid parameters, not logged in.
    Rejected {
        /// What was wrong, where that is known.
        category: Option<Category>,
    },
    /// Any other error.
    Failed {
        /// What was wrong, where that is known.
        category: Option<Category>,
        /// What ties it to the prompt.
        evidence: Evidence,
    },
    /// It was cancelled by somebody else, or ended with its session.
    Stopped {
        /// Who ended it.
        cause: Cause,
    },
}

/// An outcome that is on disk before it is on the ledger: what the daemon once saw is not lost between the two files (return requests,
/// section 2.6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The version of this shape.
    pub v: u32,
    /// When the outcome came, in epoch milliseconds.
    pub at_ms: u64,
    /// The outcome.
    pub outcome: Outcome,
}

impl Stage {
    /// The version that is written.
    pub const VERSION: u32 = 1;

    /// An outcome that came at a time in epoch milliseconds.
    #[must_use]
    pub fn new(outcome: Outcome, at_ms: u64) -> Self {
        Self { v: Self::VERSION, at_ms, outcome }
    }
}
