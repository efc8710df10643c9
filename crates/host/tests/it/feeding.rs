//! A prompt on its way into an agent that reads, and into one that does not.

use serde_json::json;
use tokio::net::unix::pipe;

use crate::world::{Host, Store, code, content, eventually, runs};

/// Opens a session and then reads nothing more.
const DEAF: &str = r#"echo $$ > pid
read -r a; echo '{"jsonrpc":"2.0","id":0,"result":{}}'
read -r b; echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"ses"}}'
exec sleep 3600"#;

/// How much a pipe holds here, in bytes.
async fn pipe_bytes() -> usize {
    let (sender, _receiver) = pipe::pipe().unwrap();
    sender.writable().await.unwrap();
    let mut held = 0;
    while let Ok(written) = sender.try_write(&[0; 4096]) {
        held += written;
    }
    held
}

/// Opens a session over [`DEAF`] and gives the agent's pid too.
async fn deaf(store: &Store, settings: &[&str]) -> (Host, String) {
    let mut host = store.host_over_script(settings, DEAF);
    host.open().await;
    let pid = content(&store.path("pid")).await.trim().to_owned();
    (host, pid)
}

#[tokio::test]
async fn the_daemon_hears_that_a_witnessed_prompt_is_written_before_it_hears_anything_of_its_turn() {
    let store = Store::new();
    let mut host = store.host(&[]);
    let opened = host.open().await;
    let process = &opened["result"]["_meta"]["turnd/process"];
    let pid = process["pid"].as_u64().unwrap();
    assert!(runs(&pid.to_string()) && process["startTicks"].as_u64().unwrap() > 0, "{opened}");
    assert_eq!(process["bootId"], std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim());
    let id = host.prompt_witnessed("p1", &"x".repeat(1_000_000)).await;
    let first = host.line().await.unwrap();
    assert_eq!(first["method"], "turnd/prompt_written");
    assert_eq!(first["params"], json!({ "promptId": "p1" }));
    assert_eq!(host.answer(id).await["result"]["stopReason"], "end_turn");
    host.prompt("p2", "hi").await;
    assert_eq!(host.line().await.unwrap()["method"], "session/update", "nobody asked for more");
    host.close().await;
}

#[tokio::test]
async fn scenario_17_an_agent_that_leaves_half_a_prompt_unread_is_ended_and_certainly_has_no_prompt() {
    let store = Store::new();
    let (mut host, pid) = deaf(&store, &["input_wait_ms=300"]).await;
    let id = host.prompt_witnessed("p1", &"x".repeat(1_000_000)).await;
    host.cancel().await;
    let answer = host.answer(id).await;
    assert_eq!((code(&answer), &answer["error"]["data"]["turnd/inputWritten"]), ("channel_closed", &json!("no")));
    assert!(!host.rest().await.iter().any(|line| line["method"] == "turnd/prompt_written"));
    host.ended().await;
    assert!(!runs(&pid));
    assert_eq!(store.result("p1").unwrap()["state"], "error");
}

#[tokio::test]
async fn scenario_18_an_agent_that_leaves_nothing_but_the_end_of_the_line_unread_may_have_the_prompt() {
    let store = Store::new();
    let (mut host, pid) = deaf(&store, &["input_wait_ms=300"]).await;
    let text = "x".repeat(pipe_bytes().await + 1 - host.witnessed_bytes("p1"));
    let id = host.prompt_witnessed("p1", &text).await;
    let answer = host.answer(id).await;
    assert_eq!((code(&answer), &answer["error"]["data"]["turnd/inputWritten"]), ("channel_closed", &json!("maybe")));
    host.ended().await;
    assert!(!runs(&pid));
}

