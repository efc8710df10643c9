//! How long a call of the model took, as pages of the transcript show it and a replay does not (wire, section 16.7).

use std::io;

use serde_json::{Map, Value, json};

use super::Frame;
use super::update::Update;
use crate::branch::Transcript;
use crate::record::Record;
use crate::results::PAYLOAD_BYTES_MAX;
use crate::time::parse_millis;

/// What a note on a call says, and what it is called when it is shown.
const MEMBERS: [(&str, &str); 6] = [
    ("duration_ms", "durationMs"),
    ("response_id", "responseId"),
    ("prompt_id", "promptId"),
    ("subagent_id", "subagentId"),
    ("ttft_ms", "ttftMs"),
    ("model", "model"),
];

/// The update of a note on a call that was answered; none for any other record.
pub(crate) fn frame(transcript: &Transcript, record: &Record) -> io::Result<Option<Frame>> {
    let Some(payload) = record.payload_span.as_ref().filter(|_| record.is("ui_telemetry")) else { return Ok(None) };
    let payload = transcript.value(payload, PAYLOAD_BYTES_MAX)?;
    let timing = payload.as_ref().and_then(|payload| timing(&payload["uiEvent"]));
    Ok(timing.map(|timing| Update::chunk("agent_message_chunk", "").frame(record, Some(("timing", timing)), None)))
}

fn timing(event: &Value) -> Option<Value> {
    if event["event.name"] != "qwen-code.api_response" {
        return None;
    }
    let mut timing = Map::from_iter([("kind".to_owned(), json!("request")), ("status".to_owned(), json!("ok"))]);
    let ended_ms = event["event.timestamp"].as_str().and_then(parse_millis);
    if let (Some(ended_ms), Some(duration_ms)) = (ended_ms, event["duration_ms"].as_i64()) {
        timing.insert("startedAt".to_owned(), ended_ms.saturating_sub(duration_ms).into());
    }
    let said = MEMBERS.iter().filter_map(|(name, shown)| Some(((*shown).to_owned(), event.get(*name)?.clone())));
    timing.extend(said.filter(|(_, value)| !value.is_null()));
    Some(timing.into())
}
