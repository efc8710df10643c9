//! The updates of one record, in the words of the wire (wire, section 16.7).

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Frame;
use super::source::{Answer, Call, Media, Usage};
use crate::record::Record;
use crate::text::trimmed_end;

/// What is shown where the branch was cut, word for word as the recorded daemon says it.
const GAP: &str = "⚠️ History gap: earlier conversation was lost before this point (storage interruption) and could not be recovered.";
/// What is shown of a call that nobody answered.
const UNANSWERED: &str =
    "There is no result of this call in the saved history: the agent stopped before the tool ended.";

/// An update as it is sent, but for what every one of a replay carries.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Update<'a> {
    session_update: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locations: Option<[(); 0]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(rename = "_meta")]
    meta: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Block(Block<'a>),
    Nothing([(); 0]),
    List([Item<'a>; 1]),
}

/// What stands in a chunk.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
}

/// What a tool shows.
#[derive(Serialize)]
struct Item<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    content: Block<'a>,
}

/// The metadata of one update beyond what every one carries.
pub(super) type Meta = Option<(&'static str, Value)>;

impl<'a> Update<'a> {
    /// A piece of what was said.
    pub(super) fn chunk(kind: &'a str, text: &'a str) -> Self {
        Self { session_update: kind, content: Some(Content::Block(Block::text(text))), ..Self::default() }
    }

    /// What a command of a user gave.
    pub(super) fn shell_output(output: &'a str) -> Self {
        Self { session_update: "shell_output", output: Some(output), ..Self::default() }
    }

    /// An image or a sound; none when it is something else.
    pub(super) fn media(kind: &'a str, media: &'a Media) -> Option<Self> {
        let (mime_type, data) = (media.mime_type.as_deref()?, media.data.as_deref()?);
        let of = mime_type.split('/').next().filter(|kind| matches!(*kind, "image" | "audio"))?;
        let block = Block { kind: of, text: None, mime_type: Some(mime_type), data: Some(data) };
        Some(Self { session_update: kind, content: Some(Content::Block(block)), ..Self::default() })
    }

    /// A call; none when it has no id, so that nothing could ever be said of it.
    pub(super) fn call(call: &'a Call, no_arguments: &'a RawValue) -> Option<Self> {
        let name = name_of(call);
        Some(Self {
            session_update: "tool_call",
            tool_call_id: Some(call.id.as_deref()?),
            status: Some("in_progress"),
            title: Some(name),
            kind: Some(kind_of(name)),
            content: Some(Content::Nothing([])),
            locations: Some([]),
            raw_input: Some(call.arguments.as_deref().unwrap_or(no_arguments)),
            ..Self::default()
        })
    }

    /// What a call gave.
    pub(super) fn answer(id: &'a str, answer: &'a Answer, status: Option<&str>, display: Option<&'a RawValue>) -> Self {
        let is_error = answer.output.is_none() && answer.error.is_some();
        let succeeded = status.map_or(!is_error, |status| status == "success");
        let text = answer.output.as_deref().or(answer.error.as_deref());
        Self {
            session_update: "tool_call_update",
            tool_call_id: Some(id),
            status: Some(if succeeded { "completed" } else { "failed" }),
            content: Some(text.map_or(Content::Nothing([]), |text| Content::List([Item::text(text)]))),
            raw_output: display,
            ..Self::default()
        }
    }

    /// The frame of the update, with what every one of a replay carries: the record behind it, and its time.
    pub(super) fn frame(mut self, record: &Record, meta: Meta, segment: Option<usize>) -> Frame {
        let uuid = &record.uuid;
        let mut source = json!({"sourceRecordIds": [uuid]});
        if let Some(ordinal) = segment {
            source["segmentId"] = json!(format!("{uuid}:{ordinal}"));
        }
        let at_ms = record.at_ms.and_then(|at_ms| u64::try_from(at_ms).ok());
        self.meta.extend(meta.map(|(key, value)| (key.to_owned(), value)));
        self.meta.insert("qwenTranscript".to_owned(), source);
        self.meta.insert("qwen.session.recordId".to_owned(), json!(uuid));
        if let Some(at_ms) = at_ms {
            self.meta.insert("timestamp".to_owned(), json!(at_ms));
        }
        self.timestamp = at_ms;
        // Nothing of it lacks a text, so that this cannot fail.
        Frame { update: serde_json::to_string(&self).unwrap_or_default(), at_ms }
    }

    /// The same with one more word of metadata.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.meta.insert(key.to_owned(), value.into());
        self
    }
}

impl<'a> Block<'a> {
    fn text(text: &'a str) -> Self {
        Self { kind: "text", text: Some(text), mime_type: None, data: None }
    }
}

impl<'a> Item<'a> {
    fn text(text: &'a str) -> Self {
        Self { kind: "content", content: Block::text(text) }
    }
}

/// Says that the conversation before `first` was lost.
pub(crate) fn gap(first: &Record) -> Frame {
    notice(first, GAP)
}

/// Keeps the place of a record that is too large to be shown.
pub(crate) fn left_out(record: &Record) -> Frame {
    let bytes = record.span.end - record.span.start;
    notice(record, &format!("A message of {bytes} bytes is left out here. It is in the transcript."))
}

fn notice(record: &Record, text: &str) -> Frame {
    Update::chunk("agent_message_chunk", text).frame(record, Some(("qwenDiscreteMessage", json!(true))), Some(0))
}

/// Ends a call that nobody answered.
pub(super) fn unanswered(record: &Record, call_id: &str) -> Frame {
    let update = Update {
        session_update: "tool_call_update",
        tool_call_id: Some(call_id),
        status: Some("failed"),
        content: Some(Content::List([Item::text(UNANSWERED)])),
        ..Update::default()
    };
    update.frame(record, None, None)
}

/// Whether a text is shown: not when it is empty, nor when it is a reminder to the model.
pub(super) fn is_shown(text: &str) -> bool {
    let is_reminder = text.starts_with("<system-reminder>") && trimmed_end(text).ends_with("</system-reminder>");
    !text.is_empty() && !is_reminder
}

/// The name of the function that is called.
pub(super) fn name_of(call: &Call) -> &str {
    call.name.as_deref().unwrap_or("unknown")
}

/// What an answer took, in the words of the wire.
pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "inputTokens": usage.prompt,
        "outputTokens": usage.candidates,
        "totalTokens": usage.total,
        "thoughtTokens": usage.thoughts,
        "cachedReadTokens": usage.cached,
    })
}

/// How a turn was cut short; none when it was not.
pub(super) fn cancelled(payload: &Value) -> Option<Value> {
    let cancelled_at = payload["cancelledAt"].as_u64().filter(|_| payload["state"].as_str() == Some("cancelled"))?;
    let mut cancelled = json!({"promptId": payload["promptId"], "cancelledAt": cancelled_at});
    if let Some(started_at) = payload["startedAt"].as_u64() {
        cancelled["elapsedMs"] = json!(cancelled_at.saturating_sub(started_at));
    }
    Some(cancelled)
}

/// The kind of a tool, for the icon beside it, by the names of the tools that are recorded most.
fn kind_of(name: &str) -> &'static str {
    match name {
        "run_shell_command" => "execute",
        "read_file" | "read_many_files" | "list_directory" => "read",
        "write_file" | "edit" | "replace" => "edit",
        "glob" | "grep_search" | "search_file_content" => "search",
        "web_fetch" => "fetch",
        _ => "other",
    }
}
