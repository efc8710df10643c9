//! The JSON that leaves us: shapes of the wire rules, with the names clients read.

use bridge::{Clipped, Decision, Ended, Expiry, LivePrompt, PendingPrompt, Receipt, Resolution, Terminal, Waiting};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::branch::Origin;
use crate::turn_status::bounded_error;

/// What `resultCode` says when the answer's text was cut (turn status seed).
const RESULT_TEXT_TRUNCATED: &str = "RESULT_TEXT_TRUNCATED";

/// The answer to a create (wire rules, section 6.1).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Created<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) workspace_cwd: &'a str,
    pub(crate) attached: bool,
    pub(crate) client_id: &'a str,
    pub(crate) created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) has_active_prompt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_persisted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_applied: Option<bool>,
}

/// The answer to a load or a resume (wire rules, section 7.2).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Restored<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) workspace_cwd: &'a str,
    pub(crate) attached: bool,
    pub(crate) client_id: String,
    pub(crate) created_at: String,
    pub(crate) state: Value,
    pub(crate) has_active_prompt: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) replay: Option<Replay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<String>,
    pub(crate) last_event_id: u64,
    pub(crate) event_epoch: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) prompt_terminals: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unresolved_prompts: Vec<Unresolved<'a>>,
    /// Of a session that was made of another one: its name, and where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<Origin>,
}

/// A prompt of an earlier life about whose ending nothing is said, in the answer to a load.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unresolved<'a> {
    prompt_id: &'a str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_requested_at: Option<Value>,
}

impl<'a> Unresolved<'a> {
    /// The prompt, why nothing is said, and the wish to cancel it if there was one.
    pub(crate) fn new(open: &'a attribution::Unresolved) -> Self {
        let cancel_requested_at = open.wished_at_ms.map(ledger_time);
        Self { prompt_id: &open.prompt_id, reason: open.reason, cancel_requested_at }
    }
}

/// What the answer to a load says of its history, which stands behind it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replay {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replay_error: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) history_has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history_anchor_record_id: Option<String>,
}

/// The answer to an admission (wire rules, section 8.1).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Admitted<'a> {
    prompt_id: &'a str,
    last_event_id: u64,
    event_epoch: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl<'a> Admitted<'a> {
    /// A receipt, given for the first time or again.
    pub(crate) fn new(receipt: &'a Receipt, replayed: bool) -> Self {
        let Receipt { prompt_id, last_event_id, event_epoch } = receipt;
        Self { prompt_id, last_event_id: *last_event_id, event_epoch, replayed }
    }
}

/// One unfinished prompt (wire rules, section 8.6).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pending<'a> {
    prompt_id: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a RawValue>,
    queued_at: u64,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    originator_client_id: Option<&'a str>,
    input_written: &'static str,
}

impl<'a> Pending<'a> {
    /// An entry of the list. The content is shown where the text does not say it all.
    pub(crate) fn new(prompt: &'a PendingPrompt) -> Self {
        let content = serde_json::from_str::<&RawValue>(&prompt.content).ok();
        Self {
            prompt_id: &prompt.prompt_id,
            text: &prompt.text,
            content: content.filter(|raw| !is_plain_text(raw.get())),
            queued_at: prompt.queued_at_ms,
            state: prompt.state.as_str(),
            originator_client_id: prompt.originator.as_deref(),
            input_written: prompt.input_written.as_str(),
        }
    }
}

/// Whether the content is text blocks only, so that the joined text shows all of it.
fn is_plain_text(content: &str) -> bool {
    let blocks: Vec<Value> = serde_json::from_str(content).unwrap_or_default();
    blocks.iter().all(|block| block["type"] == "text")
}

/// The answer of a poll (wire rules, section 9.2).
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Turn<'a> {
    session_id: &'a str,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_text: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompt_text_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    originator_client_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_activity_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    silent_for_ms: Option<u64>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    waiting: Option<WaitingFor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_requested_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TurnFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_text: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    result_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_code: Option<&'static str>,
    /// The turn completed and said nothing at last: that is its answer, and not that none is known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_text: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_written: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
}

/// What a running turn waits for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingFor<'a> {
    waiting_for: &'static str,
    /// Epoch milliseconds.
    waiting_since: u64,
    request_ids: &'a [String],
}

