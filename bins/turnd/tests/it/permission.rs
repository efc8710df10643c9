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
fn a_question_that_nobody_answers_in_time_is_denied_and_its_tool_never_runs() {
    let mut world = World::with(&["--permission-response-timeout-ms", "1500", "--permission-policy", "local-only"]);
    assert_eq!(world.get("/capabilities")["policy"]["permission"], "local-only");
    let session = world.session();
    let prompt = world.prompt(&session, "tool touch ran");
    let request = question(&mut world, &session);
    let turn = world.get(&format!("/session/{session}/turns/{prompt}"));
    assert_eq!((&turn["waitingFor"], &turn["requestIds"]), (&json!("permission"), &json!([request["requestId"]])));
    let turn = world.settle(&session, &prompt);
    assert_eq!((&turn["state"], &turn["stopReason"]), (&json!("completed"), &json!("end_turn")), "{turn}");
    assert!(!world.base().join("workspace/ran").exists());
    let path = format!("/session/{session}/permission/{}", request["requestId"].as_str().unwrap());
    let vote = json!({"outcome": {"outcome": "selected", "optionId": request["options"][0]["optionId"]}}).to_string();
    let (status, late) = world.call("POST", &path, &vote);
    assert_eq!((status, &late["code"]), (404, &json!("permission_already_decided")), "{late}");
    let denied = request["options"].as_array().unwrap().iter().find(|option| option["kind"] == "reject_once").unwrap();
    let expected = json!({"outcome": "selected", "optionId": denied["optionId"]});
    assert_eq!((&late["decision"]["reason"], &late["decision"]["outcome"]), (&json!("timeout"), &expected), "{late}");
}

#[test]
fn ten_prompts_of_another_session_run_while_a_question_is_open_and_a_cancel_ends_its_turn() {
    let mut world = World::new();
    let (asking, other) = (world.session(), world.session());
    let prompt = world.prompt(&asking, "tool touch ran");
    question(&mut world, &asking);
    for number in 0..10 {
        let echo = world.prompt(&other, &format!("hello {number}"));
        assert_eq!(world.settle(&other, &echo)["state"], "completed");
    }
    assert_eq!(world.get(&format!("/session/{asking}/turns/{prompt}"))["waitingFor"], "permission");
    assert_eq!(world.call("POST", &format!("/session/{asking}/cancel"), "{}").0, 204);
    assert_eq!(world.settle(&asking, &prompt)["state"], "cancelled");
    assert_eq!(world.get(&format!("/session/{asking}/status"))["isWaitingForPermission"], false);
    assert!(!world.base().join("workspace/ran").exists());
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
pub(crate) fn question(world: &mut World, session: &str) -> Value {
    until("the agent asks", || {
        let status = world.get(&format!("/session/{session}/status"));
        status["pendingInteractions"].get(0).cloned()
    })
}
