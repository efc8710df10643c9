//! The end of a turn, its deadline and its cancel in one instant: one of them is the end, the others change nothing, whichever is first.

use std::thread;

use serde_json::{Value, json};

use super::{all_events, body, cancel, ended, get, now_ms, prompts, submit, submit_with, told, with, world};
use crate::world::{Cast, World, until};

/// How long a request lives that is to be answered before its deadline, or to be with its agent by then, in milliseconds.
const TIMEOUT_MS: u64 = 3_000;

/// What the agent says to the prompt.
const ANSWER: &str = "echo: hello";

/// A session whose daemon stops, or whose host does, as it is planned.
fn planned(plan: &str) -> (World, String, Cast) {
    let mut world = World::journaled(&["--linger-ms", "5000"]);
    world.restart_failing(plan);
    let session = world.session();
    let cast = world.cast(&session);
    (world, session, cast)
}

/// Does something on a connection of its own, while this goes on.
fn aside(world: &World, path: &str, body: &Value) -> thread::JoinHandle<(u16, Value)> {
    let (mut connection, path, body) = (world.connect(), path.to_owned(), body.to_string());
    thread::spawn(move || {
        let (status, answer) = connection.call("POST", &path, &body);
        (status, serde_json::from_str(&answer).unwrap())
    })
}

/// Lets the answer of the agent arrive at a daemon that is stopped while it writes another end.
fn answered_meanwhile(world: &World, session: &str, cast: Cast) {
    world.until_stopped(cast.daemon);
    world.signal(&[cast.host], "CONT");
    until("the host has recorded the answer", || world.transcript(session).contains("turn_result").then_some(()));
    world.signal(&[cast.daemon], "CONT");
}

/// It ended in this way, once and for all, and was heard once.
fn one_end(world: &mut World, expected: &str) -> Value {
    let over = ended(world, "X");
    assert_eq!(told(&over), expected, "{over}");
    let text = over["terminal"].get("final_message").and_then(Value::as_str);
    assert_eq!(text, (over["state"] == "completed").then_some(ANSWER), "{over}");
    assert_eq!(all_events(world, 1), [over["terminal"].clone()]);
    assert_eq!(prompts(world), 1);
    over
}

/// The same, and the answer that came too late is kept beside it.
fn one_end_before_the_answer(world: &mut World, expected: &str) {
    until("the answer is kept beside it", || (get(world, "X")["late_outcome"]["state"] == "completed").then_some(()));
    one_end(world, expected);
}

#[test]
fn scenario_56_a_deadline_that_is_being_written_when_the_answer_comes_is_the_end() {
    let (mut world, session, cast) = planned("before:deadline=stop*1; host:told=stop");
    submit_with(&mut world, &session, &with(body("X", "hello"), &json!({ "timeoutMs": TIMEOUT_MS })));
    answered_meanwhile(&world, &session, cast);
    one_end_before_the_answer(&mut world, "timed_out deadline yes");
}

#[test]
fn scenario_56_an_answer_that_is_being_written_when_the_deadline_comes_is_the_end() {
    let (mut world, session, cast) = planned("before:terminal=stop*1");
    let request = with(body("X", "hello"), &json!({ "timeoutMs": TIMEOUT_MS }));
    let posting = aside(&world, &format!("/session/{session}/return-requests"), &request);
    world.until_stopped(cast.daemon);
    let stopped_at_ms = now_ms();
    until("its deadline has passed", || (now_ms() > stopped_at_ms + TIMEOUT_MS).then_some(()));
    world.signal(&[cast.daemon], "CONT");
    assert_eq!(posting.join().unwrap().0, 202);
    let over = one_end(&mut world, "completed - yes");
    // What the timer may have said is on record before what is said of another request.
    let other = world.session();
    submit(&mut world, &other, "Y", "hello");
    ended(&mut world, "Y");
    assert_eq!(get(&mut world, "X"), over);
    assert!(over.get("late_evidence").is_none(), "{over}");
    all_events(&mut world, 2);
}

