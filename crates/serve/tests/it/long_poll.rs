//! The long poll: it answers when the prompt has ended, or when its time is over, and holds nothing when its client is gone.
//!
//! A wait that never wakes would take the full minute that these tests ask for, which is longer than their patience.

use serde_json::json;

use crate::client::Connection;
use crate::daemon::Daemon;

/// A request that waits, sent and not answered yet.
async fn waiting(daemon: &Daemon, path: &str) -> Connection {
    let mut connection = Connection::open(daemon.address).await;
    connection.ask(&format!("GET {path}"), &[], b"").await;
    connection
}

fn path(session: &str, prompt: &str) -> String {
    format!("/session/{session}/turns/{prompt}?wait_ms=60000")
}

#[tokio::test]
async fn all_who_wait_for_a_prompt_hear_its_outcome_when_it_ends() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.prompt(&session, "hold").await["promptId"].as_str().unwrap().to_owned();
    let mut connections = Vec::new();
    for _ in 0..64 {
        connections.push(waiting(&daemon, &path(&session, &prompt)).await);
    }
    assert_eq!(daemon.turn(&session, &prompt).await.json()["state"], "running");
    daemon.hosts.release(1);
    for mut connection in connections {
        let turn = connection.answer().await.json();
        assert_eq!((&turn["state"], &turn["resultText"]), (&json!("completed"), &json!("echo: hold")));
    }
}

#[tokio::test]
async fn a_wait_that_is_over_answers_with_the_state_then() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let first = daemon.prompt(&session, "hold").await["promptId"].as_str().unwrap().to_owned();
    let second = daemon.prompt(&session, "x").await["promptId"].as_str().unwrap().to_owned();
    for (prompt, state) in [(&first, "running"), (&second, "queued"), (&"current".to_owned(), "running")] {
        let answer = daemon.get(&format!("/session/{session}/turns/{prompt}?wait_ms=1")).await;
        assert_eq!((answer.status, &answer.json()["state"]), (200, &json!(state)), "{prompt}");
    }
}

#[tokio::test]
async fn what_is_not_there_or_over_already_is_not_waited_for() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    assert_eq!(daemon.get(&path(&session, "nope")).await.verdict(), "404 prompt_not_found");
    assert_eq!(daemon.get(&path(&session, "current")).await.json()["state"], "idle");
    let prompt = daemon.run(&session, "hello").await;
    assert_eq!(daemon.get(&path(&session, &prompt)).await.json()["state"], "completed");
    assert_eq!(daemon.get(&path(&session, "current")).await.json()["state"], "completed");
    assert_eq!(daemon.get(&path("gone", &prompt)).await.verdict(), "404 session_not_found");
}

#[tokio::test]
async fn a_wait_out_of_bounds_is_refused() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    for wait in ["60001", "-1", "x", "", "1.0"] {
        for prompt in ["p", "current"] {
            let answer = daemon.get(&format!("/session/{session}/turns/{prompt}?wait_ms={wait}")).await;
            assert_eq!(answer.verdict(), "400 invalid_wait_ms", "{wait}");
        }
    }
}

#[tokio::test]
async fn who_waits_for_the_current_prompt_hears_of_that_one_and_not_of_the_next() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let first = daemon.prompt(&session, "hold").await["promptId"].clone();
    let mut connection = waiting(&daemon, &path(&session, "current")).await;
    daemon.prompt(&session, "hang").await;
    // The wait is there: another request on the same session was answered after it was sent, and only the release ends it.
    daemon.get(&format!("/session/{session}/turns/current?wait_ms=1")).await;
    daemon.hosts.release(1);
    let turn = connection.answer().await.json();
    assert_eq!((&turn["promptId"], &turn["state"]), (&first, &json!("completed")));
}

#[tokio::test]
async fn a_removal_and_a_close_wake_whoever_waits() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let running = daemon.prompt(&session, "hang").await["promptId"].as_str().unwrap().to_owned();
    let queued = daemon.prompt(&session, "x").await["promptId"].as_str().unwrap().to_owned();
    let flushed = daemon.prompt(&session, "y").await["promptId"].as_str().unwrap().to_owned();
    let mut waits = Vec::new();
    for prompt in [&queued, &flushed, &running] {
        waits.push(waiting(&daemon, &path(&session, prompt)).await);
    }
    daemon.ask(&format!("DELETE /session/{session}/pending-prompts/{queued}"), "").await;
    assert_eq!(waits.remove(0).answer().await.json()["state"], "cancelled");
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    assert_eq!(waits.remove(0).answer().await.json()["error"]["code"], "session_closed");
    assert_eq!(waits.remove(0).answer().await.json()["state"], "cancelled");
}

#[tokio::test]
async fn a_lost_agent_and_a_shutdown_wake_whoever_waits() {
    let mut daemon = Daemon::start().await;
    let (dying, stopped) = (daemon.create().await, daemon.create().await);
    let hanging = daemon.prompt(&stopped, "hang").await["promptId"].as_str().unwrap().to_owned();
    let holding = daemon.prompt(&dying, "hold").await["promptId"].as_str().unwrap().to_owned();
    let behind = daemon.prompt(&dying, "die").await["promptId"].as_str().unwrap().to_owned();
    assert_eq!(daemon.turn(&dying, &holding).await.json()["state"], "running");
    let mut lost = waiting(&daemon, &path(&dying, &behind)).await;
    let mut shut = waiting(&daemon, &path(&stopped, &hanging)).await;
    daemon.hosts.release(1);
    assert_eq!(lost.answer().await.json()["error"]["code"], "channel_closed");
    // Both waits were sent before; the answer to a request that came later shows that this one is being served.
    daemon.turn(&stopped, &hanging).await;
    daemon.stop().await;
    assert_eq!(shut.answer().await.json()["error"]["code"], "daemon_shutdown");
}

#[tokio::test]
async fn a_waiter_that_leaves_frees_its_place_at_once() {
    let daemon = Daemon::with(|options| options.limits.max_connections = 4).await;
    // Connections of the set-up may not be gone yet.
    let mut own = daemon.the_only_connection().await;
    own.ask("POST /session", &[("content-type", "application/json")], br#"{"sessionScope":"thread"}"#).await;
    let session = own.answer().await.json()["sessionId"].as_str().unwrap().to_owned();
    let body = json!({ "prompt": [{ "type": "text", "text": "hang" }], "promptId": "p" }).to_string();
    own.ask(&format!("POST /session/{session}/prompt"), &[("content-type", "application/json")], body.as_bytes()).await;
    assert_eq!(own.answer().await.status, 202);
    for _ in 0..3 {
        let mut waits = Vec::new();
        for _ in 0..3 {
            let mut connection = daemon.the_only_connection().await;
            connection.ask(&format!("GET {}", path(&session, "p")), &[], b"").await;
            waits.push(connection);
        }
        drop(waits);
    }
    // Nine waits of a minute each went through four places.
    daemon.the_only_connection().await;
}
