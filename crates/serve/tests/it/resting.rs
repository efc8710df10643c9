//! Sessions that nobody uses are closed, and no other ones.

use serde_json::{Value, json};
use serve::Idleness;

use crate::client::{Connection, until};
use crate::daemon::Daemon;

/// A daemon that looks for sessions at rest all the time, and has no patience with them.
async fn impatient() -> Daemon {
    closing_after(1).await
}

/// The same, with so much patience, in milliseconds, that a prompt nearly always comes in time to a session that was just made.
async fn patient() -> Daemon {
    closing_after(200).await
}

async fn closing_after(idle_timeout_ms: u64) -> Daemon {
    let idleness = Idleness { reap_interval_ms: 1, idle_timeout_ms, settled_close_grace_ms: 0 };
    Daemon::with(|options| options.idleness = idleness).await
}

async fn is_live(daemon: &Daemon, session: &str) -> bool {
    daemon.get(&format!("/session/{session}/status")).await.status == 200
}

async fn until_gone(daemon: &Daemon, session: &str) {
    until("the session is gone", async || !is_live(daemon, session).await).await;
}

/// Everything that rests now has been looked at.
async fn until_looked(daemon: &Daemon) {
    let other = daemon.create().await;
    until_gone(daemon, &other).await;
}

fn prompt(text: &str) -> String {
    json!({ "prompt": [{ "type": "text", "text": text }] }).to_string()
}

/// A session with this prompt in it. One that was closed before its prompt came is no session to go on with.
async fn prompted(daemon: &Daemon, text: &str) -> (String, String) {
    loop {
        let session = daemon.create().await;
        let answer = daemon.ask(&format!("POST /session/{session}/prompt"), &prompt(text)).await;
        if answer.status == 202 {
            return (session, answer.json()["promptId"].as_str().unwrap().to_owned());
        }
        assert!(["404 session_not_found", "409 session_archiving"].contains(&answer.verdict().as_str()));
    }
}

#[tokio::test]
async fn a_session_that_rests_too_long_is_closed_whoever_is_registered() {
    let daemon = impatient().await;
    let session = daemon.create().await;
    until_gone(&daemon, &session).await;
    until("its host hears it", async || daemon.hosts.heard("turnd/close").len() == 1).await;
    assert_eq!(daemon.hosts.heard("turnd/close")[0]["params"]["reason"], "session_closed");
}

/// The prompt keeps the session until its reader is there: one that comes as its session closes would read the end of it.
#[tokio::test]
async fn a_reader_keeps_a_session_and_the_last_one_to_go_does_not() {
    let daemon = patient().await;
    let (session, prompt) = prompted(&daemon, "hold").await;
    let mut stream = Connection::open(daemon.address).await;
    stream.ask(&format!("GET /session/{session}/events"), &[], b"").await;
    assert!(stream.head().await.unwrap().starts_with("HTTP/1.1 200"));
    daemon.hosts.release(1);
    until("its prompt is over", async || daemon.turn(&session, &prompt).await.json()["state"] == "completed").await;
    until_looked(&daemon).await;
    assert!(is_live(&daemon, &session).await);
    drop(stream);
    until_gone(&daemon, &session).await;
}

