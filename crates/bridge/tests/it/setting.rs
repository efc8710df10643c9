//! What an agent is set to, who is told of it, and that it stands in nobody's way.

use acp::RpcError;
use bridge::{Announcement, AskError, Change, Kind, OpenSession, Session, Setting, Subscribe, Switched};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::world::{World, bridge_with, envelope, open_session, soon};

fn state() -> Value {
    json!({
        "sessionId": "agent-1",
        "modes": { "currentModeId": "default", "availableModes": [{ "id": "default" }, { "id": "plan" }] },
        "models": { "currentModelId": "m-1", "availableModels": [{ "modelId": "m-1" }, { "modelId": "m-2" }] },
    })
}

/// A session whose agent can be set.
async fn world() -> World {
    let (bridge, ledger) = bridge_with(bridge::limits::Limits::default());
    let (mut agent, streams) = Agent::connect();
    let (opened, _) = tokio::join!(bridge.open(open_session(Kind::New), streams), agent.greet(state()));
    let session = opened.unwrap().activate(0, bridge::Seed::default());
    let reader = session.subscribe(&Subscribe::default()).unwrap();
    World { bridge, ledger, agent, session, reader }
}

fn change(setting: Setting, value: &str) -> Change {
    let (method, key) = match setting {
        Setting::Mode => ("session/set_mode", "modeId"),
        Setting::Model => ("session/set_model", "modelId"),
    };
    let params = json!({ key: value }).to_string();
    Change { setting, value: value.to_owned(), method: method.to_owned(), params, timeout_ms: 1_000 }
}

fn current(session: &Session) -> (String, String) {
    (session.setting(Setting::Mode).unwrap(), session.setting(Setting::Model).unwrap())
}

