//! What an end is, and what is told of a turn's.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits::FINAL_BYTES_MAX;
use crate::{Category, Cause, Code, Evidence, Hash, InputWritten, State};

/// The stop reason of a turn that was done. Every other one ended it early.
pub(crate) const NATURAL_END: &str = "end_turn";

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

/// A final message, cut to [`FINAL_BYTES_MAX`], and what the whole was. One that is not what was hashed is not read back: a bit of it fell
/// over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
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

/// The same as it is on disk, where a bit of it may have fallen over.
#[derive(Deserialize)]
struct Written {
    text: String,
    full_bytes: u64,
    sha256: Hash,
    is_truncated: bool,
}

impl TryFrom<Written> for FinalText {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { text, full_bytes, sha256, is_truncated } = written;
        if !is_truncated && Hash(Sha256::digest(&text).into()) != sha256 {
            return Err("the text is not the one that was hashed");
        }
        Ok(Self { text, full_bytes, sha256, is_truncated })
    }
}

impl Terminal {
    /// The end with an answer.
    pub(crate) fn completed(stop_reason: &str, text: FinalText, evidence: Evidence, at_ms: u64) -> Self {
        Self {
            state: State::Completed,
            code: None,
            detail: None,
            input_written: InputWritten::Yes,
            stop_reason: Some(stop_reason.to_owned()),
            final_text: Some(text),
            evidence: Some(evidence),
            at_ms,
        }
    }

    /// An end without an answer.
    pub(crate) fn without_text(state: State, code: Code, input_written: InputWritten, at_ms: u64) -> Self {
        debug_assert!(state.is_terminal() && state != State::Completed, "{state:?} is no end without an answer");
        let (detail, stop_reason, final_text, evidence) = (None, None, None, None);
        Self { state, code: Some(code), detail, input_written, stop_reason, final_text, evidence, at_ms }
    }

    /// The same with a fixed word beside the code.
    pub(crate) fn with_detail(self, detail: Option<&'static str>) -> Self {
        Self { detail, ..self }
    }

    /// The same with what ties the turn to the request.
    pub(crate) fn with_evidence(self, evidence: Evidence) -> Self {
        Self { evidence: Some(evidence), ..self }
    }
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
        /// The agent has said words that belong to no turn, so that nobody can tell whose the text is. There is none then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_strayed: bool,
        /// In the turn the agent wrote something that could not be read, or not exactly: nobody can tell whether the text is all of it. There
        /// is none then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_unreadable: bool,
    },
    /// The agent wrote something that may have been its answer and could not be read. What it said is not known.
    Unread {
        /// What ties it to the prompt.
        evidence: Evidence,
    },
    /// An error which means that the call never started (unknown method, invalid parameters, not logged in), and no update of the turn was
    /// seen. Where one was, it is [`Outcome::Failed`].
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
    /// The agent answered that it was cancelled, or after a cancel: somebody else's, or that of its session's end.
    Stopped {
        /// Who ended it.
        cause: Cause,
        /// The agent's word, if it has answered with one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<String>,
        /// What ties that to the prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Evidence>,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is on disk in stores of this version.
    #[test]
    fn a_stage_is_written_as_it_always_was_and_reads_back() {
        let sha256 = "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";
        let final_text = format!(r#"{{"text":"hi","full_bytes":2,"sha256":"{sha256}","is_truncated":false}}"#);
        let ended = Outcome::Ended {
            stop_reason: "end_turn".to_owned(),
            final_text: FinalText::new("hi"),
            evidence: Evidence::RpcResponse,
            is_strayed: false,
            is_unreadable: false,
        };
        let strayed = Outcome::Ended {
            stop_reason: "end_turn".to_owned(),
            final_text: None,
            evidence: Evidence::RpcResponse,
            is_strayed: true,
            is_unreadable: false,
        };
        let unreadable = Outcome::Ended {
            stop_reason: "end_turn".to_owned(),
            final_text: None,
            evidence: Evidence::RpcResponse,
            is_strayed: false,
            is_unreadable: true,
        };
        let failed = Outcome::Failed { category: Some(Category::Rate), evidence: Evidence::V2Accepted };
        for (outcome, text) in [
            (
                ended,
                format!(
                    r#"{{"kind":"ended","stop_reason":"end_turn","final_text":{final_text},"evidence":"rpc_response"}}"#
                ),
            ),
            (
                strayed,
                r#"{"kind":"ended","stop_reason":"end_turn","final_text":null,"evidence":"rpc_response","is_strayed":true}"#
                    .to_owned(),
            ),
            (
                unreadable,
                r#"{"kind":"ended","stop_reason":"end_turn","final_text":null,"evidence":"rpc_response","is_unreadable":true}"#
                    .to_owned(),
            ),
            (
                Outcome::Unread { evidence: Evidence::RpcResponse },
                r#"{"kind":"unread","evidence":"rpc_response"}"#.to_owned(),
            ),
            (failed, r#"{"kind":"failed","category":"rate","evidence":"v2_accepted"}"#.to_owned()),
            (Outcome::Rejected { category: None }, r#"{"kind":"rejected","category":null}"#.to_owned()),
            (
                Outcome::Stopped { cause: Cause::SessionClosed, stop_reason: None, evidence: None },
                r#"{"kind":"stopped","cause":"session_closed"}"#.to_owned(),
            ),
            (
                Outcome::Stopped {
                    cause: Cause::TurnCancelled,
                    stop_reason: Some("cancelled".to_owned()),
                    evidence: Some(Evidence::RpcResponse),
                },
                r#"{"kind":"stopped","cause":"turn_cancelled","stop_reason":"cancelled","evidence":"rpc_response"}"#
                    .to_owned(),
            ),
        ] {
            let stage = Stage::new(outcome, 7);
            let text = format!(r#"{{"v":1,"at_ms":7,"outcome":{text}}}"#);
            assert_eq!(serde_json::to_string(&stage).unwrap(), text);
            assert_eq!(serde_json::from_str::<Stage>(&text).unwrap(), stage);
        }
    }

    #[test]
    fn a_text_that_is_not_the_one_that_was_hashed_is_not_read_back() {
        let text = serde_json::to_string(&FinalText::new("answer 3")).unwrap();
        assert!(serde_json::from_str::<FinalText>(&text).is_ok());
        assert!(serde_json::from_str::<FinalText>(&text.replace("answer 3", "answer 7")).is_err());
    }

    #[test]
    fn a_stage_of_a_kind_that_is_not_known_is_an_error() {
        let text = r#"{"v":2,"at_ms":7,"outcome":{"kind":"vanished"}}"#;
        assert!(serde_json::from_str::<Stage>(text).is_err());
    }
}
