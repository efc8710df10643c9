//! Exactly one terminal for each admitted prompt, the same in stream, ledger and poll (wire rules, section 8.4; design, section 3).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::{Piece, Stream, until};
use crate::daemon::Daemon;

/// What became of each prompt, in one word: the stop reason, or the code of the error.
type Outcomes = BTreeMap<String, String>;

/// Reads the stream to its end.
async fn published(mut stream: Stream) -> Outcomes {
    let mut outcomes = Outcomes::new();
    while let Some(piece) = stream.next().await {
        let Piece::Frame { kind, envelope, .. } = piece else { continue };
        if !["turn_complete", "turn_error"].contains(&kind.as_str()) {
            continue;
        }
        assert_eq!(envelope["promptId"], envelope["data"]["promptId"], "in data and envelope: {envelope}");
        let word = if kind == "turn_complete" { &envelope["data"]["stopReason"] } else { &envelope["data"]["code"] };
        let (prompt, word) = (envelope["promptId"].as_str().unwrap(), word.as_str().unwrap());
        assert_eq!(outcomes.insert(prompt.to_owned(), word.to_owned()), None, "a second terminal of {prompt}");
    }
    outcomes
}

fn recorded(daemon: &Daemon, session: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for line in daemon.ledger(session).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let word = match line["terminal"].as_str() {
            None => continue,
            Some("error") => &line["code"],
            Some("cancelled") => &line["terminal"],
            Some(_) => &line["stopReason"],
        };
        let (prompt, word) = (line["promptId"].as_str().unwrap(), word.as_str().unwrap());
        assert_eq!(outcomes.insert(prompt.to_owned(), word.to_owned()), None, "a second line of {prompt}");
    }
    outcomes
}

async fn polled(daemon: &Daemon, session: &str, prompt: &str) -> String {
    let turn = daemon.turn(session, prompt).await.json();
    let word = if turn["state"] == "error" { &turn["error"]["code"] } else { &turn["stopReason"] };
    word.as_str().unwrap_or_else(|| panic!("{turn}")).to_owned()
}

/// A session with these prompts, the first of which runs.
async fn admitted(daemon: &Daemon, texts: &[&str]) -> (String, Vec<String>, Stream) {
    let session = daemon.create().await;
    let stream = daemon.events(&session).await;
    let mut prompts = Vec::new();
    for text in texts {
        prompts.push(daemon.prompt(&session, text).await["promptId"].as_str().unwrap().to_owned());
    }
    (session, prompts, stream)
}

fn expected(prompts: &[String], words: &[&str]) -> Outcomes {
    assert_eq!(prompts.len(), words.len());
    prompts.iter().cloned().zip(words.iter().map(|word| (*word).to_owned())).collect()
}

#[tokio::test]
async fn a_stop_reason_is_the_agents_own_word_whichever_it_is() {
    let daemon = Daemon::start().await;
    let words = ["end_turn", "max_turn_requests", "out_of_tea"];
    let (session, prompts, mut stream) =
        admitted(&daemon, &["stop end_turn", "stop max_turn_requests", "stop out_of_tea"]).await;
    for (prompt, word) in prompts.iter().zip(words) {
        let event = stream.until(&["turn_complete"]).await;
        assert_eq!((&event["promptId"], &event["data"]["stopReason"]), (&json!(prompt), &json!(word)));
        assert_eq!(polled(&daemon, &session, prompt).await, word);
    }
    assert_eq!(recorded(&daemon, &session), expected(&prompts, &words));
}

#[tokio::test]
async fn an_agent_that_dies_ends_what_runs_and_what_waits_with_one_code() {
    let daemon = Daemon::start().await;
    let (session, prompts, stream) = admitted(&daemon, &["hold", "die", "x", "y"]).await;
    daemon.hosts.release(1);
    let words = expected(&prompts, &["end_turn", "channel_closed", "channel_closed", "channel_closed"]);
    assert_eq!(published(stream).await, words);
    assert_eq!(recorded(&daemon, &session), words);
}

