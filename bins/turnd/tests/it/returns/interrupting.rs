//! Interrupts of turns whose requests have ended: they reach the agent that is still at the turn, in this life of the daemon and behind a kill
//! between the end and its telling.

use serde_json::json;

use super::lingering::{late, with_late_outcome};
use super::{all_events, body, cancel, ended, interrupts, reached, sent, submit, submit_with, told, with};
use crate::world::{World, until};

/// A world whose hosts live on for long, and whose daemon ends itself by a plan.
fn doomed(plan: &str) -> World {
    let mut world = World::journaled(&["--linger-ms", "60000"]);
    world.restart_failing(plan);
    world
}

/// Waits for what the turn of an ended request comes to, which is that it was stopped.
fn stopped(world: &mut World, id: &str, end: &str) {
    let over = with_late_outcome(world, id);
    assert_eq!((told(&over).as_str(), late(&over).as_str()), (end, "aborted turn_cancelled"), "{over}");
}

#[test]
fn scenario_57_an_interrupt_behind_the_end_stops_the_turn_that_goes_on_and_no_other() {
    let mut world = super::world();
    let session = world.session();
    submit(&mut world, &session, "X", "hang");
    let first = cancel(&mut world, "X", &json!({}));
    assert_eq!(interrupts(&world), 0);
    assert_eq!(cancel(&mut world, "X", &json!({ "interrupt": true }))["terminal"], first["terminal"]);
    stopped(&mut world, "X", "cancelled client_cancel yes");
    // The turn of the first one is over, and that of the other goes on, to its own end.
    submit_with(&mut world, &session, &with(body("W", "slow 3000"), &json!({ "timeoutMs": 1_000, "queue": true })));
    assert_eq!(told(&ended(&mut world, "W")), "timed_out deadline yes");
    cancel(&mut world, "X", &json!({ "interrupt": true }));
    assert_eq!(late(&with_late_outcome(&mut world, "W")), "completed -");
    assert_eq!(interrupts(&world), 1);
    submit_with(&mut world, &session, &with(body("Y", "hang"), &json!({ "timeoutMs": 1_000, "queue": true })));
    assert_eq!(told(&ended(&mut world, "Y")), "timed_out deadline yes");
    let over = cancel(&mut world, "Y", &json!({ "interrupt": true }));
    assert_eq!(over["state"], "timed_out", "the first end stands");
    stopped(&mut world, "Y", "timed_out deadline yes");
    assert_eq!(interrupts(&world), 2);
    all_events(&mut world, 3);
}

#[test]
fn an_interrupt_whose_daemon_died_behind_the_commit_is_passed_on_by_the_next_one() {
    let mut world = doomed("after:cancel=kill@3");
    let (one, two, three) = (world.session(), world.session(), world.session());
    submit(&mut world, &one, "X", "hang");
    submit(&mut world, &two, "Y", "hang");
    submit(&mut world, &three, "W", "slow 4000");
    sent(&world, 3);
    for left_alone in ["Y", "W"] {
        cancel(&mut world, left_alone, &json!({}));
    }
    let answer = world.connect().try_call("POST", "/return-requests/X/cancel", r#"{"interrupt":true}"#);
    assert_eq!(answer, None, "it was to die before its answer");
    world.until_killed();
    stopped(&mut world, "X", "cancelled client_cancel yes");
    assert_eq!(late(&with_late_outcome(&mut world, "W")), "completed -");
    assert_eq!(interrupts(&world), 1, "nobody wants the others to stop");
    // Until somebody does.
    cancel(&mut world, "Y", &json!({ "interrupt": true }));
    stopped(&mut world, "Y", "cancelled client_cancel yes");
    assert_eq!(interrupts(&world), 2);
    all_events(&mut world, 3);
}

#[test]
fn a_deadline_whose_daemon_died_behind_the_commit_stops_its_turn_in_the_next_life() {
    let mut world = doomed("after:deadline=kill@3");
    let (one, two, three) = (world.session(), world.session(), world.session());
    for (id, session, text) in [("Y", &two, "hang"), ("W", &three, "slow 6000")] {
        submit_with(&mut world, session, &with(body(id, text), &json!({ "timeoutMs": 1_000 })));
        reached(&mut world, id, "timed_out");
    }
    let stopping = json!({ "timeoutMs": 1_000, "cancelOnTimeout": true });
    submit_with(&mut world, &one, &with(body("X", "hang"), &stopping));
    sent(&world, 3);
    world.until_killed();
    stopped(&mut world, "X", "timed_out deadline yes");
    assert_eq!(late(&with_late_outcome(&mut world, "W")), "completed -");
    assert_eq!(interrupts(&world), 1, "the deadlines of the others leave their turns alone");
    cancel(&mut world, "Y", &json!({ "interrupt": true }));
    stopped(&mut world, "Y", "timed_out deadline yes");
    assert_eq!(interrupts(&world), 2);
    all_events(&mut world, 3);
}

#[test]
fn an_interrupt_that_comes_while_a_cancelled_turn_is_followed_reaches_its_host() {
    let mut world = World::journaled(&["--linger-ms", "60000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "hang");
    sent(&world, 1);
    world.kill_daemon();
    assert_eq!(told(&cancel(&mut world, "X", &json!({}))), "cancelled client_cancel yes");
    cancel(&mut world, "X", &json!({ "interrupt": true }));
    until("the agent has heard it", || (interrupts(&world) == 1).then_some(()));
    stopped(&mut world, "X", "cancelled client_cancel yes");
    assert_eq!(interrupts(&world), 1);
}
