//! The words with which a host says what became of a prompt that its agent did not answer. An agent's own errors have numbers.

use bridge::FlushOrigin;
use request::{Cause, Input, InputWritten};

/// The agent ended, or was ended by its host, in the turn.
const GONE: [&str; 5] = ["channel_closed", "linger_expired", "host_terminated", "agent_unavailable", "agent_replaced"];
/// The host kept the prompt to itself.
const NOT_SENT: [&str; 4] =
    ["transcript_unwritable", "turn_in_progress", "invalid_prompt", "approval_mode_not_restored"];
/// The agent's answer could not be read, or what may have been it.
const UNREAD: [&str; 2] = ["frame_too_long", "unreadable_answer"];

/// Whether the agent may have answered, and nobody knows what.
pub(super) fn is_unread(code: &str) -> bool {
    UNREAD.contains(&code)
}

/// Whether nobody is left to say how the turn ended.
pub(super) fn is_gone(code: &str) -> bool {
    GONE.contains(&code)
}

/// Who ended the session, and the turn with it, where that is the word.
pub(super) fn ended_by(code: &str) -> Option<Cause> {
    FlushOrigin::of_code(code).and_then(cause)
}

/// What it is to a request that its session was ended from there; none where the agent was lost.
pub(super) fn cause(origin: FlushOrigin) -> Option<Cause> {
    match origin {
        FlushOrigin::SessionClosed => Some(Cause::SessionClosed),
        FlushOrigin::DaemonShutdown => Some(Cause::DaemonShutdown),
        FlushOrigin::SessionKilled => Some(Cause::SessionKilled),
        FlushOrigin::ChannelClosed => None,
    }
}

/// What the word is to a request; none for the agent's own word.
pub(super) fn input(code: &str, written: InputWritten) -> Option<Input> {
    if let Some(cause) = ended_by(code) {
        return Some(Input::SessionEnded { cause, written });
    }
    if !is_gone(code) && !NOT_SENT.contains(&code) {
        return None;
    }
    Some(match written {
        InputWritten::No => Input::WriteFailed { is_complete: false },
        InputWritten::Maybe => Input::WriteFailed { is_complete: true },
        InputWritten::Yes => Input::AgentExited { written },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_who_is_gone_and_who_did_it() {
        let yes = InputWritten::Yes;
        let closed = |cause| Some(Input::SessionEnded { cause, written: yes });
        for (code, expected) in [
            ("session_closed", closed(Cause::SessionClosed)),
            ("session_killed", closed(Cause::SessionKilled)),
            ("daemon_shutdown", closed(Cause::DaemonShutdown)),
            ("channel_closed", Some(Input::AgentExited { written: yes })),
            ("linger_expired", Some(Input::AgentExited { written: yes })),
            ("-32603", None),
            ("frame_too_long", None),
        ] {
            assert_eq!(input(code, yes), expected, "{code}");
        }
        assert_eq!(input("turn_in_progress", InputWritten::No), Some(Input::WriteFailed { is_complete: false }));
        assert_eq!(input("channel_closed", InputWritten::Maybe), Some(Input::WriteFailed { is_complete: true }));
    }
}
