//! The built-in agent asks before it runs a tool; what is answered, and what a kill makes of a question.

use serde_json::{Value, json};

use crate::world::{World, until};

#[test]
fn an_allowed_tool_runs_and_a_denied_one_does_not() {
    for (route, kind, ran) in
        [("/session/SESSION/permission", "allow_once", true), ("/permission", "reject_once", false)]
    {
        let mut world = World::new();
        let session = world.session();
        let prompt = world.prompt(&session, "tool touch ran");
        let request = question(&mut world, &session);
        let option = request["options"].as_array().unwrap().iter().find(|option| option["kind"] == kind).unwrap();
        let vote = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}).to_string();
        let path = format!("{}/{}", route.replace("SESSION", &session), request["requestId"].as_str().unwrap());
        assert_eq!(world.call("POST", &path, &vote).0, 200);
        let turn = world.settle(&session, &prompt);
        assert_eq!((&turn["state"], &turn["stopReason"]), (&json!("completed"), &json!("end_turn")), "{turn}");
        assert_eq!(world.base().join("workspace/ran").exists(), ran, "{kind}");
        assert_eq!(world.call("POST", &path, &vote).0, 404, "a late vote decides nothing");
    }
}

#[test]
fn a_turn_killed_while_it_asks_reads_interrupted_and_its_tool_never_ran() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "tool touch ran");
    question(&mut world, &session);
    world.kill_everything();
    let terminal = &world.load(&session)["promptTerminals"][0];
    assert_eq!(terminal["promptId"], prompt.as_str());
    assert_eq!(
        (&terminal["terminal"], &terminal["code"]),
        (&json!("interrupted"), &json!("daemon_lost")),
        "{terminal}"
    );
    assert!(!world.base().join("workspace/ran").exists());
}

/// The open permission request of the session, once there is one.
fn question(world: &mut World, session: &str) -> Value {
    until("the agent asks", || {
        let status = world.get(&format!("/session/{session}/status"));
        status["pendingInteractions"].get(0).cloned()
    })
}
