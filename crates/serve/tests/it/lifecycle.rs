//! Sessions: create, attach, status, heartbeat, detach, close (wire rules, section 6).

use serde_json::json;

use crate::client::{Connection, Stream, until};
use crate::daemon::Daemon;

const CHOSEN: &str = "11111111-1111-4111-8111-11111111aaaa";

#[tokio::test]
async fn a_create_answers_with_the_session_and_a_client() {
    let daemon = Daemon::start().await;
    let first = daemon.post("/session", json!({})).await.json();
    assert_eq!((&first["attached"], &first["workspaceCwd"]), (&json!(false), &json!("/ws")));
    assert!(first["clientId"].as_str().unwrap().starts_with("client_"), "{first}");
    assert!(first["createdAt"].as_str().unwrap().ends_with('Z'), "{first}");
    assert_eq!(first.get("hasActivePrompt"), None);

    let second = daemon.post("/session", json!([1, 2])).await.json();
    assert_eq!((&second["attached"], &second["sessionId"]), (&json!(true), &first["sessionId"]));
    assert_eq!(second["hasActivePrompt"], false);
    assert_ne!(second["clientId"], first["clientId"]);

    let thread = daemon.post("/session", json!({ "sessionScope": "thread" })).await.json();
    assert_eq!(thread["attached"], false);
    assert_ne!(thread["sessionId"], first["sessionId"]);
    let third = daemon.post("/session", json!({})).await.json();
    assert_eq!(third["sessionId"], first["sessionId"], "a thread never becomes the default");
}

#[tokio::test]
async fn concurrent_single_scope_creates_share_one_session() {
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|behaviour| behaviour.gated = true);
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut connection = Connection::open(daemon.address).await;
        connection.ask("POST /session", &[], b"").await;
        waiting.push(connection);
    }
    until("the host hears session/new", async || !daemon.hosts.heard("session/new").is_empty()).await;
    daemon.hosts.open_gate(3);
    let mut answers = Vec::new();
    for connection in &mut waiting {
        answers.push(connection.answer().await.json());
    }
    assert_eq!(answers.iter().filter(|answer| answer["attached"] == false).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| answer["sessionId"] == answers[0]["sessionId"]), "{answers:?}");
    assert_eq!(daemon.hosts.orders().len(), 1);
}

#[tokio::test]
async fn a_callers_id_is_lower_cased_and_taken_once() {
    let daemon = Daemon::start().await;
    let body = json!({ "sessionId": CHOSEN.to_uppercase(), "sessionScope": "single" });
    let created = daemon.post("/session", body).await.json();
    assert_eq!((&created["sessionId"], &created["attached"]), (&json!(CHOSEN), &json!(false)));
    assert_eq!(daemon.get(&format!("/session/{}/status", CHOSEN.to_uppercase())).await.status, 200);
    let again = daemon.post("/session", json!({ "sessionId": CHOSEN })).await;
    assert_eq!(again.verdict(), "409 session_id_conflict");
    assert_eq!((&again.json()["conflict"], &again.json()["liveWorkspaceCwd"]), (&json!("live"), &json!("/ws")));
}

