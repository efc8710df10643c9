//! What is known of each prompt after something was killed. Every test here ends a real process with signal 9.

use serde_json::{Value, json};

use crate::world::{World, alive, chats};

#[test]
fn a_finished_turn_keeps_its_real_outcome_over_a_kill_of_everything() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "hello");
    world.settle(&session, &prompt);
    world.kill_everything();
    let loaded = world.load(&session);
    assert_eq!(terminals(&loaded), json!([[prompt, "completed", null, "end_turn"]]));
    let turn = world.get(&format!("/session/{session}/turns/{prompt}"));
    assert_eq!((&turn["state"], &turn["resultText"]), (&json!("completed"), &json!("echo: hello")));
}

#[test]
fn a_turn_cut_by_a_kill_of_daemon_and_host_reads_interrupted() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "slow 60000");
    world.until_chunk(&session, &prompt);
    world.kill_everything();
    let loaded = world.load(&session);
    assert_eq!(terminals(&loaded), json!([[prompt, "interrupted", "daemon_lost", null]]));
}

#[test]
fn the_host_lets_the_turn_end_when_only_the_daemon_is_killed() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "slow 700");
    world.until_chunk(&session, &prompt);
    world.kill_daemon();
    let loaded = world.load(&session);
    assert_eq!(terminals(&loaded), json!([[prompt, "completed", null, "end_turn"]]));
    let turn = world.get(&format!("/session/{session}/turns/{prompt}"));
    assert_eq!(turn["state"], "completed");
    assert!(turn["resultText"].as_str().unwrap().ends_with("done"), "{turn}");
}

#[test]
fn a_prompt_that_was_never_dispatched_stays_unknown() {
    let mut world = World::new();
    let session = world.session();
    let running = world.prompt(&session, "slow 700");
    let queued = world.prompt(&session, "hello");
    world.until_chunk(&session, &running);
    world.kill_daemon();
    let loaded = world.load(&session);
    assert_eq!(terminals(&loaded), json!([[running, "completed", null, "end_turn"]]));
    let (status, body) = world.call("GET", &format!("/session/{session}/turns/{queued}"), "");
    assert_eq!((status, &body["code"]), (404, &json!("prompt_not_found")));
}

#[test]
fn a_second_load_repeats_the_answer_and_appends_nothing() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "slow 60000");
    world.until_chunk(&session, &prompt);
    world.kill_everything();
    let first = terminals(&world.load(&session));
    let ledger = std::fs::read(chats(&world).join(format!("{session}.ledger.jsonl"))).unwrap();
    world.kill_everything();
    assert_eq!(terminals(&world.load(&session)), first);
    assert_eq!(std::fs::read(chats(&world).join(format!("{session}.ledger.jsonl"))).unwrap(), ledger);
}

#[test]
fn what_the_agent_of_a_killed_host_left_is_gone_before_anybody_loads_its_session() {
    let mut world = World::new();
    let (session, other) = (world.session(), world.session());
    let mut left = |session: &str| {
        let prompt = world.prompt(session, "grandchild");
        world.settle(session, &prompt)["resultText"].as_str().unwrap().parse::<u32>().unwrap()
    };
    let (gone, stays) = (left(&session), left(&other));
    world.kill_host(&session);
    world.until_gone(&session);
    world.until_dead(&[gone].into());
    assert!(alive(stays), "another session's is not touched");
    world.load(&session);
}

#[test]
fn a_killed_agent_ends_its_prompts_and_its_session() {
    let mut world = World::new();
    let session = world.session();
    let running = world.prompt(&session, "die");
    let queued = world.prompt(&session, "hello");
    world.until_gone(&session);
    let loaded = world.load(&session);
    assert_eq!(
        terminals(&loaded),
        json!([[running, "error", "channel_closed", null], [queued, "error", "channel_closed", null]])
    );
}

#[test]
fn sigterm_puts_every_outcome_on_disk_before_the_exit() {
    let mut world = World::new();
    let session = world.session();
    let running = world.prompt(&session, "slow 60000");
    let queued = world.prompt(&session, "hello");
    world.until_chunk(&session, &running);
    let family = world.family();
    assert_eq!(world.terminate(), Some(0));
    let ledger = std::fs::read_to_string(chats(&world).join(format!("{session}.ledger.jsonl"))).unwrap();
    let ended: Vec<Value> = ledger
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["code"] == "daemon_shutdown")
        .collect();
    assert_eq!(ended.iter().map(|line| &line["promptId"]).collect::<Vec<_>>(), [&running, &queued]);
    world.until_dead(&family);
}

/// `[promptId, terminal, code, stopReason]` of each terminal in a load's answer.
fn terminals(loaded: &Value) -> Value {
    loaded["promptTerminals"]
        .as_array()
        .map(|list| {
            list.iter()
                .map(|record| json!([record["promptId"], record["terminal"], record["code"], record["stopReason"]]))
                .collect()
        })
        .unwrap_or_default()
}
