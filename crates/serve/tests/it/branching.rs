//! Branching, where the copy's agent does not do what it should (docs/design/2026-11-30-branch.md).

use serde_json::json;
use serve::Mode;

use crate::client::until;
use crate::daemon::Daemon;

/// The files of all sessions that end so.
fn files(daemon: &Daemon, end: &str) -> usize {
    let names = std::fs::read_dir(daemon.chats()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(end)).count()
}

#[tokio::test]
async fn a_copy_that_cannot_be_loaded_is_taken_back() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "one").await;
    let before = files(&daemon, ".jsonl");
    daemon.hosts.behave(|behaviour| behaviour.refuse = Some(json!({"code": -32603, "message": "no"})));
    let refused = daemon.post(&format!("/session/{session}/branch"), json!({})).await;
    assert_eq!((refused.status, &refused.json()["code"]), (502, &json!("agent_refused")));
    assert_eq!((files(&daemon, ".jsonl"), files(&daemon, ".branching")), (before, 0));
    daemon.run(&session, "two").await;
}

#[tokio::test]
async fn a_branch_for_which_there_is_no_place_writes_nothing() {
    let daemon = Daemon::with(|options| options.limits.max_sessions = 1).await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "one").await;
    let refused = daemon.post(&format!("/session/{session}/branch"), json!({})).await;
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("session_limit_exceeded")));
    let made = daemon.post(&format!("/session/{session}/branch"), json!({"atRecordId": prompt})).await;
    assert_eq!(made.status, 201, "a copy on disk takes no place");
}

#[tokio::test]
async fn a_prompt_that_comes_while_a_native_agent_writes_its_last_words_waits_for_the_copy() {
    let flushed = ("qwen/control/session/turn_status", json!({"result": {}}));
    let daemon = Daemon::with(|options| options.mode = Mode::Native).await;
    daemon.hosts.behave(|behaviour| (behaviour.answers, behaviour.slow_answers) = (vec![flushed], true));
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "one").await;
    let path = format!("/session/{session}/branch");
    let branching = daemon.post(&path, json!({"atRecordId": prompt, "name": "n"}));
    let meanwhile = async {
        until("the agent was asked", async || !daemon.hosts.heard("qwen/control/session/turn_status").is_empty()).await;
        let waiting = daemon.prompt(&session, "two").await["promptId"].as_str().unwrap().to_owned();
        assert_eq!(daemon.turn(&session, &waiting).await.json()["state"], "queued");
        daemon.hosts.open_gate(1);
        waiting
    };
    let (made, waiting) = tokio::join!(branching, meanwhile);
    assert_eq!((made.status, &made.json()["displayName"]), (201, &json!("n(1)")), "{}", made.verdict());
    until("it ran", async || daemon.turn(&session, &waiting).await.json()["resultText"] == "echo: two").await;
    let copy = made.json()["sessionId"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(daemon.chats().join(format!("{copy}.jsonl"))).unwrap();
    assert!(text.contains("echo: one") && !text.contains("two"));
}
