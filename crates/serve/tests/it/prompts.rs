//! Prompts: admission, order, cancel, removal, the caller's own ids (wire rules, section 8).

use serde_json::{Value, json};

use crate::client::{Connection, Stream, until};
use crate::daemon::Daemon;

#[tokio::test]
async fn a_prompt_is_admitted_run_and_recorded() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let receipt = daemon.prompt(&session, "hello").await;
    assert!(receipt["promptId"].is_string() && receipt["eventEpoch"].is_string(), "{receipt}");
    let cursor = receipt["lastEventId"].to_string();
    let path = format!("/session/{session}/events");
    let mut stream = Stream::open(daemon.address, &path, &[("last-event-id", &cursor)]).await;
    let done = stream.until(&["turn_complete"]).await;
    assert_eq!((&done["data"]["promptId"], &done["data"]["stopReason"]), (&receipt["promptId"], &json!("end_turn")));
    let ledger: Vec<Value> = daemon.ledger(&session).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&ledger[0]["state"], &ledger[1]["terminal"]), (&json!("in_flight"), &json!("completed")));
    assert_eq!(ledger[1]["stopReason"], "end_turn");
    assert_eq!(daemon.turn(&session, receipt["promptId"].as_str().unwrap()).await.json()["resultText"], "echo: hello");
}

#[tokio::test]
async fn the_admission_is_on_disk_before_it_is_acknowledged() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let receipt = daemon.prompt(&session, "hold").await;
    let ledger = daemon.ledger(&session);
    assert!(ledger.contains(receipt["promptId"].as_str().unwrap()) && ledger.contains("in_flight"), "{ledger}");
    daemon.hosts.release(1);
}

#[tokio::test]
async fn prompts_run_one_after_the_other() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    let first = daemon.prompt(&session, "hold a").await["promptId"].clone();
    let second = daemon.prompt(&session, "b").await["promptId"].clone();
    let pending = daemon.get(&format!("/session/{session}/pending-prompts")).await.json();
    let states: Vec<_> =
        pending["pendingPrompts"].as_array().unwrap().iter().map(|prompt| prompt["state"].clone()).collect();
    assert_eq!(states, [json!("running"), json!("queued")]);
    assert_eq!(pending["pendingPrompts"][1]["text"], "b");
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1, "the second one waits");
    daemon.hosts.release(1);
    assert_eq!(stream.until(&["turn_complete"]).await["data"]["promptId"], first);
    assert_eq!(stream.until(&["turn_complete"]).await["data"]["promptId"], second);
}

#[tokio::test]
async fn what_else_a_body_holds_travels_to_the_agent_and_cannot_pose_as_us() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let body = json!({
        "prompt": [{ "type": "text", "text": "hello" }],
        "sessionId": "forged",
        "custom": [1, 2],
        "_meta": { "mine": true, "qwen-code/invocation": { "promptId": "forged" } },
        "__proto__": {},
    });
    let receipt = daemon.post(&format!("/session/{session}/prompt"), body).await.json();
    let mut stream = daemon.events(&session).await;
    stream.until(&["turn_complete"]).await;
    let heard = &daemon.hosts.heard("session/prompt")[0]["params"];
    assert_eq!((&heard["sessionId"], &heard["custom"]), (&json!(session), &json!([1, 2])));
    assert_eq!(heard["_meta"]["qwen-code/invocation"]["promptId"], receipt["promptId"]);
    assert_eq!((&heard["_meta"]["mine"], heard.get("__proto__")), (&json!(true), None));
}

#[tokio::test]
async fn a_retry_is_one_only_behind_a_failed_turn() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let path = format!("/session/{session}/prompt");
    let body = json!({ "prompt": [{ "type": "text", "text": "hello" }], "retry": true });
    daemon.post(&path, body.clone()).await;
    let mut stream = daemon.events(&session).await;
    let first = stream.until(&["session_update"]).await;
    assert_eq!(first["data"]["update"]["sessionUpdate"], "user_message_chunk");
    stream.until(&["turn_complete"]).await;
    daemon.run(&session, "fail").await;
    stream.until(&["turn_error"]).await;
    daemon.post(&path, body).await;
    let first = stream.until(&["session_update"]).await;
    assert_eq!(first["data"]["update"]["sessionUpdate"], "agent_message_chunk", "its text is there already");
}

