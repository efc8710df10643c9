//! What a client is told when its agent did not do what was asked.

use bridge::AskError;
use hyper::StatusCode;
use serde_json::Value;

use crate::refusal::Refusal;

/// JSON-RPC error of an agent that does not know a method.
const METHOD_NOT_FOUND: i64 = -32601;

/// The answer for a question that was not answered. An agent's own error is handed on as it is (wire rules, section 14.3).
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
            let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", error.message.clone());
            let refusal = refusal.with("code", error.code);
            if data.is_null() { refusal } else { refusal.with("data", data) }
        }
    }
}

/// Whether the agent does not know what it was asked for.
pub(crate) fn is_unknown(error: &AskError) -> bool {
    matches!(error, AskError::Refused(error) if error.code == METHOD_NOT_FOUND)
}