#[tokio::test]
async fn an_id_with_a_history_is_a_conflict_too() {
    let daemon = Daemon::start().await;
    let names = [format!("{CHOSEN}.jsonl"), format!("archive/{CHOSEN}.jsonl")];
    for name in &names {
        std::fs::create_dir_all(daemon.chats().join("archive")).unwrap();
        daemon.write(name, "{}\n");
        let answer = daemon.post("/session", json!({ "sessionId": CHOSEN })).await;
        assert_eq!(
            (answer.verdict().as_str(), &answer.json()["conflict"]),
            ("409 session_id_conflict", &json!("persisted"))
        );
        std::fs::remove_file(daemon.chats().join(name)).unwrap();
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_create_is_said() {
    let daemon = Daemon::start().await;
    let rows = [
        (json!({ "cwd": 5 }), "400 invalid_cwd"),
        (json!({ "cwd": "rel/path" }), "400 invalid_cwd"),
        (json!({ "cwd": "/elsewhere" }), "400 workspace_mismatch"),
        (json!({ "sessionScope": "x" }), "400 invalid_session_scope"),
        (json!({ "sessionScope": 5 }), "400 invalid_session_scope"),
        (json!({ "sessionId": "abc" }), "400 invalid_session_id"),
        (json!({ "sessionId": 5 }), "400 invalid_session_id"),
        (json!({ "sessionId": "00000000-0000-0000-0000-000000000000" }), "400 invalid_session_id"),
        (json!({ "approvalMode": "bogus" }), "400 invalid_approval_mode"),
        (json!({ "sourceType": "Bad Type!" }), "400 invalid_session_source"),
        (json!({ "sourceType": "standalone" }), "400 reserved_session_source"),
    ];
    for (body, expected) in rows {
        assert_eq!(daemon.post("/session", body.clone()).await.verdict(), expected, "{body}");
    }
    let answer = daemon.ask_with("POST /session", &[("x-qwen-client-id", "bad id!")], "{}").await;
    assert_eq!(answer.verdict(), "400 invalid_client_id");
    assert_eq!(answer.json().get("sessionId"), None);
    assert!(daemon.hosts.orders().is_empty(), "nothing was started");
}

#[tokio::test]
async fn the_session_limit_is_an_invitation_to_come_back() {
    let daemon = Daemon::with(|options| options.limits.max_sessions = 2).await;
    let first = daemon.create().await;
    daemon.create().await;
    let answer = daemon.post("/session", json!({ "sessionScope": "thread" })).await;
    assert_eq!((answer.verdict().as_str(), answer.header("retry-after")), ("503 session_limit_exceeded", Some("5")));
    assert_eq!((&answer.json()["limit"], &answer.json()["scope"]), (&json!(2), &json!("workspace")));
    assert_eq!(daemon.ask(&format!("DELETE /session/{first}"), "").await.status, 204);
    daemon.create().await;
}

#[tokio::test]
async fn clients_are_known_per_session() {
    let daemon = Daemon::start().await;
    let created = daemon.ask_with("POST /session", &[("x-qwen-client-id", "mine")], "{}").await.json();
    let (session, client) = (created["sessionId"].as_str().unwrap(), created["clientId"].as_str().unwrap());
    assert_ne!(client, "mine", "an unknown id is replaced");
    let again = daemon.ask_with("POST /session", &[("x-qwen-client-id", client)], "{}").await.json();
    assert_eq!(again["clientId"], client);

    let prompt = r#"{"prompt":[{"type":"text","text":"x"}]}"#;
    let checked = [
        (format!("POST /session/{session}/prompt"), prompt),
        (format!("POST /session/{session}/cancel"), "{}"),
        (format!("POST /session/{session}/heartbeat"), "{}"),
        (format!("GET /session/{session}/pending-prompts"), ""),
        (format!("DELETE /session/{session}/pending-prompts/p"), ""),
        (format!("GET /session/{session}/turns/current"), ""),
        (format!("GET /session/{session}/turns/p"), ""),
        (format!("POST /session/{session}/permission/r"), r#"{"outcome":{"outcome":"cancelled"}}"#),
        (format!("DELETE /session/{session}"), ""),
    ];
    for (line, body) in &checked {
        let answer = daemon.ask_with(line, &[("x-qwen-client-id", "client_bogus")], body).await;
        assert_eq!(answer.verdict(), "400 invalid_client_id", "{line}");
        assert_eq!(
            (&answer.json()["sessionId"], &answer.json()["clientId"]),
            (&json!(session), &json!("client_bogus"))
        );
    }
    let status = format!("GET /session/{session}/status");
    assert_eq!(daemon.ask_with(&status, &[("x-qwen-client-id", "client_bogus")], "").await.status, 200);
    let detach = format!("POST /session/{session}/detach");
    assert_eq!(daemon.ask_with(&detach, &[("x-qwen-client-id", "client_bogus")], "").await.status, 204);
    assert_eq!(
        daemon.get(&format!("/session/{session}/pending-prompts")).await.json(),
        json!({ "pendingPrompts": [] })
    );
}

#[tokio::test]
async fn a_heartbeat_echoes_its_client() {
    let daemon = Daemon::start().await;
    let created = daemon.post("/session", json!({})).await.json();
    let (session, client) = (created["sessionId"].as_str().unwrap(), created["clientId"].as_str().unwrap());
    let line = format!("POST /session/{session}/heartbeat");
    let known = daemon.ask_with(&line, &[("x-qwen-client-id", client)], "{}").await.json();
    assert_eq!((&known["sessionId"], &known["clientId"]), (&json!(session), &json!(client)));
    assert!(known["lastSeenAt"].as_u64().unwrap() > 0);
    assert_eq!(daemon.ask(&line, "{}").await.json().get("clientId"), None);
}

#[tokio::test]
async fn a_session_at_a_glance() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let status = daemon.get(&format!("/session/{session}/status")).await.json();
    let expected = [
        ("sessionId", json!(session)),
        ("clientCount", json!(1)),
        ("hasActivePrompt", json!(false)),
        ("activeWorkState", json!("idle")),
        ("hasTurnError", json!(false)),
        ("pendingInteractions", json!([])),
    ];
    for (key, value) in expected {
        assert_eq!(status[key], value, "{key}");
    }
    daemon.run(&session, "fail").await;
    let failed = daemon.get(&format!("/session/{session}/status")).await.json();
    assert_eq!(failed["turnError"], json!({ "message": "400 from model", "code": "-32603" }));
    daemon.run(&session, "hello").await;
    let status = daemon.get(&format!("/session/{session}/status")).await.json();
    assert_eq!((&status["hasTurnError"], status["updatedAt"].is_string()), (&json!(false), true));
}

#[tokio::test]
async fn a_close_ends_the_streams_and_the_session() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.verdict(), "204");
    let closed = stream.until(&["session_closed"]).await;
    assert_eq!(closed["data"]["reason"], "client_close");
    assert_eq!(stream.next().await, None);
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.verdict(), "404 session_not_found");
    assert_eq!(daemon.hosts.heard("turnd/close")[0]["params"]["reason"], "session_closed");
}