#[test]
fn scenario_58_a_cancel_that_is_being_written_when_the_answer_comes_is_the_end() {
    let (mut world, session, cast) = planned("before:cancel=stop*1; host:told=stop");
    submit(&mut world, &session, "X", "hello");
    let cancelling = aside(&world, "/return-requests/X/cancel", &json!({}));
    answered_meanwhile(&world, &session, cast);
    let (status, receipt) = cancelling.join().unwrap();
    assert_eq!((status, told(&receipt)), (200, "cancelled client_cancel yes".to_owned()), "{receipt}");
    one_end_before_the_answer(&mut world, "cancelled client_cancel yes");
}

#[test]
fn scenario_58_an_answer_that_is_being_written_when_the_cancel_comes_is_the_end() {
    let (mut world, session, cast) = planned("before:terminal=stop*1");
    let posting = aside(&world, &format!("/session/{session}/return-requests"), &body("X", "hello"));
    world.until_stopped(cast.daemon);
    // It is in the daemon's socket when this is back.
    let cancelling = aside(&world, "/return-requests/X/cancel", &json!({}));
    world.signal(&[cast.daemon], "CONT");
    assert_eq!(posting.join().unwrap().0, 202);
    let (status, receipt) = cancelling.join().unwrap();
    let over = one_end(&mut world, "completed - yes");
    assert_eq!((status, &receipt["terminal"]), (200, &over["terminal"]), "whoever cancels is told the end");
    assert!(over.get("late_evidence").is_none(), "{over}");
}

/// Requests of one session, each of which is ended about when its turn ends: sooner behind one whose turn came first, and later behind one
/// whose turn did not. What is said of each, and of all together, is the same whoever wins how often.
fn races(runs: usize, rival: &str, mut run: impl FnMut(&mut World, &str, &str, u64)) {
    let mut world = world();
    let session = world.session();
    let (mut wait_ms, mut completed) = (8, 0);
    for number in 0..runs {
        let id = format!("X{number}");
        run(&mut world, &session, &id, wait_ms);
        let over = ended(&mut world, &id);
        let is_completed = over["state"] == "completed";
        // How much of it the agent had by then is another matter.
        let expected = if is_completed { "completed - yes" } else { rival };
        assert!(told(&over).starts_with(expected), "{over}");
        let text = over["terminal"].get("final_message").and_then(Value::as_str);
        assert_eq!(text, is_completed.then_some(ANSWER), "{over}");
        completed += usize::from(is_completed);
        wait_ms = if is_completed { wait_ms / 2 } else { wait_ms + 1 + wait_ms / 8 };
    }
    let events = all_events(&mut world, runs);
    assert_eq!(events.iter().filter(|event| event["state"] == "completed").count(), completed);
    let receipts: Vec<Value> =
        (0..runs).map(|number| get(&mut world, &format!("X{number}"))["terminal"].clone()).collect();
    assert_eq!(events, receipts, "each ended before the next was made, and its receipt has the one event");
    assert!(prompts(&world) <= runs);
}

#[test]
fn scenario_56_of_a_deadline_and_the_end_of_the_turn_exactly_one_wins_two_hundred_times() {
    races(200, "timed_out deadline ", |world, session, id, wait_ms| {
        let asked = with(body(id, "hello"), &json!({ "queue": true, "timeoutMs": wait_ms + 1 }));
        submit_with(world, session, &asked);
    });
}

#[test]
fn scenario_58_of_a_cancel_and_the_end_of_the_turn_exactly_one_wins_a_thousand_times() {
    races(1_000, "cancelled client_cancel ", |world, session, id, wait_ms| {
        submit_with(world, session, &with(body(id, "hello"), &json!({ "queue": true })));
        world.get(&format!("/return-requests/{id}?wait_ms={wait_ms}"));
        let told = cancel(world, id, &json!({}));
        assert_eq!(get(world, id)["terminal"], told["terminal"]);
    });
}
