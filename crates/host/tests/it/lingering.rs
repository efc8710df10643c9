//! The daemon dies; the turn does not.

use serde_json::json;

use crate::world::{Store, runs};

#[tokio::test]
async fn a_turn_settles_and_is_recorded_without_a_daemon() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    host.prompt("p1", "slow 500").await;
    host.until("session/update").await;
    host.daemon_dies();
    host.ended().await;
    let result = store.result("p1").unwrap();
    assert_eq!((&result["state"], &result["stopReason"]), (&json!("completed"), &json!("end_turn")));
}

#[tokio::test]
async fn a_question_nobody_can_answer_is_cancelled() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    host.prompt("p1", "tool echo hi").await;
    host.until("session/request_permission").await;
    host.daemon_dies();
    host.ended().await;
    assert!(store.result("p1").is_some());
    assert!(store.kinds().contains(&"tool_result".to_owned()));
}

#[tokio::test]
async fn a_turn_that_does_not_settle_ends_with_the_limit() {
    let store = Store::new();
    let mut host = store.host(&["linger_ms=100"]);
    host.open().await;
    host.prompt("p1", "hang").await;
    crate::world::eventually("the prompt's record", || store.kinds() == ["user"]).await;
    host.daemon_dies();
    host.ended().await;
    let result = store.result("p1").unwrap();
    assert_eq!((&result["state"], &result["error"]["code"]), (&json!("error"), &json!("linger_expired")));
}

#[tokio::test]
async fn a_cancelled_turn_that_does_not_settle_is_cancelled_all_the_same() {
    let store = Store::new();
    let mut host = store.host(&["linger_ms=100"]);
    host.open().await;
    host.prompt("p1", "deaf").await;
    crate::world::eventually("the prompt's record", || store.kinds() == ["user"]).await;
    host.cancel().await;
    host.daemon_dies();
    host.ended().await;
    let result = store.result("p1").unwrap();
    assert_eq!((&result["state"], result["cancelledAt"].is_u64()), (&json!("cancelled"), true));
}

#[tokio::test]
async fn without_a_turn_a_host_goes_with_its_daemon() {
    let store = Store::new();
    let mut host = store.host(&["linger_ms=3600000"]);
    host.open().await;
    host.daemon_dies();
    host.ended().await;
}

#[tokio::test]
async fn a_daemon_that_no_longer_reads_is_gone_too() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    host.prompt("p1", "flood 2000").await;
    host.until("session/update").await;
    host.stop_listening();
    host.ended().await;
    assert_eq!(store.result("p1").unwrap()["state"], "completed");
}

#[tokio::test]
async fn a_turn_left_running_does_not_keep_the_agent_alive_behind_its_end() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let answer = host.turn("p1", "grandchild").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let pid = store.result("p1").unwrap()["resultText"].as_str().unwrap().to_owned();
    assert!(runs(&pid));
    host.prompt("p2", "slow 300").await;
    host.until("session/update").await;
    host.daemon_dies();
    host.ended().await;
    assert_eq!(store.result("p2").unwrap()["state"], "completed");
    assert!(!runs(&pid));
}
