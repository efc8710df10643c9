//! A session's name, its agent's model and its mode of approval, and what a create or a load wants of them.

use serde_json::{Value, json};
use serve::Mode;

use crate::client::Answer;
use crate::daemon::Daemon;

async fn rename(daemon: &Daemon, session: &str, body: Value) -> Answer {
    daemon.ask(&format!("PATCH /session/{session}/metadata"), &body.to_string()).await
}

async fn set_mode(daemon: &Daemon, session: &str, body: Value) -> Answer {
    daemon.post(&format!("/session/{session}/approval-mode"), body).await
}

async fn set_model(daemon: &Daemon, session: &str, body: Value) -> Answer {
    daemon.post(&format!("/session/{session}/model"), body).await
}

async fn create(daemon: &Daemon, mut body: Value) -> Answer {
    body["sessionScope"] = "thread".into();
    daemon.post("/session", body).await
}

/// The types and the data of the first events of a session.
async fn told(daemon: &Daemon, session: &str, count: usize) -> Vec<(String, Value)> {
    let mut stream = daemon.events(session).await;
    let mut told = Vec::new();
    for _ in 0..count {
        let kinds = [
            "session_metadata_updated",
            "approval_mode_changed",
            "model_switched",
            "settings_changed",
            "model_switch_failed",
        ];
        let event = stream.until(&kinds).await;
        told.push((event["type"].as_str().unwrap().to_owned(), event["data"].clone()));
    }
    told
}

fn is(kind: &str, data: Value) -> (String, Value) {
    (kind.to_owned(), data)
}

#[tokio::test]
async fn a_name_is_on_record_told_to_the_readers_and_shown_in_the_status() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let answer = rename(&daemon, &session, json!({ "displayName": "My name" })).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "sessionId": session, "displayName": "My name" })));
    let data = json!({ "sessionId": session, "displayName": "My name", "titleSource": "manual" });
    assert_eq!(told(&daemon, &session, 1).await, [is("session_metadata_updated", data)]);
    let status = daemon.get(&format!("/session/{session}/status")).await.json();
    assert_eq!((&status["displayName"], &status["titleSource"]), (&json!("My name"), &json!("manual")));
    let record = std::fs::read_to_string(daemon.chats().join(format!("{session}.jsonl"))).unwrap();
    assert!(record.contains(r#""systemPayload":{"customTitle":"My name","titleSource":"manual"}"#), "{record}");
}

#[tokio::test]
async fn a_name_that_is_none_is_refused_by_code_and_one_that_cannot_be_written_changes_nothing() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let long = "x".repeat(257);
    for body in [
        json!({}),
        json!({ "displayName": "" }),
        json!({ "displayName": 7 }),
        json!({ "displayName": long }),
        json!({ "displayName": "a\nb" }),
    ] {
        let answer = rename(&daemon, &session, body.clone()).await;
        assert_eq!(
            (answer.verdict().as_str(), &answer.json()["field"]),
            ("400 invalid_metadata", &json!("displayName")),
            "{body}"
        );
    }
    assert_eq!(rename(&daemon, &session, json!({ "displayName": "ü".repeat(256) })).await.status, 200);
    assert_eq!(rename(&daemon, "bad", json!({ "displayName": "x" })).await.verdict(), "400 invalid_session_id");
    let unknown = "550e8400-e29b-41d4-a716-446655440000";
    assert_eq!(rename(&daemon, unknown, json!({ "displayName": "x" })).await.verdict(), "404 session_not_found");
    daemon.hosts.behave(|behaviour| behaviour.unwritable = true);
    let session = daemon.create().await;
    assert_eq!(rename(&daemon, &session, json!({ "displayName": "x" })).await.verdict(), "507 transcript_unwritable");
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.json().get("displayName"), None);
}

#[tokio::test]
async fn an_agent_that_writes_its_own_transcript_is_asked_for_names_and_modes_in_its_own_words() {
    let daemon = Daemon::with(|options| options.mode = Mode::Native).await;
    let session = daemon.create().await;
    assert_eq!(rename(&daemon, &session, json!({ "displayName": "n" })).await.status, 200);
    let asked = &daemon.hosts.heard("qwen/control/session/title")[0]["params"];
    assert_eq!(*asked, json!({ "sessionId": session, "displayName": "n", "titleSource": "manual" }));
    let answer = set_mode(&daemon, &session, json!({ "mode": "yolo" })).await;
    assert_eq!(
        answer.json(),
        json!({ "sessionId": session, "mode": "yolo", "previous": "default", "persisted": false })
    );
    let asked = &daemon.hosts.heard("qwen/control/session/approval_mode")[0]["params"];
    assert_eq!(*asked, json!({ "sessionId": session, "mode": "yolo" }));
    assert!(daemon.hosts.heard("turnd/record").is_empty());
}