impl<'a> WaitingFor<'a> {
    fn permission(waiting: &'a Waiting) -> Self {
        Self { waiting_for: "permission", waiting_since: waiting.since_ms, request_ids: &waiting.request_ids }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TurnFailure {
    message: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    message_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    code_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_while: Option<&'static str>,
}

impl TurnFailure {
    fn new(message: &str, code: Option<&str>, expiry: Option<Expiry>) -> Self {
        let (message, code) = bounded_error(message, code);
        Self {
            message_truncated: message.truncated,
            message: message.text,
            code_truncated: code.as_ref().is_some_and(|code| code.truncated),
            code: code.map(|code| code.text),
            deadline: expiry.map(|expiry| expiry.deadline.as_str()),
            expired_while: expiry.map(|expiry| expiry.state.as_str()),
        }
    }
}

impl<'a> Turn<'a> {
    /// Nothing was ever asked here.
    pub(crate) fn idle(session_id: &'a str) -> Self {
        Self { session_id, state: "idle", ..Self::default() }
    }

    /// A queued or running prompt.
    pub(crate) fn live(session_id: &'a str, prompt: &'a LivePrompt) -> Self {
        Self {
            session_id,
            state: prompt.state.as_str(),
            prompt_id: Some(&prompt.prompt_id),
            prompt_text: Some(&prompt.prompt_text.text),
            prompt_text_truncated: prompt.prompt_text.truncated,
            queued_at: Some(prompt.queued_at_ms),
            started_at: prompt.started_at_ms,
            originator_client_id: prompt.originator.as_deref(),
            last_activity_at: prompt.heard_at_ms,
            silent_for_ms: prompt.silent_for_ms,
            waiting: prompt.waiting.as_ref().map(WaitingFor::permission),
            cancel_requested_at: prompt.wished_at_ms,
            input_written: Some(prompt.input_written.as_str()),
            ..Self::default()
        }
    }

    /// An ended prompt. `source` names where the answer comes from when it is not the usual place.
    pub(crate) fn ended(session_id: &'a str, ended: &'a Ended, source: Option<&'static str>) -> Self {
        let text = |clipped: &'a Option<Clipped>| clipped.as_ref().map(|clipped| clipped.text.as_str());
        let cut = |clipped: &Option<Clipped>| clipped.as_ref().is_some_and(|clipped| clipped.truncated);
        let error = match &ended.terminal {
            Terminal::Error { message, code } => Some(TurnFailure::new(message, code.as_deref(), ended.expiry)),
            Terminal::Completed { .. } | Terminal::Cancelled { .. } => None,
        };
        let completed = matches!(ended.terminal, Terminal::Completed { .. });
        let agent_stop_reason = match &ended.terminal {
            Terminal::Cancelled { agent_stop_reason } => agent_stop_reason.as_deref(),
            Terminal::Completed { .. } | Terminal::Error { .. } => None,
        };
        Self {
            session_id,
            state: ended.terminal.state(),
            prompt_id: Some(&ended.prompt_id),
            prompt_text: text(&ended.prompt_text),
            prompt_text_truncated: cut(&ended.prompt_text),
            queued_at: ended.queued_at_ms,
            started_at: ended.started_at_ms,
            ended_at: Some(ended.ended_at_ms),
            originator_client_id: ended.originator.as_deref(),
            stop_reason: ended.terminal.stop_reason(),
            agent_stop_reason,
            error,
            result_text: text(&ended.result_text),
            result_truncated: cut(&ended.result_text),
            result_code: cut(&ended.result_text).then_some(RESULT_TEXT_TRUNCATED),
            // Of a turn that only the ledger knows nobody can say what it said.
            no_text: source.is_none() && completed && ended.result_text.is_none(),
            partial_text: text(&ended.partial_text),
            input_written: ended.input_written.map(bridge::InputWritten::as_str),
            source,
            ..Self::default()
        }
    }
}

/// How a permission request was decided, for a vote that comes too late.
pub(crate) fn resolution(resolution: &Resolution) -> Value {
    let outcome = match &resolution.decision {
        Decision::Selected { option_id } => json!({ "outcome": "selected", "optionId": option_id }),
        Decision::Cancelled => json!({ "outcome": "cancelled" }),
    };
    let mut body = json!({ "outcome": outcome, "reason": resolution.reason.as_str(), "decidedAt": resolution.at_ms });
    if let Some(voter) = &resolution.voter {
        body["voterClientId"] = (**voter).into();
    }
    body
}

/// A terminal of the ledger as a load gives it out: its line, with one more key for a wish that it does not answer.
pub(crate) fn prompt_terminal(record: &ledger::Record, wished_at_ms: Option<f64>) -> String {
    let line = record.to_line();
    match (line.strip_suffix('}'), wished_at_ms) {
        (Some(members), Some(at_ms)) => format!("{members},\"cancelRequestedAt\":{}}}", ledger_time(at_ms)),
        _ => line,
    }
}

/// A time of the ledger, which is a finite number, as JSON.
fn ledger_time(at_ms: f64) -> Value {
    let whole = at_ms as u64;
    if whole as f64 == at_ms { whole.into() } else { at_ms.into() }
}

/// One frame of a replay around an update, which is the text of a JSON object (wire rules, section 7.3).
pub(crate) fn replay_frame(id: u64, session_id: &str, update: &str, at_ms: Option<u64>) -> String {
    let session_id = Value::from(session_id);
    let meta = at_ms.map(|at_ms| format!(r#","_meta":{{"serverTimestamp":{at_ms}}}"#)).unwrap_or_default();
    format!(
        r#"{{"id":{id},"v":1,"type":"session_update","data":{{"sessionId":{session_id},"update":{update}}}{meta}}}"#
    )
}

/// One event of a page of the transcript: its data is the update itself, and it has no number (wire rules, section 13.8).
pub(crate) fn page_frame(update: &str) -> String {
    format!(r#"{{"v":1,"type":"session_update","data":{update}}}"#)
}

/// The bounds of a part of a replay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeftOut {
    pub(crate) bytes_max: usize,
    /// Only the events since the last end of a turn have one.
    pub(crate) events_max: Option<usize>,
}

/// What says that a part of a replay does not begin at its beginning, `events` or more of it being left out (wire rules, section 7.3).
pub(crate) fn history_truncated(events: u64, turns: u64, retained: usize, bounds: LeftOut, at_ms: u64) -> String {
    let mut data = json!({
        "reason": "replay_window_exceeded",
        "truncatedEvents": events,
        "retainedEvents": retained,
        "maxBytes": bounds.bytes_max,
        "fullTranscriptAvailable": true,
    });
    if turns > 0 {
        data["truncatedTurns"] = turns.into();
    }
    if let Some(events_max) = bounds.events_max {
        data["scope"] = "live_journal".into();
        data["maxEvents"] = events_max.into();
    }
    synthetic_frame("history_truncated", &data, at_ms)
}

/// A frame about the stream itself, which has no number.
pub(crate) fn synthetic_frame(kind: &str, data: &Value, at_ms: u64) -> String {
    json!({ "v": 1, "type": kind, "data": data, "_meta": { "serverTimestamp": at_ms } }).to_string()
}