#[tokio::test]
async fn a_session_that_is_being_closed_takes_nothing_and_still_answers() {
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|behaviour| behaviour.slow_close = true);
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "hello").await;
    let mut closing = Connection::open(daemon.address).await;
    closing.ask(&format!("DELETE /session/{session}"), &[], b"").await;
    until("the host hears turnd/close", async || !daemon.hosts.heard("turnd/close").is_empty()).await;
    let orders = [
        ("POST /session/ID/prompt", r#"{"prompt":[{"type":"text","text":"x"}]}"#),
        ("POST /session/ID/cancel", "{}"),
        ("DELETE /session/ID/pending-prompts/p", ""),
        ("POST /session/ID/load", "{}"),
        ("POST /session/ID/resume", "{}"),
        ("DELETE /session/ID", ""),
    ];
    for (line, body) in orders {
        let answer = daemon.ask(&line.replace("ID", &session), body).await;
        assert_eq!(
            (answer.verdict().as_str(), answer.header("retry-after")),
            ("409 session_archiving", Some("5")),
            "{line}"
        );
        assert_eq!(answer.json()["sessionId"], session);
    }
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.status, 200);
    assert_eq!(daemon.turn(&session, &prompt).await.json()["state"], "completed");
    daemon.hosts.open_gate(1);
    assert_eq!(closing.answer().await.verdict(), "204");
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.verdict(), "404 session_not_found");
}

#[tokio::test]
async fn a_close_goes_on_when_its_caller_does_not_wait() {
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|behaviour| behaviour.slow_close = true);
    let session = daemon.create().await;
    let mut closing = Connection::open(daemon.address).await;
    closing.ask(&format!("DELETE /session/{session}"), &[], b"").await;
    until("the host hears turnd/close", async || !daemon.hosts.heard("turnd/close").is_empty()).await;
    drop(closing);
    daemon.hosts.open_gate(1);
    until("the session is gone", async || daemon.get(&format!("/session/{session}/status")).await.status == 404).await;
}

#[tokio::test]
async fn a_close_ends_what_runs_and_what_waits() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.prompt(&session, "hang").await;
    daemon.prompt(&session, "never").await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.verdict(), "204");
    let ledger = daemon.ledger(&session);
    assert_eq!((ledger.matches("in_flight").count(), ledger.matches("terminal").count()), (2, 2), "{ledger}");
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1, "nothing is dispatched into a closing session");
}

#[tokio::test]
async fn the_last_client_takes_an_idle_session_with_it() {
    let daemon = Daemon::start().await;
    let created = daemon.post("/session", json!({})).await.json();
    let (session, client) = (created["sessionId"].as_str().unwrap(), created["clientId"].as_str().unwrap());
    let line = format!("POST /session/{session}/detach");
    assert_eq!(daemon.ask_with(&line, &[("x-qwen-client-id", client)], "").await.status, 204);
    until("the session is gone", async || daemon.get(&format!("/session/{session}/status")).await.status == 404).await;
    let next = daemon.post("/session", json!({})).await.json();
    assert_ne!(next["sessionId"], session, "a closed session is no default");
}

