//! Things that happen at one moment, over HTTP. The agents' own synced journal says what was asked of them; ledger, stream and
//! poll must agree with it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread::{JoinHandle, spawn};

use serde_json::Value;

use crate::http::Connection;
use crate::stream::follow;
use crate::world::{World, chats, until};

/// Hand-overs from one prompt to the next.
const HAND_OVERS: usize = 1_000;
/// Copies of one prompt.
const COPIES: usize = 50;
/// Rounds of a race whose moment is chance.
const ROUNDS: usize = 25;

#[test]
fn a_thousand_prompts_handed_over_at_the_end_of_the_one_before_run_once_each_and_in_order() {
    let mut world = World::journaled(&[]);
    let session = world.session();
    let mut admitted = Vec::new();
    while admitted.len() < HAND_OVERS {
        let id = format!("p-{}", admitted.len());
        match submit(&mut world.connect(), &session, &id, "empty", "") {
            202 => admitted.push(id),
            503 => until("there is room", || (pending(&mut world, &session) < 5).then_some(())),
            other => panic!("{id}: {other}"),
        }
    }
    let stream = events(world.address(), &session);
    let last = admitted.last().unwrap().clone();
    assert_eq!(world.settle(&session, &last)["state"], "completed");
    close(&mut world, &session);
    drop(stream.join().unwrap());
    assert_eq!(heard(&world), admitted);
    assert_eq!(outcomes(&world, &session), admitted.iter().map(|id| (id.clone(), "completed".into())).collect());
}

#[test]
fn fifty_copies_of_one_prompt_at_once_are_one_prompt() {
    let mut world = World::journaled(&[]);
    let session = world.session();
    let start = Arc::new(Barrier::new(COPIES));
    let copies: Vec<JoinHandle<u16>> = (0..COPIES)
        .map(|_| {
            let (start, mut connection, session) = (Arc::clone(&start), world.connect(), session.clone());
            spawn(move || {
                start.wait();
                submit(&mut connection, &session, "the-one", "hello", "")
            })
        })
        .collect();
    for copy in copies {
        assert_eq!(copy.join().unwrap(), 202);
    }
    assert_eq!(world.settle(&session, "the-one")["resultText"], "echo: hello");
    assert_eq!(heard(&world), ["the-one"]);
    assert_eq!(outcomes(&world, &session), HashMap::from([("the-one".into(), "completed".into())]));
}

