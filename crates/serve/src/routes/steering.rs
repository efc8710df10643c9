//! Words for a turn that runs: said, listed, taken back (wire rules, section 13.6).

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::body::{self, Fields};
use crate::content::{self, Content};
use crate::dispatch::Call;
use crate::identity::is_prompt_id;
use crate::limits::MESSAGE_CHARS_MAX;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::routes::pending::not_open;
use crate::steering::{Answer, steer};

/// `POST /session/:id/mid-turn-message`.
pub(crate) async fn say(call: &Call<'_>) -> Result<Reply, Refusal> {
    let content = message(&call.fields)?;
    let (session, client) = call.open_session_and_client()?;
    Ok(ok(&match steer(call.workspace, &session, client, content).await? {
        Answer::Accepted(id) => json!({ "accepted": true, "messageId": id }),
        Answer::Idle => json!({ "accepted": false, "reason": "session_idle" }),
    }))
}

/// `GET /session/:id/mid-turn-messages`.
pub(crate) fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.session_and_client()?;
    let view = session.steering();
    let messages: Vec<Value> =
        view.waiting.into_iter().map(|(id, text)| json!({ "messageId": id, "text": text })).collect();
    let body = json!({
        "messages": messages,
        "settledMessageIds": view.settled,
        "promotedMessageIds": view.promoted,
    });
    Ok(ok(&body))
}

/// `DELETE /session/:id/mid-turn-messages/:messageId`. One that has become a prompt is removed as such.
pub(crate) fn remove(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.open_session_and_client()?;
    let id = call.matched.second();
    let view = session.steering();
    let is_message = view.waiting.iter().any(|(waiting, _)| waiting == id) || view.promoted.iter().any(|one| one == id);
    let removed = is_message && session.remove(id, client).map_err(|error| not_open(session.id(), error))?;
    Ok(ok(&json!({ "removed": removed })))
}

/// The message as the prompt that it may become: its text, and what comes with it.
fn message(fields: &Fields<'_>) -> Result<Content, Refusal> {
    let invalid = |text: &'static str| Refusal::bad_request("invalid_message", text);
    let text = body::text(fields, "message").map_err(|_| invalid("`message` must be a string"))?.unwrap_or_default();
    let text = text.trim();
    if text.encode_utf16().count() > MESSAGE_CHARS_MAX {
        return Err(invalid("`message` must be at most 16384 characters"));
    }
    let more: Vec<&RawValue> = match fields.get("content") {
        Some(raw) => {
            serde_json::from_str(raw.get()).map_err(|_| invalid("`content` must be an array of content blocks"))?
        }
        None => Vec::new(),
    };
    if text.is_empty() && more.is_empty() {
        return Err(invalid("`message` must be a non-empty string, or `content` must carry a block"));
    }
    let said = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }).to_string());
    let blocks: Vec<&str> = said.as_deref().into_iter().chain(more.iter().map(|block| block.get())).collect();
    let blocks = RawValue::from_string(format!("[{}]", blocks.join(",")));
    let blocks = blocks.map_err(|_| invalid("`content` cannot be read"))?;
    let content = content::parse(&Fields::from([("prompt".to_owned(), &*blocks)]))?;
    Ok(Content { prompt_id: message_id(fields)?, ..content })
}

/// The caller's name for it, which may become a prompt's.
fn message_id(fields: &Fields<'_>) -> Result<Option<String>, Refusal> {
    let message = "`messageId` must be 1 to 128 of A-Z a-z 0-9 . _ : - and not `current`";
    let invalid = || Refusal::bad_request("invalid_message_id", message);
    let id = body::text(fields, "messageId").map_err(|_| invalid())?;
    match id {
        Some(id) if !is_prompt_id(&id) => Err(invalid()),
        id => Ok(id),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    /// The blocks and the id of a body, or the code of its refusal.
    fn check(body: &Value, expected: &str) {
        let raw: Vec<(String, Box<RawValue>)> =
            body.as_object().unwrap().iter().map(|(key, value)| (key.clone(), to_raw_value(value).unwrap())).collect();
        let fields: Fields<'_> = raw.iter().map(|(key, value)| (key.clone(), &**value)).collect();
        let got = match message(&fields) {
            Ok(content) => format!("{} {}", content.text, content.prompt_id.unwrap_or_default()),
            Err(refusal) => refusal.code.into_owned(),
        };
        assert_eq!(got, expected, "{body}");
    }

    #[test]
    fn a_message_is_words_or_blocks_under_a_name_that_can_be_a_prompts() {
        check(&json!({"message": " left ", "messageId": "m-1"}), "left m-1");
        check(&json!({"message": "left"}), "left ");
        check(&json!({"content": [{"type": "text", "text": "a"}]}), "a ");
        for body in [json!({}), json!({"message": " "}), json!({"message": 7}), json!({"message": "x", "content": {}})]
        {
            check(&body, "invalid_message");
        }
        check(&json!({"message": "x".repeat(16 * 1024 + 1)}), "invalid_message");
        for id in [json!(""), json!("a b"), json!("current"), json!(7), json!("x".repeat(129))] {
            check(&json!({"message": "x", "messageId": id}), "invalid_message_id");
        }
        check(&json!({"message": "x", "content": [7]}), "invalid_prompt");
    }
}