#[tokio::test]
async fn a_full_queue_is_said_with_its_numbers() {
    let daemon = Daemon::with(|options| options.limits.max_pending_prompts = 2).await;
    let session = daemon.create().await;
    daemon.prompt(&session, "hold").await;
    let queued = daemon.prompt(&session, "x").await["promptId"].as_str().unwrap().to_owned();
    let body = json!({ "prompt": [{ "type": "text", "text": "y" }] });
    let answer = daemon.post(&format!("/session/{session}/prompt"), body).await;
    assert_eq!((answer.verdict().as_str(), answer.header("retry-after")), ("503 prompt_queue_full", Some("5")));
    assert_eq!((&answer.json()["limit"], &answer.json()["pendingCount"]), (&json!(2), &json!(2)));
    // A removed prompt frees its slot at once.
    let removal = daemon.ask(&format!("DELETE /session/{session}/pending-prompts/{queued}"), "").await;
    assert_eq!(removal.json(), json!({ "removed": true }));
    daemon.prompt(&session, "y").await;
    daemon.hosts.release(1);
}

#[tokio::test]
async fn what_is_wrong_with_a_prompt_is_said_before_the_session_is_looked_for() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let text = json!([{ "type": "text", "text": "x" }]);
    let rows = [
        (json!({}), "400 invalid_prompt"),
        (json!({ "prompt": "str" }), "400 invalid_prompt"),
        (json!({ "prompt": [] }), "400 invalid_prompt"),
        (json!({ "prompt": ["x"] }), "400 invalid_prompt"),
        (json!({ "prompt": text, "deadlineMs": 0 }), "400 invalid_deadline_ms"),
        (json!({ "prompt": text, "eventDetailMode": "z" }), "400 invalid_event_detail_mode"),
        (json!({ "prompt": text, "delivery": {} }), "400 channel_delivery_invalid"),
        (json!({ "prompt": text, "promptId": "a/b" }), "400 invalid_prompt_id"),
    ];
    for (body, expected) in rows {
        for id in [session.as_str(), "nobody"] {
            assert_eq!(daemon.post(&format!("/session/{id}/prompt"), body.clone()).await.verdict(), expected, "{body}");
        }
    }
    let headers = [("x-qwen-client-id", "bad id")];
    let answer = daemon.ask_with(&format!("POST /session/{session}/prompt"), &headers, "{}").await;
    assert_eq!(answer.verdict(), "400 invalid_client_id", "the client comes first");
    assert!(daemon.ledger(&session).is_empty());
}

#[tokio::test]
async fn the_same_id_with_the_same_content_runs_once() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let path = format!("/session/{session}/prompt");
    let body = json!({ "prompt": [{ "type": "text", "text": "hold" }], "promptId": "mine-1" });
    let first = daemon.post(&path, body.clone()).await;
    assert_eq!((first.status, &first.json()["promptId"], first.json().get("replayed")), (202, &json!("mine-1"), None));
    let again = daemon.post(&path, body.clone()).await;
    assert_eq!((again.status, &again.json()["replayed"]), (202, &json!(true)));
    assert_eq!(again.json()["lastEventId"], first.json()["lastEventId"]);
    let other = json!({ "prompt": [{ "type": "text", "text": "other" }], "promptId": "mine-1" });
    assert_eq!(daemon.post(&path, other).await.verdict(), "409 prompt_id_conflict");
    daemon.hosts.release(1);
    let mut stream = daemon.events(&session).await;
    stream.until(&["turn_complete"]).await;
    assert_eq!(daemon.post(&path, body).await.json()["replayed"], true, "it ended, and is still known");
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
    assert_eq!(daemon.ledger(&session).lines().count(), 2);
}

