//! The agent's tree, and what is left of it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::world::{Store, code, content, eventually, runs};

/// Has the agent leave a process in a session of its own, and gives its pid.
async fn leave_behind(store: &Store, host: &mut crate::world::Host) -> String {
    host.turn("left", "grandchild").await;
    let pid = store.result("left").unwrap()["resultText"].as_str().unwrap().to_owned();
    assert!(runs(&pid), "{pid} was left behind");
    pid
}

#[tokio::test]
async fn what_an_agent_left_in_a_session_of_its_own_is_gone_before_the_host_is() {
    for launcher in ["launcher=yes", "launcher=no"] {
        let store = Store::new();
        let mut host = store.host(&[launcher]);
        host.open().await;
        let pid = leave_behind(&store, &mut host).await;
        host.close().await;
        assert!(!runs(&pid), "{launcher}");
    }
}

#[tokio::test]
async fn what_a_killed_host_left_is_ended_before_the_next_begins() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let pid = leave_behind(&store, &mut host).await;
    host.child.kill().await.unwrap();
    assert!(runs(&pid));
    let elsewhere = Store::new();
    let mut other = elsewhere.host(&[]);
    other.open().await;
    assert!(runs(&pid), "another session's host leaves it alone");
    other.close().await;
    let mut next = store.host(&["lock_wait_ms=60000"]);
    next.initialize().await;
    assert!(!runs(&pid));
    next.close().await;
}

#[tokio::test]
async fn a_sweep_ends_what_a_killed_host_left_and_nothing_of_a_living_one() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let pid = leave_behind(&store, &mut host).await;
    store.sweep().await;
    assert!(runs(&pid), "the session has a host");
    host.child.kill().await.unwrap();
    Store::new().sweep().await;
    assert!(runs(&pid), "another session's sweep leaves it alone");
    store.sweep().await;
    assert!(!runs(&pid));
}

#[tokio::test]
async fn a_killed_host_takes_its_agent_with_it() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], "echo $$ > pid; exec sleep 3600");
    let pid = content(&store.path("pid")).await.trim().to_owned();
    assert!(runs(&pid));
    host.child.kill().await.unwrap();
    eventually("the agent's end", || !runs(&pid)).await;
}

#[tokio::test]
async fn an_agent_that_ignores_every_hint_is_killed_at_last() {
    let store = Store::new();
    let script = r#"trap "" TERM HUP INT; echo $$ > pid; while :; do sleep 3600; done"#;
    let mut host = store.host_over_script(&[], script);
    let pid = content(&store.path("pid")).await.trim().to_owned();
    host.close().await;
    assert!(!runs(&pid));
}

#[tokio::test]
async fn an_agent_that_reads_nothing_does_not_keep_its_host() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], "echo $$ > pid; exec sleep 3600");
    let pid = content(&store.path("pid")).await.trim().to_owned();
    // Far more than a pipe holds.
    host.notify("_filler", json!("x".repeat(4 * 1024 * 1024))).await;
    host.close().await;
    assert!(!runs(&pid));
}

#[tokio::test]
async fn a_daemon_that_reads_nothing_does_not_keep_the_agents_tree_alive() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let pid = leave_behind(&store, &mut host).await;
    // Far more than a pipe holds, and nobody reads it before the tree is gone.
    host.prompt("p1", "long 30000000").await;
    host.notify("turnd/close", json!({ "reason": "session_closed" })).await;
    eventually("the end of the tree", || !runs(&pid)).await;
    host.rest().await;
    host.ended().await;
}

#[tokio::test]
async fn an_agent_runs_apart_and_without_the_daemons_secrets() {
    let store = Store::new();
    let mut host =
        store.host_over_script(&["mode=native"], "env > env; cut -d' ' -f5,6 /proc/$$/stat > stat; echo $$ > pid; cat");
    let pid = content(&store.path("pid")).await.trim().to_owned();
    assert_eq!(content(&store.path("stat")).await.trim(), format!("{pid} {pid}"), "its group and its session");
    let env = content(&store.path("env")).await;
    let has = |line: &str| env.lines().any(|it| it == line);
    assert!(!env.contains("TURND_TOKEN"));
    assert!(has(&format!("{}={}", turnd_host::SESSION_FILE_MARK, store.transcript().display())));
    assert!(has("QWEN_CODE_SERVE=1") && has("QWEN_CODE_NO_RELAUNCH=true"));
    host.close().await;
}

#[tokio::test]
async fn a_recorded_agent_is_not_told_that_it_is_the_peers() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], "env > env; echo done > done; cat");
    content(&store.path("done")).await;
    assert!(!content(&store.path("env")).await.contains("QWEN_CODE"));
    host.close().await;
}

#[tokio::test]
async fn a_host_that_is_told_to_end_ends_its_turn_and_its_agent() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let pid = leave_behind(&store, &mut host).await;
    let id = host.prompt("p1", "slow 600000").await;
    host.until("session/update").await;
    kill_process(Pid::from_raw(i32::try_from(host.pid()).unwrap()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(code(&host.answer(id).await), "host_terminated");
    host.rest().await;
    host.ended().await;
    assert_eq!(store.result("p1").unwrap()["error"]["code"], "host_terminated");
    assert!(!runs(&pid));
}

#[tokio::test]
async fn a_close_ends_a_turn_with_its_reason() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let id = host.prompt("p1", "slow 600000").await;
    host.until("session/update").await;
    host.notify("turnd/close", json!({ "reason": "daemon_shutdown" })).await;
    assert_eq!(code(&host.answer(id).await), "daemon_shutdown");
    host.rest().await;
    host.ended().await;
    assert_eq!(store.result("p1").unwrap()["error"]["code"], "daemon_shutdown");
}