async fn told(world: &mut World) -> (String, Value, Value) {
    let told = envelope(&world.frame().await);
    (told["type"].as_str().unwrap().to_owned(), told["data"].clone(), told["originatorClientId"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_mode_is_set_while_a_prompt_runs_and_told_once_with_what_it_was_before() {
    let mut world = world().await;
    world.admit("A");
    world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A").await;
    let (session, plan) = (world.session.clone(), change(Setting::Mode, "plan"));
    let answer = async {
        let inquiry = world.agent.hear_method("session/set_mode").await;
        // Some agents say it before they answer; it is told as the agent's update, and the change with the answer.
        world.agent.update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" })).await;
        world.agent.answer(&inquiry, json!({})).await;
    };
    let (changed, ()) = tokio::join!(session.change(&plan, Some("c")), answer);
    assert_eq!(changed.unwrap().switched, Switched { previous: Some("default".into()), next: "plan".into() });
    world.expect("current_mode_update A").await;
    let data = json!({ "sessionId": "s", "previous": "default", "next": "plan", "persisted": false });
    assert_eq!(told(&mut world).await, ("approval_mode_changed".into(), data, json!("c")));
    assert_eq!(current(&session), ("plan".into(), "m-1".into()));
    assert!(session.status().has_active_prompt);
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_changes_of_its_own_accord_is_told_in_nobodys_name() {
    let mut world = world().await;
    world.agent.update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" })).await;
    let data = json!({ "sessionId": "s", "previous": "default", "next": "plan", "persisted": false });
    assert_eq!(told(&mut world).await, ("approval_mode_changed".into(), data, Value::Null));
    world.expect("current_mode_update").await;
    for (method, params, expected) in [
        (
            "model-update",
            json!({ "currentModelId": "m-2" }),
            ("model_switched", json!({ "sessionId": "s", "modelId": "m-2" })),
        ),
        (
            "title-update",
            json!({ "title": "n", "titleSource": "auto" }),
            ("session_metadata_updated", json!({ "sessionId": "s", "displayName": "n", "titleSource": "auto" })),
        ),
        (
            "mode-update",
            json!({ "currentModeId": "default" }),
            (
                "approval_mode_changed",
                json!({ "sessionId": "s", "previous": "plan", "next": "default", "persisted": false }),
            ),
        ),
    ] {
        // The second time it says nothing new.
        for _ in 0..2 {
            world.agent.say(acp::compose::notification(&format!("qwen/notify/session/{method}"), &params)).await;
        }
        assert_eq!(told(&mut world).await, (expected.0.into(), expected.1, Value::Null));
    }
    assert_eq!(current(&world.session), ("default".into(), "m-2".into()));
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_says_of_another_session_of_its_own_changes_nothing_here() {
    let mut world = world().await;
    for (method, params) in [
        ("title-update", json!({ "sessionId": "other", "title": "n", "titleSource": "auto" })),
        ("mode-update", json!({ "sessionId": "other", "currentModeId": "plan" })),
        ("model-update", json!({ "sessionId": "other", "currentModelId": "m-9" })),
        ("model-update", json!({ "sessionId": "agent-1", "currentModelId": "m-2" })),
    ] {
        world.agent.say(acp::compose::notification(&format!("qwen/notify/session/{method}"), &params)).await;
    }
    let data = json!({ "sessionId": "s", "modelId": "m-2" });
    assert_eq!(told(&mut world).await, ("model_switched".into(), data, Value::Null));
    assert_eq!(current(&world.session), ("default".into(), "m-2".into()));
    assert_eq!(world.session.status().title, None);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_a_person_gave_stands_against_the_agents_own() {
    let mut world = world().await;
    let called = |world: &World| world.session.status().title.map(|title| (title.text, title.source));
    let named = |name: &str| Announcement::MetadataUpdated { display_name: name.into(), title_source: "manual".into() };
    world.session.announce(named("mine"), Some("c"));
    assert_eq!(told(&mut world).await.0, "session_metadata_updated");
    for params in [json!({ "title": "idea", "titleSource": "auto" }), json!({ "title": "idea" })] {
        world.agent.say(acp::compose::notification("qwen/notify/session/title-update", &params)).await;
    }
    // The next that is told is what a person said to the agent.
    let params = json!({ "title": "mine too", "titleSource": "manual" });
    world.agent.say(acp::compose::notification("qwen/notify/session/title-update", &params)).await;
    let data = json!({ "sessionId": "s", "displayName": "mine too", "titleSource": "manual" });
    assert_eq!(told(&mut world).await, ("session_metadata_updated".into(), data, Value::Null));
    assert_eq!(called(&world), Some(("mine too".into(), "manual".into())));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_the_agent_wrote_into_its_own_transcript_counts_as_the_last_one_there() {
    let (bridge, ledger) = bridge_with(bridge::limits::Limits::default());
    let (mut agent, streams) = Agent::connect();
    let native = OpenSession { same_id: true, ..open_session(Kind::New) };
    let (opened, _) = tokio::join!(bridge.open(native, streams), agent.greet(json!({ "sessionId": "s" })));
    let session = opened.unwrap().activate(0, bridge::Seed::default());
    let reader = session.subscribe(&Subscribe::default()).unwrap();
    let mut world = World { bridge, ledger, agent, session, reader };
    for source in ["manual", "auto"] {
        let params = json!({ "sessionId": "s", "title": source, "titleSource": source });
        world.agent.say(acp::compose::notification("qwen/notify/session/title-update", &params)).await;
        assert_eq!(told(&mut world).await.1["titleSource"], source);
    }
    assert_eq!(world.session.status().title.map(|title| title.source).as_deref(), Some("auto"));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_switched_is_told_with_the_setting_that_the_agent_keeps_of_it() {
    let mut world = world().await;
    let (session, other) = (world.session.clone(), change(Setting::Model, "m-2"));
    let answer = async {
        let inquiry = world.agent.hear_method("session/set_model").await;
        world.agent.answer(&inquiry, json!({ "_meta": { "qwenModelSwitch": { "modelId": "two" } } })).await;
    };
    let (changed, ()) = tokio::join!(session.change(&other, Some("c")), answer);
    assert_eq!(changed.unwrap().answer, r#"{"_meta":{"qwenModelSwitch":{"modelId":"two"}}}"#);
    let data = json!({ "sessionId": "s", "modelId": "m-2" });
    assert_eq!(told(&mut world).await, ("model_switched".into(), data, json!("c")));
    let data = json!({ "key": "model.name", "value": "two" });
    assert_eq!(told(&mut world).await, ("settings_changed".into(), data, json!("c")));
    assert_eq!(acp::string_at(&session.agent_state(), &["models", "currentModelId"]).as_deref(), Some("m-2"));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_not_switched_is_told_with_the_reason_and_nothing_is_changed() {
    let mut world = world().await;
    let (session, other) = (world.session.clone(), change(Setting::Model, "m-9"));
    let refuse = async {
        let inquiry = world.agent.hear_method("session/set_model").await;
        let acp::Kind::Request { id, .. } = inquiry.kind() else { panic!("a request") };
        let error = RpcError::new(-32603, "Internal error").with_data(&json!({ "details": "no such model" }));
        world.agent.say(acp::compose::error_response(id, &error)).await;
    };
    let (refused, ()) = tokio::join!(session.change(&other, None), refuse);
    assert!(matches!(refused, Err(AskError::Refused(error)) if error.code == -32603));
    let data = json!({ "sessionId": "s", "requestedModelId": "m-9", "error": "no such model" });
    assert_eq!(told(&mut world).await, ("model_switch_failed".into(), data, Value::Null));
    let (unanswered, late) = tokio::join!(session.change(&other, None), world.agent.hear_method("session/set_model"));
    assert!(matches!(unanswered, Err(AskError::Timeout { .. })));
    assert_eq!(told(&mut world).await.0, "model_switch_failed");
    assert_eq!(current(&session), ("default".into(), "m-1".into()));
    // It did it after all, and says so.
    world.agent.answer(&late, json!({})).await;
    let says = json!({ "currentModelId": "m-9" });
    world.agent.say(acp::compose::notification("qwen/notify/session/model-update", &says)).await;
    assert_eq!(soon(told(&mut world)).await.0, "model_switched");
    assert_eq!(current(&session).1, "m-9");
}
