//! The whole prompt is with the agent. Every end here says so.

use crate::terminal::NATURAL_END;
use crate::{
    Advance, Code, Effect, Evidence, FinalText, Input, InputWritten, Mismatch, Outcome, Recovered, Request, Stage,
    State, StopReason, Terminal,
};

/// The detail of an answer that nobody can tell the end of, or whose it is: its agent says words outside of its turns.
const STRAYED: &str = "stray_words";
/// The detail of an answer of which a part may be missing, or is not what the agent wrote: something of its turn could not be read.
const UNREADABLE: &str = "unreadable_words";
/// The detail of a turn whose answer itself could not be read.
const UNREAD: &str = "unreadable_answer";

pub(super) fn step(request: &Request, input: &Input, at_ms: u64) -> Vec<Effect> {
    match input {
        Input::Admitted => admitted(request),
        Input::Dispatched { .. } | Input::Written => Vec::new(),
        Input::Bound { evidence, user_record_id } => bound(request, *evidence, user_record_id.as_ref(), at_ms),
        Input::Recovered(recovered) => recover(request, recovered, at_ms),
        _ => vec![Effect::End(end(request, input, at_ms))],
    }
}

/// Behind an idle session's admission the dispatch, and more, may be told before it.
pub(super) fn admitted(request: &Request) -> Vec<Effect> {
    request.admitted_at.map_or_else(|| vec![Effect::Advance(Advance::Admitted)], |_| Vec::new())
}

fn end(request: &Request, input: &Input, at_ms: u64) -> Terminal {
    let yes = |state, code| Terminal::without_text(state, code, InputWritten::Yes, at_ms);
    match input {
        Input::Settled(outcome) => settled(request, outcome, at_ms),
        Input::SessionEnded { cause, .. } => yes(State::Aborted, Code::Ended(*cause)),
        Input::AgentExited { .. } => yes(State::Indeterminate, Code::AgentExited),
        Input::Mismatch { fact, .. } => yes(State::Indeterminate, Code::Mismatch(*fact)),
        Input::WriteFailed { .. } => yes(State::Indeterminate, Code::WriteUnknown),
        Input::Cancel => yes(State::Cancelled, Code::ClientCancel),
        Input::Deadline => yes(State::TimedOut, Code::Deadline),
        // A prompt that is with the agent cannot be refused any more: whoever says so speaks of another turn.
        Input::Dropped(why) => {
            yes(State::Indeterminate, Code::Mismatch(Mismatch::TurnChanged)).with_detail(Some(why.as_str()))
        }
        _ => yes(State::Indeterminate, Code::Mismatch(Mismatch::TurnChanged)),
    }
}

fn bound(request: &Request, evidence: Evidence, user_record_id: Option<&String>, at_ms: u64) -> Vec<Effect> {
    let known = request.user_record_id.as_ref();
    if known.is_some() && user_record_id.is_some() && known != user_record_id {
        let code = Code::Mismatch(Mismatch::TurnChanged);
        return vec![Effect::End(Terminal::without_text(State::Indeterminate, code, InputWritten::Yes, at_ms))];
    }
    let evidence = request.evidence.map_or(evidence, |before| before.max(evidence));
    let user_record_id = user_record_id.or(known);
    if request.state == State::Bound && request.evidence == Some(evidence) && known == user_record_id {
        return Vec::new();
    }
    vec![Effect::Advance(Advance::Bound { evidence, user_record_id: user_record_id.cloned() })]
}

