//! What a session can be set to.

use serde_json::json;

use crate::client::Client;

#[tokio::test]
async fn a_mode_is_told_before_the_answer_and_decides_about_tools_without_asking() {
    let (mut client, session) = Client::with_session().await;
    for (mode, statuses) in
        [("yolo", ["pending", "in_progress", "completed"].as_slice()), ("plan", &["pending", "failed"])]
    {
        let set = client.call("session/set_mode", &json!({ "sessionId": session, "modeId": mode })).await;
        assert_eq!(set.answer, Ok(json!({})));
        let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode });
        assert_eq!(set.updates, [update]);
        // Nobody is there to be asked: a question would never be answered.
        let heard = client.play(&session, "tool echo hi").await;
        assert_eq!((heard.statuses(), heard.end().as_str()), (statuses.to_vec(), "end_turn"), "{mode}");
    }
    let unknown = client.call("session/set_mode", &json!({ "sessionId": session, "modeId": "other" })).await;
    assert_eq!(unknown.answer.unwrap_err().code, -32602);
}

#[tokio::test(start_paused = true)]
async fn a_model_is_one_of_those_that_are_listed_and_a_resume_says_which() {
    let (mut client, session) = Client::with_session().await;
    let set = client.call("session/set_model", &json!({ "sessionId": session, "modelId": "scripted-2" })).await;
    assert_eq!(set.answer, Ok(json!({})));
    let refused = client.call("session/set_model", &json!({ "sessionId": session, "modelId": "nope" })).await;
    assert_eq!(refused.answer.unwrap_err().details().as_deref(), Some(r#"no model "nope""#));
    let resumed = client.call("session/resume", &json!({ "sessionId": session, "cwd": "/" })).await.answer.unwrap();
    assert_eq!(resumed["models"]["currentModelId"], "scripted-2");
    let text = json!({ "sessionId": session, "requestId": "g", "prompt": "hi" });
    let made = client.call("qwen/control/session/generation/start", &text).await.answer.unwrap();
    assert_eq!(made["model"], "scripted-2", "beside the conversation too");
    assert_eq!(resumed["models"]["availableModels"].as_array().unwrap().len(), 2);
}
