//! How long a prompt's caller waits (wire rules, section 8.7; turn status seed).

use serde_json::{Value, json};

use crate::client::Stream;
use crate::daemon::Daemon;

async fn admit(daemon: &Daemon, session: &str, text: &str, limits: Value) -> String {
    let mut body = json!({ "prompt": [{ "type": "text", "text": text }] });
    body.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
    let answer = daemon.post(&format!("/session/{session}/prompt"), body).await;
    assert_eq!(answer.status, 202, "{}", answer.verdict());
    answer.json()["promptId"].as_str().unwrap().to_owned()
}

/// The next error: its prompt, clock, and what the prompt did, once it is sure that a deadline made it.
async fn expired(stream: &mut Stream) -> (String, String, String) {
    let event = stream.until(&["turn_error"]).await;
    let word = |key: &str| event["data"][key].as_str().unwrap_or_default().to_owned();
    assert_eq!(word("code"), "prompt_deadline_exceeded", "{event}");
    assert_eq!(event["promptId"], event["data"]["promptId"]);
    (word("promptId"), word("deadline"), word("expiredWhile"))
}

fn three(prompt: &str, deadline: &str, state: &str) -> (String, String, String) {
    (prompt.to_owned(), deadline.to_owned(), state.to_owned())
}

#[tokio::test]
async fn unlike_the_peers_a_deadline_counts_without_one_of_the_daemons_own() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    for (limits, clock) in [(json!({ "deadlineMs": 1 }), "absolute"), (json!({ "runDeadlineMs": 1 }), "run")] {
        let prompt = admit(&daemon, &session, "hang", limits).await;
        assert_eq!(expired(&mut stream).await, three(&prompt, clock, "running"));
    }
    let tags = daemon.get("/capabilities").await.json()["features"].clone();
    for tag in ["prompt_absolute_deadline", "prompt_run_deadline"] {
        assert!(tags.as_array().unwrap().contains(&json!(tag)), "{tags}");
    }
}

#[tokio::test]
async fn the_shorter_of_the_callers_deadline_and_the_daemons_wins() {
    for (own, run) in [(true, false), (false, true)] {
        let daemon = Daemon::with(|options| {
            options.prompt_deadline_ms = Some(if own { 1 } else { 600_000 });
            options.prompt_run_deadline_ms = Some(if run { 1 } else { 600_000 });
        })
        .await;
        let session = daemon.create().await;
        let mut stream = daemon.events(&session).await;
        let clock = if own { "absolute" } else { "run" };
        let long = json!({ "deadlineMs": 500_000, "runDeadlineMs": 500_000 });
        for limits in [json!({}), long] {
            let prompt = admit(&daemon, &session, "hang", limits).await;
            assert_eq!(expired(&mut stream).await, three(&prompt, clock, "running"));
        }
    }
    let daemon = Daemon::with(|options| options.prompt_deadline_ms = Some(600_000)).await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    let prompt = admit(&daemon, &session, "hang", json!({ "deadlineMs": 1 })).await;
    assert_eq!(expired(&mut stream).await, three(&prompt, "absolute", "running"));
}

#[tokio::test]
async fn what_only_waits_is_ended_by_the_absolute_clock_alone_and_may_be_sent_again() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    let running = admit(&daemon, &session, "hold", json!({})).await;
    let patient = admit(&daemon, &session, "b", json!({ "runDeadlineMs": 600_000 })).await;
    let hurried = admit(&daemon, &session, "c", json!({ "deadlineMs": 1 })).await;
    assert_eq!(expired(&mut stream).await, three(&hurried, "absolute", "queued"));
    let turn = daemon.turn(&session, &hurried).await.json();
    let error = &turn["error"];
    assert_eq!(
        (&error["code"], &error["deadline"], &error["expiredWhile"], &turn["inputWritten"]),
        (&json!("prompt_deadline_exceeded"), &json!("absolute"), &json!("queued"), &json!("no"))
    );
    assert!(error["message"].as_str().unwrap().starts_with("prompt exceeded the 1ms deadline"), "{error}");
    daemon.hosts.release(1);
    for expected in [&running, &patient] {
        assert_eq!(stream.until(&["turn_complete"]).await["data"]["promptId"], json!(expected));
    }
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 2, "the expired one never reached the agent");
}

#[tokio::test]
async fn what_settles_behind_its_deadline_shows_in_the_poll_and_nowhere_else() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    let prompt = admit(&daemon, &session, "deaf", json!({ "runDeadlineMs": 1 })).await;
    expired(&mut stream).await;
    let turn = daemon.turn(&session, &prompt).await.json();
    assert_eq!((&turn["state"], &turn["error"]["deadline"]), (&json!("error"), &json!("run")));
    let next = admit(&daemon, &session, "b", json!({})).await;
    assert_eq!(daemon.turn(&session, &next).await.json()["state"], "queued", "the agent holds one prompt at a time");
    daemon.hosts.release(1);
    assert_eq!(stream.until(&["turn_complete", "turn_error"]).await["data"]["promptId"], json!(next));
    let turn = daemon.turn(&session, &prompt).await.json();
    assert_eq!(
        (&turn["state"], &turn["resultText"], turn.get("error")),
        (&json!("completed"), &json!("echo: deaf"), None)
    );
    let ledger = daemon.ledger(&session);
    let terminals: Vec<_> = ledger.lines().filter(|line| line.contains(&prompt) && line.contains("terminal")).collect();
    assert!(terminals.len() == 1 && terminals[0].contains("prompt_deadline_exceeded"), "{ledger}");
}

#[tokio::test]
async fn the_same_id_with_other_limits_is_the_same_prompt() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let path = format!("/session/{session}/prompt");
    let body = |limits: Value| {
        let mut body = json!({ "prompt": [{ "type": "text", "text": "hold" }], "promptId": "mine-1" });
        body.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
        body
    };
    assert_eq!(daemon.post(&path, body(json!({}))).await.status, 202);
    let again = daemon.post(&path, body(json!({ "deadlineMs": 1, "runDeadlineMs": 1, "retry": true }))).await;
    assert_eq!((again.status, &again.json()["replayed"]), (202, &json!(true)));
    daemon.hosts.release(1);
    let mut stream = daemon.events(&session).await;
    let end = stream.until(&["turn_complete", "turn_error"]).await;
    assert_eq!(end["data"]["stopReason"], "end_turn", "the limits of the first copy stay: {end}");
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
}
