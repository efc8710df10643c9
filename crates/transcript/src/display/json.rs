//! The updates of one record, in the words of the wire (wire, section 16.7).

use serde_json::{Map, Value, json};

use super::Frame;
use crate::record::{Kind, Record};
use crate::text::trimmed_end;
use crate::turn_result::TURN_RESULT_SUBTYPE;

/// What is shown where the branch was cut, word for word as the recorded daemon says it.
const GAP: &str = "⚠️ History gap: earlier conversation was lost before this point (storage interruption) and could not be recovered.";
/// What is shown of a call that nobody answered.
const UNANSWERED: &str =
    "There is no result of this call in the saved history: the agent stopped before the tool ended.";

/// Whether anything of the record is shown at all.
pub(super) fn is_shown(record: &Record) -> bool {
    match record.kind {
        Kind::System => record.is("slash_command") || record.is(TURN_RESULT_SUBTYPE),
        Kind::User | Kind::Assistant | Kind::ToolResult => record.message.is_some(),
    }
}

/// The updates of a record. `whole` is the record as it stands in the file, `parts` are those of its message.
pub(super) fn frames(record: &Record, whole: &Value, parts: &[Value]) -> Vec<Frame> {
    let mut shown = Shown { record, frames: Vec::new(), ordinal: 0 };
    match record.kind {
        Kind::User => shown.user(whole, parts),
        Kind::Assistant => shown.assistant(whole, parts),
        Kind::ToolResult => shown.tool_result(whole, parts),
        Kind::System if record.is("slash_command") => shown.slash_command(&whole["systemPayload"]),
        Kind::System => shown.turn_result(&whole["systemPayload"]),
    }
    shown.frames
}

/// Says that the conversation before `first` was lost.
pub(super) fn gap(first: &Record) -> Frame {
    Shown::notice(first, GAP)
}

/// Keeps the place of a record that is too large to be shown.
pub(super) fn left_out(record: &Record) -> Frame {
    let bytes = record.span.end - record.span.start;
    Shown::notice(record, &format!("A message of {bytes} bytes is left out here. It is in the transcript."))
}

/// Ends a call that nobody answered.
pub(super) fn unanswered(record: &Record, call_id: &str) -> Frame {
    let update = json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": "failed",
        "content": [text_content(UNANSWERED)],
    });
    Shown { record, frames: Vec::new(), ordinal: 0 }.frame(update, Map::new(), false)
}

/// The updates of one record while they are put together.
struct Shown<'a> {
    record: &'a Record,
    frames: Vec<Frame>,
    /// How many updates there are; part of a text's segment id.
    ordinal: usize,
}

