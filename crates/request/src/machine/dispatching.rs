//! The dispatch is on disk, and bytes may be out. What ends here ends by what is known of the write.

use super::{before, running};
use crate::{
    Advance, Cause, Code, Effect, Evidence, Input, InputWritten, Mismatch, Outcome, Recovered, Refusal, Request, State,
    Terminal,
};

pub(super) fn step(request: &Request, input: &Input, at_ms: u64) -> Vec<Effect> {
    let maybe = |state, code| vec![Effect::End(Terminal::without_text(state, code, InputWritten::Maybe, at_ms))];
    match input {
        Input::Admitted => running::admitted(request),
        Input::Dispatched { .. } => Vec::new(),
        Input::Refused => before::refused(Refusal::NotRecorded, at_ms),
        Input::Dropped(why) => before::refused(*why, at_ms),
        Input::Written => vec![Effect::Advance(Advance::Submitted)],
        // What a reader was handed of a cut line is no JSON, and nothing is ever written after it.
        Input::WriteFailed { is_complete: false } => {
            vec![Effect::End(Terminal::without_text(State::DeliveryFailed, Code::WriteFailed, InputWritten::No, at_ms))]
        }
        Input::WriteFailed { is_complete: true } => maybe(State::Indeterminate, Code::WriteUnknown),
        Input::Bound { evidence, user_record_id } if evidence.is_strong() => {
            let bound = Advance::Bound { evidence: *evidence, user_record_id: user_record_id.clone() };
            vec![Effect::Advance(Advance::Submitted), Effect::Advance(bound)]
        }
        // An update that might be unrelated says nothing of the write.
        Input::Bound { .. } => Vec::new(),
        Input::Settled(outcome) => settled(request, outcome, at_ms),
        Input::Mismatch { fact, written } => mismatch(*fact, *written, at_ms),
        Input::SessionEnded { cause, written } => session_ended(*cause, *written, at_ms),
        Input::AgentExited { written: InputWritten::No } => {
            vec![Effect::End(Terminal::without_text(State::DeliveryFailed, Code::AgentExited, InputWritten::No, at_ms))]
        }
        Input::AgentExited { written } => {
            vec![Effect::End(Terminal::without_text(State::Indeterminate, Code::AgentExited, *written, at_ms))]
        }
        Input::Cancel => maybe(State::Cancelled, Code::ClientCancel),
        Input::Deadline => maybe(State::TimedOut, Code::Deadline),
        Input::Recovered(Recovered::StoreRecovered) => maybe(State::Indeterminate, Code::StoreRecovered),
        // Never upgraded, whatever the transcript shows: it was not durably marked as submitted (return requests seed).
        Input::Recovered(_) => maybe(State::Indeterminate, Code::CrashInDispatch),
    }
}

/// The answer to our call came before the news that the line is out. It proves that it is.
fn settled(request: &Request, outcome: &Outcome, at_ms: u64) -> Vec<Effect> {
    let is_answer = match outcome {
        Outcome::Ended { evidence, .. } | Outcome::Failed { evidence, .. } => *evidence == Evidence::RpcResponse,
        Outcome::Rejected { .. } | Outcome::Stopped { .. } => true,
        // What could not be read may have been anything.
        Outcome::Unread { .. } => false,
    };
    if !is_answer {
        let end = Terminal::without_text(State::Indeterminate, Code::Unattributable, InputWritten::Maybe, at_ms);
        return vec![Effect::End(end)];
    }
    vec![Effect::Advance(Advance::Submitted), Effect::End(running::settled(request, outcome, at_ms))]
}

fn mismatch(fact: Mismatch, written: InputWritten, at_ms: u64) -> Vec<Effect> {
    match written {
        InputWritten::No => before::refused(Refusal::Mismatch(fact), at_ms),
        InputWritten::Maybe | InputWritten::Yes => {
            let code = Code::Mismatch(fact);
            vec![Effect::End(Terminal::without_text(State::Indeterminate, code, written, at_ms))]
        }
    }
}

fn session_ended(cause: Cause, written: InputWritten, at_ms: u64) -> Vec<Effect> {
    let end = match written {
        InputWritten::No => return before::refused(Refusal::Removed(cause), at_ms),
        InputWritten::Maybe => Terminal::without_text(State::Indeterminate, Code::WriteUnknown, written, at_ms)
            .with_detail(Some(cause.as_str())),
        InputWritten::Yes => Terminal::without_text(State::Aborted, Code::Ended(cause), written, at_ms),
    };
    vec![Effect::End(end)]
}
