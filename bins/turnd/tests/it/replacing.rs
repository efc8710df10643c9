//! Deadlines and agents that do not stop, with real processes. The agent keeps a journal of its own: a line for each start and end of
//! it, and every line that it was sent.

use std::fs;

use serde_json::{Value, json};

use crate::world::{World, chats, until};

/// Milliseconds. Long enough for a poll in between, where there is one.
const GRACE: &str = "200";
const LONG_GRACE: &str = "1500";
const JOURNALED: &str = concat!(
    r#"sh -c 'echo start >> journal; tee -a journal | ""#,
    env!("CARGO_BIN_EXE_turnd"),
    r#"" agent; echo end >> journal'"#
);
/// The same without the means to bring a session back.
const FORGETFUL: &str = concat!(
    r#"sh -c 'echo start >> journal; tee -a journal | ""#,
    env!("CARGO_BIN_EXE_turnd"),
    r#"" agent | sed -u "s/.loadSession.:true/\"loadSession\":false/;s/.resume.:{}/\"resume\":null/"; echo end >> journal'"#
);

fn world(agent: &'static str, grace: &'static str) -> World {
    World::with(&["--settle-grace-ms", grace, "--agent", agent])
}

fn admit(world: &mut World, session: &str, text: &str, limits: Value) -> String {
    let mut body = json!({ "prompt": [{ "type": "text", "text": text }] });
    body.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
    let (status, receipt) = world.call("POST", &format!("/session/{session}/prompt"), &body.to_string());
    assert_eq!(status, 202, "{receipt}");
    receipt["promptId"].as_str().unwrap().to_owned()
}

fn cancel(world: &mut World, session: &str) {
    assert_eq!(world.call("POST", &format!("/session/{session}/cancel"), "").0, 204);
}

/// The journal in words: starts, ends, cancels, and prompts by their text.
fn journal(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.base().join("workspace/journal")).unwrap_or_default();
    text.lines().filter_map(journal_word).collect()
}

fn journal_word(line: &str) -> Option<String> {
    let Ok(message) = serde_json::from_str::<Value>(line) else { return Some(line.to_owned()) };
    match message["method"].as_str()? {
        "session/prompt" => Some(message["params"]["prompt"][0]["text"].as_str().unwrap().to_owned()),
        "session/cancel" => Some("cancel".to_owned()),
        _ => None,
    }
}

fn ledger(world: &World, session: &str, prompt: &str) -> Vec<Value> {
    let text = fs::read_to_string(chats(world).join(format!("{session}.ledger.jsonl"))).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["promptId"] == prompt && line["terminal"].is_string()).collect()
}

/// What the transcript says of a turn.
fn recorded(world: &World, session: &str, prompt: &str) -> Value {
    let text = fs::read_to_string(chats(world).join(format!("{session}.jsonl"))).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut results = lines.filter(|line| line["subtype"] == "turn_result").map(|line| line["systemPayload"].clone());
    let result = results.find(|result| result["promptId"] == prompt).unwrap();
    assert!(results.all(|other| other["promptId"] != prompt), "one result a prompt");
    result
}

#[test]
fn a_prompt_behind_a_deaf_agent_runs_once_that_agent_is_gone_and_hears_nothing_of_it() {
    let mut world = world(JOURNALED, GRACE);
    let session = world.session();
    let first = admit(&mut world, &session, "deaf 600000", json!({ "runDeadlineMs": 300 }));
    let second = admit(&mut world, &session, "hello", json!({}));
    let turn = world.settle(&session, &second);
    assert_eq!((&turn["state"], &turn["resultText"]), (&json!("completed"), &json!("echo: hello")));
    assert_eq!(journal(&world), ["start", "deaf 600000", "cancel", "end", "start", "hello"]);
    assert_eq!(recorded(&world, &session, &second)["resultText"], "echo: hello");
    // The ledger keeps the first terminal; the poll shows what the transcript settled.
    let terminals = ledger(&world, &session, &first);
    assert_eq!((terminals.len(), &terminals[0]["code"]), (1, &json!("prompt_deadline_exceeded")));
    assert_eq!(recorded(&world, &session, &first)["state"], "cancelled");
    let turn = world.get(&format!("/session/{session}/turns/{first}"));
    assert_eq!(turn["state"], "cancelled");
    assert!(turn["partialText"].as_str().unwrap().starts_with("not listening"), "{turn}");
}

