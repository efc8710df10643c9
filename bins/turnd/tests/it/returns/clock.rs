//! Deadlines, numbers and times when the clock on the wall is set back an hour: under a turn, and between two lives of the daemon.

use std::fs;

use serde_json::{Value, json};

use super::{all_events, body, ended, get, now_ms, prompts, submit, submit_with, told, with};
use crate::world::{World, until};

const HOUR_MS: u64 = 3_600_000;

/// How long a request lives here, in milliseconds.
const TIMEOUT_MS: u64 = 1_000;

/// Has the daemon's clock be the world's.
fn plan(world: &World) -> String {
    format!("clock={}", world.base().join("clock").display())
}

/// A world whose clock can be set.
fn clocked() -> World {
    let mut world = World::journaled(&["--linger-ms", "60000"]);
    world.restart_failing(&plan(&world));
    world
}

fn set_back_an_hour(world: &World) {
    let (file, whole) = (world.base().join("clock"), world.base().join("clock.new"));
    fs::write(&whole, HOUR_MS.to_string()).unwrap();
    fs::rename(whole, file).unwrap();
}

/// Waits until the deadline of a request has come: far less than an hour.
fn timed_out(world: &mut World) -> Value {
    let over = until("its deadline has come", || {
        let receipt = get(world, "X");
        (receipt["reply_pending"] == false).then_some(receipt)
    });
    assert_eq!(told(&over), "timed_out deadline yes", "{over}");
    over
}

/// The times of an end, in their order.
fn times(event: &Value) -> [u64; 3] {
    ["created_at", "submitted_at", "ended_at"].map(|time| event[time].as_u64().unwrap())
}

/// The times of an end are in order and of one clock, though the clock was set back in between.
fn are_sane(event: &Value) {
    let times = times(event);
    assert!(times.is_sorted() && times[2] - times[0] < HOUR_MS / 2, "{event}");
}

#[test]
fn scenario_64_a_clock_that_is_set_back_an_hour_under_a_turn_holds_up_no_deadline_and_no_number() {
    let mut world = clocked();
    let (session, other) = (world.session(), world.session());
    submit(&mut world, &other, "before", "hello");
    ended(&mut world, "before");
    let asked_at_ms = now_ms();
    submit_with(&mut world, &session, &with(body("X", "hang"), &json!({ "timeoutMs": TIMEOUT_MS })));
    set_back_an_hour(&world);
    timed_out(&mut world);
    assert!(now_ms() >= asked_at_ms + TIMEOUT_MS, "it is not early");
    submit(&mut world, &other, "behind", "hello");
    ended(&mut world, "behind");
    let events = all_events(&mut world, 3);
    assert_eq!(events.iter().map(|event| &event["request_id"]).collect::<Vec<_>>(), ["before", "X", "behind"]);
    events.iter().for_each(are_sane);
    let ([_, _, x], [behind, ..]) = (times(&events[1]), times(&events[2]));
    assert!(behind + HOUR_MS / 2 < x, "the clock was set back indeed: {events:?}");
}

#[test]
fn scenario_64_a_deadline_is_not_late_by_what_the_clock_was_set_back_while_there_was_no_daemon_or_behind_that() {
    for is_back_by_then in [true, false] {
        let mut world = clocked();
        let session = world.session();
        submit(&mut world, &session, "before", "hello");
        ended(&mut world, "before");
        let asked = json!({ "timeoutMs": TIMEOUT_MS, "cancelOnTimeout": true });
        submit_with(&mut world, &session, &with(body("X", "slow 600000"), &asked));
        let plan = plan(&world);
        if is_back_by_then {
            set_back_an_hour(&world);
            world.restart_failing(&plan);
        } else {
            world.restart_failing(&plan);
            set_back_an_hour(&world);
        }
        // The host that outlived its daemon is still at the turn, and has it for much longer than this test is ready to wait.
        let over = timed_out(&mut world);
        let events = all_events(&mut world, 2);
        assert_eq!(events[1], over["terminal"]);
        events.iter().for_each(are_sane);
        let session = world.session();
        submit(&mut world, &session, "behind", "hello");
        ended(&mut world, "behind");
        let events = all_events(&mut world, 3);
        assert_eq!(events[2]["request_id"], "behind");
        assert!(times(&events[2])[0] + HOUR_MS / 2 < times(&events[1])[0], "the clock was set back indeed: {events:?}");
        assert_eq!(prompts(&world), 3);
    }
}

#[test]
fn a_prompt_that_is_no_request_and_what_waits_behind_it_are_not_held_up_either() {
    let mut world = clocked();
    let session = world.session();
    let asked = json!({ "prompt": [{ "type": "text", "text": "hang" }], "deadlineMs": TIMEOUT_MS }).to_string();
    let (status, hangs) = world.call("POST", &format!("/session/{session}/prompt"), &asked);
    assert_eq!(status, 202, "{hangs}");
    let behind = world.prompt(&session, "hello");
    world.until_chunk(&session, hangs["promptId"].as_str().unwrap());
    set_back_an_hour(&world);
    assert_eq!(world.settle(&session, &behind)["resultText"], "echo: hello");
    assert!(world.ledger(&session).contains("prompt_deadline_exceeded"));
}
