//! What the door says, as messages of the protocol (ACP v1). With the machine beside it the only place that knows these names.

use acp::{RequestId, RpcError, compose, raw_at};
use bridge::Terminal;
use bytes::Bytes;
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::input::{Entrance, Question};
use crate::refusal::Refusal;

/// JSON-RPC code of a session that is not there, as ACP agents give it.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;

/// What of an agent's own opening answer an editor is shown.
const STATE_KEYS: [&str; 3] = ["modes", "models", "configOptions"];

/// The answer to `initialize`. What prompts may carry is the agent's to say, as far as one has been greeted.
pub(super) fn welcome(request: &RequestId, prompt_capabilities: &Value, version: &str) -> Bytes {
    let capabilities = json!({
        "loadSession": true,
        "promptCapabilities": prompt_capabilities,
        "mcpCapabilities": { "http": false, "sse": false },
        "sessionCapabilities": { "resume": {} },
    });
    let result = json!({
        "protocolVersion": 1,
        "agentInfo": { "name": "turnd", "title": "turnd", "version": version },
        "agentCapabilities": capabilities,
        "authMethods": [],
    });
    compose::response(request, &result)
}

/// The answer to a request that opens a session.
pub(super) fn opened(request: &RequestId, entrance: &Entrance) -> Bytes {
    let mut result = Map::new();
    if entrance.fresh {
        result.insert("sessionId".to_owned(), entrance.session.as_str().into());
    }
    let state: Map<String, Value> = serde_json::from_str(&acp::repair_surrogates(&entrance.state)).unwrap_or_default();
    result.extend(state.into_iter().filter(|(key, value)| STATE_KEYS.contains(&key.as_str()) && !value.is_null()));
    let mut meta = json!({ "turnd/clientId": entrance.client });
    if entrance.cut {
        meta["turnd/historyTruncated"] = true.into();
    }
    result.insert("_meta".to_owned(), meta);
    compose::response(request, &result)
}

/// An update of a session.
pub(super) fn update(session: &str, raw: &str) -> Bytes {
    let params = format!("{{\"sessionId\":{},\"update\":{raw}}}", Value::from(session));
    compose::notification_raw("session/update", &params)
}

/// A question of the agent.
pub(super) fn question(number: u64, session: &str, question: &Question) -> Bytes {
    let meta = json!({ "turnd/requestId": question.id });
    let params = format!(
        "{{\"sessionId\":{},\"toolCall\":{},\"options\":{},\"_meta\":{meta}}}",
        Value::from(session),
        question.tool_call,
        question.options,
    );
    compose::request_raw(number, "session/request_permission", &params)
}

/// A question that was decided elsewhere needs no answer any more.
pub(super) fn withdrawn(number: u64) -> Bytes {
    compose::notification("$/cancel_request", &json!({ "requestId": number }))
}

/// The end of a prompt that was answered or cancelled.
pub(super) fn finished(request: &RequestId, prompt: &str, stop_reason: &str, envelope_data: &str) -> Bytes {
    let mut meta = json!({ "turnd/promptId": prompt });
    if let Some(written) = acp::string_at(envelope_data, &["inputWritten"]) {
        meta["turnd/inputWritten"] = written.into();
    }
    let branch = raw_at(envelope_data, &["branchPoint"]).and_then(|raw| serde_json::from_str(raw).ok());
    if let Some(point) = branch {
        meta["qwen.branchPoint"] = point;
    }
    compose::response(request, &json!({ "stopReason": stop_reason, "_meta": meta }))
}

/// The end of a prompt that failed; its code is what the event and the poll say.
pub(super) fn failed(
    request: &RequestId,
    prompt: &str,
    message: &str,
    code: Option<&str>,
    written: Option<&str>,
) -> Bytes {
    let mut data = json!({ "promptId": prompt });
    for (key, value) in [("code", code), ("inputWritten", written)] {
        if let Some(value) = value {
            data[key] = value.into();
        }
    }
    compose::error_response(request, &RpcError::new(acp::rpc_error::INTERNAL_ERROR, message).with_data(&data))
}

/// The end of a prompt that had ended before it was sent again.
pub(super) fn over(request: &RequestId, prompt: &str, terminal: &Terminal) -> Bytes {
    match (terminal, terminal.stop_reason()) {
        (_, Some(stop_reason)) => finished(request, prompt, stop_reason, "{}"),
        (Terminal::Error { message, code }, None) => failed(request, prompt, message, code.as_deref(), None),
        (_, None) => lost(request, prompt),
    }
}

/// What became of a prompt is not known; nothing is guessed.
pub(super) fn lost(request: &RequestId, prompt: &str) -> Bytes {
    failed(request, prompt, "the outcome of the prompt is not known", Some("outcome_unknown"), None)
}

/// A refusal of HTTP as an error of JSON-RPC: the code and the fields are its `data`.
pub(crate) fn refused(refusal: &Refusal) -> RpcError {
    let code = match refusal.status {
        StatusCode::NOT_FOUND => RESOURCE_NOT_FOUND,
        StatusCode::BAD_REQUEST => acp::rpc_error::INVALID_PARAMS,
        _ => acp::rpc_error::INTERNAL_ERROR,
    };
    let mut data = serde_json::to_value(refusal).unwrap_or_default();
    if let Value::Object(fields) = &mut data {
        fields.remove("error");
        fields.insert("status".to_owned(), refusal.status.as_u16().into());
    }
    RpcError::new(code, refusal.message.clone()).with_data(&data)
}

/// An error of the door's own, with a code for programs.
pub(super) fn error(rpc_code: i64, code: &'static str, message: impl Into<String>) -> RpcError {
    RpcError::new(rpc_code, message).with_data(&json!({ "code": code }))
}
