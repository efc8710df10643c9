//! What becomes of a witnessed turn when the daemon stops. Its agent has 600 ms to answer undisturbed, and 300 ms more to obey a cancel.

use super::notation::{Play, check};
use super::races::{Race, orders};
use crate::FlushOrigin;
use crate::effect::{Effect, Word};

const BEGUN: [(&str, &str); 3] = [
    ("witness A", "record A, receipt A, ~ next A after 0 -"),
    ("go A", "echo A, > prompt A"),
    ("written A", "~ written A"),
];
const DIED: &str = "died daemon_shutdown, end, > close daemon_shutdown";

/// A session in which A runs, and what happens then.
fn check_from_running(rows: &[(&str, &str)]) {
    check(&[&BEGUN[..], rows].concat());
}

/// The outcome that A ends with behind its witness's word, and the end of the session.
fn confirmed(record: &str, event: &str) -> String {
    format!("record A {record}, ~ ended A {record} yes answered, {event}, {DIED}")
}

/// What becomes of A without an answer.
fn flushed(written: &str) -> String {
    format!(
        "record A error daemon_shutdown, ~ ended A error daemon_shutdown {written} flushed, error A daemon_shutdown, \
         cancel A, {DIED}"
    )
}

#[test]
fn an_answer_that_comes_undisturbed_is_the_outcome_behind_the_pause_and_its_witness() {
    check_from_running(&[
        ("shutdown", ""),
        ("wait 599", ""),
        ("say late but whole", "~ heard A, update A"),
        ("settle A end_turn", ""),
        ("wait 10", "~ settling A completed end_turn yes"),
        ("confirm A", &confirmed("completed end_turn", "complete A end_turn")),
        ("wait 500", "forget"),
    ]);
    check_from_running(&[
        ("shutdown", ""),
        ("fail A", "~ settling A error -32603 yes"),
        (
            "confirm A",
            &format!("refused A, record A error -32603, ~ ended A error -32603 yes answered, error A -32603, {DIED}"),
        ),
    ]);
}

#[test]
fn one_that_has_not_answered_is_told_to_cancel_and_what_it_says_behind_that_is_no_completion() {
    for answer in ["settle A end_turn", "settle A cancelled", "fail A"] {
        check_from_running(&[
            ("shutdown", ""),
            ("wait 600", "> cancel"),
            ("wait 299", ""),
            (answer, "~ settling A cancelled yes"),
            ("confirm A", &confirmed("cancelled", "complete A cancelled")),
            ("lost", "forget"),
        ]);
    }
    check_from_running(&[
        ("shutdown", ""),
        ("wait 600", "> cancel"),
        ("host A completed end_turn", ""),
        ("wait 10", "~ settling A completed end_turn yes"),
        ("confirm A", &confirmed("completed end_turn", "complete A end_turn")),
    ]);
}

#[test]
fn one_that_does_not_answer_at_all_ends_within_the_bound_as_a_plain_one_does_at_once() {
    check_from_running(&[
        ("shutdown", ""),
        ("wait 600", "> cancel"),
        ("wait 299", ""),
        ("wait 1", &flushed("yes")),
        ("settle A end_turn", "~ late A cancelled yes"),
        ("wait 500", "forget"),
    ]);
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        ("shutdown", ""),
        ("wait 600", "> cancel"),
        ("wait 300", &flushed("maybe")),
    ]);
}

#[test]
fn what_waits_behind_it_ends_at_once_and_nothing_new_is_taken() {
    check_from_running(&[
        ("admit B", "record B, receipt B, added B"),
        ("witness C", "record C, receipt C, added C"),
        ("steer D", "steered D, added D"),
        (
            "shutdown",
            "record D, record B error daemon_shutdown, error B daemon_shutdown, left B, record C error daemon_shutdown, \
             ~ ended C error daemon_shutdown no flushed, error C daemon_shutdown, left C, record D error daemon_shutdown, \
             error D daemon_shutdown, left D",
        ),
        ("admit E", "closing"),
        ("witness E", "closing"),
        ("steer E", "closing"),
        ("hold", "closing"),
        ("cancel", "closing"),
        ("remove A", "closing"),
        ("close", "closing"),
        ("drain", "~ heard A, > drained -"),
        ("settle A end_turn", ""),
        ("wait 10", "~ settling A completed end_turn yes"),
        ("confirm A", &confirmed("completed end_turn", "complete A end_turn")),
        ("admit E", "closing"),
    ]);
}

#[test]
fn what_waits_for_a_permission_or_asks_for_one_is_told_to_cancel_at_once() {
    check_from_running(&[
        ("ask q", "~ heard A, ask q"),
        ("shutdown", "> ruling q cancelled, resolved q cancelled daemon_shutdown, > cancel"),
        ("wait 899", ""),
        ("wait 1", &flushed("yes")),
    ]);
    check_from_running(&[
        ("shutdown", ""),
        ("ask q", "~ heard A, > cancel, > ruling q cancelled"),
        ("ask p", "> ruling p cancelled"),
        ("settle A end_turn", "~ settling A cancelled yes"),
    ]);
}

