//! What a record of ours says, and the line it becomes.

use serde::Serialize;
use serde_json::Value;

use crate::turn_result::{TURN_RESULT_SUBTYPE, TurnResult};

/// What one record says. Its place in the chain, its time and its writer are the [`Writer`](crate::Writer)'s business.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// What was asked.
    User {
        /// The prompt it was asked by: the stamp that later proves whose turn this is.
        prompt_id: Option<String>,
        /// The parts of the message, in the model's own notation (wire, section 16.2).
        parts: Vec<Value>,
    },
    /// What was said into a running turn, and which the agent took: part of that turn and no prompt of its own.
    MidTurn {
        /// The parts of the message.
        parts: Vec<Value>,
    },
    /// What the agent answered.
    Assistant {
        /// The model's name, when the agent tells it.
        model: Option<String>,
        /// Texts, thoughts and function calls.
        parts: Vec<Value>,
    },
    /// What a tool gave back.
    ToolResult {
        /// The call it answers.
        call_id: String,
        /// `success`, `error` or `cancelled`.
        status: String,
        /// The function responses.
        parts: Vec<Value>,
    },
    /// A record about the session that is no part of the conversation.
    System {
        /// What kind of record.
        subtype: String,
        /// Its content.
        payload: Value,
    },
}

impl From<TurnResult> for Body {
    fn from(result: TurnResult) -> Self {
        let payload = serde_json::to_value(result.within_bounds()).unwrap_or(Value::Null);
        Self::System { subtype: TURN_RESULT_SUBTYPE.to_owned(), payload }
    }
}

impl Body {
    /// Whether later records may name this one as their parent.
    pub(crate) fn is_on_branch(&self) -> bool {
        match self {
            Self::System { subtype, .. } => !crate::record::is_off_branch_subtype(subtype),
            _ => true,
        }
    }
}

/// One line of a transcript. The order of the fields is the order in which qwen-code's daemon writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line<'a> {
    pub(crate) uuid: &'a str,
    pub(crate) parent_uuid: Option<&'a str>,
    pub(crate) session_id: &'a str,
    pub(crate) timestamp: &'a str,
    #[serde(flatten)]
    pub(crate) said: Said<'a>,
    pub(crate) cwd: &'a str,
    pub(crate) version: &'a str,
    #[serde(flatten)]
    pub(crate) content: Content<'a>,
}

/// Who speaks.
#[derive(Serialize)]
pub(crate) struct Said<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    provenance: &'a str,
}

/// The fields that differ from type to type.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    subtype: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon_prompt_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_result: Option<ToolCallResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_payload: Option<&'a Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    parts: &'a [Value],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallResult<'a> {
    call_id: &'a str,
    status: &'a str,
}

impl<'a> From<&'a Body> for (Said<'a>, Content<'a>) {
    fn from(body: &'a Body) -> Self {
        let empty = Content {
            subtype: None,
            daemon_prompt_id: None,
            model: None,
            message: None,
            tool_call_result: None,
            system_payload: None,
        };
        match body {
            Body::User { prompt_id, parts } => (
                Said { kind: "user", provenance: "real_user" },
                Content {
                    daemon_prompt_id: prompt_id.as_deref(),
                    message: Some(Message { role: "user", parts }),
                    ..empty
                },
            ),
            Body::MidTurn { parts } => (
                Said { kind: "user", provenance: "real_user" },
                Content {
                    subtype: Some(crate::record::MID_TURN),
                    message: Some(Message { role: "user", parts }),
                    ..empty
                },
            ),
            Body::Assistant { model, parts } => (
                Said { kind: "assistant", provenance: "assistant_output" },
                Content { model: model.as_deref(), message: Some(Message { role: "model", parts }), ..empty },
            ),
            Body::ToolResult { call_id, status, parts } => (
                Said { kind: "tool_result", provenance: "tool_result" },
                Content {
                    message: Some(Message { role: "user", parts }),
                    tool_call_result: Some(ToolCallResult { call_id, status }),
                    ..empty
                },
            ),
            Body::System { subtype, payload } => (
                Said { kind: "system", provenance: "system" },
                Content { subtype: Some(subtype), system_payload: Some(payload), ..empty },
            ),
        }
    }
}
