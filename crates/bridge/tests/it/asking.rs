//! Inquiries to the agent that are no prompt, and what readers are told of changes.

use acp::RpcError;
use bridge::{Announcement, AskError, Recording};
use serde_json::json;

use crate::world::{World, envelope};

#[tokio::test(start_paused = true)]
async fn an_inquiry_goes_out_in_the_agents_name_for_the_session_and_its_answer_comes_back_as_it_is() {
    let mut world = World::start().await;
    let session = world.session.clone();
    let asked = session.ask("session/set_model", r#"{"modelId":"m","sessionId":"x"}"#, 1_000);
    let answered = async {
        let inquiry = world.agent.hear_method("session/set_model").await;
        let params: serde_json::Value = serde_json::from_str(inquiry.params().unwrap()).unwrap();
        assert_eq!(params, json!({"modelId": "m", "sessionId": "agent-1"}));
        world.agent.answer(&inquiry, json!({"k": [1]})).await;
    };
    let (answer, ()) = tokio::join!(asked, answered);
    assert_eq!(answer.unwrap(), r#"{"k":[1]}"#);
}

#[tokio::test(start_paused = true)]
async fn an_inquiry_that_is_refused_or_not_answered_says_which() {
    let mut world = World::start().await;
    let session = world.session.clone();
    let ask = || session.ask("x/y", "{}", 1_000);
    let refuse = async {
        let inquiry = world.agent.hear_method("x/y").await;
        let acp::Kind::Request { id, .. } = inquiry.kind() else { panic!("a request") };
        world.agent.say(acp::compose::error_response(id, &RpcError::new(-32601, "no such method"))).await;
    };
    let refused = tokio::join!(ask(), refuse).0.unwrap_err();
    assert!(matches!(&refused, AskError::Refused(error) if error.code == -32601), "{refused:?}");
    assert_eq!(refused.to_string(), "no such method");
    let (unanswered, late) = tokio::join!(ask(), world.agent.hear_method("x/y"));
    assert_eq!(unanswered.unwrap_err(), AskError::Timeout { method: "x/y".into(), timeout_ms: 1_000 });
    // The late answer is taken for nothing else.
    world.agent.answer(&late, json!({})).await;
    let hang_up = async {
        world.agent.hear_method("x/y").await;
        world.agent.hang_up().await;
    };
    assert_eq!(tokio::join!(ask(), hang_up).0.unwrap_err(), AskError::Gone);
    assert_eq!(ask().await.unwrap_err(), AskError::Gone);
}

#[tokio::test(start_paused = true)]
async fn what_the_host_says_of_its_recording_is_told_to_the_readers_and_seen_in_the_status() {
    let mut world = World::start().await;
    let session = world.session.clone();
    assert!(!session.status().recording.is_degraded());
    let mut say = async |params: serde_json::Value| {
        world.agent.say(acp::compose::notification("turnd/recording_degraded", &params)).await;
        envelope(&world.frame().await)
    };
    let told = say(json!({"heldRecords": 2, "heldBytes": 300, "givenUp": false})).await;
    let data =
        json!({"sessionId": "s", "reason": "write_failed", "heldRecords": 2, "heldBytes": 300, "givenUp": false});
    assert_eq!((&told["type"], &told["data"]), (&json!("session_recording_degraded"), &data));
    let told = say(json!({"heldRecords": 9, "heldBytes": 900, "givenUp": true})).await;
    assert_eq!((&told["type"], &told["data"]["givenUp"]), (&json!("session_recording_degraded"), &json!(true)));
    assert_eq!(session.status().recording, Recording { held_records: 9, held_bytes: 900, given_up: true });
    let told = say(json!({"heldRecords": 0, "heldBytes": 0, "givenUp": false})).await;
    assert_eq!((&told["type"], &told["data"]), (&json!("session_recording_recovered"), &json!({"sessionId": "s"})));
    assert!(!session.status().recording.is_degraded());
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_to_the_readers_and_is_no_part_of_the_turn_that_runs() {
    let mut world = World::start().await;
    world.admit("A");
    world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A").await;
    let renamed = Announcement::MetadataUpdated { display_name: "n".into(), title_source: "manual".into() };
    world.session.announce(renamed, Some("c"));
    let told = envelope(&world.frame().await);
    assert_eq!((&told["type"], &told["originatorClientId"]), (&json!("session_metadata_updated"), &json!("c")));
    assert_eq!(told["data"], json!({"sessionId": "s", "displayName": "n", "titleSource": "manual"}));
    assert_eq!(told.get("promptId"), None);
    let title = world.session.status().title.map(|title| (title.text, title.source));
    assert_eq!(title, Some(("n".into(), "manual".into())), "and it is the session's name from here on");
}
