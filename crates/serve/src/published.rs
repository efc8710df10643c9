//! A turn's record, read where memory does not hold the prompt's terminal any more, brought to the terminal that was published: the ledger
//! has it, and a poll must not say after a restart what the stream did not (turn status seed: the overlay's outcome is authoritative).

use bridge::limits::CODE_UNITS_MAX;
use bridge::{Clipped, FlushOrigin, Session};
use transcript::{TurnResult, TurnState};

use crate::turn_status::message_of;
use crate::workspace::Workspace;

/// What an agent's cancelled turn stops with.
const CANCELLED: &str = "cancelled";

/// The record as polls may show it. While the session remembers the prompt it is the record itself, since memory decides then.
/// Blocks: it may read the ledger.
pub(crate) fn published(workspace: &Workspace, session: &Session, record: TurnResult) -> TurnResult {
    let remembered = session.turn(Some(&record.prompt_id)).overlay.is_some();
    if remembered || record.state == TurnState::Cancelled {
        return record;
    }
    match workspace.sink.ledger(session.id()).read() {
        Ok(reading) => with_formal_terminal(record, &reading.records),
        Err(_) => record,
    }
}

/// The record with the terminal that its prompt ended with, where its writer saw another.
///
/// A cancel and the end of the turn may cross on the way between daemon and host: the daemon has told the agent to stop and says `cancelled`
/// whatever comes back (design, section 3, rule 4), the host saw the end before the cancel. An error that the ledger has does not stand
/// against a record of another outcome: the turn settled after its caller had been released.
fn with_formal_terminal(record: TurnResult, ledger: &[ledger::Record]) -> TurnResult {
    match ledger.iter().rev().find(|line| line.prompt_id == record.prompt_id).map(|line| &line.fact) {
        Some(ledger::Fact::Terminal { terminal: ledger::Terminal::Cancelled, .. }) => cancelled(record),
        Some(ledger::Fact::Terminal { terminal: ledger::Terminal::Error, code: Some(code), .. }) => coded(record, code),
        _ => record,
    }
}

/// What was an answer is what had been said when the cancel came.
fn cancelled(mut record: TurnResult) -> TurnResult {
    record.state = TurnState::Cancelled;
    record.agent_stop_reason = record.stop_reason.replace(CANCELLED.to_owned()).or(record.agent_stop_reason);
    record.error = None;
    record.partial_text = record.result_text.take().or(record.partial_text);
    record.result_truncated = false;
    record
}

/// The record of a failed turn with the code of its prompt's terminal: an agent that writes its own transcript knows its own codes, and a
/// turn that outlived its prompt's deadline fails once more when its session ends. The ledger's is what the event said.
fn coded(mut record: TurnResult, code: &str) -> TurnResult {
    if let Some(error) = record.error.as_mut().filter(|error| error.code.as_deref() != Some(code)) {
        if error.code.as_deref().and_then(FlushOrigin::of_code).is_some() {
            // These words are about the end of the session, which is not what ended the prompt.
            message_of(Some(code)).clone_into(&mut error.message);
        }
        error.code = Some(Clipped::new(code, CODE_UNITS_MAX).text);
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(terminal: ledger::Terminal, code: Option<&str>) -> ledger::Record {
        let mut line = ledger::Record::cancelled("p", 5);
        line.fact = ledger::Fact::Terminal { terminal, code: code.map(str::to_owned), stop_reason: None };
        line
    }

    #[test]
    fn a_failed_turns_record_takes_the_code_that_its_prompt_ended_with() {
        let check = |recorded: (&str, Option<&str>), formal: Option<&str>, expected: (&str, Option<&str>)| {
            let record = TurnResult::new("p", TurnState::Error, 5).with_error(recorded.0, recorded.1);
            let told = [ledger::Record::in_flight("p", None, 1), line(ledger::Terminal::Error, formal)];
            let error = with_formal_terminal(record, &told).error.unwrap();
            assert_eq!((error.message.as_str(), error.code.as_deref()), expected);
        };
        // An agent that writes its own transcript has a code of its own.
        check(("400 bad request", Some("bad_req")), Some("-32603"), ("400 bad request", Some("-32603")));
        check(("no", Some("-32603")), Some("-32603"), ("no", Some("-32603")));
        check(("no", Some("-32603")), None, ("no", Some("-32603")));
        // The session ended under a turn whose prompt had run into its deadline.
        let late = "the prompt ended with an error whose message is not kept";
        check(
            ("shut down", Some("daemon_shutdown")),
            Some("prompt_deadline_exceeded"),
            (late, Some("prompt_deadline_exceeded")),
        );
        let record = TurnResult::new("p", TurnState::Error, 5).with_error("no", Some("x"));
        assert_eq!(with_formal_terminal(record.clone(), &[]), record);
    }

    #[test]
    fn a_prompt_that_was_told_as_cancelled_stays_so_whatever_its_turn_came_to() {
        let told = [ledger::Record::in_flight("p", None, 1), line(ledger::Terminal::Cancelled, None)];
        let failed = TurnResult::new("p", TurnState::Error, 5).with_error("no", Some("-32603"));
        let shown = with_formal_terminal(failed, &told);
        assert_eq!(
            (shown.state, shown.stop_reason.as_deref(), shown.error),
            (TurnState::Cancelled, Some("cancelled"), None)
        );

        let mut answered = TurnResult::new("p", TurnState::Completed, 5).with_result_text("yes");
        answered.stop_reason = Some("end_turn".to_owned());
        let shown = with_formal_terminal(answered.clone(), &told);
        assert_eq!((shown.state, shown.agent_stop_reason.as_deref()), (TurnState::Cancelled, Some("end_turn")));
        assert_eq!((shown.result_text, shown.partial_text.as_deref()), (None, Some("yes")));

        // The seed's exception: a caller that was released is told how the turn settled.
        let released = [line(ledger::Terminal::Error, Some("prompt_deadline_exceeded"))];
        assert_eq!(with_formal_terminal(answered.clone(), &released), answered);
        // Another prompt's terminal, and one that is open again, say nothing.
        assert_eq!(with_formal_terminal(answered.clone(), &[ledger::Record::cancelled("q", 5)]), answered);
        assert_eq!(with_formal_terminal(answered.clone(), &[told[1].clone(), told[0].clone()]), answered);
    }
}
