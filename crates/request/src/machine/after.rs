//! After the end. Nothing changes any more; what still comes is kept beside it, without its text.

use serde_json::json;

use super::running;
use crate::recovery::Loss;
use crate::{
    Code, Effect, Hash, Input, InputWritten, Late, LateKind, Outcome, Recovered, Request, Stage, State, Terminal,
};

pub(super) fn step(request: &Request, input: &Input, at_ms: u64) -> Vec<Effect> {
    let late = match input {
        Input::Settled(outcome) => new_outcome(request, outcome, at_ms),
        Input::Recovered(Recovered::Staged(stage) | Recovered::Exact(stage)) => staged(request, stage),
        Input::Recovered(Recovered::DeadlinePassed { late: Some(stage) }) => staged(request, stage),
        Input::SessionEnded { cause, .. } => {
            let code = Code::Ended(*cause);
            let end = Terminal::without_text(State::Aborted, code, InputWritten::Yes, at_ms);
            (!is_told(request, &end)).then(|| told(&end))
        }
        Input::Mismatch { fact, .. } if request.code != Some(Code::Mismatch(*fact)) => Some(Late {
            kind: LateKind::Mismatch,
            payload: json!({"v": 1, "at": at_ms, "fact": fact.as_str()}).to_string(),
        }),
        Input::AgentExited { .. } if request.code != Some(Code::AgentExited) => Some(agent_exit(at_ms)),
        Input::Recovered(Recovered::DaemonLost(Loss::AgentGone)) if request.code != Some(Code::DaemonLost) => {
            Some(agent_exit(at_ms))
        }
        Input::Written if request.input_written != InputWritten::Yes => Some(write(InputWritten::Yes, at_ms)),
        // That the prompt was cut off after all is the proof that its end could not give.
        Input::WriteFailed { is_complete: false } if request.input_written == InputWritten::Maybe => {
            Some(write(InputWritten::No, at_ms))
        }
        _ => None,
    };
    late.map(Effect::Late).into_iter().collect()
}

fn staged(request: &Request, stage: &Stage) -> Option<Late> {
    new_outcome(request, &stage.outcome, stage.at_ms)
}

/// The outcome, unless it is the one that the request ended with: then somebody merely says it twice.
fn new_outcome(request: &Request, outcome: &Outcome, at_ms: u64) -> Option<Late> {
    let end = running::settled(request, outcome, at_ms);
    (!is_told(request, &end)).then(|| told(&end))
}

/// How a turn ended whose request had ended before.
pub(super) fn outcome(request: &Request, outcome: &Outcome, at_ms: u64) -> Late {
    told(&running::settled(request, outcome, at_ms))
}

fn is_told(request: &Request, end: &Terminal) -> bool {
    let digest = |end: &Terminal| end.final_text.as_ref().map(|text| text.sha256);
    request.state == end.state && request.code == end.code && request.final_sha256 == digest(end)
}

/// The state the turn would have given, and of its text only what it takes to know it again; the text is read where turns are asked after.
fn told(end: &Terminal) -> Late {
    let text = end.final_text.as_ref();
    let payload = json!({
        "v": 1,
        "at": end.at_ms,
        "state": end.state.as_str(),
        "code": end.code.as_ref().map(Code::as_str),
        "stop_reason": end.stop_reason,
        "final_bytes": text.map(|text| text.full_bytes),
        "final_sha256": text.map(|text| Hash::to_string(&text.sha256)),
    });
    Late { kind: LateKind::Outcome, payload: payload.to_string() }
}

fn agent_exit(at_ms: u64) -> Late {
    Late { kind: LateKind::AgentExit, payload: json!({"v": 1, "at": at_ms}).to_string() }
}

fn write(written: InputWritten, at_ms: u64) -> Late {
    let payload = json!({"v": 1, "at": at_ms, "input_written": written.as_str()});
    Late { kind: LateKind::Write, payload: payload.to_string() }
}
