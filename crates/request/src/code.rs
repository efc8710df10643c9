//! Why a request ended as it did: fixed words, and an agent's own stop reason.

use serde::{Deserialize, Serialize};

use crate::limits::STOP_REASON_BYTES_MAX;

/// The code of an end, for programs (return requests, section 2.10). `completed` has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request's own deadline.
    Deadline,
    /// A cancel of the request.
    ClientCancel,
    /// The turn, or its session, was ended by somebody else.
    Ended(Cause),
    /// The agent answered with an error.
    TurnError,
    /// The agent stopped for another reason than that it was done: its own word.
    StopReason(StopReason),
    /// The same, where the word is none of ours to pass on: too long, of other characters, or one that means something else here.
    OtherStopReason,
    /// The prompt was cut off on its way, before it was complete.
    WriteFailed,
    /// The agent said that the call never started.
    RejectedByAgent,
    /// The prompt left the queue before anything was sent.
    RefusedBeforeDispatch,
    /// The agent's process ended.
    AgentExited,
    /// The daemon died before anything was sent.
    CrashBeforeSubmitted,
    /// The daemon died when bytes may have been out.
    CrashInDispatch,
    /// The write failed when at least the complete prompt was out.
    WriteUnknown,
    /// The daemon died during the turn and nothing says how that ended.
    DaemonLost,
    /// A fact was not what it was when the request was made.
    Mismatch(Mismatch),
    /// The turn ended naturally and said nothing.
    NoFinalMessage,
    /// The turn ended and its text is lost.
    FinalTextUnavailable,
    /// A turn ended, and only its place and time say whose it was.
    Unattributable,
    /// The store was made anew from what could be read.
    StoreRecovered,
}

/// Who ended a turn that was not its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Another client cancelled or removed the prompt.
    TurnCancelled,
    /// The session was closed.
    SessionClosed,
    /// The session was given up.
    SessionKilled,
    /// The conversation was taken back.
    SessionRewound,
    /// The daemon is stopping.
    DaemonShutdown,
}

/// A correlation fact that did not hold (return requests, section 2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mismatch {
    /// Another agent process.
    IncarnationChanged,
    /// Another session, or another transcript.
    SessionChanged,
    /// Another turn was the last one.
    BaselineMoved,
    /// The turn did not begin behind the dispatch.
    NotAfterMarker,
    /// Another prompt.
    PromptMismatch,
    /// Another prompt id.
    PromptIdMismatch,
    /// Another turn than the bound one.
    TurnChanged,
    /// A user message that is not ours, within our turn.
    ExtraUserMessage,
}

/// Why a prompt was not admitted, or not dispatched. A caller that still waits is told so and nothing is kept; later it is the detail of
/// `refused_before_dispatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A turn runs or waits.
    Busy,
    /// The queue is full.
    QueueFull,
    /// The caller wanted another agent process.
    StaleIncarnation,
    /// An earlier prompt was released by its deadline and its call is unanswered: its late pieces would mix into our text.
    SessionTainted,
    /// A fact did not hold any more when the prompt's turn came.
    Mismatch(Mismatch),
    /// Somebody took the prompt out of the queue, by itself or with its session.
    Removed(Cause),
    /// The prompt could not be put on record.
    NotRecorded,
}

/// A fixed, safe word for what was wrong behind a `turn_error`; the provider's own text is not kept (return requests, section 2.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Refused by a rule.
    Policy,
    /// Too much context.
    Context,
    /// A quota is used up.
    Usage,
    /// Too many calls.
    Rate,
    /// No capacity.
    Capacity,
    /// The provider failed.
    Provider,
    /// Not logged in.
    Auth,
    /// The sandbox forbade it.
    Sandbox,
}

/// An agent's stop reason that may be passed through: 1 to [`STOP_REASON_BYTES_MAX`] characters from letters, digits, `.`, `_`, `:`, `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StopReason(String);

