//! How a prompt ended, and whether it may be sent again.

use crate::Clipped;
use crate::limits::{CODE_UNITS_MAX, MESSAGE_UNITS_MAX};

/// The formal outcome of a prompt: decided once, never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// The agent answered the prompt; the stop reason is its word and an open set.
    Completed {
        /// `end_turn`, `max_tokens`, `refusal` and whatever else agents say.
        stop_reason: String,
    },
    /// The daemon cancelled the prompt, or it was removed before it ran.
    Cancelled {
        /// What the agent itself said, where it said anything: several say `end_turn` for a cut answer.
        agent_stop_reason: Option<String>,
    },
    /// The prompt failed, or the session ended under it.
    Error {
        /// For people.
        message: String,
        /// For programs: a [`FlushOrigin`], a code of the host, or the agent's JSON-RPC number as text.
        code: Option<String>,
    },
}

impl Terminal {
    /// `completed`, `cancelled` or `error`.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::Cancelled { .. } => "cancelled",
            Self::Error { .. } => "error",
        }
    }

    /// The stop reason clients see: a cancelled turn's is always `cancelled`, an error has none.
    pub fn stop_reason(&self) -> Option<&str> {
        match self {
            Self::Completed { stop_reason } => Some(stop_reason),
            Self::Cancelled { .. } => Some("cancelled"),
            Self::Error { .. } => None,
        }
    }

    /// An error; one without a message says as little, in the word that the transcript's reader expects there.
    pub(crate) fn error(message: &str, code: Option<&str>) -> Self {
        let message = if message.is_empty() { "unknown error" } else { message };
        Self::Error { message: message.to_owned(), code: code.map(str::to_owned) }
    }

    /// The outcome as the event, the status and the ledger tell it: an error within the bounds that the poll and the transcript
    /// keep to (turn status seed), so that one failure is described alike wherever it is.
    pub(crate) fn told(&self) -> Self {
        match self {
            Self::Error { message, code } => Self::Error {
                message: Clipped::new(message, MESSAGE_UNITS_MAX).text,
                code: code.as_deref().map(|code| Clipped::new(code, CODE_UNITS_MAX).text),
            },
            Self::Completed { .. } | Self::Cancelled { .. } => self.clone(),
        }
    }

    /// The code of an error.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Error { code, .. } => code.as_deref(),
            Self::Completed { .. } | Self::Cancelled { .. } => None,
        }
    }
}

/// What ends every unfinished prompt of a session at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOrigin {
    /// A client closed the session.
    SessionClosed,
    /// The daemon gave the session up, its creator being gone.
    SessionKilled,
    /// The agent or its host went away.
    ChannelClosed,
    /// The daemon is stopping.
    DaemonShutdown,
}

impl FlushOrigin {
    /// The error code of a prompt that this ended.
    pub fn code(self) -> &'static str {
        match self {
            Self::SessionClosed => "session_closed",
            Self::SessionKilled => "session_killed",
            Self::ChannelClosed => "channel_closed",
            Self::DaemonShutdown => "daemon_shutdown",
        }
    }

    /// The origin that has this code.
    pub fn of_code(code: &str) -> Option<Self> {
        const ALL: [FlushOrigin; 4] = [
            FlushOrigin::SessionClosed,
            FlushOrigin::SessionKilled,
            FlushOrigin::ChannelClosed,
            FlushOrigin::DaemonShutdown,
        ];
        ALL.into_iter().find(|origin| origin.code() == code)
    }

    /// The same for people.
    pub fn message(self) -> &'static str {
        match self {
            Self::SessionClosed => "session closed before the prompt completed",
            Self::SessionKilled => "session ended before the prompt completed",
            Self::ChannelClosed => "agent channel closed before the prompt completed",
            Self::DaemonShutdown => "daemon shut down before the prompt completed",
        }
    }
}

/// Whether a prompt's input reached the agent (evidence rules, section 7). Only on `No` is sending it again without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputWritten {
    /// It certainly never was handed over.
    No,
    /// It was.
    Yes,
    /// It was on its way when the channel broke.
    Maybe,
}

impl InputWritten {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Maybe => "maybe",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_the_words_that_clients_and_the_ledger_read() {
        let completed = Terminal::Completed { stop_reason: "max_tokens".into() };
        assert_eq!(
            (completed.state(), completed.stop_reason(), completed.code()),
            ("completed", Some("max_tokens"), None)
        );
        let cancelled = Terminal::Cancelled { agent_stop_reason: Some("end_turn".into()) };
        assert_eq!(
            (cancelled.state(), cancelled.stop_reason(), cancelled.code()),
            ("cancelled", Some("cancelled"), None)
        );
        let error = Terminal::Error { message: "no".into(), code: Some("-32603".into()) };
        assert_eq!((error.state(), error.stop_reason(), error.code()), ("error", None, Some("-32603")));
    }

    #[test]
    fn each_origin_of_a_flush_has_its_code() {
        let origins = [
            FlushOrigin::SessionClosed,
            FlushOrigin::SessionKilled,
            FlushOrigin::ChannelClosed,
            FlushOrigin::DaemonShutdown,
        ];
        let codes = ["session_closed", "session_killed", "channel_closed", "daemon_shutdown"];
        assert_eq!(origins.map(FlushOrigin::code), codes);
        for origin in origins {
            assert!(origin.message().ends_with("before the prompt completed"), "{}", origin.message());
        }
    }

    #[test]
    fn an_error_is_told_within_the_bounds_of_the_poll_and_never_without_a_message() {
        let long = Terminal::error(&"m".repeat(5_000), Some(&"c".repeat(300)));
        let Terminal::Error { message, code } = long.told() else { panic!("it is an error") };
        assert_eq!((message.len(), code.map(|code| code.len())), (MESSAGE_UNITS_MAX, Some(CODE_UNITS_MAX)));
        let short = Terminal::error("", Some("-1"));
        assert_eq!(short, Terminal::Error { message: "unknown error".into(), code: Some("-1".into()) });
        assert_eq!(short.told(), short);
    }

    #[test]
    fn an_origin_is_found_by_its_code() {
        assert_eq!(FlushOrigin::of_code("session_killed"), Some(FlushOrigin::SessionKilled));
        assert_eq!(FlushOrigin::of_code("-32603"), None);
    }

    #[test]
    fn retry_safety_has_three_words() {
        let words = [InputWritten::No, InputWritten::Yes, InputWritten::Maybe].map(InputWritten::as_str);
        assert_eq!(words, ["no", "yes", "maybe"]);
    }
}