#[tokio::test]
async fn the_last_client_of_a_busy_session_lets_it_finish_first() {
    let daemon = Daemon::start().await;
    let created = daemon.post("/session", json!({})).await.json();
    let (session, client) = (created["sessionId"].as_str().unwrap(), created["clientId"].as_str().unwrap());
    let prompt = daemon.prompt(session, "hold").await["promptId"].as_str().unwrap().to_owned();
    let line = format!("POST /session/{session}/detach");
    for _ in 0..2 {
        assert_eq!(daemon.ask_with(&line, &[("x-qwen-client-id", client)], "").await.status, 204);
    }
    assert_eq!(daemon.turn(session, &prompt).await.json()["state"], "running");
    daemon.hosts.release(1);
    until("the session is gone", async || daemon.get(&format!("/session/{session}/status")).await.status == 404).await;
    assert!(daemon.ledger(session).contains(r#""terminal":"completed""#), "{}", daemon.ledger(session));
}

#[tokio::test]
async fn a_reader_keeps_a_session_that_its_last_client_left() {
    let daemon = Daemon::start().await;
    let created = daemon.post("/session", json!({})).await.json();
    let (session, client) = (created["sessionId"].as_str().unwrap(), created["clientId"].as_str().unwrap());
    let _stream = Stream::open(daemon.address, &format!("/session/{session}/events"), &[]).await;
    let line = format!("POST /session/{session}/detach");
    daemon.ask_with(&line, &[("x-qwen-client-id", client)], "").await;
    daemon.run(session, "hello").await;
}

#[tokio::test]
async fn a_session_is_given_up_when_its_creator_is_gone_before_the_answer() {
    let daemon = Daemon::with(|options| options.limits.max_connections = 1).await;
    daemon.hosts.behave(|behaviour| behaviour.gated = true);
    // With one connection at a time, the next one is served only when the daemon has noticed that this one is gone.
    let mut creator = daemon.the_only_connection().await;
    creator.ask("POST /session", &[], b"").await;
    until("the host hears session/new", async || !daemon.hosts.heard("session/new").is_empty()).await;
    drop(creator);
    let mut next = daemon.the_only_connection().await;
    daemon.hosts.open_gate(1);
    until("the host hears turnd/close", async || !daemon.hosts.heard("turnd/close").is_empty()).await;
    next.ask("GET /health?deep=1", &[], b"").await;
    assert_eq!(next.answer().await.json()["sessions"], 0);
}

#[tokio::test]
async fn an_agent_that_does_not_work_is_a_bad_gateway_with_its_cause() {
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|behaviour| behaviour.no_start = true);
    let answer = daemon.post("/session", json!({})).await;
    assert_eq!(answer.verdict(), "502 agent_unavailable");
    assert!(answer.json()["details"].as_str().unwrap().contains("no such program"), "{}", answer.json());

    daemon.hosts.behave(|behaviour| {
        behaviour.no_start = false;
        behaviour.dies_early = true;
    });
    assert_eq!(daemon.post("/session", json!({})).await.verdict(), "502 agent_unavailable");

    daemon.hosts.behave(|behaviour| {
        behaviour.dies_early = false;
        behaviour.refuse = Some(json!({
            "code": -32000,
            "message": "agent does not start",
            "data": { "turnd/code": "agent_unavailable", "details": "exec format error", "stderrTail": "oops" },
        }));
    });
    let answer = daemon.post("/session", json!({})).await;
    assert_eq!(answer.verdict(), "502 agent_unavailable");
    assert_eq!(
        (&answer.json()["details"], &answer.json()["stderrTail"]),
        (&json!("exec format error"), &json!("oops"))
    );

    daemon.hosts.behave(|behaviour| behaviour.refuse = None);
    daemon.create().await;
}

#[tokio::test]
async fn an_agent_that_is_too_slow_is_a_gateway_timeout() {
    let daemon = Daemon::with(|options| {
        options.initialize_timeout_ms = 50;
        options.restore_timeout_ms = 50;
    })
    .await;
    daemon.hosts.behave(|behaviour| behaviour.mute = true);
    let answer = daemon.post("/session", json!({})).await;
    assert_eq!((answer.verdict().as_str(), answer.header("retry-after")), ("504 init_timeout", Some("5")));
    assert_eq!((&answer.json()["retryable"], &answer.json()["phase"]), (&json!(true), &json!("session/new")));
}

#[tokio::test]
async fn a_native_agent_must_take_the_id_it_is_given() {
    let daemon = Daemon::with(|options| options.mode = serve::Mode::Native).await;
    daemon.create().await;
    daemon.hosts.behave(|behaviour| behaviour.other_id = true);
    assert_eq!(
        daemon.post("/session", json!({ "sessionScope": "thread" })).await.verdict(),
        "500 session_id_not_honored"
    );
}

#[tokio::test]
async fn a_host_is_ordered_with_all_it_needs() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let order = &daemon.hosts.orders()[0];
    assert_eq!(order.session_id, session);
    assert_eq!(order.transcript, daemon.chats().join(format!("{session}.jsonl")));
    assert_eq!((order.workspace.to_str(), order.agent.as_slice()), (Some("/ws"), ["scripted".to_owned()].as_slice()));
    let opened = &daemon.hosts.heard("session/new")[0];
    assert_eq!(opened["params"]["_meta"]["qwen-code/sessionId"], session);
}
