//! Asides: a summary of the conversation, a question about it, and an agent sent off with a task of its own (wire rules,
//! section 13.3). None of them is a prompt, and none changes the history.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::aside::Aside;
use crate::body;
use crate::dispatch::Call;
use crate::limits::QUESTION_CHARS_MAX;
use crate::refusal::Refusal;
use crate::reply::{Reply, json as reply, ok};

const RECAP: Aside = Aside::new("recap_not_supported", "qwen/control/session/recap");
const BTW: Aside = Aside::new("btw_not_supported", "qwen/control/session/btw");
const FORK: Aside = Aside::new("fork_not_supported", "qwen/control/session/fork_agent");

/// `POST /session/:id/recap`.
pub(crate) async fn recap(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.open_session_and_client()?;
    let result = RECAP.ask(&session, &json!({})).await?;
    Ok(ok(&json!({ "sessionId": session.id(), "recap": text_or_null(&result["recap"]) })))
}

/// `POST /session/:id/btw`. Also while a prompt runs.
pub(crate) async fn btw(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.open_session_and_client()?;
    let invalid = |message| Refusal::bad_request("invalid_question", message);
    let question = body::text(&call.fields, "question").ok().flatten();
    let question = question.map(|question| question.trim().to_owned()).filter(|question| !question.is_empty());
    let question = question.ok_or_else(|| invalid("`question` is required and must be a non-empty string"))?;
    if question.encode_utf16().count() > QUESTION_CHARS_MAX {
        return Err(invalid("`question` must be at most 4096 characters"));
    }
    let result = BTW.ask(&session, &json!({ "question": question })).await?;
    Ok(ok(&json!({ "sessionId": session.id(), "answer": text_or_null(&result["answer"]) })))
}

/// `POST /session/:id/fork`. Not while a prompt runs or waits.
pub(crate) async fn fork(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.open_session_and_client()?;
    let directive = body::text(&call.fields, "directive").ok().flatten();
    let directive = directive.map(|directive| directive.trim().to_owned()).filter(|directive| !directive.is_empty());
    let missing =
        || Refusal::bad_request("missing_directive", "`directive` is required and must be a non-empty string");
    let directive = directive.ok_or_else(missing)?;
    if session.status().has_active_prompt {
        return Err(Refusal::busy(session.id(), "Cannot fork while a response or tool call is in progress"));
    }
    let result = FORK.ask(&session, &json!({ "directive": directive })).await?;
    let launched = result["launched"].as_bool().unwrap_or(false);
    let body = json!({ "sessionId": session.id(), "description": result["description"], "launched": launched });
    Ok(reply(StatusCode::ACCEPTED, &body))
}

fn text_or_null(value: &Value) -> Value {
    if value.is_string() { value.clone() } else { Value::Null }
}
