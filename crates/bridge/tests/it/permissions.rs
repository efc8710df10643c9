//! Permission requests and votes.

use acp::{RequestId, compose};
use bridge::{Decision, Vote, VoteOutcome};
use serde_json::{Value, json};

use crate::world::{World, envelope, soon};

fn select(option_id: &str) -> Vote {
    Vote::Selected { option_id: option_id.into(), answers: None }
}

/// Lets the agent ask under this id and gives our id for the request.
async fn ask(world: &mut World, id: &str) -> String {
    let params = json!({
        "sessionId": "agent-1",
        "toolCall": {"toolCallId": "c1", "title": "touch p1"},
        "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, {"optionId": "no", "name": "Reject", "kind": "reject_once"}],
    });
    world.agent.say(compose::request(RequestId::parse(id).unwrap(), "session/request_permission", &params)).await;
    let request = envelope(&world.frame().await);
    assert_eq!(request["type"], "permission_request");
    assert_eq!(request["data"]["toolCall"], params["toolCall"]);
    assert_eq!(request["data"]["options"], params["options"]);
    request["data"]["requestId"].as_str().unwrap().to_owned()
}

/// The outcome the agent is told, and the id it is told under.
async fn told(world: &mut World) -> (String, Value) {
    let answer = world.agent.hear().await;
    let raw: Value = serde_json::from_slice(answer.raw()).unwrap();
    (raw["id"].to_string(), raw["result"]["outcome"].clone())
}

#[tokio::test(start_paused = true)]
async fn the_first_valid_vote_reaches_the_agent_under_its_own_id() {
    let mut world = World::start().await;
    world.admit("A");
    world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A").await;
    let request_id = ask(&mut world, "\"a-7\"").await;
    let status = world.session.status();
    assert_eq!(status.pending_permissions[0].request_id, request_id);
    assert_eq!(status.pending_permissions[0].prompt_id.as_deref(), Some("A"));
    assert_eq!(world.session.vote(&request_id, &select("maybe"), None), VoteOutcome::InvalidOption);
    assert_eq!(world.session.vote("other", &select("yes"), None), VoteOutcome::Unknown);
    assert_eq!(world.session.vote(&request_id, &select("yes"), Some("voter")), VoteOutcome::Recorded);
    assert_eq!(told(&mut world).await, ("\"a-7\"".into(), json!({"outcome": "selected", "optionId": "yes"})));
    let resolved = envelope(&world.frame().await);
    assert_eq!(resolved["type"], "permission_resolved");
    assert_eq!((&resolved["originatorClientId"], &resolved["promptId"]), (&json!("voter"), &json!("A")));
    let data = json!({"requestId": request_id, "outcome": {"outcome": "selected", "optionId": "yes"}, "voterClientId": "voter"});
    assert_eq!(resolved["data"], data);
    assert!(world.session.status().pending_permissions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_late_vote_hears_the_decision_and_everybody_hears_of_it() {
    let mut world = World::start().await;
    let request_id = ask(&mut world, "0").await;
    assert_eq!(world.session.vote(&request_id, &Vote::Cancelled, None), VoteOutcome::Recorded);
    assert_eq!(told(&mut world).await, ("0".into(), json!({"outcome": "cancelled"})));
    let late = world.session.vote(&request_id, &select("yes"), None);
    assert_eq!(late, VoteOutcome::AlreadyResolved(Decision::Cancelled));
    world.expect("permission_resolved cancelled; permission_already_resolved cancelled").await;
    let found = world.bridge.session_of_permission(&request_id).unwrap();
    assert_eq!(found.id(), "s");
    assert!(world.bridge.session_of_permission("other").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_decides_what_the_turn_was_waiting_for() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A").await;
    ask(&mut world, "1").await;
    ask(&mut world, "2").await;
    world.session.cancel(None).unwrap();
    world.agent.hear_method("session/cancel").await;
    assert_eq!(told(&mut world).await, ("1".into(), json!({"outcome": "cancelled"})));
    assert_eq!(told(&mut world).await, ("2".into(), json!({"outcome": "cancelled"})));
    world.agent.settle(&held, json!({"stopReason": "cancelled"})).await;
    world.expect("prompt_cancelled A; permission_resolved A cancelled; permission_resolved A cancelled").await;
    world.expect("turn_complete A cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_asks_after_a_cancel_is_refused_without_a_word_to_anybody() {
    let mut world = World::start().await;
    world.admit("A");
    world.agent.hear_prompt().await;
    world.session.cancel(None).unwrap();
    world.agent.hear_method("session/cancel").await;
    let params = json!({"sessionId": "agent-1", "toolCall": {}, "options": []});
    world.agent.say(compose::request(3, "session/request_permission", &params)).await;
    assert_eq!(told(&mut world).await, ("3".into(), json!({"outcome": "cancelled"})));
    world.expect("user_message_chunk A A; prompt_cancelled A").await;
    assert!(world.reader.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_request_over_the_limit_is_refused_and_the_others_stay() {
    let mut world = World::start().await;
    for number in 0..64 {
        ask(&mut world, &number.to_string()).await;
    }
    let params = json!({"sessionId": "agent-1", "toolCall": {}, "options": []});
    world.agent.say(compose::request(64, "session/request_permission", &params)).await;
    assert_eq!(told(&mut world).await, ("64".into(), json!({"outcome": "cancelled"})));
    assert_eq!(world.session.status().pending_permissions.len(), 64);
}

#[tokio::test(start_paused = true)]
async fn the_death_of_the_agent_resolves_its_requests() {
    let mut world = World::start().await;
    ask(&mut world, "1").await;
    drop(world.agent);
    soon(world.session.ended()).await;
    let mut told = Vec::new();
    while let Some(frame) = soon(world.reader.next()).await {
        told.push(crate::world::short(&frame));
    }
    assert_eq!(told, ["permission_resolved cancelled", "session_died channel_closed"]);
}
