//! A live session at a glance (wire rules, section 6.2).

use bridge::{Background, PendingPermission, Status, Work};
use serde_json::{Value, json};

use crate::clock::{iso, now_ms};

/// What a session does, and what it waits for.
pub(crate) fn status(session_id: &str, workspace: &str, status: &Status) -> Value {
    let interactions: Vec<Value> = status.pending_permissions.iter().map(interaction).collect();
    let waits_for = |kind: &str| interactions.iter().any(|interaction| interaction["kind"] == kind);
    let mut body = json!({
        "sessionId": session_id,
        "workspaceCwd": workspace,
        "createdAt": iso(status.created_at_ms),
        "clientCount": status.client_count,
        "hasActivePrompt": status.has_active_prompt,
        "activeWorkState": active_work(status, now_ms()),
        "isWaitingForPermission": waits_for(PERMISSION),
        "isWaitingForUserQuestion": waits_for(QUESTION),
        "pendingInteractionCount": interactions.len(),
        "hasTurnError": status.turn_error.is_some(),
        "pendingInteractions": interactions,
    });
    if let Some(told) = &status.background {
        body["hasRunningBackgroundTasks"] = told.has_running_tasks.into();
    }
    if let Some(at_ms) = status.updated_at_ms {
        body["updatedAt"] = iso(at_ms).into();
    }
    if let Some(title) = &status.title {
        body["displayName"] = title.text.as_str().into();
        body["titleSource"] = title.source.as_str().into();
    }
    if let Some(source) = &status.source {
        body["sourceType"] = source.kind.as_str().into();
        if let Some(id) = &source.id {
            body["sourceId"] = id.as_str().into();
        }
    }
    if let Some(error) = &status.turn_error {
        body["turnError"] = json!({ "message": error.message });
        if let Some(code) = &error.code {
            body["turnError"]["code"] = code.as_str().into();
        }
    }
    body
}

/// Whether anything is done for the session, as far as it is known.
fn active_work(status: &Status, now_ms: u64) -> &'static str {
    match Background::work(status.background.as_ref(), now_ms) {
        _ if status.has_active_prompt => "active",
        Work::Some => "active",
        Work::None => "idle",
        Work::Unknown => "unknown",
    }
}

/// The agent wants to be allowed something.
const PERMISSION: &str = "permission";
/// The agent wants to know something.
const QUESTION: &str = "user_question";

fn interaction(request: &PendingPermission) -> Value {
    let call: Value = serde_json::from_str(&request.tool_call).unwrap_or_default();
    let offered: Vec<Value> = serde_json::from_str(&request.options).unwrap_or_default();
    let option =
        |option: &Value| json!({ "optionId": option["optionId"], "label": option["name"], "kind": option["kind"] });
    let mut interaction = json!({
        "requestId": request.request_id,
        "kind": PERMISSION,
        "createdAt": iso(request.created_at_ms),
        "options": offered.iter().map(option).collect::<Vec<_>>(),
    });
    if call["_meta"]["qwenInteractionKind"] == QUESTION {
        interaction["kind"] = QUESTION.into();
        if call["title"].is_string() {
            interaction["title"] = call["title"].clone();
        }
        interaction["questions"] = questions(&call);
    } else {
        interaction["action"] = json!({
            "type": call["kind"],
            "title": call["title"],
            "content": call.get("content").cloned().unwrap_or_else(|| json!([])),
            "locations": call.get("locations").cloned().unwrap_or_else(|| json!([])),
            "input": call["rawInput"],
        });
    }
    if let Some(at_ms) = request.expires_at_ms {
        interaction["expiresAt"] = iso(at_ms).into();
    }
    interaction
}

/// What is asked, each with the key under which a vote answers it: its place in the list.
fn questions(call: &Value) -> Value {
    let lists = [&call["_meta"]["qwenQuestions"], &call["rawInput"]["questions"]];
    let asked = lists.into_iter().find_map(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let keyed = |(place, question): (usize, &Value)| {
        let mut question = question.as_object()?.clone();
        question.insert("answerKey".to_owned(), place.to_string().into());
        Some(Value::Object(question))
    };
    asked.iter().enumerate().filter_map(keyed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tool_call: &Value) -> PendingPermission {
        PendingPermission {
            request_id: "r".into(),
            created_at_ms: 0,
            expires_at_ms: Some(1),
            prompt_id: None,
            tool_call: tool_call.to_string(),
            options: r#"[{"optionId":"yes","name":"Yes","kind":"allow_once"}]"#.into(),
        }
    }

    #[test]
    fn work_in_the_background_is_work() {
        let told = |has_running_tasks, told_at_ms| Some(Background { has_running_tasks, is_held: false, told_at_ms });
        for (has_active_prompt, background, expected) in [
            (false, None, "idle"),
            (true, None, "active"),
            (false, told(false, 100_000), "idle"),
            (false, told(true, 100_000), "active"),
            (false, told(false, 0), "unknown"),
            (true, told(false, 0), "active"),
        ] {
            let status = Status { has_active_prompt, background, ..Status::default() };
            assert_eq!(active_work(&status, 100_000), expected);
        }
    }

    #[test]
    fn an_agent_that_wants_to_know_something_is_told_from_one_that_wants_to_be_allowed_something() {
        let asked = json!({
            "title": "Ask", "rawInput": { "questions": [{ "question": "Which?" }, 5, { "question": "When?" }] },
            "_meta": { "qwenInteractionKind": "user_question" },
        });
        let expected = json!({
            "requestId": "r", "kind": "user_question", "createdAt": "1970-01-01T00:00:00.000Z",
            "expiresAt": "1970-01-01T00:00:00.001Z", "title": "Ask",
            "questions": [{ "question": "Which?", "answerKey": "0" }, { "question": "When?", "answerKey": "2" }],
            "options": [{ "optionId": "yes", "label": "Yes", "kind": "allow_once" }],
        });
        assert_eq!(interaction(&request(&asked)), expected);
        let mut known = asked.clone();
        known["_meta"]["qwenQuestions"] = json!([{ "question": "Known?" }]);
        assert_eq!(interaction(&request(&known))["questions"], json!([{ "question": "Known?", "answerKey": "0" }]));
        let allowed = interaction(&request(&json!({ "title": "Shell", "kind": "execute", "rawInput": {} })));
        assert_eq!((&allowed["kind"], &allowed["action"]["title"]), (&json!("permission"), &json!("Shell")));
        assert_eq!(allowed.get("questions"), None);
    }
}