#[tokio::test]
async fn a_mode_is_set_only_where_the_agent_has_one_of_that_name() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let answer = set_mode(&daemon, &session, json!({ "mode": "plan", "persist": true })).await;
    assert_eq!(
        answer.json(),
        json!({ "sessionId": session, "mode": "plan", "previous": "default", "persisted": false })
    );
    let data = json!({ "sessionId": session, "previous": "default", "next": "plan", "persisted": false });
    assert_eq!(told(&daemon, &session, 1).await, [is("approval_mode_changed", data)]);
    let answer = set_mode(&daemon, &session, json!({ "mode": "yolo" })).await;
    assert_eq!(answer.verdict(), "409 approval_mode_not_supported");
    assert_eq!(answer.json()["available"], json!(["default", "plan"]));
    for body in [json!({}), json!({ "mode": "x" }), json!({ "mode": 1 })] {
        let answer = set_mode(&daemon, &session, body).await;
        assert_eq!(answer.verdict(), "400 invalid_approval_mode");
        assert_eq!(answer.json()["allowed"], json!(["plan", "default", "auto-edit", "auto", "yolo"]));
    }
    let answer = set_mode(&daemon, &session, json!({ "mode": "plan", "persist": 1 })).await;
    assert_eq!(answer.verdict(), "400 invalid_request");
    assert_eq!(daemon.hosts.heard("session/set_mode").len(), 1);
    daemon.hosts.behave(|behaviour| behaviour.unset = true);
    let session = daemon.create().await;
    let answer = set_mode(&daemon, &session, json!({ "mode": "plan" })).await;
    assert_eq!(
        (answer.verdict().as_str(), &answer.json()["available"]),
        ("409 approval_mode_not_supported", &json!([]))
    );
    assert_eq!(set_model(&daemon, &session, json!({ "modelId": "m" })).await.verdict(), "409 model_not_supported");
}

#[tokio::test]
async fn a_model_is_switched_in_the_agents_words_and_its_refusal_is_its_own() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let answer = set_model(&daemon, &session, json!({ "modelId": "m-2" })).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "_meta": { "qwenModelSwitch": { "modelId": "two" } } })));
    let refused = set_model(&daemon, &session, json!({ "modelId": "nope" })).await;
    let body = json!({ "error": "Internal error", "code": -32603, "data": { "details": "no such model" } });
    assert_eq!((refused.status, refused.json()), (500, body));
    for body in [json!({}), json!({ "modelId": "" }), json!({ "modelId": 7 })] {
        assert_eq!(set_model(&daemon, &session, body).await.verdict(), "400 invalid_model_id");
    }
    let failed = json!({ "sessionId": session, "requestedModelId": "nope", "error": "no such model" });
    let expected = [
        is("model_switched", json!({ "sessionId": session, "modelId": "m-2" })),
        is("settings_changed", json!({ "key": "model.name", "value": "two" })),
        is("model_switch_failed", failed),
    ];
    assert_eq!(told(&daemon, &session, 3).await, expected);
}

#[tokio::test]
async fn a_session_is_created_as_it_is_wanted() {
    let daemon = Daemon::start().await;
    let body = json!({ "approvalMode": "plan", "modelServiceId": "m-2", "sourceType": "bot", "sourceId": "7" });
    let created = create(&daemon, body).await.json();
    let session = created["sessionId"].as_str().unwrap();
    assert_eq!((&created["modelApplied"], &created["sourcePersisted"]), (&json!(true), &json!(true)));
    assert_eq!((&created["sourceType"], &created["sourceId"]), (&json!("bot"), &json!("7")));
    let kinds: Vec<_> = told(&daemon, session, 3).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["approval_mode_changed", "model_switched", "settings_changed"]);
    let status = daemon.get(&format!("/session/{session}/status")).await.json();
    assert_eq!((&status["sourceType"], &status["sourceId"]), (&json!("bot"), &json!("7")));
    let record = std::fs::read_to_string(daemon.chats().join(format!("{session}.jsonl"))).unwrap();
    assert!(
        record.contains(r#""subtype":"session_source","systemPayload":{"sourceType":"bot","sourceId":"7"}"#),
        "{record}"
    );
    // Nothing was wanted, and nothing is said.
    let plain = create(&daemon, json!({})).await.json();
    for key in ["modelApplied", "sourcePersisted", "sourceType"] {
        assert_eq!(plain.get(key), None, "{key}");
    }
}

#[tokio::test]
async fn a_session_that_cannot_have_its_mode_is_not_handed_out() {
    let daemon = Daemon::start().await;
    let chosen = "550e8400-e29b-41d4-a716-446655440000";
    let body = json!({ "sessionId": chosen, "approvalMode": "yolo", "sourceType": "bot" });
    assert_eq!(create(&daemon, body).await.verdict(), "409 approval_mode_not_supported");
    assert_eq!(daemon.get(&format!("/session/{chosen}/status")).await.verdict(), "404 session_not_found");
    assert_eq!(daemon.hosts.heard("turnd/close").len(), 1);
    assert!(!daemon.chats().join(format!("{chosen}.jsonl")).exists(), "and has left nothing behind");
    // The id is free again, and so is the default session.
    assert_eq!(create(&daemon, json!({ "sessionId": chosen })).await.status, 200);
    for _ in 0..2 {
        let refused = daemon.post("/session", json!({ "approvalMode": "yolo" })).await;
        assert_eq!(refused.verdict(), "409 approval_mode_not_supported");
    }
    assert_eq!(daemon.post("/session", json!({})).await.json()["attached"], false);
}

