//! What there is to give of a prompt's whole answer. Pure; what memory and disk know is handed in, and merged as the poll merges it.

use bridge::{Ended, Terminal};
use transcript::{Answer, Answered, Lost, Recorded, TurnState};

use crate::turn_status::merged;

/// The whole answer of a prompt that has ended.
#[derive(Debug)]
pub(crate) enum Whole {
    /// It fits into memory.
    Short(String),
    /// It stands in the transcript.
    Recorded(Recorded),
    /// The turn completed and said nothing at last.
    NoText,
    /// The turn completed, and its text is not there any more, or never was.
    Expired(Ended, Gone),
    /// The turn did not complete; with all that was said in it, where memory has only the beginning.
    NoResult(Ended, Option<Recorded>),
}

/// Why a text is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It was never recorded whole.
    NotRecorded,
    /// What the transcript says before the turn's result is not certainly this turn's answer.
    Uncertain,
    /// Nothing but the outcome is known: the text is out of reach.
    OutOfReach,
}

impl Gone {
    /// The word on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NotRecorded => "not_recorded",
            Self::Uncertain => "uncertain",
            Self::OutOfReach => "out_of_reach",
        }
    }
}

/// What memory and transcript have of an answer; none when neither knows the prompt.
///
/// The record gives the text of the outcome that it holds itself. Where it holds another one, or none, there is only what memory kept,
/// which is whole or known to be cut.
pub(crate) fn whole(overlay: Option<Ended>, found: Option<Answered>) -> Option<Whole> {
    let (mut result, mut answer, mut partial) = (None, None, None);
    if let Some(found) = found {
        (result, answer, partial) = (Some(found.result), Some(found.answer), found.partial);
    }
    let answer = answer.filter(|_| result.as_ref().is_some_and(|result| result.state == TurnState::Completed));
    let ended = merged(overlay, result)?;
    if !matches!(ended.terminal, Terminal::Completed { .. }) {
        return Some(Whole::NoResult(ended, partial));
    }
    Some(match answer {
        Some(Answer::Short(text)) => Whole::Short(text),
        Some(Answer::Recorded(recorded)) => Whole::Recorded(recorded),
        Some(Answer::Lost(Lost::NotRecorded)) => Whole::Expired(ended, Gone::NotRecorded),
        Some(Answer::Lost(Lost::Uncertain)) => Whole::Expired(ended, Gone::Uncertain),
        Some(Answer::Nothing) | None => match &ended.result_text {
            None => Whole::NoText,
            Some(text) if !text.truncated => Whole::Short(text.text.clone()),
            Some(_) => Whole::Expired(ended, Gone::NotRecorded),
        },
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use bridge::Clipped;
    use transcript::TurnResult;

    use super::*;

    /// An ended prompt, with the text that memory has of its answer and whether that was cut.
    pub(crate) fn ended(terminal: Terminal, text: Option<(&str, bool)>) -> Ended {
        Ended {
            prompt_id: "p".into(),
            prompt_text: None,
            result_text: text.map(|(text, truncated)| Clipped { text: text.into(), truncated }),
            partial_text: None,
            queued_at_ms: None,
            started_at_ms: None,
            ended_at_ms: 5,
            originator: None,
            terminal,
            input_written: None,
            expiry: None,
        }
    }

    fn completed() -> Terminal {
        Terminal::Completed { stop_reason: "end_turn".into() }
    }

    fn failed() -> Terminal {
        Terminal::Error { message: "late".into(), code: Some("prompt_deadline_exceeded".into()) }
    }

    fn found(state: TurnState, text: &str, answer: Answer) -> Option<Answered> {
        let mut result = TurnResult::new("p", state, 5).with_result_text(text);
        if state == TurnState::Error {
            result = result.with_error("no", None);
        }
        Some(Answered { result, answer, partial: None })
    }

    fn check(overlay: Option<Ended>, found: Option<Answered>, expected: &str) {
        let got = match whole(overlay, found) {
            None => "unknown".to_owned(),
            Some(Whole::Short(text)) => text,
            Some(Whole::Recorded(_)) => "recorded".to_owned(),
            Some(Whole::NoText) => "no text".to_owned(),
            Some(Whole::Expired(_, expiry)) => expiry.as_str().to_owned(),
            Some(Whole::NoResult(ended, _)) => ended.terminal.state().to_owned(),
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn the_record_gives_the_text_of_its_own_outcome() {
        let short = || found(TurnState::Completed, "yes", Answer::Short("yes".into()));
        check(None, None, "unknown");
        check(None, short(), "yes");
        check(Some(ended(completed(), Some(("y", true)))), short(), "yes");
        check(Some(ended(failed(), None)), short(), "yes");
        check(Some(ended(Terminal::Cancelled { agent_stop_reason: None }, None)), short(), "cancelled");
        check(None, found(TurnState::Error, "", Answer::Nothing), "error");
        check(None, found(TurnState::Completed, "", Answer::Nothing), "no text");
    }

    #[test]
    fn what_cannot_be_established_is_not_replaced_by_what_is_at_hand() {
        let lost = |lost| found(TurnState::Completed, "ye", Answer::Lost(lost));
        check(None, lost(Lost::NotRecorded), "not_recorded");
        check(Some(ended(completed(), Some(("ye", true)))), lost(Lost::Uncertain), "uncertain");
    }

    #[test]
    fn without_a_record_memory_gives_what_it_has_whole() {
        check(Some(ended(completed(), Some(("yes", false)))), None, "yes");
        check(Some(ended(completed(), Some(("ye", true)))), None, "not_recorded");
        check(Some(ended(completed(), None)), None, "no text");
        check(Some(ended(failed(), Some(("x", false)))), None, "error");
        // A record that has no text does not take away what was heard; the poll shows it too.
        check(Some(ended(completed(), Some(("yes", false)))), found(TurnState::Completed, "", Answer::Nothing), "yes");
        // A record of another outcome than the one that counts says nothing about its text.
        check(Some(ended(completed(), Some(("yes", false)))), found(TurnState::Cancelled, "", Answer::Nothing), "yes");
    }
}