#[tokio::test]
async fn scenario_25_nothing_of_a_line_follows_what_was_out_when_its_host_was_killed() {
    let store = Store::new();
    // It reads a part, and the rest only when its host is dead: all that will ever come.
    let slow =
        r#"trap '' TERM; head -c 100000 > part; while [ ! -f dead ]; do sleep 0.05; done; cat >> part; mv part got"#;
    let mut host = store.host_over_script(&[], &DEAF.replace("exec sleep 3600", slow));
    host.open().await;
    host.prompt_witnessed("p1", &"x".repeat(1_000_000)).await;
    eventually("a part of the line", || std::fs::metadata(store.path("part")).is_ok_and(|part| part.len() == 100_000))
        .await;
    let pid = content(&store.path("pid")).await;
    host.child.kill().await.unwrap();
    std::fs::write(store.path("dead"), "").unwrap();
    eventually("an end of the agent", || !runs(pid.trim())).await;
    let got = [store.path("got"), store.path("part")].iter().find_map(|path| std::fs::read(path).ok()).unwrap();
    assert!(got.len() >= 100_000 && got.len() < 1_000_000, "{}", got.len());
    assert!(!got.contains(&b'\n') && !got.ends_with(b"}"), "no whole prompt, with or without the end of its line");
    assert_eq!(store.result("p1"), None);
}

#[tokio::test]
async fn scenario_25_a_prompt_over_whose_line_the_daemon_died_is_none_of_which_the_agent_hears() {
    // Half of it, and all but its last bracket. Behind that bracket it is a line of which the daemon does not know, as one with its end.
    for missing in [100, 2] {
        let store = Store::new();
        let mut host = store.host_over_script(&[], &DEAF.replace("exec sleep 3600", "cat > part; mv part got"));
        host.open().await;
        host.prompt_cut_off("p1", missing).await;
        host.ended().await;
        let got = [store.path("got"), store.path("part")].iter().find_map(|path| std::fs::read_to_string(path).ok());
        assert_eq!(got.unwrap_or_default(), "", "{missing}");
        assert!(!store.kinds().contains(&"user".to_owned()), "{missing}");
    }
}

#[tokio::test]
async fn what_fits_into_the_agents_input_is_written_whether_it_is_read_or_not() {
    let store = Store::new();
    let (mut host, pid) = deaf(&store, &["input_wait_ms=5000"]).await;
    let text = "x".repeat(pipe_bytes().await - host.witnessed_bytes("p1"));
    let id = host.prompt_witnessed("p1", &text).await;
    assert_eq!(host.until("turnd/prompt_written").await["params"]["promptId"], "p1");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let answer = host.answer(id).await;
    assert_eq!(answer["error"]["data"]["turnd/inputWritten"], "yes");
    assert_eq!(answer["error"]["data"]["signal"], 9, "by the test, as nothing else ended it");
    host.ended().await;
}

#[tokio::test]
async fn an_agent_is_not_ended_for_reading_late_what_is_written() {
    let store = Store::new();
    let late =
        r#"sleep 1; read -r c; echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'; cat > /dev/null"#;
    let mut host = store.host_over_script(&["input_wait_ms=300"], &DEAF.replace("exec sleep 3600", late));
    host.open().await;
    let id = host.prompt_witnessed("p1", "hi").await;
    assert_eq!(host.answer(id).await["result"]["stopReason"], "end_turn");
    host.close().await;
}

#[tokio::test]
async fn a_prompt_without_a_witness_may_wait_as_long_as_its_agent_likes() {
    let store = Store::new();
    let script = DEAF.replace(
        "exec sleep 3600",
        "while [ ! -f go ]; do sleep 0.05; done; read -r c; echo got > got; cat > /dev/null",
    );
    let mut host = store.host_over_script(&["input_wait_ms=1"], &script);
    host.open().await;
    host.prompt("p1", &"x".repeat(200_000)).await;
    // The user record is on disk before the agent is fed.
    eventually("the record of the prompt", || store.kinds().contains(&"user".to_owned())).await;
    std::fs::write(store.path("go"), "").unwrap();
    assert_eq!(content(&store.path("got")).await, "got\n");
    host.close().await;
}