/// The end that an outcome is, the prompt being with the agent.
pub(super) fn settled(request: &Request, outcome: &Outcome, at_ms: u64) -> Terminal {
    let yes = |state, code| Terminal::without_text(state, code, InputWritten::Yes, at_ms);
    match outcome {
        Outcome::Ended { evidence, .. } | Outcome::Failed { evidence, .. } | Outcome::Unread { evidence }
            if !best(request, *evidence).is_strong() =>
        {
            yes(State::Indeterminate, Code::Unattributable).with_evidence(*evidence)
        }
        Outcome::Ended { stop_reason, evidence, is_strayed, is_unreadable, .. }
            if (*is_strayed || *is_unreadable) && stop_reason == NATURAL_END =>
        {
            let detail = if *is_unreadable { UNREADABLE } else { STRAYED };
            let end = yes(State::Indeterminate, Code::Unattributable).with_detail(Some(detail));
            Terminal { stop_reason: Some(stop_reason.clone()), ..end.with_evidence(best(request, *evidence)) }
        }
        Outcome::Ended { stop_reason, final_text, evidence, .. } => {
            ended(stop_reason, final_text.as_ref(), best(request, *evidence), at_ms)
        }
        Outcome::Rejected { category } if request.state != State::Bound => {
            yes(State::DeliveryFailed, Code::RejectedByAgent)
                .with_detail(category.map(crate::Category::as_str))
                .with_evidence(Evidence::RpcResponse)
        }
        Outcome::Rejected { category } => yes(State::Aborted, Code::TurnError)
            .with_detail(category.map(crate::Category::as_str))
            .with_evidence(Evidence::RpcResponse),
        Outcome::Failed { category, evidence } => yes(State::Aborted, Code::TurnError)
            .with_detail(category.map(crate::Category::as_str))
            .with_evidence(best(request, *evidence)),
        // The work may be done, and nobody knows what came of it.
        Outcome::Unread { evidence } => yes(State::Indeterminate, Code::Unattributable)
            .with_detail(Some(UNREAD))
            .with_evidence(best(request, *evidence)),
        Outcome::Stopped { cause, stop_reason, evidence } => {
            let end = yes(State::Aborted, Code::Ended(*cause));
            Terminal {
                stop_reason: stop_reason.as_deref().and_then(passed_on),
                evidence: evidence.map(|evidence| best(request, evidence)),
                ..end
            }
        }
    }
}

/// A turn that is bound well is not less ours because its end is told by a weaker sign.
fn best(request: &Request, evidence: Evidence) -> Evidence {
    request.evidence.map_or(evidence, |before| before.max(evidence))
}

fn ended(stop_reason: &str, final_text: Option<&FinalText>, evidence: Evidence, at_ms: u64) -> Terminal {
    let yes = |state, code| Terminal::without_text(state, code, InputWritten::Yes, at_ms).with_evidence(evidence);
    let word = passed_on(stop_reason);
    match final_text {
        Some(text) if stop_reason == NATURAL_END => Terminal::completed(stop_reason, text.clone(), evidence, at_ms),
        None if stop_reason == NATURAL_END => {
            Terminal { stop_reason: word, ..yes(State::Indeterminate, Code::NoFinalMessage) }
        }
        _ => Terminal { stop_reason: word, ..yes(State::Aborted, Code::of_stop_reason(stop_reason)) },
    }
}

/// An agent's word, as far as it may be passed on.
fn passed_on(stop_reason: &str) -> Option<String> {
    StopReason::parse(stop_reason).map(|reason| reason.as_str().to_owned())
}

fn recover(request: &Request, recovered: &Recovered, at_ms: u64) -> Vec<Effect> {
    let yes = |state, code| Terminal::without_text(state, code, InputWritten::Yes, at_ms);
    let end = match recovered {
        // It came at its own time, and not when it was found.
        Recovered::Staged(Stage { outcome, at_ms, .. }) | Recovered::Exact(Stage { outcome, at_ms, .. }) => {
            settled(request, outcome, *at_ms)
        }
        Recovered::DeadlinePassed { late } => {
            let late = late.as_ref().map(|stage| super::after::outcome(request, &stage.outcome, stage.at_ms));
            let end = Effect::End(yes(State::TimedOut, Code::Deadline));
            return [Some(end), late.map(Effect::Late)].into_iter().flatten().collect();
        }
        Recovered::Mismatch(fact) => yes(State::Indeterminate, Code::Mismatch(*fact)),
        Recovered::Unattributable => yes(State::Indeterminate, Code::Unattributable),
        Recovered::FinalTextUnavailable => yes(State::Indeterminate, Code::FinalTextUnavailable),
        Recovered::DaemonLost(loss) => yes(State::Indeterminate, Code::DaemonLost).with_detail(Some(loss.as_str())),
        Recovered::Unsubmitted => yes(State::Indeterminate, Code::DaemonLost),
        Recovered::StoreRecovered => yes(State::Indeterminate, Code::StoreRecovered),
    };
    vec![Effect::End(end)]
}
