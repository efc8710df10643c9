//! The poll (turn status seed; wire rules, section 9).

use serde_json::json;

use crate::daemon::Daemon;

#[tokio::test]
async fn a_turn_is_queued_running_and_over() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let current = format!("/session/{session}/turns/current");
    assert_eq!(daemon.get(&current).await.json(), json!({ "sessionId": session, "state": "idle" }));
    let first = daemon.prompt(&session, "hold").await["promptId"].as_str().unwrap().to_owned();
    let second = daemon.prompt(&session, "b").await["promptId"].as_str().unwrap().to_owned();
    assert_eq!(daemon.get(&current).await.json()["promptId"], first);
    let queued = daemon.turn(&session, &second).await.json();
    assert_eq!(
        (&queued["state"], &queued["promptText"], queued.get("startedAt")),
        (&json!("queued"), &json!("b"), None)
    );
    let running = daemon.turn(&session, &first).await.json();
    assert_eq!((&running["state"], running["startedAt"].is_u64()), (&json!("running"), true));
    let mut stream = daemon.events(&session).await;
    daemon.hosts.release(1);
    stream.until(&["turn_complete"]).await;
    stream.until(&["turn_complete"]).await;
    let over = daemon.get(&current).await.json();
    assert_eq!(
        (&over["promptId"], &over["state"], &over["stopReason"]),
        (&json!(second), &json!("completed"), &json!("end_turn"))
    );
    assert_eq!(
        (&over["resultText"], over["queuedAt"].is_u64(), over["endedAt"].is_u64()),
        (&json!("echo: b"), true, true)
    );
}

#[tokio::test]
async fn an_unknown_prompt_is_not_found() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let answer = daemon.turn(&session, "nope").await;
    assert_eq!(answer.verdict(), "404 prompt_not_found");
    assert_eq!((&answer.json()["sessionId"], &answer.json()["promptId"]), (&json!(session), &json!("nope")));
}

#[tokio::test]
async fn a_settled_turn_is_answered_without_the_disk() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "hello").await;
    let first = daemon.turn(&session, &prompt).await.json();
    std::fs::remove_file(daemon.chats().join(format!("{session}.jsonl"))).unwrap();
    std::fs::remove_file(daemon.chats().join(format!("{session}.ledger.jsonl"))).unwrap();
    assert_eq!(daemon.turn(&session, &prompt).await.json(), first);
    assert_eq!(daemon.get(&format!("/session/{session}/turns/current")).await.json(), first);
}

#[tokio::test]
async fn a_prompt_that_only_the_ledger_knows_is_answered_from_there() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    let line = r#"{"v":1,"promptId":"gone","terminal":"interrupted","code":"daemon_lost","at":1795977220000}"#;
    let ledger = daemon.ledger(&session);
    daemon.write(&format!("{session}.ledger.jsonl"), &format!("{ledger}{line}\n"));
    let turn = daemon.turn(&session, "gone").await.json();
    assert_eq!((&turn["state"], &turn["error"]["code"]), (&json!("error"), &json!("daemon_lost")));
    assert_eq!(
        (&turn["source"], &turn["endedAt"], turn.get("resultText")),
        (&json!("ledger"), &json!(1_795_977_220_000_u64), None)
    );
}

#[tokio::test]
async fn a_closed_session_answers_no_poll() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "hello").await;
    daemon.ask(&format!("DELETE /session/{session}"), "").await;
    assert_eq!(daemon.turn(&session, &prompt).await.verdict(), "404 session_not_found");
}

/// A line of a transcript: a result of some prompt's turn, and how many bytes stand beside it.
fn result(session: &str, uuid: &str, parent: &str, prompt: &str, padding: usize) -> String {
    let record = json!({
        "uuid": uuid, "parentUuid": parent, "sessionId": session, "type": "system", "subtype": "turn_result",
        "systemPayload": { "promptId": prompt, "state": "completed", "stopReason": "end_turn", "endedAt": 1 },
        "padding": "x".repeat(padding),
    });
    format!("{record}\n")
}

#[tokio::test]
async fn what_could_not_be_searched_is_not_called_not_found() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let transcript = format!("{session}.jsonl");
    let large = result(&session, "b", "a", "large", 5 * 1024 * 1024);
    daemon.write(&transcript, &(result(&session, "a", "", "known", 0) + &large));
    let found = daemon.turn(&session, "known").await.json();
    assert_eq!(found["state"], "completed", "what stands behind a large record is found");
    let refused = daemon.turn(&session, "nope").await;
    assert_eq!(refused.verdict(), "413 transcript_page_too_large");
    let refused = refused.json();
    assert_eq!((&refused["sessionId"], &refused["maxBytes"]), (&json!(session), &json!(4 * 1024 * 1024)));
    assert!(refused["pageSize"].as_u64() > Some(5 * 1024 * 1024), "{refused}");

    daemon.write(&transcript, &(result(&session, "a", "", "p", 0) + &result("another", "b", "a", "q", 0)));
    for prompt in ["p", "q", "nope"] {
        let refused = daemon.turn(&session, prompt).await;
        assert_eq!(refused.verdict(), "409 transcript_snapshot_unavailable", "{prompt}");
        assert_eq!(refused.json()["sessionId"], session);
    }
    // What was answered before is still known.
    assert_eq!(daemon.turn(&session, "known").await.json(), found);
}

#[tokio::test]
async fn the_ledger_answers_where_the_transcript_is_too_large_to() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.write(&format!("{session}.jsonl"), &result(&session, "a", "", "large", 5 * 1024 * 1024));
    let line = r#"{"v":1,"promptId":"gone","terminal":"interrupted","code":"daemon_lost","at":1795977220000}"#;
    daemon.write(&format!("{session}.ledger.jsonl"), &format!("{line}\n"));
    let turn = daemon.turn(&session, "gone").await.json();
    assert_eq!((&turn["state"], &turn["source"]), (&json!("error"), &json!("ledger")));
    assert_eq!(daemon.turn(&session, "nope").await.verdict(), "413 transcript_page_too_large");
}
