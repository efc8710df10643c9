//! A prompt that is sent again runs once, whatever keeps new prompts out meanwhile (design, section 4).

use serde_json::{Value, json};

use crate::client::{Answer, until};
use crate::daemon::Daemon;

fn body(text: &str) -> Value {
    json!({ "prompt": [{ "type": "text", "text": text }] })
}

async fn send(daemon: &Daemon, session: &str, key: &str, text: &str) -> Answer {
    let line = format!("POST /session/{session}/prompt");
    daemon.ask_with(&line, &[("idempotency-key", key)], &body(text).to_string()).await
}

/// Asserts that it is the receipt of `first` once more.
fn check_replayed(first: &Answer, again: &Answer) {
    assert_eq!((again.status, &again.json()["replayed"]), (202, &json!(true)), "{}", again.verdict());
    for key in ["promptId", "lastEventId", "eventEpoch"] {
        assert_eq!(again.json()[key], first.json()[key], "{key}");
    }
}

#[tokio::test]
async fn the_key_in_the_header_is_the_prompt_id_of_the_body() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let first = send(&daemon, &session, "job-1", "hello").await;
    assert_eq!((first.status, &first.json()["promptId"], first.json().get("replayed")), (202, &json!("job-1"), None));
    check_replayed(&first, &send(&daemon, &session, "\"job-1\"", "hello").await);
    let mut in_body = body("hello");
    in_body["promptId"] = "job-1".into();
    check_replayed(&first, &daemon.post(&format!("/session/{session}/prompt"), in_body.clone()).await);
    let line = format!("POST /session/{session}/prompt");
    let both = |key: &'static str| {
        let (daemon, line, text) = (&daemon, &line, in_body.to_string());
        async move { daemon.ask_with(line, &[("idempotency-key", key)], &text).await }
    };
    check_replayed(&first, &both("job-1").await);
    assert_eq!(both("job-2").await.verdict(), "400 idempotency_key_mismatch");
    assert_eq!(both("a/b").await.verdict(), "400 invalid_prompt_id");
    assert_eq!(send(&daemon, &session, "current", "hello").await.verdict(), "400 invalid_prompt_id");
    assert_eq!(send(&daemon, &session, "job-1", "Hello").await.verdict(), "409 prompt_id_conflict");
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
}

#[tokio::test]
async fn a_repetition_is_answered_while_the_queue_is_full() {
    let daemon = Daemon::with(|options| options.limits.max_pending_prompts = 1).await;
    let session = daemon.create().await;
    let first = send(&daemon, &session, "job-1", "hold").await;
    assert_eq!(send(&daemon, &session, "job-2", "x").await.verdict(), "503 prompt_queue_full");
    check_replayed(&first, &send(&daemon, &session, "job-1", "hold").await);
}

#[tokio::test]
async fn a_repetition_is_answered_while_the_session_is_being_closed() {
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|behaviour| behaviour.slow_close = true);
    let session = daemon.create().await;
    let first = send(&daemon, &session, "job-1", "hello").await;
    let close = format!("DELETE /session/{session}");
    let closing = daemon.ask(&close, "");
    let meanwhile = async {
        until("the session is closing", async || {
            send(&daemon, &session, "job-2", "x").await.verdict() == "409 session_archiving"
        })
        .await;
        check_replayed(&first, &send(&daemon, &session, "job-1", "hello").await);
        assert_eq!(send(&daemon, &session, "job-1", "other").await.verdict(), "409 prompt_id_conflict");
        daemon.hosts.open_gate(1);
    };
    assert_eq!(tokio::join!(closing, meanwhile).0.status, 204);
}

#[tokio::test]
async fn an_id_of_a_session_that_is_not_live_is_not_given_to_another() {
    let daemon = Daemon::start().await;
    let (first, second) = (daemon.create().await, daemon.create().await);
    assert_eq!(send(&daemon, &first, "job-1", "hello").await.status, 202);
    daemon.get(&format!("/session/{first}/turns/job-1?wait_ms=60000")).await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{first}"), "").await.status, 204);
    assert_eq!(send(&daemon, &second, "job-1", "hello").await.verdict(), "409 prompt_id_conflict");
    let daemon = daemon.restart().await;
    let third = daemon.create().await;
    assert_eq!(send(&daemon, &third, "job-1", "hello").await.verdict(), "409 prompt_id_conflict");
    assert!(daemon.ledger(&second).is_empty() && daemon.ledger(&third).is_empty());
    daemon.post(&format!("/session/{first}/load"), json!({})).await;
    let again = send(&daemon, &first, "job-1", "hello").await;
    assert_eq!((again.status, &again.json()["replayed"]), (202, &json!(true)));
    assert_eq!(daemon.turn(&first, "job-1").await.json()["resultText"], "echo: hello");
}

#[tokio::test]
async fn an_id_that_the_daemon_made_cannot_be_chosen_in_another_live_session() {
    let daemon = Daemon::start().await;
    let (first, second) = (daemon.create().await, daemon.create().await);
    let made = daemon.prompt(&first, "hello").await["promptId"].as_str().unwrap().to_owned();
    assert_eq!(send(&daemon, &second, &made, "hello").await.verdict(), "409 prompt_id_conflict");
    assert_eq!(send(&daemon, &first, &made, "hello").await.verdict(), "409 prompt_id_conflict", "nor in its own");
}

/// Asserts that neither a prompt nor words into a turn are taken under an id.
async fn check_kept(daemon: &Daemon, session: &str, id: &str) {
    assert_eq!(send(daemon, session, id, "hello").await.verdict(), "409 prompt_id_conflict");
    let words = json!({ "message": "hello", "messageId": id });
    let said = daemon.post(&format!("/session/{session}/mid-turn-message"), words).await;
    assert_eq!(said.verdict(), "409 prompt_id_conflict");
    assert_eq!(daemon.turn(session, id).await.verdict(), "404 prompt_not_found");
}

#[tokio::test]
async fn an_id_that_only_the_prompt_of_a_return_request_can_have_is_nobodys_before_and_behind_a_restart() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let id = "turnd-return-11111111-1111-4111-8111-111111111111";
    send(&daemon, &session, "job-1", "hello").await;
    daemon.get(&format!("/session/{session}/turns/job-1?wait_ms=60000")).await;
    check_kept(&daemon, &session, id).await;
    let daemon = daemon.restart().await;
    assert_eq!(daemon.post(&format!("/session/{session}/load"), json!({})).await.status, 200);
    check_kept(&daemon, &session, id).await;
}