#[tokio::test]
async fn a_close_ends_what_waits_as_closed_and_dispatches_nothing() {
    let daemon = Daemon::start().await;
    let (session, prompts, stream) = admitted(&daemon, &["hang", "x", "y"]).await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    let words = expected(&prompts, &["cancelled", "session_closed", "session_closed"]);
    assert_eq!(published(stream).await, words);
    assert_eq!(recorded(&daemon, &session), words);
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
}

#[tokio::test]
async fn a_stop_of_the_daemon_ends_what_runs_and_what_waits_as_such() {
    let mut daemon = Daemon::start().await;
    let (session, prompts, stream) = admitted(&daemon, &["hang", "x"]).await;
    let words = expected(&prompts, &["daemon_shutdown", "daemon_shutdown"]);
    let (outcomes, ()) = tokio::join!(published(stream), daemon.stop());
    assert_eq!(outcomes, words);
    assert_eq!(recorded(&daemon, &session), words);
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
}

#[tokio::test]
async fn removal_deadline_error_and_cancel_have_each_their_own_word_everywhere() {
    let daemon = Daemon::start().await;
    let (session, mut prompts, stream) = admitted(&daemon, &["hold", "x", "fail"]).await;
    let body = json!({ "prompt": [{ "type": "text", "text": "late" }], "deadlineMs": 1 });
    let late = daemon.post(&format!("/session/{session}/prompt"), body).await.json()["promptId"].clone();
    prompts.push(late.as_str().unwrap().to_owned());
    daemon.ask(&format!("DELETE /session/{session}/pending-prompts/{}", prompts[1]), "").await;
    let mut watch = daemon.events(&session).await;
    while watch.until(&["turn_error"]).await["promptId"] != late {}
    daemon.post(&format!("/session/{session}/cancel"), json!({})).await;
    while watch.until(&["turn_error"]).await["promptId"] != json!(prompts[2]) {}
    let words = expected(&prompts, &["cancelled", "cancelled", "-32603", "prompt_deadline_exceeded"]);
    for (prompt, word) in &words {
        assert_eq!(polled(&daemon, &session, prompt).await, *word);
    }
    daemon.ask(&format!("DELETE /session/{session}"), "").await;
    assert_eq!(published(stream).await, words);
    assert_eq!(recorded(&daemon, &session), words);
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 2, "what was removed or expired was never handed on");
}

#[tokio::test]
async fn a_close_whose_turn_does_not_settle_ends_it_as_closed_too_and_is_polled_so_until_the_session_is_gone() {
    let daemon = Daemon::with(|options| options.close_settle_ms = 1).await;
    daemon.hosts.behave(|behaviour| behaviour.slow_close = true);
    let (session, prompts, stream) = admitted(&daemon, &["deaf", "x", "y"]).await;
    let words = expected(&prompts, &["session_closed", "session_closed", "session_closed"]);
    let path = format!("DELETE /session/{session}");
    let meanwhile = async {
        let mut watch = daemon.events(&session).await;
        while watch.until(&["turn_error"]).await["promptId"] != json!(prompts[0]) {}
        // The host has yet to end; what is over stays as it is.
        for (prompt, word) in &words {
            assert_eq!(polled(&daemon, &session, prompt).await, *word);
        }
        assert_eq!(recorded(&daemon, &session), words);
        // An answer behind the terminal is no second one.
        daemon.hosts.release(1);
        until("the host has said its last", async || {
            std::fs::read_to_string(daemon.chats().join(format!("{session}.jsonl"))).unwrap().contains("turn_result")
        })
        .await;
        daemon.hosts.open_gate(1);
    };
    let (closed, ()) = tokio::join!(daemon.ask(&path, ""), meanwhile);
    assert_eq!(closed.status, 204);
    assert_eq!(published(stream).await, words);
    assert_eq!(recorded(&daemon, &session), words);
    assert_eq!(daemon.turn(&session, &prompts[0]).await.verdict(), "404 session_not_found");
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1, "nothing that waited was handed on");
}
