//! The JSON of a turn: what the agent's updates say, and the parts of the records that are made of them.
//!
//! Updates are read from the raw line with the tolerance of the agents' own parsers (half surrogate pairs, missing and
//! null fields); what is not understood is left out of the record and never out of the stream.

use acp::Speech;
use serde_json::{Map, Value, json};
use transcript::prompt_texts;
use transcript::text::bounded;

use crate::limits::{ARGS_BYTES_MAX, NAME_UNITS_MAX, TOOL_OUTPUT_UNITS_MAX};

/// What an update means to the record of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Update {
    /// The agent speaks.
    Text(String),
    /// The agent speaks, and nobody can tell what of its answer that is.
    Unclear,
    /// The agent thinks.
    Thought(String),
    /// A tool call is announced.
    CallBegins(CallFields),
    /// Something about a tool call has changed.
    CallGoesOn(CallFields),
    /// What the agent takes for the user's words. The content is raw JSON.
    User { message_id: Option<String>, content: String },
    /// A plan or a subagent's words: part of the conversation, but never of the record.
    Echo,
    /// State of the session: commands, modes, usage, titles, and whatever else there is.
    State,
}

/// What one message says about a tool call; anything may be missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CallFields {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) args: Option<Value>,
    pub(crate) status: Option<CallStatus>,
    pub(crate) output: Option<String>,
}

/// Where a tool call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStatus {
    Pending,
    Running,
    Completed,
    Failed,
}

impl Update {
    /// Reads the parameters of a `session/update`.
    pub(crate) fn read(params: &str) -> Self {
        let Some(update) = acp::raw_at(params, &["update"]) else { return Self::State };
        let kind = acp::string_at(update, &["sessionUpdate"]).unwrap_or_default();
        match kind.as_str() {
            // A subagent's words are not the turn's, and its tools do not end what the turn itself has said.
            "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" | "tool_call" | "tool_call_update"
                if acp::of_subagent(update) =>
            {
                Self::Echo
            }
            "agent_message_chunk" => match Speech::read(update) {
                Speech::Text(text) => Self::Text(text),
                Speech::Unclear => Self::Unclear,
                _ => Self::Echo,
            },
            "agent_thought_chunk" => text_of(update).map_or(Self::Echo, Self::Thought),
            "user_message_chunk" => Self::User {
                message_id: acp::string_at(update, &["messageId"]),
                content: acp::raw_at(update, &["content"]).unwrap_or("null").to_owned(),
            },
            "plan" => Self::Echo,
            "tool_call" => Self::CallBegins(CallFields::read(update)),
            "tool_call_update" => Self::CallGoesOn(CallFields::read(update)),
            _ => Self::State,
        }
    }

    /// Whether it is a part of an answer, or lies between what was said and the answer. Agents also say nothing, to tell what it cost.
    pub(crate) fn is_words(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Unclear | Self::CallBegins(_) | Self::CallGoesOn(_) => true,
            Self::Thought(_) | Self::User { .. } | Self::Echo | Self::State => false,
        }
    }

    /// Whether it is about a tool call.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Self::CallBegins(_) | Self::CallGoesOn(_))
    }

    /// What it is to where the answer begins.
    pub(super) fn bearing(&self) -> Speech {
        match self {
            Self::CallBegins(fields) => Speech::ToolCall { call_id: fields.id.clone() },
            Self::CallGoesOn(fields) => fields.news(),
            Self::Unclear => Speech::Unclear,
            Self::Text(_) | Self::Thought(_) | Self::User { .. } | Self::Echo | Self::State => Speech::Other,
        }
    }

    /// Whether a replay of the conversation consists of such updates.
    pub(crate) fn is_conversation(&self) -> bool {
        !matches!(self, Self::State)
    }
}

/// The text of a chunk; none for images and the like.
fn text_of(update: &str) -> Option<String> {
    acp::string_at(update, &["content", "text"])
}

