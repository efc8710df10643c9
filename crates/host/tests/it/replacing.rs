//! An agent that does not stop, and the process in its place.

use serde_json::json;

use crate::world::{Host, Store, code, content, runs};

/// Speaks just enough to be loaded. It never answers a prompt, and says something when its input ends.
const DEAF: &str = r#"
    echo $$ >> pids
    say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
    text() { say '"method":"session/update","params":{"sessionId":"ses","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}'; }
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),.*/\1/p')
        case "$line" in
            *'"initialize"'*) say '"id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
            *'"session/new"'*) say '"id":'$id',"result":{"sessionId":"ses"}' ;;
            *'"session/load"'*) text replayed; say '"id":'$id',"result":{}' ;;
            *'"session/prompt"'*) text "said by $$" ;;
        esac
    done
    text ' and last words'
"#;

async fn replace(host: &mut Host) -> u64 {
    host.ask("turnd/replace_agent", json!({"sessionId": "session-1", "cwd": "/", "mcpServers": []})).await
}

#[tokio::test]
async fn another_process_of_the_agent_gets_the_session_and_every_word_of_the_old_one_is_its_own_turns() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], DEAF);
    host.open().await;
    // More than once, since whether its end or its last words are seen first is chance.
    for round in 0..8 {
        let id = format!("p{round}");
        let prompt = host.prompt(&id, "x").await;
        let old = content(&store.path("pids")).await.lines().last().unwrap().to_owned();
        let update = host.until("session/update").await;
        assert_eq!(update["params"]["update"]["content"]["text"], format!("said by {old}"));
        host.cancel().await;
        let request = replace(&mut host).await;
        assert_eq!(code(&host.answer(prompt).await), "agent_replaced");
        assert!(!runs(&old), "its turn is over only now that it is gone");
        let result = store.result(&id).unwrap();
        assert_eq!((&result["state"], result["cancelledAt"].is_u64()), (&json!("cancelled"), true), "{result}");
        assert_eq!(result["partialText"], json!(format!("said by {old} and last words")));
        let answer = host.answer(request).await;
        let result = &answer["result"];
        assert_eq!((&result["sessionId"], &result["_meta"]["turnd/memory"]), (&json!("ses"), &json!("loaded")));
        let process = &result["_meta"]["turnd/process"]["pid"];
        assert_eq!(content(&store.path("pids")).await.lines().last(), Some(&*process.to_string()), "the new one");
    }
    let pids = content(&store.path("pids")).await;
    let running: Vec<_> = pids.lines().filter(|pid| runs(pid)).collect();
    assert_eq!(running, [pids.lines().last().unwrap()]);
    host.close().await;
    assert!(!runs(running[0]));
}

#[tokio::test]
async fn nothing_the_old_agent_left_runs_beside_the_new_one_which_says_that_it_remembers_nothing() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    host.turn("left", "grandchild").await;
    let left = store.result("left").unwrap()["resultText"].as_str().unwrap().to_owned();
    host.prompt("p1", "deaf").await;
    host.until("session/update").await;
    host.cancel().await;
    let request = replace(&mut host).await;
    let answer = host.answer(request).await;
    assert_eq!(answer["result"]["_meta"]["turnd/memory"], "fresh", "{answer}");
    assert!(!runs(&left));
    host.go_on_as(&answer);
    let done = host.turn("p2", "hello").await;
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(store.result("p2").unwrap()["resultText"], "echo: hello");
    host.close().await;
}

#[tokio::test]
async fn an_agent_that_can_bring_no_session_back_is_not_touched() {
    let store = Store::new();
    let script = DEAF.replace(r#""loadSession":true"#, r#""loadSession":false"#);
    let mut host = store.host_over_script(&[], &script);
    host.open().await;
    host.prompt("p1", "x").await;
    host.until("session/update").await;
    let request = replace(&mut host).await;
    assert_eq!(code(&host.answer(request).await), "agent_cannot_restore");
    let pid = content(&store.path("pids")).await.trim().to_owned();
    assert!(runs(&pid) && store.result("p1").is_none());
    host.close().await;
}

#[tokio::test]
async fn a_native_agent_is_gone_before_another_writes_to_its_file() {
    let store = Store::new();
    let mut host = store.host_over_script(&["mode=native"], DEAF);
    host.open().await;
    let prompt = host.prompt("p1", "x").await;
    host.until("session/update").await;
    let old = content(&store.path("pids")).await.trim().to_owned();
    let request = replace(&mut host).await;
    assert_eq!(code(&host.answer(prompt).await), "agent_replaced");
    assert!(!runs(&old));
    let answer = host.answer(request).await;
    assert_eq!(answer["result"]["sessionId"], "session-1", "its name is the same for both: {answer}");
    assert!(!store.transcript().exists(), "its file is its own");
    host.close().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_again_ends_the_session_with_the_turn_on_record() {
    let store = Store::new();
    let program = store.path("agent.sh");
    std::fs::write(&program, format!("#!/bin/sh\n{DEAF}")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&program, mode).unwrap();
    let mut host = store.host_over(&["launcher=no"], &[program.to_str().unwrap()]);
    host.open().await;
    let prompt = host.prompt("p1", "x").await;
    host.until("session/update").await;
    std::fs::remove_file(&program).unwrap();
    let request = replace(&mut host).await;
    assert_eq!(code(&host.answer(prompt).await), "agent_replaced");
    assert_eq!(code(&host.answer(request).await), "agent_unavailable");
    host.rest().await;
    host.ended().await;
    assert_eq!(store.result("p1").unwrap()["error"]["code"], "agent_replaced");
}

#[tokio::test]
async fn a_daemon_that_dies_meanwhile_leaves_no_agent_and_a_recorded_turn() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], DEAF);
    host.open().await;
    host.prompt("p1", "x").await;
    host.until("session/update").await;
    host.cancel().await;
    replace(&mut host).await;
    host.daemon_dies();
    host.ended().await;
    assert_eq!(store.result("p1").unwrap()["state"], "cancelled");
    assert_eq!(content(&store.path("pids")).await.lines().filter(|pid| runs(pid)).count(), 0);
}