impl StopReason {
    /// The stop reason that a text is; none when it is not to be passed on.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
        let is_short = (1..=STOP_REASON_BYTES_MAX).contains(&text.len());
        (is_short && text.bytes().all(is_allowed)).then(|| Self(text.to_owned()))
    }

    /// The agent's word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Code {
    /// All but the open ones.
    const CLOSED: [Self; 29] = [
        Self::Deadline,
        Self::ClientCancel,
        Self::Ended(Cause::TurnCancelled),
        Self::Ended(Cause::SessionClosed),
        Self::Ended(Cause::SessionKilled),
        Self::Ended(Cause::SessionRewound),
        Self::Ended(Cause::DaemonShutdown),
        Self::TurnError,
        Self::OtherStopReason,
        Self::WriteFailed,
        Self::RejectedByAgent,
        Self::RefusedBeforeDispatch,
        Self::AgentExited,
        Self::CrashBeforeSubmitted,
        Self::CrashInDispatch,
        Self::WriteUnknown,
        Self::DaemonLost,
        Self::Mismatch(Mismatch::IncarnationChanged),
        Self::Mismatch(Mismatch::SessionChanged),
        Self::Mismatch(Mismatch::BaselineMoved),
        Self::Mismatch(Mismatch::NotAfterMarker),
        Self::Mismatch(Mismatch::PromptMismatch),
        Self::Mismatch(Mismatch::PromptIdMismatch),
        Self::Mismatch(Mismatch::TurnChanged),
        Self::Mismatch(Mismatch::ExtraUserMessage),
        Self::NoFinalMessage,
        Self::FinalTextUnavailable,
        Self::Unattributable,
        Self::StoreRecovered,
    ];

    /// The code of a turn that ended for another reason than that it was done.
    #[must_use]
    pub fn of_stop_reason(text: &str) -> Self {
        if text == "cancelled" {
            return Self::Ended(Cause::TurnCancelled);
        }
        match StopReason::parse(text) {
            Some(reason) if Self::closed(text).is_none() => Self::StopReason(reason),
            _ => Self::OtherStopReason,
        }
    }

    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Deadline => "deadline",
            Self::ClientCancel => "client_cancel",
            Self::Ended(cause) => cause.as_str(),
            Self::TurnError => "turn_error",
            Self::StopReason(reason) => reason.as_str(),
            Self::OtherStopReason => "other_stop_reason",
            Self::WriteFailed => "write_failed",
            Self::RejectedByAgent => "rejected_by_agent",
            Self::RefusedBeforeDispatch => "refused_before_dispatch",
            Self::AgentExited => "agent_exited",
            Self::CrashBeforeSubmitted => "crash_before_submitted",
            Self::CrashInDispatch => "crash_in_dispatch",
            Self::WriteUnknown => "write_unknown",
            Self::DaemonLost => "daemon_lost",
            Self::Mismatch(mismatch) => mismatch.as_str(),
            Self::NoFinalMessage => "no_final_message",
            Self::FinalTextUnavailable => "final_text_unavailable",
            Self::Unattributable => "unattributable",
            Self::StoreRecovered => "store_recovered",
        }
    }

    /// The code of a word: one of ours, else a stop reason; none for what is neither.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::closed(word).or_else(|| StopReason::parse(word).map(Self::StopReason))
    }

    fn closed(word: &str) -> Option<Self> {
        Self::CLOSED.into_iter().find(|code| code.as_str() == word)
    }
}

impl Cause {
    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TurnCancelled => "turn_cancelled",
            Self::SessionClosed => "session_closed",
            Self::SessionKilled => "session_killed",
            Self::SessionRewound => "session_rewound",
            Self::DaemonShutdown => "daemon_shutdown",
        }
    }
}

impl Mismatch {
    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IncarnationChanged => "incarnation_changed",
            Self::SessionChanged => "session_changed",
            Self::BaselineMoved => "baseline_moved",
            Self::NotAfterMarker => "not_after_marker",
            Self::PromptMismatch => "prompt_mismatch",
            Self::PromptIdMismatch => "prompt_id_mismatch",
            Self::TurnChanged => "turn_changed",
            Self::ExtraUserMessage => "extra_user_message",
        }
    }
}

impl Refusal {
    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::QueueFull => "queue_full",
            Self::StaleIncarnation => "stale_incarnation",
            Self::SessionTainted => "session_tainted",
            Self::Mismatch(mismatch) => mismatch.as_str(),
            Self::Removed(cause) => cause.as_str(),
            Self::NotRecorded => "not_recorded",
        }
    }
}

impl Category {
    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Context => "context",
            Self::Usage => "usage",
            Self::Rate => "rate",
            Self::Capacity => "capacity",
            Self::Provider => "provider",
            Self::Auth => "auth",
            Self::Sandbox => "sandbox",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back_and_no_two_are_one_word() {
        for code in Code::CLOSED {
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
    }

    #[test]
    fn a_stop_reason_is_passed_through_unless_it_is_a_word_of_ours_or_no_word() {
        for reason in ["max_tokens", "max_turn_requests", "refusal", "vendor.x:y-1"] {
            let code = Code::of_stop_reason(reason);
            assert_eq!(code, Code::StopReason(StopReason(reason.to_owned())));
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
        for reason in ["deadline", "daemon_lost", "", "two words", "ä", &"x".repeat(65)] {
            assert_eq!(Code::of_stop_reason(reason), Code::OtherStopReason, "{reason}");
        }
        assert_eq!(Code::of_stop_reason("cancelled"), Code::Ended(Cause::TurnCancelled));
    }

    #[test]
    fn a_code_that_is_no_word_is_none() {
        assert_eq!(Code::parse(""), None);
        assert_eq!(Code::parse("two words"), None);
    }
}