#[tokio::test]
async fn a_prompt_keeps_its_session_and_whoever_waits_for_it_hears_its_end() {
    let daemon = patient().await;
    let (session, running) = prompted(&daemon, "hold").await;
    let queued = daemon.prompt(&session, "behind it").await["promptId"].as_str().unwrap().to_owned();
    let mut waiting = Connection::open(daemon.address).await;
    waiting.ask(&format!("GET /session/{session}/turns/{queued}?wait_ms=60000"), &[], b"").await;
    until_looked(&daemon).await;
    assert_eq!(daemon.turn(&session, &running).await.json()["state"], "running");
    daemon.hosts.release(1);
    let turn = waiting.answer().await.json();
    assert_eq!((&turn["state"], &turn["resultText"]), (&json!("completed"), &json!("echo: behind it")));
    until_gone(&daemon, &session).await;
    assert_eq!(daemon.ledger(&session).matches(r#""terminal":"completed""#).count(), 2);
}

#[tokio::test]
async fn a_question_keeps_its_session() {
    let daemon = patient().await;
    let (session, _) = prompted(&daemon, "ask").await;
    until_looked(&daemon).await;
    let status = daemon.get(&format!("/session/{session}/status")).await.json();
    assert_eq!(status["isWaitingForPermission"], true);
}

/// The look and the close are one step, so no admission is taken by a session that closes. Each prompt is posted so many round trips behind
/// the last one's end that it comes about when its session is closed, however fast the machine is: a few fewer after one that was too late.
#[tokio::test]
async fn a_prompt_that_comes_as_its_session_is_closed_runs_or_is_refused() {
    let daemon = closing_after(10).await;
    let (mut admitted, mut refused, mut round_trips) = (Vec::new(), 0_usize, 0_usize);
    let mut session = daemon.create().await;
    while admitted.len() < 60 || refused < 20 {
        for _ in 0..round_trips {
            is_live(&daemon, &session).await;
        }
        let text = format!("hold {}", admitted.len() + refused);
        let answer = daemon.ask(&format!("POST /session/{session}/prompt"), &prompt(&text)).await;
        match answer.verdict().as_str() {
            "202" => {
                admitted.push((session.clone(), answer.json()["promptId"].clone(), text));
                round_trips += 1;
                // A close that came behind it would have cancelled it by now.
                daemon.hosts.release(1);
                until("the prompt is over", async || {
                    let status = daemon.get(&format!("/session/{session}/status")).await;
                    status.status == 404 || status.json()["hasActivePrompt"] == false
                })
                .await;
            }
            "404 session_not_found" | "409 session_archiving" => {
                refused += 1;
                round_trips = round_trips.saturating_sub(3);
                session = daemon.create().await;
            }
            other => panic!("{other}"),
        }
    }
    for (session, prompt, _) in &admitted {
        let terminals = || -> Vec<Value> {
            let lines =
                daemon.ledger(session).lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
            lines.into_iter().filter(|line| line["promptId"] == *prompt && line["terminal"].is_string()).collect()
        };
        until("it is over", async || !terminals().is_empty()).await;
        let terminals = terminals();
        assert_eq!((terminals.len(), &terminals[0]["terminal"]), (1, &json!("completed")), "{prompt} in {session}");
    }
    let ran = daemon.hosts.heard("session/prompt").into_iter();
    let mut ran: Vec<_> = ran.map(|asked| asked["params"]["prompt"][0]["text"].as_str().unwrap().to_owned()).collect();
    let mut expected: Vec<_> = admitted.into_iter().map(|(_, _, text)| text).collect();
    ran.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ran, expected, "each that was admitted ran once, and none that was refused");
}

#[tokio::test]
async fn a_prompt_that_comes_while_its_session_is_being_closed_is_refused_and_reaches_nobody() {
    let daemon = impatient().await;
    daemon.hosts.behave(|behaviour| behaviour.slow_close = true);
    let session = daemon.create().await;
    until("the close has begun", async || !daemon.hosts.heard("turnd/close").is_empty()).await;
    let refused = daemon.ask(&format!("POST /session/{session}/prompt"), &prompt("hello")).await;
    assert_eq!((refused.verdict().as_str(), refused.header("retry-after")), ("409 session_archiving", Some("5")));
    daemon.hosts.open_gate(1);
    until_gone(&daemon, &session).await;
    assert!(daemon.hosts.heard("session/prompt").is_empty());
    assert_eq!(daemon.ledger(&session), "");
}

#[tokio::test]
async fn a_session_that_all_have_left_stays_for_the_grace_behind_its_prompt() {
    let idleness = Idleness { settled_close_grace_ms: 600_000, ..Idleness::default() };
    let daemon = Daemon::with(|options| options.idleness = idleness).await;
    let (busy, idle) = (daemon.create_with_client().await, daemon.create_with_client().await);
    let running = daemon.prompt(&busy.0, "hold").await["promptId"].as_str().unwrap().to_owned();
    let leave = async |(session, client): &(String, String)| {
        let line = format!("POST /session/{session}/detach");
        assert_eq!(daemon.ask_with(&line, &[("x-qwen-client-id", client)], "").await.status, 204);
    };
    leave(&busy).await;
    daemon.hosts.release(1);
    until("it is over", async || daemon.turn(&busy.0, &running).await.json()["state"] == "completed").await;
    leave(&idle).await;
    until_gone(&daemon, &idle.0).await;
    assert!(is_live(&daemon, &busy.0).await);
}