#[test]
fn a_cancel_that_a_deaf_agent_does_not_hear_ends_its_process_and_not_the_session() {
    let mut world = world(JOURNALED, LONG_GRACE);
    let session = world.session();
    let prompt = admit(&mut world, &session, "deaf", json!({}));
    world.until_chunk(&session, &prompt);
    cancel(&mut world, &session);
    assert_eq!(world.get(&format!("/session/{session}/turns/{prompt}"))["state"], "running", "requested, and not more");
    cancel(&mut world, &session);
    let turn = world.settle(&session, &prompt);
    assert_eq!((&turn["state"], &turn["partialText"]), (&json!("cancelled"), &json!("not listening ")), "{turn}");
    let next = world.prompt(&session, "hello");
    assert_eq!(world.settle(&session, &next)["resultText"], "echo: hello");
    assert_eq!(journal(&world), ["start", "deaf", "cancel", "end", "start", "hello"], "it hears of a cancel once");
    assert_eq!(ledger(&world, &session, &prompt)[0]["terminal"], "cancelled");
    assert_eq!(recorded(&world, &session, &prompt)["state"], "cancelled");
    world.kill_everything();
    let loaded = world.load(&session);
    let terminals: Vec<_> = loaded["promptTerminals"].as_array().unwrap().iter().map(|it| &it["terminal"]).collect();
    assert_eq!(terminals, ["cancelled", "completed"]);
}

#[test]
fn an_agent_that_cannot_load_keeps_its_process_and_the_queue_waits_for_it() {
    let mut world = world(FORGETFUL, GRACE);
    let session = world.session();
    let first = admit(&mut world, &session, "deaf 1500", json!({}));
    let second = world.prompt(&session, "hello");
    world.until_chunk(&session, &first);
    cancel(&mut world, &session);
    let turn = world.settle(&session, &first);
    assert_eq!((&turn["state"], &turn["agentStopReason"]), (&json!("cancelled"), &json!("end_turn")), "{turn}");
    assert_eq!(world.settle(&session, &second)["resultText"], "echo: hello");
    assert_eq!(journal(&world), ["start", "deaf 1500", "cancel", "hello"]);
}

#[test]
fn a_run_limit_does_not_count_the_wait_and_the_poll_says_which_clock_ran_out() {
    let mut world = world(JOURNALED, GRACE);
    let session = world.session();
    let long = admit(&mut world, &session, "slow 2500", json!({}));
    let run = admit(&mut world, &session, "hello", json!({ "runDeadlineMs": 2000 }));
    let total = admit(&mut world, &session, "too late", json!({ "deadlineMs": 500 }));
    let expired = world.settle(&session, &total);
    assert_eq!(
        (&expired["error"]["deadline"], &expired["error"]["expiredWhile"]),
        (&json!("absolute"), &json!("queued"))
    );
    assert_eq!(
        (&expired["error"]["code"], &expired["inputWritten"]),
        (&json!("prompt_deadline_exceeded"), &json!("no"))
    );
    assert_eq!(world.get(&format!("/session/{session}/turns/{run}"))["state"], "queued", "its clock stands still");
    assert_eq!(world.settle(&session, &long)["state"], "completed");
    assert_eq!(world.settle(&session, &run)["resultText"], "echo: hello");
    assert_eq!(journal(&world), ["start", "slow 2500", "hello"]);
    let endless = admit(&mut world, &session, "hang", json!({ "runDeadlineMs": 200, "deadlineMs": 600_000 }));
    let error = until("the run is over", || {
        let turn = ledger(&world, &session, &endless);
        turn.first().cloned()
    });
    assert_eq!(error["code"], "prompt_deadline_exceeded");
}

#[test]
fn a_run_that_ran_into_its_limit_holds_against_later_evidence_like_any_deadline() {
    let mut world = World::new();
    let session = world.session();
    let first = admit(&mut world, &session, "hang", json!({ "runDeadlineMs": 1 }));
    until("it is over", || ledger(&world, &session, &first).first().cloned());
    let second = world.prompt(&session, "slow 600000");
    world.until_chunk(&session, &second);
    world.kill_everything();
    let loaded = world.load(&session);
    let known: Vec<_> = loaded["promptTerminals"].as_array().unwrap().iter().map(|it| &it["promptId"]).collect();
    assert_eq!(known, [&json!(first)], "what was cut behind it stays unknown");
}