#[tokio::test]
async fn a_model_or_a_source_that_fails_is_said_and_the_session_is_handed_out() {
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|behaviour| behaviour.unwritable = true);
    let created = create(&daemon, json!({ "modelServiceId": "nope", "sourceType": "bot" })).await.json();
    assert_eq!((&created["modelApplied"], &created["sourcePersisted"]), (&json!(false), &json!(false)));
    assert_eq!(create(&daemon, json!({ "modelServiceId": 7 })).await.verdict(), "400 invalid_model_id");
}

#[tokio::test]
async fn whoever_attaches_may_want_another_mode_and_cannot_say_that_it_made_the_session() {
    let daemon = Daemon::start().await;
    let made = daemon.post("/session", json!({ "sourceType": "bot" })).await.json();
    let attached = daemon.post("/session", json!({ "approvalMode": "plan", "sourceType": "other" })).await.json();
    assert_eq!((&attached["attached"], &attached["sourceType"]), (&json!(true), &json!("bot")));
    assert_eq!(attached.get("sourcePersisted"), None);
    let refused = daemon.post("/session", json!({ "approvalMode": "yolo" })).await;
    assert_eq!(refused.verdict(), "409 approval_mode_not_supported");
    let session = made["sessionId"].as_str().unwrap();
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.json()["clientCount"], 2);
    let data = json!({ "sessionId": session, "previous": "default", "next": "plan", "persisted": false });
    assert_eq!(told(&daemon, session, 1).await, [is("approval_mode_changed", data)]);
}

#[tokio::test]
async fn a_load_brings_the_session_to_the_mode_that_is_wanted_or_gives_it_up() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    let daemon = daemon.restart().await;
    let load =
        async |mode: &str| daemon.post(&format!("/session/{session}/load"), json!({ "approvalMode": mode })).await;
    assert_eq!(load("yolo").await.verdict(), "409 approval_mode_not_supported");
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.verdict(), "404 session_not_found");
    let loaded = load("plan").await.json();
    assert_eq!(loaded["state"]["modes"]["currentModeId"], "plan");
    // Whoever has it keeps it when another one wants what it cannot have.
    assert_eq!(load("yolo").await.verdict(), "409 approval_mode_not_supported");
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.status, 200);
}

#[tokio::test]
async fn a_prompt_does_not_wait_for_an_agent_that_does_not_answer_what_it_is_set_to() {
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|behaviour| behaviour.slow_to_set = true);
    let session = daemon.create().await;
    let stuck = set_mode(&daemon, &session, json!({ "mode": "plan" }));
    let run = async {
        crate::client::until("the agent is asked", async || !daemon.hosts.heard("session/set_mode").is_empty()).await;
        daemon.run(&session, "hello").await;
        daemon.ask(&format!("DELETE /session/{session}"), "").await
    };
    let (stuck, closed) = tokio::join!(stuck, run);
    assert_eq!((closed.status, stuck.verdict().as_str()), (204, "404 session_not_found"));
}

#[tokio::test]
async fn where_a_session_comes_from_is_said_once_whoever_loads_it() {
    for action in ["load", "resume"] {
        let daemon = Daemon::start().await;
        let made = create(&daemon, json!({ "sourceType": "bot", "sourceId": "7" })).await.json();
        let session = made["sessionId"].as_str().unwrap();
        daemon.run(session, "hello").await;
        let daemon = daemon.restart().await;
        let body = json!({ "sourceType": "other" });
        assert_eq!(daemon.post(&format!("/session/{session}/{action}"), body).await.status, 200);
        let status = daemon.get(&format!("/session/{session}/status")).await.json();
        assert_eq!((&status["sourceType"], &status["sourceId"]), (&json!("bot"), &json!("7")), "{action}");
        assert!(
            daemon.hosts.heard("turnd/record").iter().all(|asked| !asked.to_string().contains("other")),
            "{action}"
        );
        let listed = daemon.get("/workspaces/%2Fws/sessions?sourceType=bot").await.json();
        assert_eq!(listed["sessions"][0]["sourceId"], "7", "{action}");
    }
}

#[tokio::test]
async fn a_load_may_say_where_a_session_comes_from_that_nobody_signed() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    let daemon = daemon.restart().await;
    let path = format!("/session/{session}/load");
    assert_eq!(daemon.post(&path, json!({ "sourceType": "bot" })).await.status, 200);
    assert_eq!(daemon.post(&path, json!({ "sourceType": "other" })).await.status, 200);
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.json()["sourceType"], "bot");
}
