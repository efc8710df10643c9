//! A store that takes no more bytes: what was admitted is still answered for, nothing new is sent, and when there is room again all is
//! as before (design, section 4).

use serde_json::{Value, json};

use crate::client::Answer;
use crate::daemon::Daemon;

async fn send(daemon: &Daemon, session: &str, id: Option<&str>, text: &str) -> Answer {
    let mut body = json!({ "prompt": [{ "type": "text", "text": text }] });
    if let Some(id) = id {
        body["promptId"] = id.into();
    }
    daemon.post(&format!("/session/{session}/prompt"), body).await
}

/// Asserts that prompts which nobody admitted are refused, under an id or without, and that no agent hears of one.
async fn check_refused(daemon: &Daemon, session: &str, id: &str) {
    let heard = daemon.hosts.heard("session/prompt").len();
    for id in [Some(id), None] {
        let answer = send(daemon, session, id, "new").await;
        assert_eq!(
            (answer.verdict().as_str(), &answer.json()["inputWritten"]),
            ("507 ledger_unwritable", &json!("no"))
        );
        assert_eq!(answer.header("retry-after"), Some("5"));
    }
    assert_eq!(daemon.turn(session, id).await.verdict(), "404 prompt_not_found");
    assert_eq!(daemon.hosts.heard("session/prompt").len(), heard, "nothing was sent");
    assert!(!daemon.ledger(session).contains(id));
}

/// Asserts that the prompt is known by its id, whatever the disk says, and is not run again.
async fn check_replayed(daemon: &Daemon, session: &str, id: &str, text: &str) {
    let heard = daemon.hosts.heard("session/prompt").len();
    let again = send(daemon, session, Some(id), text).await;
    assert_eq!((again.status, &again.json()["replayed"]), (202, &json!(true)), "{}", again.verdict());
    assert_eq!(send(daemon, session, Some(id), "other words").await.verdict(), "409 prompt_id_conflict");
    assert_eq!(daemon.hosts.heard("session/prompt").len(), heard, "it is not run again");
}

/// Admits what was refused, and gives the words of the ledger's lines.
async fn recovered(daemon: &Daemon, session: &str, id: &str) -> Vec<String> {
    let answer = send(daemon, session, Some(id), "new").await;
    assert_eq!((answer.status, answer.json().get("replayed")), (202, None), "{}", answer.verdict());
    let turn = daemon.get(&format!("/session/{session}/turns/{id}?wait_ms=60000")).await.json();
    assert_eq!(turn["resultText"], "echo: new");
    assert_eq!(daemon.get("/health").await.status, 200);
    let word = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let word = line["state"].as_str().or(line["terminal"].as_str()).unwrap();
        format!("{} {word}", line["promptId"].as_str().unwrap())
    };
    daemon.ledger(session).lines().map(word).collect()
}

const WHOLE: [&str; 4] = ["job-1 in_flight", "job-1 completed", "job-2 in_flight", "job-2 completed"];

#[tokio::test]
async fn a_ledger_that_takes_no_line_admits_nothing_and_what_it_has_is_answered_for() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let ledger = daemon.chats().join(format!("{session}.ledger.jsonl"));
    std::fs::create_dir_all(&ledger).unwrap();
    check_refused_without_a_ledger(&daemon, &session).await;
    std::fs::remove_dir(&ledger).unwrap();
    assert_eq!(send(&daemon, &session, Some("job-1"), "first").await.status, 202);
    let turn = daemon.get(&format!("/session/{session}/turns/job-1?wait_ms=60000")).await.json();
    assert_eq!(turn["state"], "completed");
    let aside = ledger.with_extension("aside");
    std::fs::rename(&ledger, &aside).unwrap();
    std::fs::create_dir(&ledger).unwrap();
    check_refused(&daemon, &session, "job-2").await;
    check_replayed(&daemon, &session, "job-1", "first").await;
    std::fs::remove_dir(&ledger).unwrap();
    std::fs::rename(&aside, &ledger).unwrap();
    assert_eq!(recovered(&daemon, &session, "job-2").await, WHOLE);
    check_replayed(&daemon, &session, "job-2", "new").await;
}