impl Shown<'_> {
    fn notice(record: &Record, text: &str) -> Frame {
        let mut shown = Shown { record, frames: Vec::new(), ordinal: 0 };
        let meta = Map::from_iter([("qwenDiscreteMessage".to_owned(), json!(true))]);
        shown.frame(chunk("agent_message_chunk", json!({"type": "text", "text": text})), meta, true)
    }

    fn user(&mut self, whole: &Value, parts: &[Value]) {
        let meta = |record: &Record| match &record.prompt_id {
            Some(prompt_id) => Map::from_iter([("promptId".to_owned(), json!(prompt_id))]),
            None => Map::new(),
        };
        let mut display_text = whole["systemPayload"]["displayText"].as_str();
        let is_replaced = display_text.is_some();
        for part in parts {
            let content = match part["text"].as_str() {
                // What the session shows instead stands in the place of the first text.
                Some(_) if is_replaced => display_text.take().map(|text| json!({"type": "text", "text": text})),
                _ => displayable(part),
            };
            if let Some(content) = content {
                let meta = meta(self.record);
                self.push(chunk("user_message_chunk", content), meta, true);
            }
        }
    }

    fn assistant(&mut self, whole: &Value, parts: &[Value]) {
        for part in parts {
            let is_thought = part["thought"].as_bool() == Some(true);
            let kind = if is_thought { "agent_thought_chunk" } else { "agent_message_chunk" };
            if let Some(content) = displayable(part) {
                self.push(chunk(kind, content), Map::new(), true);
            }
        }
        if let Some(usage) = usage(&whole["usageMetadata"]) {
            let meta = Map::from_iter([("usage".to_owned(), usage)]);
            self.push(chunk("agent_message_chunk", json!({"type": "text", "text": ""})), meta, false);
        }
        for call in parts.iter().filter_map(|part| part.get("functionCall")?.as_object()) {
            self.call(call);
        }
    }

    fn call(&mut self, call: &Map<String, Value>) {
        let Some(id) = call.get("id").and_then(Value::as_str) else { return };
        let name = call.get("name").and_then(Value::as_str).unwrap_or("unknown");
        let update = json!({
            "sessionUpdate": "tool_call",
            "toolCallId": id,
            "status": "in_progress",
            "title": name,
            "kind": kind_of(name),
            "content": [],
            "locations": [],
            "rawInput": call.get("args").cloned().unwrap_or_else(|| json!({})),
        });
        self.push(update, Map::from_iter([("toolName".to_owned(), json!(name))]), false);
    }

    fn tool_result(&mut self, whole: &Value, parts: &[Value]) {
        let result = &whole["toolCallResult"];
        for answer in parts.iter().filter_map(|part| part.get("functionResponse")?.as_object()) {
            let id = answer.get("id").and_then(Value::as_str).or_else(|| result["callId"].as_str());
            let Some(id) = id else { continue };
            let (text, is_error) = outcome(answer.get("response").unwrap_or(&Value::Null));
            let succeeded = result["status"].as_str().map_or(!is_error, |status| status == "success");
            let mut update = json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": id,
                "status": if succeeded { "completed" } else { "failed" },
                "content": text.map(|text| vec![text_content(&text)]).unwrap_or_default(),
            });
            if let Some(display) = result.get("resultDisplay") {
                update["rawOutput"] = display.clone();
            }
            let name = answer.get("name").and_then(Value::as_str);
            let meta = name.map(|name| ("toolName".to_owned(), json!(name)));
            self.push(update, meta.into_iter().collect(), false);
        }
    }

    fn slash_command(&mut self, payload: &Value) {
        if payload["phase"].as_str() != Some("result") {
            return;
        }
        let items = payload["outputHistoryItems"].as_array();
        for text in items.into_iter().flatten().filter_map(|item| item.get("text")?.as_str()) {
            // The session wrote lines, and who shows a chunk reads Markdown.
            let text = text.replace('\n', "  \n");
            let meta = Map::from_iter([("source".to_owned(), json!("slash_command"))]);
            self.push(chunk("agent_message_chunk", json!({"type": "text", "text": text})), meta, true);
        }
    }

    /// Of the ends of turns only a cancel is shown, so that nobody takes half an answer for a whole one.
    fn turn_result(&mut self, payload: &Value) {
        let (Some("cancelled"), Some(cancelled_at)) = (payload["state"].as_str(), payload["cancelledAt"].as_u64())
        else {
            return;
        };
        let mut cancelled = json!({"promptId": payload["promptId"], "cancelledAt": cancelled_at});
        if let Some(started_at) = payload["startedAt"].as_u64() {
            cancelled["elapsedMs"] = json!(cancelled_at.saturating_sub(started_at));
        }
        let meta = [("qwenDiscreteMessage", json!(true)), ("promptCancelled", cancelled)];
        let meta = meta.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        self.push(chunk("agent_message_chunk", json!({"type": "text", "text": ""})), meta, false);
    }

    fn push(&mut self, update: Value, meta: Map<String, Value>, is_segment: bool) {
        let frame = self.frame(update, meta, is_segment);
        self.frames.push(frame);
    }

    /// An update with what every one of a replay carries: the record behind it, and its time.
    fn frame(&mut self, mut update: Value, mut meta: Map<String, Value>, is_segment: bool) -> Frame {
        let uuid = &self.record.uuid;
        let mut source = json!({"sourceRecordIds": [uuid]});
        if is_segment {
            source["segmentId"] = json!(format!("{uuid}:{}", self.ordinal));
        }
        self.ordinal += 1;
        let at_ms = self.record.at_ms.and_then(|at_ms| u64::try_from(at_ms).ok());
        meta.insert("qwenTranscript".to_owned(), source);
        meta.insert("qwen.session.recordId".to_owned(), json!(uuid));
        if let Some(at_ms) = at_ms {
            meta.insert("timestamp".to_owned(), json!(at_ms));
            update["timestamp"] = json!(at_ms);
        }
        update["_meta"] = Value::Object(meta);
        Frame { update, at_ms }
    }
}

fn chunk(kind: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "content": content})
}

fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

/// What is shown of a part: a text that is no reminder to the model, or an image or a sound.
fn displayable(part: &Value) -> Option<Value> {
    if let Some(text) = part["text"].as_str() {
        let is_reminder = text.starts_with("<system-reminder>") && trimmed_end(text).ends_with("</system-reminder>");
        return (!text.is_empty() && !is_reminder).then(|| json!({"type": "text", "text": text}));
    }
    let data = part["inlineData"]["data"].as_str()?;
    let mime_type = part["inlineData"]["mimeType"].as_str()?;
    let kind = mime_type.split('/').next().filter(|kind| matches!(*kind, "image" | "audio"))?;
    Some(json!({"type": kind, "mimeType": mime_type, "data": data}))
}

fn usage(metadata: &Value) -> Option<Value> {
    let count = |key: &str| metadata.get(key).and_then(Value::as_u64).unwrap_or(0);
    metadata.as_object()?;
    Some(json!({
        "inputTokens": count("promptTokenCount"),
        "outputTokens": count("candidatesTokenCount"),
        "totalTokens": count("totalTokenCount"),
        "thoughtTokens": count("thoughtsTokenCount"),
        "cachedReadTokens": count("cachedContentTokenCount"),
    }))
}

/// The text of a tool's answer, and whether it is an error.
fn outcome(response: &Value) -> (Option<String>, bool) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (response.get("output"), response.get("error")) {
        (Some(output), _) => (Some(text(output)), false),
        (None, Some(error)) => (Some(text(error)), true),
        (None, None) => (None, false),
    }
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