#[test]
fn removal_deadline_and_close_in_one_moment_leave_each_prompt_one_terminal() {
    let mut world = World::journaled(&["--prompt-deadline-ms", "60000"]);
    let mut admitted = HashSet::new();
    for round in 0..ROUNDS {
        let session = world.session();
        let id = |name: &str| format!("{name}-{round}");
        let stream = events(world.address(), &session);
        let deadline = format!(r#","deadlineMs":{}"#, 1 + round);
        for (name, text, extra) in [
            ("runs", "hang", ""),
            ("removed", "hello", ""),
            ("expires", "hello", deadline.as_str()),
            ("left", "hello", ""),
        ] {
            assert_eq!(submit(&mut world.connect(), &session, &id(name), text, extra), 202);
            admitted.insert(id(name));
        }
        let removed = format!("/session/{session}/pending-prompts/{}", id("removed"));
        at_once(&world, [("DELETE", removed), ("DELETE", format!("/session/{session}"))]);
        until_over(&mut world, &session);
        let ends = terminals(&stream.join().unwrap());
        assert_eq!(ends.len(), 4, "{ends:?}");
        let outcomes = outcomes(&world, &session);
        for name in ["runs", "removed", "expires", "left"] {
            assert_eq!(ends.iter().filter(|(prompt, _)| *prompt == id(name)).count(), 1, "{name}: {ends:?}");
            assert!(outcomes.contains_key(&id(name)), "{name}: {outcomes:?}");
        }
    }
    let heard = heard(&world);
    assert!(heard.iter().all(|id| id.starts_with("runs-")), "{heard:?}");
}

#[test]
fn a_cancel_at_the_end_of_a_turn_hits_one_prompt_and_one_by_id_never_the_next() {
    let mut world = World::journaled(&[]);
    let session = world.session();
    for round in 0..ROUNDS * 4 {
        let (first, second) = (format!("first-{round}"), format!("second-{round}"));
        // The agent takes some milliseconds, and each round the cancel comes a little later in them.
        submit(&mut world.connect(), &session, &first, &format!("slow {}", 1 + round % 7), "");
        submit(&mut world.connect(), &session, &second, "hello", "");
        for _ in 0..round % 11 {
            pending(&mut world, &session);
        }
        let by_id = round % 2 == 0;
        if by_id {
            let named = format!(r#"{{"promptId":"{first}"}}"#);
            assert_eq!(world.call("POST", &format!("/session/{session}/cancel"), &named).0, 204);
        } else {
            assert_eq!(world.call("POST", &format!("/session/{session}/cancel"), "").0, 204);
        }
        let first = world.settle(&session, &first);
        let second = world.settle(&session, &second);
        assert!(matches!(first["state"].as_str(), Some("completed" | "cancelled")), "{first}");
        let missed = second["state"] == "completed" && second["resultText"] == "echo: hello";
        // A cancel that names nothing means what runs: the second, once the first has ended.
        let meant = !by_id && first["state"] == "completed" && second["state"] == "cancelled";
        assert!(missed || meant, "{first} {second}");
    }
    one_at_a_time(&world);
}

/// Posts a prompt under an id; `extra` is more of the body. The status.
fn submit(connection: &mut Connection, session: &str, id: &str, text: &str, extra: &str) -> u16 {
    let body = format!(r#"{{"promptId":"{id}","prompt":[{{"type":"text","text":"{text}"}}]{extra}}}"#);
    connection.call("POST", &format!("/session/{session}/prompt"), &body).0
}

/// Sends requests from a thread each, all at one moment.
fn at_once<const N: usize>(world: &World, requests: [(&'static str, String); N]) {
    let start = Arc::new(Barrier::new(N));
    let senders = requests.map(|(method, path)| {
        let (start, mut connection) = (Arc::clone(&start), world.connect());
        spawn(move || {
            start.wait();
            connection.call(method, &path, "")
        })
    });
    for sender in senders {
        sender.join().unwrap();
    }
}

fn close(world: &mut World, session: &str) {
    world.call("DELETE", &format!("/session/{session}"), "");
    until_over(world, session);
}

fn until_over(world: &mut World, session: &str) {
    world.until_gone(session);
}

fn pending(world: &mut World, session: &str) -> usize {
    world.get(&format!("/session/{session}/pending-prompts"))["pendingPrompts"].as_array().unwrap().len()
}

/// Reads a session's events from the first to the last.
fn events(address: SocketAddr, session: &str) -> JoinHandle<Vec<String>> {
    let (sender, events) = channel();
    let stream = follow(address, session, move |event| sender.send(event.to_owned()).unwrap());
    spawn(move || {
        drop(stream.join().unwrap());
        events.iter().collect()
    })
}

/// The prompts of a stream's terminals, with their kinds.
fn terminals(events: &[String]) -> Vec<(String, String)> {
    let events = events.iter().map(|event| serde_json::from_str::<Value>(event).unwrap());
    let ends = events.filter(|event| event["type"] == "turn_complete" || event["type"] == "turn_error");
    ends.map(|event| {
        assert_eq!(event["promptId"], event["data"]["promptId"], "{event}");
        (event["promptId"].as_str().unwrap().to_owned(), event["type"].as_str().unwrap().to_owned())
    })
    .collect()
}

/// The outcome of every prompt that a session's ledger admitted; each must have one, and one only.
fn outcomes(world: &World, session: &str) -> HashMap<String, String> {
    let text = fs::read_to_string(chats(world).join(format!("{session}.ledger.jsonl"))).unwrap();
    let mut outcomes = HashMap::new();
    let mut admitted = HashSet::new();
    for record in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let prompt = record["promptId"].as_str().unwrap().to_owned();
        if record["state"] == "in_flight" {
            assert!(admitted.insert(prompt), "admitted twice: {record}");
        } else if let Some(terminal) = record["terminal"].as_str() {
            assert!(admitted.contains(&prompt), "ended before it was admitted: {record}");
            assert_eq!(outcomes.insert(prompt, terminal.to_owned()), None, "a second terminal: {record}");
        }
    }
    assert_eq!(admitted, outcomes.keys().cloned().collect(), "a prompt has no terminal");
    outcomes
}

/// The prompts that the agents heard, in order: each once, and none before the one before it was answered.
fn heard(world: &World) -> Vec<String> {
    one_at_a_time(world);
    let journal = world.journal();
    let prompts = journal.iter().filter(|line| line["heard"]["method"] == "session/prompt");
    let ids: Vec<String> = prompts
        .map(|line| line["heard"]["params"]["_meta"]["qwen-code/invocation"]["promptId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "a prompt was heard twice: {ids:?}");
    ids
}

/// In each session of an agent a prompt is heard only after the one before it was answered.
fn one_at_a_time(world: &World) {
    let mut open: HashMap<Value, Value> = HashMap::new();
    for line in world.journal() {
        if line["heard"]["method"] == "session/prompt" {
            let session = line["heard"]["params"]["sessionId"].clone();
            let before = open.insert(session, line["heard"]["id"].clone());
            assert_eq!(before, None, "two unanswered prompts: {line}");
        } else if !line["said"].is_null() {
            open.retain(|_, id| *id != line["said"]["id"]);
        }
    }
}