impl CallFields {
    /// Reads a tool call, or the `toolCall` of a permission request.
    pub(crate) fn read(raw: &str) -> Self {
        let text = |key| acp::string_at(raw, &[key]).filter(|text| !text.is_empty());
        Self {
            id: text("toolCallId").unwrap_or_default(),
            name: text("name").or_else(|| text("title")).or_else(|| text("kind")),
            args: acp::raw_at(raw, &["rawInput"]).and_then(args_of),
            status: text("status").map(|word| CallStatus::read(&word)),
            output: output_of(raw),
        }
    }
}

impl CallFields {
    /// What it is to where the answer begins.
    pub(super) fn news(&self) -> Speech {
        let over = matches!(self.status, Some(CallStatus::Completed | CallStatus::Failed));
        Speech::ToolCallUpdate { call_id: self.id.clone(), over }
    }
}

impl CallStatus {
    /// Reads a status; an unknown word is no end.
    fn read(word: &str) -> Self {
        match word {
            "pending" => Self::Pending,
            "completed" => Self::Completed,
            "failed" | "cancelled" | "canceled" => Self::Failed,
            _ => Self::Running,
        }
    }
}

/// The arguments, when there are any yet: agents announce a call with an empty object and fill it in later.
fn args_of(raw: &str) -> Option<Value> {
    if raw.len() > ARGS_BYTES_MAX {
        return Some(json!({ "turnd/leftOutBytes": raw.len() }));
    }
    let value = acp::lenient_value(raw)?;
    value.as_object().is_some_and(|args| !args.is_empty()).then_some(value)
}

/// What a tool gave back: the texts of its content, else its raw output.
fn output_of(raw: &str) -> Option<String> {
    let content = acp::raw_at(raw, &["content"]).and_then(acp::lenient_value);
    let texts: Vec<_> = content.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(shown).collect();
    let text = if texts.is_empty() { raw_output(acp::raw_at(raw, &["rawOutput"])?)? } else { texts.join("\n") };
    Some(bounded(&text, TOOL_OUTPUT_UNITS_MAX).text)
}

fn shown(item: &Value) -> Option<String> {
    if let Some(text) = item.pointer("/content/text") {
        return text.as_str().map(str::to_owned);
    }
    let path = item.get("path")?.as_str()?;
    Some(format!("changed {path}"))
}

fn raw_output(raw: &str) -> Option<String> {
    match raw {
        "null" | "{}" => None,
        raw => acp::decode_string(raw).or_else(|| Some(acp::repair_surrogates(raw).into_owned())),
    }
}

/// A name within its bound.
pub(crate) fn bounded_name(name: &str) -> String {
    bounded(name, NAME_UNITS_MAX).text
}

/// A text as a part of a message.
pub(crate) fn text_part(text: &str) -> Value {
    json!({ "text": text })
}

/// A thought as a part of a message.
pub(crate) fn thought_part(text: &str) -> Value {
    json!({ "text": text, "thought": true })
}

/// A call as a part of an assistant record.
pub(crate) fn call_part(id: &str, name: &str, args: Option<&Value>) -> Value {
    let args = args.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    json!({ "functionCall": { "id": id, "name": name, "args": args } })
}

/// What came of a call as a part of a tool record.
pub(crate) fn response_part(id: &str, name: &str, result: Result<&str, &str>) -> Value {
    let response = match result {
        Ok(output) => json!({ "output": output }),
        Err(error) => json!({ "error": error }),
    };
    json!({ "functionResponse": { "id": id, "name": name, "response": response } })
}

/// The payload of a record of what an agent said while no turn ran.
pub(crate) fn late_payload(prompt_id: Option<&str>, text: &str) -> Value {
    match prompt_id {
        Some(prompt_id) => json!({ "promptId": prompt_id, "text": text }),
        None => json!({ "text": text }),
    }
}

/// The parts of a user record and the text that stands for the whole prompt.
pub(crate) struct PromptText {
    pub(crate) parts: Vec<Value>,
    pub(crate) text: String,
}

impl PromptText {
    /// Reads the content blocks of a prompt.
    pub(crate) fn read(raw_blocks: &str) -> Self {
        let texts = acp::lenient_value(raw_blocks).as_ref().map(prompt_texts).unwrap_or_default();
        Self { parts: texts.iter().map(|text| text_part(text)).collect(), text: texts.join("\n") }
    }
}
