//! Before the dispatch is on disk. The gate is shut, so that nothing has reached the agent, whatever else is said: every end here is a
//! proven `no`, but for what cannot have happened.

use crate::{Advance, Code, Effect, Input, InputWritten, Mismatch, Recovered, Refusal, Request, State, Terminal};

pub(super) fn step(request: &Request, input: &Input, at_ms: u64) -> Vec<Effect> {
    let end = |state, code| vec![Effect::End(Terminal::without_text(state, code, InputWritten::No, at_ms))];
    match input {
        Input::Admitted => request.admitted_at.map_or_else(|| vec![Effect::Advance(Advance::Admitted)], |_| Vec::new()),
        Input::Refused => vec![Effect::Remove],
        Input::Dropped(why) => refused(*why, at_ms),
        Input::Dispatched { armed, baseline, incarnation_id } => {
            if let Some(fact) = moved(request, baseline, incarnation_id.as_deref()) {
                return refused(Refusal::Mismatch(fact), at_ms);
            }
            let (armed, baseline, incarnation_id) = (armed.clone(), baseline.clone(), incarnation_id.clone());
            vec![Effect::Advance(Advance::Dispatching { armed, baseline, incarnation_id })]
        }
        Input::Mismatch { written: InputWritten::Yes, .. }
        | Input::SessionEnded { written: InputWritten::Yes, .. }
        | Input::AgentExited { written: InputWritten::Yes }
        | Input::Written
        | Input::WriteFailed { .. }
        | Input::Bound { .. }
        | Input::Settled(_)
        | Input::Recovered(Recovered::Staged(_) | Recovered::Exact(_)) => impossible(at_ms),
        Input::Mismatch { fact, .. } => refused(Refusal::Mismatch(*fact), at_ms),
        Input::SessionEnded { cause, .. } => refused(Refusal::Removed(*cause), at_ms),
        Input::AgentExited { .. } => end(State::DeliveryFailed, Code::AgentExited),
        Input::Cancel => end(State::Cancelled, Code::ClientCancel),
        Input::Deadline => end(State::TimedOut, Code::Deadline),
        Input::Recovered(Recovered::StoreRecovered) => end(State::Indeterminate, Code::StoreRecovered),
        // The seed's word, though that nothing was sent is proven; the stronger fact is beside it.
        Input::Recovered(_) => end(State::Indeterminate, Code::CrashBeforeSubmitted),
    }
}

/// The prompt is not sent, and whoever registered it is told by the end of the request.
pub(super) fn refused(why: Refusal, at_ms: u64) -> Vec<Effect> {
    let end = Terminal::without_text(State::DeliveryFailed, Code::RefusedBeforeDispatch, InputWritten::No, at_ms);
    vec![Effect::End(end.with_detail(Some(why.as_str())))]
}

/// A fact that is not what it was at the registration. A prompt that may wait in the queue has its baseline taken anew.
fn moved(request: &Request, baseline: &crate::Baseline, incarnation_id: Option<&str>) -> Option<Mismatch> {
    let registration = &request.registration;
    if registration.incarnation_id.is_some() && registration.incarnation_id.as_deref() != incarnation_id {
        return Some(Mismatch::IncarnationChanged);
    }
    (!registration.options.queue && registration.baseline != *baseline).then_some(Mismatch::BaselineMoved)
}

/// Something is told of a prompt that was never dispatched. Somebody is wrong, and it may be us: no proof is left, and no text is taken.
fn impossible(at_ms: u64) -> Vec<Effect> {
    let code = Code::Mismatch(Mismatch::NotAfterMarker);
    vec![Effect::End(Terminal::without_text(State::Indeterminate, code, InputWritten::Maybe, at_ms))]
}