#[tokio::test]
async fn a_chosen_id_outlives_the_daemon() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let path = format!("/session/{session}/prompt");
    let body = |text: &str| json!({ "prompt": [{ "type": "text", "text": text }], "promptId": "mine-1" });
    daemon.post(&path, body("hello")).await;
    let mut stream = daemon.events(&session).await;
    stream.until(&["turn_complete"]).await;
    let daemon = daemon.restart().await;
    daemon.post(&format!("/session/{session}/load"), json!({})).await;
    let again = daemon.post(&path, body("hello")).await;
    assert_eq!(
        (again.status, &again.json()["replayed"], &again.json()["promptId"]),
        (202, &json!(true), &json!("mine-1"))
    );
    assert_eq!(daemon.post(&path, body("other")).await.verdict(), "409 prompt_id_conflict");
    assert_eq!(daemon.turn(&session, "mine-1").await.json()["resultText"], "echo: hello");
    assert!(daemon.hosts.heard("session/prompt").is_empty(), "nothing ran in this life");
}

#[tokio::test]
async fn a_chosen_id_belongs_to_one_session() {
    let daemon = Daemon::start().await;
    let (first, second) = (daemon.create().await, daemon.create().await);
    let body = json!({ "prompt": [{ "type": "text", "text": "hello" }], "promptId": "mine-1" });
    assert_eq!(daemon.post(&format!("/session/{first}/prompt"), body.clone()).await.status, 202);
    let elsewhere = daemon.post(&format!("/session/{second}/prompt"), body).await;
    assert_eq!(elsewhere.verdict(), "409 prompt_id_conflict");
    assert!(daemon.ledger(&second).is_empty());
}

#[tokio::test]
async fn many_copies_at_once_run_once() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let body = json!({ "prompt": [{ "type": "text", "text": "hold" }], "promptId": "mine-1" }).to_string();
    let mut waiting = Vec::new();
    for _ in 0..50 {
        let mut connection = Connection::open(daemon.address).await;
        let line = format!("POST /session/{session}/prompt");
        connection.ask(&line, &[("content-type", "application/json")], body.as_bytes()).await;
        waiting.push(connection);
    }
    let mut first = 0;
    for connection in &mut waiting {
        let answer = connection.answer().await;
        assert_eq!((answer.status, &answer.json()["promptId"]), (202, &json!("mine-1")));
        first += usize::from(answer.json().get("replayed").is_none());
    }
    assert_eq!(first, 1);
    daemon.hosts.release(1);
    let mut stream = daemon.events(&session).await;
    stream.until(&["turn_complete"]).await;
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
}

#[tokio::test]
async fn a_chosen_id_that_found_no_place_may_come_again() {
    let daemon = Daemon::with(|options| options.limits.max_pending_prompts = 1).await;
    let session = daemon.create().await;
    daemon.prompt(&session, "hold").await;
    let path = format!("/session/{session}/prompt");
    let body = json!({ "prompt": [{ "type": "text", "text": "hello" }], "promptId": "mine-1" });
    assert_eq!(daemon.post(&path, body.clone()).await.verdict(), "503 prompt_queue_full");
    daemon.hosts.release(1);
    let mut stream = daemon.events(&session).await;
    stream.until(&["turn_complete"]).await;
    let answer = daemon.post(&path, body).await;
    assert_eq!((answer.status, answer.json().get("replayed")), (202, None));
    stream.until(&["turn_complete"]).await;
}

#[tokio::test]
async fn a_cancel_ends_the_running_prompt_and_not_the_next() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    let first = daemon.prompt(&session, "hang").await["promptId"].clone();
    let second = daemon.prompt(&session, "b").await["promptId"].clone();
    assert_eq!(daemon.post(&format!("/session/{session}/cancel"), json!({})).await.verdict(), "204");
    let done = stream.until(&["turn_complete"]).await;
    assert_eq!((&done["data"]["promptId"], &done["data"]["stopReason"]), (&first, &json!("cancelled")));
    let done = stream.until(&["turn_complete"]).await;
    assert_eq!((&done["data"]["promptId"], &done["data"]["stopReason"]), (&second, &json!("end_turn")));
    assert_eq!(daemon.post(&format!("/session/{session}/cancel"), json!({})).await.verdict(), "204", "idle is fine");
}

