//! A cancel that was answered outlives whatever is killed then. Every test here ends real processes with signal 9, right after
//! the answer to the cancel.

use serde_json::{Value, json};

use crate::world::{World, chats};

/// Agents that stop when they are told to, that do not hear it, and that have said a whole text before.
const SCRIPTS: [&str; 3] = ["hang", "deaf", "stuck"];

/// A world in which an agent that never settles is not waited for long.
fn world() -> World {
    World::journaled(&["--linger-ms", "100"])
}

/// A prompt that runs, and its session.
fn running(world: &mut World, text: &str) -> (String, String) {
    let session = world.session();
    let prompt = world.prompt(&session, text);
    world.until_chunk(&session, &prompt);
    (session, prompt)
}

fn cancel(world: &mut World, session: &str) {
    let (status, body) = world.call("POST", &format!("/session/{session}/cancel"), "{}");
    assert_eq!(status, 204, "{body}");
}

/// The states of a ledger's lines of one prompt, in file order.
fn states(world: &World, session: &str, prompt: &str) -> Vec<String> {
    let ledger = std::fs::read_to_string(chats(world).join(format!("{session}.ledger.jsonl"))).unwrap();
    let lines = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = lines.filter(|line| line["promptId"] == prompt);
    own.map(|line| line["state"].as_str().or(line["terminal"].as_str()).unwrap().to_owned()).collect()
}

/// How a load's answer speaks of a prompt: its terminal, or its reason with `?`, and `wished` where it says so.
fn told(loaded: &Value, prompt: &str) -> String {
    let find = |list: &str| loaded[list].as_array()?.iter().find(|entry| entry["promptId"] == prompt).cloned();
    let (said, word) = match (find("promptTerminals"), find("unresolvedPrompts")) {
        (Some(terminal), None) => (terminal["terminal"].as_str().unwrap().to_owned(), terminal),
        (None, Some(open)) => (format!("{}?", open["reason"].as_str().unwrap()), open),
        (terminal, open) => panic!("{prompt} is told of twice or not at all: {terminal:?} {open:?}"),
    };
    said + if word["cancelRequestedAt"].is_u64() { " wished" } else { "" }
}

/// The agents' own journal: nobody was asked for another prompt than this, nor for this a second time. The first agent may have
/// been killed before it heard of it.
fn check_asked_once(world: &World, prompt: &str) {
    let asked: Vec<_> =
        world.journal().into_iter().filter(|line| line["heard"]["method"] == "session/prompt").collect();
    assert!(asked.len() <= 1 && asked.iter().all(|line| line.to_string().contains(prompt)), "{asked:?}");
}

/// What may be told of a prompt whose cancel was answered before everything was killed.
fn is_honest(told: &str) -> bool {
    // An agent that had spoken may have been done: nothing is said, and the wish is shown.
    told == "cancelled" || told == "answered_or_cancelled? wished"
}

#[test]
fn a_cancel_that_was_answered_outlives_a_kill_of_everything() {
    for text in SCRIPTS {
        let mut world = world();
        let (session, prompt) = running(&mut world, text);
        cancel(&mut world, &session);
        world.kill_everything();
        assert_eq!(states(&world, &session, &prompt)[..2], ["in_flight", "cancel_requested"], "{text}");
        let told = told(&world.load(&session), &prompt);
        assert!(is_honest(&told), "{text}: {told}");
        check_asked_once(&world, &prompt);
    }
}

#[test]
fn without_a_cancel_the_same_kill_reads_as_a_crash() {
    for text in SCRIPTS {
        let mut world = world();
        let (session, prompt) = running(&mut world, text);
        world.kill_everything();
        assert_eq!(told(&world.load(&session), &prompt), "interrupted", "{text}");
    }
}

#[test]
fn a_cancel_that_was_answered_outlives_its_daemon() {
    for text in SCRIPTS {
        let mut world = world();
        let (session, prompt) = running(&mut world, text);
        cancel(&mut world, &session);
        world.kill_daemon();
        let loaded = world.load(&session);
        let told = told(&loaded, &prompt);
        // The daemon may have died before its word was out; then the host gives up on a turn that it knows of no cancel of.
        assert!(told == "cancelled" || told == "error wished", "{text}: {told} in {loaded}");
    }
}

#[test]
fn what_is_queued_behind_a_cancelled_prompt_stays_unknown_and_is_not_run() {
    for text in SCRIPTS {
        let mut world = world();
        let (session, prompt) = running(&mut world, text);
        let queued = world.prompt(&session, "hello");
        cancel(&mut world, &session);
        // Only `deaf` holds the queue for sure; the others may have let it go on before the kill.
        world.kill_everything();
        let loaded = world.load(&session);
        let first = told(&loaded, &prompt);
        assert!(is_honest(&first) || first == "several_dangling? wished", "{text}: {first}");
        if text == "deaf" {
            assert!(
                ["tail_before_other_terminal?", "several_dangling?", "marker_nothing_after?"]
                    .contains(&&*told(&loaded, &queued))
            );
            check_asked_once(&world, &prompt);
        }
        // A second crash and load say the same again.
        world.kill_everything();
        assert_eq!(told(&world.load(&session), &prompt), first, "{text}");
    }
}

#[test]
fn a_running_prompt_that_was_taken_off_the_list_reads_cancelled_too() {
    let mut world = world();
    let (session, prompt) = running(&mut world, "hang");
    let (status, body) = world.call("DELETE", &format!("/session/{session}/pending-prompts/{prompt}"), "");
    assert_eq!((status, &body["removed"]), (200, &json!(true)));
    world.kill_everything();
    assert_eq!(told(&world.load(&session), &prompt), "cancelled");
}

#[test]
fn a_poll_shows_since_when_a_running_prompt_is_cancelled() {
    let mut world = world();
    let (session, prompt) = running(&mut world, "deaf");
    let path = format!("/session/{session}/turns/{prompt}");
    assert_eq!(world.get(&path).get("cancelRequestedAt"), None);
    cancel(&mut world, &session);
    let turn = world.get(&path);
    assert!(turn["cancelRequestedAt"].as_u64() >= turn["startedAt"].as_u64(), "{turn}");
    assert_eq!(turn["state"], "running");
    let ledger = std::fs::read_to_string(chats(&world).join(format!("{session}.ledger.jsonl"))).unwrap();
    let wish: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
    assert_eq!((&wish["state"], &wish["at"]), (&json!("cancel_requested"), &turn["cancelRequestedAt"]));
}