/// A folder lies where the ledger belongs, from the beginning.
async fn check_refused_without_a_ledger(daemon: &Daemon, session: &str) {
    let answer = send(daemon, session, None, "new").await;
    assert_eq!((answer.verdict().as_str(), &answer.json()["inputWritten"]), ("507 ledger_unwritable", &json!("no")));
    assert!(daemon.hosts.heard("session/prompt").is_empty(), "nothing was sent");
}

#[tokio::test]
async fn what_an_earlier_life_admitted_is_answered_for_on_a_full_disk_too() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    assert_eq!(send(&daemon, &session, Some("job-1"), "first").await.status, 202);
    daemon.get(&format!("/session/{session}/turns/job-1?wait_ms=60000")).await;
    let daemon = daemon.restart().await;
    assert_eq!(daemon.post(&format!("/session/{session}/load"), json!({})).await.status, 200);
    let probe = daemon.chats().join("../../../.turnd-room");
    std::fs::remove_file(&probe).unwrap();
    std::fs::create_dir(&probe).unwrap();
    check_replayed(&daemon, &session, "job-1", "first").await;
    check_refused(&daemon, &session, "job-2").await;
    std::fs::remove_dir(&probe).unwrap();
    assert_eq!(recovered(&daemon, &session, "job-2").await, WHOLE);
}

/// The request store takes rows still: only the ledger keeps requests out.
#[tokio::test]
async fn where_no_prompt_can_be_recorded_the_stream_and_the_deep_health_say_why_until_there_is_room() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    assert_eq!(send(&daemon, &session, Some("first"), "first").await.status, 202);
    daemon.get(&format!("/session/{session}/turns/first?wait_ms=60000")).await;
    let daemon = daemon.restart().await;
    assert_eq!(daemon.post(&format!("/session/{session}/load"), json!({})).await.status, 200);
    let said = async || {
        let (stream, health) = (daemon.get("/return-requests/stream").await, daemon.get("/health?deep=1").await);
        let requests = health.json()["returnRequests"].clone();
        (stream.json()["degraded"].clone(), requests["status"].clone(), requests["code"].clone())
    };
    let submit = async |id: &str| {
        let body = json!({ "requestId": id, "prompt": [{ "type": "text", "text": "new" }] });
        daemon.post(&format!("/session/{session}/return-requests"), body).await
    };
    let well = (Value::Null, json!("ok"), Value::Null);
    assert_eq!(said().await, well);
    let probe = daemon.chats().join("../../../.turnd-room");
    std::fs::remove_file(&probe).unwrap();
    std::fs::create_dir(&probe).unwrap();
    let answer = submit("job-1").await;
    assert_eq!((answer.verdict().as_str(), &answer.json()["input_written"]), ("507 ledger_unwritable", &json!("no")));
    assert_eq!(said().await, (json!("ledger_unwritable"), json!("unavailable"), json!("ledger_unwritable")));
    std::fs::remove_dir(&probe).unwrap();
    assert_eq!(said().await, well, "nobody has to be refused, or taken, for that");
    assert_eq!(submit("job-1").await.status, 202);
}

#[tokio::test]
async fn an_id_that_cannot_be_written_down_is_not_run_and_stays_free() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    assert_eq!(send(&daemon, &session, Some("job-1"), "first").await.status, 202);
    daemon.get(&format!("/session/{session}/turns/job-1?wait_ms=60000")).await;
    // The disk has room for its own line and none for that of the id.
    let ids = daemon.chats().join(format!("{session}.prompt-ids"));
    let kept = std::fs::read(&ids).unwrap();
    std::fs::remove_file(&ids).unwrap();
    std::fs::create_dir(&ids).unwrap();
    let answer = send(&daemon, &session, Some("job-2"), "new").await;
    assert_eq!((answer.verdict().as_str(), &answer.json()["inputWritten"]), ("507 ledger_unwritable", &json!("no")));
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1, "nothing was sent");
    check_replayed(&daemon, &session, "job-1", "first").await;
    std::fs::remove_dir(&ids).unwrap();
    std::fs::write(&ids, kept).unwrap();
    assert_eq!(recovered(&daemon, &session, "job-2").await, WHOLE);
}
