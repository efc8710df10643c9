//! Words into a running turn, with the whole program.

use serde_json::{Value, json};

use crate::permission::question;
use crate::world::{World, until};

fn say(world: &mut World, session: &str, body: &Value) -> (u16, Value) {
    world.call("POST", &format!("/session/{session}/mid-turn-message"), &body.to_string())
}

fn steering(world: &mut World, session: &str) -> Value {
    world.get(&format!("/session/{session}/mid-turn-messages"))
}

#[test]
fn the_agent_takes_a_message_into_its_turn_and_the_transcript_keeps_it_there() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "steer 1500");
    world.until_chunk(&session, &prompt);
    let accepted = say(&mut world, &session, &json!({"message": "go left", "messageId": "m-1"}));
    assert_eq!(accepted, (200, json!({"accepted": true, "messageId": "m-1"})));
    assert_eq!(steering(&mut world, &session)["messages"], json!([{"messageId": "m-1", "text": "go left"}]));
    let turn = world.settle(&session, &prompt);
    assert_eq!(turn["resultText"], "working; heard: go left");
    let view = steering(&mut world, &session);
    assert_eq!(view, json!({"messages": [], "settledMessageIds": ["m-1"], "promotedMessageIds": []}));
    assert_eq!(world.call("GET", &format!("/session/{session}/turns/m-1"), "").0, 404);
    let transcript = world.transcript(&session);
    let records: Vec<Value> = transcript.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = records.iter().find(|record| record["subtype"] == "mid_turn_user_message").unwrap();
    assert_eq!((&said["type"], &said["message"]["parts"][0]["text"]), (&json!("user"), &json!("go left")));
    assert!(!world.ledger(&session).contains("m-1"), "it was no prompt");
    // Its id stays its own.
    let again = say(&mut world, &session, &json!({"message": "go left", "messageId": "m-1"}));
    assert_eq!(again.1["accepted"], true);
    let (status, body) = say(&mut world, &session, &json!({"message": "go right", "messageId": "m-1"}));
    assert_eq!((status, &body["code"]), (409, &json!("prompt_id_conflict")));
    let body = json!({"prompt": [{"type": "text", "text": "go left"}], "promptId": "m-1"}).to_string();
    let (status, body) = world.call("POST", &format!("/session/{session}/prompt"), &body);
    assert_eq!((status, &body["code"]), (409, &json!("prompt_id_conflict")));
}

#[test]
fn what_the_agent_did_not_take_becomes_a_prompt_of_that_id_with_one_outcome() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "tool true");
    // The turn goes on when it is allowed to.
    let asked = question(&mut world, &session);
    assert_eq!(say(&mut world, &session, &json!({"message": "hello", "messageId": "m-1"})).1["accepted"], true);
    let vote = json!({"outcome": {"outcome": "selected", "optionId": asked["options"][0]["optionId"]}}).to_string();
    assert_eq!(world.call("POST", &format!("/permission/{}", asked["requestId"].as_str().unwrap()), &vote).0, 200);
    assert_eq!(world.settle(&session, &prompt)["state"], "completed");
    let path = format!("/session/{session}/turns/m-1");
    let turn = until("the message is a prompt", || {
        let (status, turn) = world.call("GET", &path, "");
        (status == 200 && turn["state"] == "completed").then_some(turn)
    });
    assert_eq!((&turn["promptText"], &turn["resultText"]), (&json!("hello"), &json!("echo: hello")));
    assert_eq!(steering(&mut world, &session)["promotedMessageIds"], json!(["m-1"]));
    assert_eq!(world.ledger(&session).matches(r#""promptId":"m-1","state":"in_flight""#).count(), 1);
    assert_eq!(world.ledger(&session).matches(r#""promptId":"m-1","terminal""#).count(), 1);
}

#[test]
fn an_idle_session_takes_no_words_and_the_id_stays_free() {
    let mut world = World::new();
    let session = world.session();
    let idle = (200, json!({"accepted": false, "reason": "session_idle"}));
    assert_eq!(say(&mut world, &session, &json!({"message": "hello", "messageId": "m-1"})), idle);
    let body = json!({"prompt": [{"type": "text", "text": "hi"}], "promptId": "m-1"}).to_string();
    let (status, _) = world.call("POST", &format!("/session/{session}/prompt"), &body);
    assert_eq!(status, 202);
    world.settle(&session, "m-1");
    let (status, body) = say(&mut world, &session, &json!({"message": "hello", "messageId": "m-1"}));
    assert_eq!((status, &body["code"]), (409, &json!("prompt_id_conflict")));
}

#[test]
fn a_message_is_taken_back_and_an_ordinary_prompt_is_not_by_this_route() {
    let mut world = World::with(&["--linger-ms", "100"]);
    let session = world.session();
    let prompt = world.prompt(&session, "hang");
    world.until_chunk(&session, &prompt);
    say(&mut world, &session, &json!({"message": "a", "messageId": "m-1"}));
    let remove = |world: &mut World, id: &str| {
        world.call("DELETE", &format!("/session/{session}/mid-turn-messages/{id}"), "").1["removed"].clone()
    };
    assert_eq!(remove(&mut world, "m-1"), true);
    assert_eq!(remove(&mut world, "m-1"), false);
    assert_eq!(remove(&mut world, &prompt), false);
    assert_eq!(steering(&mut world, &session)["settledMessageIds"], json!(["m-1"]));
}

#[test]
fn a_close_tells_what_became_of_a_message_and_a_kill_forgets_it() {
    let mut world = World::with(&["--linger-ms", "100", "--close-settle-ms", "100"]);
    let session = world.session();
    let prompt = world.prompt(&session, "hang");
    world.until_chunk(&session, &prompt);
    say(&mut world, &session, &json!({"message": "a", "messageId": "m-1"}));
    assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
    let load = world.load(&session);
    let ended: Vec<&Value> =
        load["promptTerminals"].as_array().unwrap().iter().filter(|one| one["promptId"] == "m-1").collect();
    assert_eq!((ended.len(), &ended[0]["code"]), (1, &json!("session_closed")), "{load}");
    let prompt = world.prompt(&session, "hang");
    world.until_chunk(&session, &prompt);
    say(&mut world, &session, &json!({"message": "b", "messageId": "m-2"}));
    world.kill_everything();
    let load = world.load(&session);
    assert!(!load["promptTerminals"].to_string().contains("m-2"), "{load}");
    assert!(!world.ledger(&session).contains("m-2"));
    // What was forgotten can be sent again, as anything.
    let body = json!({"prompt": [{"type": "text", "text": "b"}], "promptId": "m-2"}).to_string();
    assert_eq!(world.call("POST", &format!("/session/{session}/prompt"), &body).0, 202);
    assert_eq!(world.settle(&session, "m-2")["resultText"], "echo: b");
}
