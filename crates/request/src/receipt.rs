//! What a caller is shown of a request.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Code, Incarnation, Late, LateKind, Request, State, TerminalEvent};

/// The version of the body that is written.
const VERSION: u32 = 1;

/// What a receipt tells beside the row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// The stream that the request's event is, or will be, in.
    pub stream_id: &'a str,
    /// Whether the caller asked for the same thing before, and nothing was done this time.
    pub is_replayed: bool,
    /// The agent's process.
    pub incarnation: Option<&'a Incarnation>,
    /// What the request waits for, where that is known: a permission, or the end of a recovery.
    pub waiting_on: Option<&'a str>,
    /// Its event, when it has ended.
    pub event: Option<&'a TerminalEvent>,
    /// What came after its end.
    pub late: &'a [Late],
}

#[derive(Serialize)]
struct Body<'a> {
    v: u32,
    request_id: &'a str,
    reply_pending: bool,
    replayed: bool,
    state: &'static str,
    /// It refines `registered` and nothing else: what is ended, or with the agent, is in no phase.
    phase: Option<&'static str>,
    input_written: &'static str,
    code: Option<&'a str>,
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_on: Option<&'a str>,
    stream_id: &'a str,
    session_id: &'a str,
    prompt_id: &'a str,
    incarnation: Option<Process<'a>>,
    baseline: Baseline<'a>,
    armed_cursor: Option<Armed<'a>>,
    timeout_ms: u64,
    deadline_at: Option<u64>,
    created_at: u64,
    admitted_at: Option<u64>,
    dispatched_at: Option<u64>,
    submitted_at: Option<u64>,
    bound_at: Option<u64>,
    ended_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_outcome: Option<&'a RawValue>,
    /// All of it, the outcome included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    late_evidence: Vec<LateBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Process<'a> {
    id: &'a str,
    pid: Option<u32>,
    start_ticks: Option<u64>,
    epoch: Option<u64>,
}

#[derive(Serialize)]
struct Baseline<'a> {
    turn: u64,
    prompt_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Armed<'a> {
    event_id: u64,
    transcript_tail: Option<&'a str>,
}

#[derive(Serialize)]
struct LateBody<'a> {
    kind: &'static str,
    said: &'a RawValue,
}

/// The receipt of a request (return requests, section 2.13): JSON object text. An ended one carries its event's body, byte for byte.
#[must_use]
pub fn receipt(request: &Request, beside: &Beside<'_>) -> String {
    let registration = &request.registration;
    let body = Body {
        v: VERSION,
        request_id: request.id().as_str(),
        reply_pending: !request.state.is_terminal(),
        replayed: beside.is_replayed,
        state: request.state.as_str(),
        phase: (request.state == State::Registered).then(|| request.phase.as_str()),
        input_written: request.input_written.as_str(),
        code: request.code.as_ref().map(Code::as_str),
        detail: request.detail.as_deref(),
        waiting_on: beside.waiting_on.filter(|_| !request.state.is_terminal()),
        stream_id: beside.stream_id,
        session_id: &registration.session_id,
        prompt_id: &registration.prompt_id,
        incarnation: process(request, beside.incarnation),
        baseline: Baseline { turn: registration.baseline.turn, prompt_id: registration.baseline.prompt_id.as_deref() },
        armed_cursor: request
            .armed
            .as_ref()
            .map(|armed| Armed { event_id: armed.event_id, transcript_tail: armed.tail.as_deref() }),
        timeout_ms: registration.timeout_ms,
        deadline_at: registration.deadline_at,
        created_at: registration.created_at,
        admitted_at: request.admitted_at,
        dispatched_at: request.dispatched_at,
        submitted_at: request.submitted_at,
        bound_at: request.bound_at,
        ended_at: request.ended_at,
        late_outcome: beside
            .late
            .iter()
            .find(|late| late.kind == LateKind::Outcome)
            .and_then(|late| raw(&late.payload)),
        late_evidence: beside.late.iter().filter_map(late_body).collect(),
        terminal: beside.event.and_then(|event| raw(&event.payload)),
    };
    // Structs of texts and numbers, and JSON that was written by this crate, are always JSON.
    serde_json::to_string(&body).unwrap_or_default()
}

fn late_body(late: &Late) -> Option<LateBody<'_>> {
    Some(LateBody { kind: late.kind.as_str(), said: raw(&late.payload)? })
}

fn raw(json: &str) -> Option<&RawValue> {
    serde_json::from_str(json).ok()
}

/// The process as far as it is known; of one that is not on record there is the id alone.
fn process<'a>(request: &'a Request, known: Option<&'a Incarnation>) -> Option<Process<'a>> {
    let id = request.registration.incarnation_id.as_deref()?;
    let known = known.filter(|known| known.incarnation_id == id);
    Some(Process {
        id,
        pid: known.map(|known| known.child_pid),
        start_ticks: known.map(|known| known.child_start_ticks),
        epoch: known.map(|known| known.daemon_epoch),
    })
}

#[cfg(test)]
mod tests;