#[test]
fn one_that_was_told_to_cancel_before_is_told_nothing_more_and_has_as_long() {
    check_from_running(&[
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("shutdown", ""),
        ("wait 899", ""),
        ("settle A cancelled", "~ settling A cancelled yes"),
        ("confirm A", &confirmed("cancelled", "complete A cancelled")),
    ]);
    check_from_running(&[
        ("close", "ok, > cancel"),
        ("wait 900", ""),
        ("shutdown", ""),
        ("wait 99", ""),
        (
            "wait 1",
            "record A error daemon_shutdown, ~ ended A error daemon_shutdown yes flushed, error A daemon_shutdown, \
             died daemon_shutdown, end, > close daemon_shutdown",
        ),
    ]);
}

#[test]
fn a_plain_prompt_an_idle_session_and_a_turn_that_is_over_are_not_waited_for() {
    let plain = "record A error daemon_shutdown, error A daemon_shutdown, cancel A";
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("witness B", "record B, receipt B, added B"),
        (
            "shutdown",
            &format!(
                "{plain}, record B error daemon_shutdown, ~ ended B error daemon_shutdown no flushed, \
                 error B daemon_shutdown, left B, {DIED}"
            ),
        ),
    ]);
    check(&[("shutdown", DIED)]);
    check(&[
        ("witness A 10", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        (
            "wait 10",
            "record A error prompt_deadline_exceeded, ~ ended A error prompt_deadline_exceeded maybe expired, \
             error A prompt_deadline_exceeded, cancel A, > cancel",
        ),
        ("shutdown", DIED),
    ]);
}

#[test]
fn an_agent_or_host_that_is_lost_meanwhile_has_not_answered() {
    let record = "record A error daemon_shutdown, ~ ended A error daemon_shutdown yes flushed, error A daemon_shutdown, \
                  cancel A";
    check_from_running(&[("shutdown", ""), ("hostgone A", &flushed("yes")), ("exited", "forget")]);
    for lost in ["lost", "exited"] {
        check_from_running(&[("shutdown", ""), (lost, &format!("{record}, died daemon_shutdown, end, forget"))]);
    }
}

#[test]
fn an_outcome_whose_witness_is_slow_is_kept_and_told_at_the_bound() {
    check_from_running(&[
        ("shutdown", ""),
        ("settle A end_turn", ""),
        ("wait 10", "~ settling A completed end_turn yes"),
        ("wait 889", ""),
        ("wait 1", &confirmed("completed end_turn", "complete A end_turn")),
        ("confirm A", ""),
    ]);
}

#[test]
fn a_session_that_is_told_twice_or_killed_waits_no_longer() {
    check_from_running(&[("shutdown", ""), ("shutdown", &flushed("yes")), ("shutdown", "")]);
    check_from_running(&[
        ("shutdown", ""),
        (
            "kill",
            "ok, record A error session_killed, ~ ended A error session_killed yes flushed, error A session_killed, \
             died killed, end, > close session_killed",
        ),
    ]);
}

#[test]
fn the_witness_hears_that_the_daemon_made_it_stop_and_not_of_a_cancel_that_came_first() {
    let stopped_by = |script: &[&str]| {
        let mut play = Play::new();
        let effects: Vec<Effect> = script.iter().flat_map(|statement| play.act(statement)).collect();
        effects.iter().find_map(|effect| match effect {
            Effect::Witness { word: Word::Settling(told), .. } => Some(told.stopped_by),
            _ => None,
        })
    };
    let told = |then: &[&str]| stopped_by(&[&["witness A", "go A"], then].concat());
    assert_eq!(told(&["shutdown", "wait 600", "settle A cancelled"]), Some(Some(FlushOrigin::DaemonShutdown)));
    assert_eq!(told(&["ask q", "shutdown", "settle A end_turn"]), Some(Some(FlushOrigin::DaemonShutdown)));
    assert_eq!(told(&["cancel", "shutdown", "wait 600", "settle A cancelled"]), Some(None));
    assert_eq!(told(&["close", "shutdown", "settle A cancelled"]), Some(Some(FlushOrigin::SessionClosed)));
    assert_eq!(told(&["shutdown", "settle A end_turn", "wait 10"]), Some(None));
}

#[test]
fn what_meets_while_the_daemon_stops_ends_each_prompt_once() {
    let meeting = ["wait 0", "settle A end_turn", "confirm A", "ask q", "shutdown", "hostgone A", "lost"];
    for setting in [
        &["witness A", "go A", "admit B", "shutdown", "tick 600"][..],
        &["witness A", "go A", "cancel", "shutdown", "tick 900"],
        &["witness A", "go A", "steer B", "tick 1"],
    ] {
        orders(&meeting, |order| {
            let mut race = Race::after(setting);
            order.iter().for_each(|statement| race.act(statement));
            race.rest();
        });
    }
}