#[tokio::test]
async fn removing_twice_is_harmless_and_truthful() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.prompt(&session, "hold").await;
    let queued = daemon.prompt(&session, "x").await["promptId"].as_str().unwrap().to_owned();
    let line = format!("DELETE /session/{session}/pending-prompts/{queued}");
    assert_eq!(daemon.ask(&line, "").await.json(), json!({ "removed": true }));
    assert_eq!(daemon.ask(&line, "").await.json(), json!({ "removed": false }));
    let turn = daemon.turn(&session, &queued).await.json();
    assert_eq!(
        (&turn["state"], &turn["inputWritten"], turn.get("startedAt")),
        (&json!("cancelled"), &json!("no"), None)
    );
    daemon.hosts.release(1);
    let mut stream = daemon.events(&session).await;
    stream.until(&["turn_complete"]).await;
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
}

#[tokio::test]
async fn an_agents_error_ends_the_prompt_with_its_code() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "fail").await;
    assert!(daemon.ledger(&session).contains(r#""terminal":"error","code":"-32603""#), "{}", daemon.ledger(&session));
    let turn = daemon.turn(&session, &prompt).await.json();
    assert_eq!(turn["error"]["code"], "-32603");
}

#[tokio::test]
async fn a_lost_channel_ends_all_prompts_and_the_session() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    daemon.prompt(&session, "hold").await;
    daemon.prompt(&session, "never").await;
    daemon.hosts.release(0);
    daemon.post(&format!("/session/{session}/cancel"), json!({})).await;
    stream.until(&["turn_complete"]).await;
    let dying = daemon.prompt(&session, "die").await["promptId"].as_str().unwrap().to_owned();
    let error = stream.until(&["turn_error"]).await;
    assert_eq!((&error["data"]["promptId"], &error["data"]["code"]), (&json!(dying), &json!("channel_closed")));
    stream.until(&["session_died"]).await;
    assert_eq!(stream.next().await, None);
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.verdict(), "404 session_not_found");
}

#[tokio::test]
async fn a_store_without_room_refuses_prompts_before_anything_is_sent() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let probe = daemon.chats().join("../../../.turnd-room");
    std::fs::create_dir_all(&probe).unwrap();
    let body = json!({ "prompt": [{ "type": "text", "text": "x" }] });
    let answer = daemon.post(&format!("/session/{session}/prompt"), body).await;
    assert_eq!((answer.verdict().as_str(), &answer.json()["inputWritten"]), ("507 ledger_unwritable", &json!("no")));
    std::fs::remove_dir(&probe).unwrap();
    daemon.run(&session, "x").await;
}

#[tokio::test]
async fn facts_that_cannot_be_recorded_turn_health_red_until_they_are() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.prompt(&session, "hang").await["promptId"].as_str().unwrap().to_owned();
    // The store has room, but a folder lies where the ledger was.
    let ledger = daemon.chats().join(format!("{session}.ledger.jsonl"));
    std::fs::remove_file(&ledger).unwrap();
    std::fs::create_dir(&ledger).unwrap();
    assert_eq!(daemon.post(&format!("/session/{session}/cancel"), json!({})).await.status, 204);
    until("it ended", async || daemon.turn(&session, &prompt).await.json()["state"] == "cancelled").await;
    let health = daemon.get("/health").await;
    assert_eq!((health.status, &health.json()["reason"]), (503, &json!("ledger_unwritable")));
    let body = json!({ "prompt": [{ "type": "text", "text": "x" }] });
    assert_eq!(daemon.post(&format!("/session/{session}/prompt"), body).await.verdict(), "507 ledger_unwritable");
    std::fs::remove_dir(&ledger).unwrap();
    daemon.run(&session, "next").await;
    assert_eq!(daemon.get("/health").await.status, 200);
    let lines = daemon.ledger(&session);
    let count = |word: &str| lines.matches(word).count();
    assert_eq!((count("cancel_requested"), count("in_flight"), count("terminal")), (1, 1, 2), "{lines}");
}
