//! What a client is told when its agent did not do what was asked.

use acp::rpc_error::METHOD_NOT_FOUND;
use bridge::{AskError, RpcError};
use hyper::StatusCode;
use serde_json::Value;

use crate::refusal::Refusal;

/// The agents' word for a session that they do not have.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;

/// The answer for an inquiry that was not answered. An agent's own error is handed on as it is (wire rules, section 14.3).
pub(crate) fn refused(session: &str, error: &AskError) -> Refusal {
    match error {
        AskError::Gone => Refusal::session_not_found(session),
        AskError::Timeout { timeout_ms, .. } => {
            let message =
                format!("The agent did not answer within {timeout_ms} ms; it may still do what it was asked for");
            Refusal::new(StatusCode::GATEWAY_TIMEOUT, "agent_timeout", message)
                .with("sessionId", session)
                .with("timeoutMs", *timeout_ms)
                .with("sideEffectPossible", true)
        }
        AskError::Refused(error) => {
            let data: Value =
                error.data.as_deref().and_then(|data| serde_json::from_str(data).ok()).unwrap_or(Value::Null);
            if data["turnd/code"] == "transcript_unwritable" {
                let message = "The session cannot be changed because its transcript cannot be written";
                return Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "transcript_unwritable", message)
                    .with("sessionId", session)
                    .with("details", data["details"].clone());
            }
            handed_on(error, data)
        }
    }
}

/// 500 with an agent's own words, number and data, the last of which is read already.
pub(crate) fn handed_on(error: &RpcError, data: Value) -> Refusal {
    let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", error.message.clone()).with("code", error.code);
    if data.is_null() { refusal } else { refusal.with("data", data) }
}

/// Whether the agent does not know what it was asked for.
pub(crate) fn is_method_unknown(error: &RpcError) -> bool {
    error.code == METHOD_NOT_FOUND
}
