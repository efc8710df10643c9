//! Agents that do not start, and agents that end by themselves.

use serde_json::json;

use crate::world::{Store, code, details};

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    for launcher in ["launcher=yes", "launcher=no"] {
        let store = Store::new();
        let mut host = store.host_over(&[launcher], &["/nowhere/agent"]);
        let answer = host.initialize().await;
        assert_eq!(code(&answer), "agent_unavailable");
        assert!(details(&answer).contains("No such file"), "{answer}");
        host.rest().await;
        host.ended().await;
    }
}

#[tokio::test]
async fn an_agent_that_ends_before_it_answers_is_shown_with_its_last_words() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], "echo welcome; echo no key >&2; exit 3");
    let answer = host.initialize().await;
    assert_eq!(code(&answer), "agent_unavailable");
    assert_eq!(answer["error"]["data"]["exitCode"], 3);
    assert!(details(&answer).contains("no key") && details(&answer).contains("welcome"), "{answer}");
    host.rest().await;
    host.ended().await;
}

#[tokio::test]
async fn an_agent_that_dies_in_a_turn_leaves_an_error_and_what_it_said() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let answer = host.turn("p1", "die").await;
    assert_eq!(code(&answer), "channel_closed");
    let rest = host.rest().await;
    assert_eq!(rest.last().unwrap()["method"], "turnd/agent_exited");
    assert_eq!(rest.last().unwrap()["params"]["signal"], 9);
    host.ended().await;
    let result = store.result("p1").unwrap();
    assert_eq!((&result["state"], &result["error"]["code"]), (&json!("error"), &json!("channel_closed")));
    assert_eq!(result["partialText"], "these are my last words");
}

#[tokio::test]
async fn an_agent_that_dies_while_its_child_holds_its_output_is_dead_all_the_same() {
    let store = Store::new();
    // The child would keep the pipes open for an hour.
    let mut host = store.host_over_script(&[], "sleep 3600 & read line; exit 5");
    let answer = host.initialize().await;
    assert_eq!(answer["error"]["data"]["exitCode"], 5, "{answer}");
    host.rest().await;
    host.ended().await;
}

#[tokio::test]
async fn an_agent_that_closes_its_output_and_stays_is_ended() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], "exec >&- 2>&-; sleep 3600");
    let answer = host.initialize().await;
    assert_eq!(code(&answer), "agent_unavailable");
    host.rest().await;
    host.ended().await;
}

#[tokio::test]
async fn a_session_that_another_host_has_is_refused_with_its_owner() {
    let store = Store::new();
    let mut first = store.host(&[]);
    first.open().await;
    let mut second = store.host(&[]);
    let answer = second.initialize().await;
    assert_eq!(code(&answer), "session_writer_conflict");
    assert_eq!(answer["error"]["data"]["pid"], first.pid());
    assert!(answer["error"]["data"]["startedAt"].is_u64());
    second.rest().await;
    second.ended().await;
    let turn = first.turn("p1", "still here").await;
    assert_eq!(turn["result"]["stopReason"], "end_turn", "the first one's agent was left alone");
    first.close().await;
}

#[tokio::test]
async fn a_host_waits_for_the_one_before_it() {
    let store = Store::new();
    let mut first = store.host(&[]);
    first.open().await;
    let mut second = store.host(&["lock_wait_ms=60000"]);
    let id = second.ask("initialize", json!({ "protocolVersion": 1 })).await;
    first.close().await;
    assert!(second.answer(id).await["result"].is_object());
    second.close().await;
}

#[tokio::test]
async fn a_host_whose_daemon_dies_while_it_waits_goes_at_once() {
    let store = Store::new();
    let mut first = store.host(&[]);
    first.open().await;
    let mut second = store.host(&["lock_wait_ms=3600000"]);
    second.ask("initialize", json!({ "protocolVersion": 1 })).await;
    second.daemon_dies();
    second.ended().await;
    first.close().await;
}
