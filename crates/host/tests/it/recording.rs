//! What the transcript says.

use serde_json::json;

use crate::world::{Store, code};

#[tokio::test]
async fn an_answer_is_on_disk_when_the_daemon_hears_it() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let answer = host.turn("p1", "hello").await;
    // Read without waiting: the result goes before the answer.
    assert_eq!(store.kinds(), ["user", "assistant", "turn_result"]);
    assert_eq!(answer["result"]["_meta"]["turnd/turn"], json!({ "state": "completed" }));
    let records = store.records();
    assert_eq!(records[0]["daemonPromptId"], "p1");
    assert_eq!(records[0]["sessionId"], "session-1");
    let result = store.result("p1").unwrap();
    assert_eq!((&result["state"], &result["resultText"]), (&json!("completed"), &json!("echo: hello")));
    host.close().await;
}

#[tokio::test]
async fn a_tool_is_recorded_with_its_call_its_result_and_the_answer_behind_it() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let id = host.prompt("p1", "tool echo hi").await;
    let ask = host.until("session/request_permission").await;
    let allow = ask["params"]["options"].as_array().unwrap().iter().find(|it| it["kind"] == "allow_once").unwrap();
    assert_eq!(store.kinds(), ["user", "assistant"], "the call is on disk while it waits");
    host.reply(&ask, json!({ "outcome": { "outcome": "selected", "optionId": allow["optionId"] } })).await;
    host.answer(id).await;
    assert_eq!(store.kinds(), ["user", "assistant", "tool_result", "assistant", "turn_result"]);
    host.close().await;
}

#[tokio::test]
async fn a_cancelled_turn_keeps_what_was_said() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let id = host.prompt("p1", "slow 600000").await;
    host.until("session/update").await;
    host.cancel().await;
    let answer = host.answer(id).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    let result = store.result("p1").unwrap();
    assert_eq!(result["state"], "cancelled");
    assert!(result["cancelledAt"].is_u64() && !result["partialText"].as_str().unwrap().is_empty(), "{result}");
    assert_eq!(store.kinds(), ["user", "turn_result", "assistant"]);
    host.close().await;
}

#[tokio::test]
async fn noise_and_half_characters_do_no_harm() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    host.turn("p1", "noise").await;
    assert_eq!(store.result("p1").unwrap()["resultText"], "before and after");
    host.turn("p2", "surrogate").await;
    assert_eq!(store.result("p2").unwrap()["resultText"], "half a pair: \u{fffd}");
    host.close().await;
}

#[tokio::test]
async fn a_prompt_that_cannot_be_recorded_is_not_handed_on() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    std::fs::rename(store.path("chats"), store.path("moved")).unwrap();
    std::fs::write(store.path("chats"), "in the way").unwrap();
    let refused = host.turn("p1", "hello").await;
    assert_eq!(code(&refused), "transcript_unwritable");
    std::fs::remove_file(store.path("chats")).unwrap();
    host.turn("p2", "hello again").await;
    assert!(store.result("p1").is_none());
    assert_eq!(store.kinds(), ["user", "assistant", "turn_result"]);
    host.close().await;
}

/// Lets a process write no further than the end that its files have, or again as far as it likes.
#[cfg(target_os = "linux")]
fn limit_files(pid: u32, soft: &str) {
    let args = ["--pid", &pid.to_string(), &format!("--fsize={soft}:")];
    assert!(std::process::Command::new("prlimit").args(args).status().unwrap().success());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_daemon_hears_that_records_are_held_before_the_answer_they_are_of_and_that_none_is_any_more() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let asked = host.prompt("p1", "slow 600000").await;
    host.until("session/update").await;
    limit_files(host.pid(), "1");
    host.cancel().await;
    let held = host.until("turnd/recording_degraded").await["params"].clone();
    assert!(held["heldRecords"].as_u64() > Some(0) && held["heldBytes"].as_u64() > Some(0), "{held}");
    assert_eq!(held["givenUp"], false);
    assert_eq!(host.answer(asked).await["result"]["stopReason"], "cancelled");
    limit_files(host.pid(), "unlimited");
    let well = host.until("turnd/recording_degraded").await["params"].clone();
    assert_eq!(well, serde_json::json!({ "heldRecords": 0, "heldBytes": 0, "givenUp": false }));
    assert_eq!(store.result("p1").unwrap()["state"], "cancelled");
    host.close().await;
}

#[tokio::test]
async fn what_only_a_host_may_say_is_nothing_in_an_agents_mouth() {
    let said = r#"{"jsonrpc":"2.0","method":"turnd/recording_degraded","params":{"heldRecords":1}}"#;
    let store = Store::new();
    let mut host =
        store.host_over_script(&[], &format!("echo '{said}'; echo '{{\"method\":\"x/y\"}}'; cat >/dev/null"));
    assert_eq!(host.line().await.unwrap()["method"], "x/y");
    host.close().await;
}

#[tokio::test]
async fn the_next_host_goes_on_with_the_record_and_says_what_the_agent_remembers() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    host.turn("p1", "hello").await;
    host.close().await;
    let mut host = store.host(&[]);
    let loaded = host.load().await;
    // The built-in agent keeps its sessions in memory, so a new process knows none.
    assert_eq!(loaded["result"]["_meta"]["turnd/memory"], "fresh");
    host.turn("p2", "again").await;
    let records = store.records();
    assert_eq!(records[3]["parentUuid"], records[2]["uuid"], "the chain goes on");
    let note: serde_json::Value =
        serde_json::from_slice(&std::fs::read(store.path("chats/session-1.host.json")).unwrap()).unwrap();
    assert_eq!(note["agentSessionId"], loaded["result"]["sessionId"]);
    host.close().await;
}

#[tokio::test]
async fn a_native_agents_transcript_is_not_touched() {
    let store = Store::new();
    let mut host = store.host(&["mode=native"]);
    host.open().await;
    let answer = host.turn("p1", "hello").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(answer["result"].get("_meta").is_none(), "{answer}");
    host.close().await;
    assert!(!store.transcript().exists() && !store.path("chats/session-1.host.json").exists());
}

#[tokio::test]
async fn a_flood_arrives_whole() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    let id = host.prompt("p1", "flood 3000").await;
    let mut updates = 0;
    loop {
        let line = host.line().await.unwrap();
        if line["id"] == id {
            break;
        }
        updates += usize::from(line["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    }
    assert_eq!(updates, 3_000);
    assert!(store.result("p1").unwrap()["resultText"].as_str().unwrap().ends_with("2999 3000 "));
    host.close().await;
}
