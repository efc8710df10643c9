//! What a session is called and set to, with the whole program and the built-in agent.

use serde_json::{Value, json};

use crate::world::World;

/// The records of a session.
fn records(world: &World, session: &str) -> Vec<Value> {
    world.transcript(session).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn set(world: &mut World, session: &str, what: &str, body: &str) -> (u16, Value) {
    world.call("POST", &format!("/session/{session}/{what}"), body)
}

#[test]
fn a_mode_decides_about_the_agents_tools_and_a_model_stands_in_the_records_of_its_words() {
    let mut world = World::new();
    let session = world.session();
    let first = world.prompt(&session, "before");
    world.settle(&session, &first);
    let (status, answer) = set(&mut world, &session, "approval-mode", r#"{"mode":"yolo"}"#);
    let expected = json!({ "sessionId": session, "mode": "yolo", "previous": "default", "persisted": false });
    assert_eq!((status, answer), (200, expected));
    assert_eq!(set(&mut world, &session, "model", r#"{"modelId":"scripted-2"}"#), (200, json!({})));
    // Nobody is asked.
    let tool = world.prompt(&session, "tool echo done");
    assert_eq!(world.settle(&session, &tool)["state"], "completed");
    let records = records(&world, &session);
    let switched = records.iter().position(|record| record["subtype"] == "session_model").unwrap();
    assert_eq!(records[switched]["systemPayload"], json!({ "modelId": "scripted-2" }));
    let model_of = |record: &&Value| record["type"] == "assistant";
    let models =
        |part: &[Value]| part.iter().filter(model_of).map(|record| record["model"].clone()).collect::<Vec<_>>();
    assert_eq!(models(&records[..switched]), ["scripted"]);
    let after = models(&records[switched..]);
    assert!(!after.is_empty() && after.iter().all(|model| model == "scripted-2"), "{after:?}");
    let (status, refused) = set(&mut world, &session, "model", r#"{"modelId":"nope"}"#);
    let expected = json!({ "error": "Internal error", "code": -32603, "data": { "details": "no model \"nope\"" } });
    assert_eq!((status, refused), (500, expected));
    let (status, refused) = set(&mut world, &session, "approval-mode", r#"{"mode":"auto"}"#);
    assert_eq!((status, &refused["code"]), (409, &json!("approval_mode_not_supported")), "{refused}");
    assert_eq!(refused["available"], json!(["default", "plan", "yolo"]));
}

#[test]
fn a_model_and_a_mode_are_set_while_a_prompt_runs() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "slow 600000");
    world.until_chunk(&session, &prompt);
    assert_eq!(set(&mut world, &session, "approval-mode", r#"{"mode":"plan"}"#).0, 200);
    assert_eq!(set(&mut world, &session, "model", r#"{"modelId":"scripted-2"}"#).0, 200);
    let body = r#"{"displayName":"Named meanwhile"}"#;
    assert_eq!(world.call("PATCH", &format!("/session/{session}/metadata"), body).0, 200);
    assert_eq!(world.get(&format!("/session/{session}/turns/{prompt}"))["state"], "running");
    assert_eq!(world.call("POST", &format!("/session/{session}/cancel"), "{}").0, 204);
    assert_eq!(world.settle(&session, &prompt)["state"], "cancelled");
}

#[test]
fn a_name_that_somebody_chose_and_where_a_session_comes_from_outlive_a_kill() {
    let mut world = World::new();
    let body = r#"{"sessionScope":"thread","sourceType":"bot","sourceId":"7"}"#;
    let session = world.call("POST", "/session", body).1["sessionId"].as_str().unwrap().to_owned();
    let named = set_name(&mut world, &session, "Ours");
    assert_eq!(named, (200, json!({ "sessionId": session, "displayName": "Ours" })));
    let prompt = world.prompt(&session, "hello");
    world.settle(&session, &prompt);
    let workspace = world.base().join("workspace").display().to_string().replace('/', "%2F");
    let list = format!("/workspaces/{workspace}/sessions?sourceType=bot");
    let known = |told: &Value| {
        ["displayName", "titleSource", "sourceType", "sourceId"].map(|key| told[key].as_str().unwrap_or("-").to_owned())
    };
    for round in 0..2 {
        world.kill_everything();
        let listed = known(&world.get(&list)["sessions"][0]);
        assert_eq!(listed, ["Ours", "manual", "bot", "7"], "on disk, {round}");
        world.load(&session);
        let status = known(&world.get(&format!("/session/{session}/status")));
        assert_eq!((&status, &known(&world.get(&list)["sessions"][0])), (&listed, &listed), "alive, {round}");
    }
}

fn set_name(world: &mut World, session: &str, name: &str) -> (u16, Value) {
    world.call("PATCH", &format!("/session/{session}/metadata"), &json!({ "displayName": name }).to_string())
}
