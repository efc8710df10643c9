//! Permission requests and votes.

use acp::{RequestId, compose};
use bridge::{Decision, Mediation, Policy, Reason, Resolution, Vote, VoteOutcome, Voter};
use serde_json::{Value, json};

use crate::world::{World, envelope, soon};

fn select(option_id: &str) -> Vote {
    Vote::Selected { option_id: option_id.into(), answers: None }
}

fn anybody() -> Voter {
    Voter::default()
}

fn client(id: &str) -> Voter {
    Voter { client_id: Some(id.into()), is_local: true }
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
    assert_eq!(world.session.vote(&request_id, &select("maybe"), &anybody()), VoteOutcome::InvalidOption);
    assert_eq!(world.session.vote("other", &select("yes"), &anybody()), VoteOutcome::Unknown);
    assert_eq!(world.session.vote(&request_id, &select("yes"), &client("voter")), VoteOutcome::Recorded);
    assert_eq!(told(&mut world).await, ("\"a-7\"".into(), json!({"outcome": "selected", "optionId": "yes"})));
    let resolved = envelope(&world.frame().await);
    assert_eq!(resolved["type"], "permission_resolved");
    assert_eq!((&resolved["originatorClientId"], &resolved["promptId"]), (&json!("voter"), &json!("A")));
    let data = json!({"requestId": request_id, "outcome": {"outcome": "selected", "optionId": "yes"}, "voterClientId": "voter", "reason": "vote"});
    assert_eq!(resolved["data"], data);
    assert!(world.session.status().pending_permissions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_late_vote_hears_the_decision_and_everybody_hears_of_it() {
    let mut world = World::start().await;
    let request_id = ask(&mut world, "0").await;
    assert_eq!(world.session.vote(&request_id, &Vote::Cancelled, &anybody()), VoteOutcome::Recorded);
    assert_eq!(told(&mut world).await, ("0".into(), json!({"outcome": "cancelled"})));
    let late = world.session.vote(&request_id, &select("yes"), &anybody());
    let resolution = Resolution { decision: Decision::Cancelled, reason: Reason::Vote, voter: None, at_ms: 1_000 };
    assert_eq!(late, VoteOutcome::AlreadyResolved(resolution));
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
    world.session.cancel(None, None).unwrap();
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
    world.session.cancel(None, None).unwrap();
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

#[tokio::test(start_paused = true)]
async fn what_nobody_decides_in_time_is_denied_while_everybody_only_waits() {
    let mut world = World::under(Mediation { response_timeout_ms: Some(90_000), ..Mediation::default() }).await;
    world.admit("A");
    world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A").await;
    let request_id = ask(&mut world, "7").await;
    let pending = &world.session.status().pending_permissions[0];
    assert_eq!((pending.created_at_ms, pending.expires_at_ms), (1_000, Some(91_000)));
    let denied = json!({"outcome": "selected", "optionId": "no"});
    assert_eq!(told(&mut world).await, ("7".into(), denied.clone()));
    let resolved = envelope(&world.frame().await);
    assert_eq!(resolved["data"], json!({"requestId": request_id, "outcome": denied, "reason": "timeout"}));
    assert_eq!(resolved["_meta"]["serverTimestamp"], 91_000);
    assert!(world.session.turn(Some("A")).live.unwrap().waiting.is_none(), "the turn goes on");
}

#[tokio::test(start_paused = true)]
async fn a_voter_that_detaches_is_not_waited_for() {
    let mut world =
        World::under(Mediation { policy: Policy::Consensus { quorum: None }, ..Mediation::default() }).await;
    let voters = [world.session.register(None), world.session.register(None)];
    let request_id = ask(&mut world, "7").await;
    assert_eq!(world.session.vote(&request_id, &select("yes"), &client(&voters[0])), VoteOutcome::Recorded);
    world.expect("permission_partial_vote").await;
    world.session.detach(Some(&voters[1]));
    assert_eq!(told(&mut world).await, ("7".into(), json!({"outcome": "cancelled"})));
    assert_eq!(envelope(&world.frame().await)["data"]["reason"], "undecidable");
}

#[tokio::test(start_paused = true)]
async fn a_voter_that_makes_room_for_another_client_is_not_waited_for() {
    let mut world =
        World::under(Mediation { policy: Policy::Consensus { quorum: None }, ..Mediation::default() }).await;
    world.session.register(None);
    ask(&mut world, "7").await;
    tokio::time::advance(std::time::Duration::from_millis(1)).await;
    for _ in 0..bridge::limits::CLIENTS_MAX {
        world.session.register(None);
    }
    assert_eq!(told(&mut world).await, ("7".into(), json!({"outcome": "cancelled"})));
    assert_eq!(envelope(&world.frame().await)["data"]["reason"], "undecidable");
}

#[tokio::test(start_paused = true)]
async fn a_running_prompt_shows_its_silence_and_what_it_waits_for() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A").await;
    tokio::time::advance(std::time::Duration::from_millis(250)).await;
    let live = |world: &World| world.session.turn(Some("A")).live.unwrap();
    assert_eq!((live(&world).silent_for_ms, live(&world).waiting), (Some(250), None));
    let request_id = ask(&mut world, "7").await;
    tokio::time::advance(std::time::Duration::from_millis(30)).await;
    let waiting = live(&world).waiting.unwrap();
    assert_eq!((waiting.since_ms, waiting.request_ids), (1_250, vec![request_id]));
    assert_eq!(live(&world).silent_for_ms, Some(30));
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    assert_eq!(envelope(&world.frame().await)["data"]["reason"], "turn_ended");
    world.expect("turn_complete A end_turn").await;
}
