//! What is said of a request whose processes are killed at an exact point of its way: the daemon, the host and the agent, alone and
//! together. At the point a process stops itself (the plan in its environment); then some are killed, and what lives goes on.
//! `docs/return-requests.md` has the points in their order.

use std::thread;

use serde_json::{Value, json};

use super::{all_events, body, ended, post, reached, submit, submit_with, told, with};
use crate::world::{Cast, World, until};

/// Who is killed: any of **d**aemon, **h**ost and **a**gent.
const DEAD: [&str; 7] = ["d", "h", "a", "dh", "da", "ha", "dha"];

/// There is no such request, and the id can be used.
const FREE: &str = "free";
const UNSENT: &str = "indeterminate crash_before_submitted no";
const UNKNOWN: &str = "indeterminate crash_in_dispatch maybe";
const UNWRITTEN: &str = "delivery_failed write_failed no";
const GONE: &str = "delivery_failed agent_exited no";
/// The agent is gone, and its host did not say how much of the prompt it had.
const UNTOLD: &str = "indeterminate agent_exited maybe";
const EXITED: &str = "indeterminate agent_exited yes";
/// Also where a host that lives has put on record that its agent is gone.
const LOST: &str = "indeterminate daemon_lost yes";
const DONE: &str = "completed - yes";
/// What a daemon that lives may say of a prompt that it has not sent: that depends on when it notices that the other end is gone.
const TURNED_AWAY: &[&str] = &[FREE, GONE, UNWRITTEN, UNTOLD];

/// What the agent says to the prompt.
const ANSWER: &str = "1 2 3 4 5 6 7 8 done";

/// What becomes of a request at whose point these are killed.
fn at(point: &str, dead: &str) -> String {
    let mut world = World::journaled(&["--linger-ms", "5000"]);
    let is_hosts = point.starts_with("host:");
    world.restart_failing(&format!("{point}={}", if is_hosts { "stop" } else { "stop*1" }));
    let session = world.session();
    let cast = world.cast(&session);
    let is_over_by_then = point.ends_with("stage") || point.ends_with("terminal");
    // Where host and agent live on the turn ends by itself; elsewhere it would not for long.
    let text = if is_over_by_then || dead == "d" { "slow 400" } else { "slow 60000" };
    let (mut connection, path) = (world.connect(), format!("/session/{session}/return-requests"));
    let request = body("X", text);
    let sent = request.to_string();
    let posting = thread::spawn(move || connection.try_call("POST", &path, &sent));
    world.until_stopped(if is_hosts { cast.host } else { cast.daemon });
    if point == "host:told" {
        reached(&mut world, "X", "submitted");
    }
    kill(&mut world, cast, dead);
    let answer = posting.join().unwrap();
    let told = what_became(&mut world, &session, &request);
    if let Some((status, answer)) = answer {
        let refusal: Value = serde_json::from_str(&answer).unwrap();
        let is_refused = refusal["input_written"] == "no" && told == FREE;
        assert!(if status == 202 { told != FREE } else { is_refused }, "{told}: {status} {answer}");
    }
    told
}

/// Kills these, lets the others go on, and sees to it that there is a daemon.
fn kill(world: &mut World, cast: Cast, dead: &str) {
    let (dead, alive): (Vec<_>, Vec<_>) = [('d', cast.daemon), ('h', cast.host), ('a', cast.agent)]
        .into_iter()
        .partition(|(letter, _)| dead.contains(*letter));
    let pids = |cast: &[(char, u32)]| cast.iter().map(|(_, pid)| *pid).collect::<Vec<_>>();
    world.signal(&pids(&dead), "KILL");
    world.until_dead(&pids(&dead).into_iter().collect());
    world.signal(&pids(&alive), "CONT");
    if dead.iter().any(|(letter, _)| *letter == 'd') {
        world.until_killed();
    }
}

/// What is said of it, which must agree with what the agents have heard.
fn what_became(world: &mut World, session: &str, request: &Value) -> String {
    let there = until("it is known", || match world.call("GET", "/return-requests/X", "") {
        (503, _) => None,
        (status, _) => Some(status == 200),
    });
    if !there {
        // Nothing of it was sent, nor ever will be, and the id is free.
        assert_eq!(world.heard(), 0);
        let session = world.session();
        submit(world, &session, "X", "hello");
        assert_eq!(told(&ended(world, "X")), "completed - yes");
        assert_eq!(world.heard(), 1);
        return "free".to_owned();
    }
    let over = ended(world, "X");
    // Whoever was at it is gone when it can be loaded; of a session that never ran a prompt there is nothing to load.
    until("the session is free", || {
        let (status, _) = world.call("POST", &format!("/session/{session}/load"), "{}");
        (status == 200 || (status == 404 && over["input_written"] != "yes")).then_some(())
    });
    let completed = over["state"] == "completed";
    assert_eq!(over["terminal"].get("final_message").is_some_and(Value::is_string), completed, "{over}");
    assert!(!completed || (world.heard() == 1 && over["terminal"]["final_message"] == ANSWER), "{over}");
    let (status, again) = post(world, session, request);
    assert_eq!((status, &again["terminal"]), (200, &over["terminal"]), "what ended is not sent again");
    assert_eq!(all_events(world, 1), [over["terminal"].clone()]);
    let heard = world.heard();
    assert!(heard <= usize::from(over["input_written"] != "no"), "{heard} {over}");
    told(&over)
}

/// At each of these points: what is said where the daemon is killed there, alone or with others, in the order of [`DEAD`], and what where it
/// lives and host, agent or both are killed.
fn hold(points: &[&str], expected: [&[&str]; 7]) {
    for point in points {
        for (dead, expected) in DEAD.iter().zip(expected) {
            let told = at(point, dead);
            assert!(expected.contains(&&*told), "{point}, killed: {dead}; {told}, not one of {expected:?}");
        }
    }
}

#[test]
fn scenario_21_before_the_row_whoever_is_killed_there_is_no_request_or_it_was_not_sent() {
    let points = ["before:incarnation", "after:incarnation", "before:register"];
    hold(&points, [&[FREE], TURNED_AWAY, TURNED_AWAY, &[FREE], &[FREE], TURNED_AWAY, &[FREE]]);
}

#[test]
fn scenarios_22_23_before_the_mark_of_the_dispatch_whoever_is_killed_nothing_was_sent() {
    let points = ["after:register", "before:admitted", "before:dispatched"];
    hold(&points, [&[UNSENT], TURNED_AWAY, TURNED_AWAY, &[UNSENT], &[UNSENT], TURNED_AWAY, &[UNSENT]]);
    // The mark of the dispatch may be in the same commit.
    let either: &[&str] = &[UNSENT, UNKNOWN];
    hold(&["after:admitted"], [either, TURNED_AWAY, TURNED_AWAY, either, either, TURNED_AWAY, either]);
}

#[test]
fn scenario_24_behind_the_mark_of_the_dispatch_whoever_is_killed_nobody_says_that_it_was_sent() {
    let points = ["after:dispatched"];
    hold(&points, [&[UNKNOWN], TURNED_AWAY, TURNED_AWAY, &[UNKNOWN], &[UNKNOWN], TURNED_AWAY, &[UNKNOWN]]);
    // The host has the line, and has written nothing of it.
    let (unknown, untold): (&[&str], &[&str]) = (&[UNKNOWN], &[UNTOLD]);
    hold(&["host:taken"], [unknown, untold, &[UNWRITTEN], unknown, unknown, untold, unknown]);
}

#[test]
fn scenario_25_in_the_middle_of_the_line_only_a_host_that_lives_knows_that_it_was_not_written() {
    let (unknown, untold): (&[&str], &[&str]) = (&[UNKNOWN], &[UNTOLD]);
    hold(&["host:half"], [unknown, untold, &[UNWRITTEN], unknown, unknown, untold, unknown]);
}

#[test]
fn scenario_26_behind_the_line_and_before_its_mark_whoever_is_killed_it_is_never_taken_for_completed() {
    let (unknown, untold): (&[&str], &[&str]) = (&[UNKNOWN], &[UNTOLD]);
    hold(&["host:whole"], [unknown, untold, &[EXITED], unknown, unknown, untold, unknown]);
    let exited: &[&str] = &[EXITED];
    hold(&["before:written"], [unknown, exited, exited, unknown, unknown, exited, unknown]);
}

#[test]
fn scenarios_27_28_29_in_the_turn_the_end_is_what_a_host_that_lives_has_recorded() {
    let exited: &[&str] = &[EXITED];
    let points = ["host:told", "after:written", "after:bound"];
    hold(&points, [&[DONE], exited, exited, &[LOST], &[LOST], exited, &[LOST]]);
    // The mark that it was sent may be in the commit that does not come.
    let lost: &[&str] = &[LOST, UNKNOWN];
    hold(&["before:bound"], [&[DONE, UNKNOWN], exited, exited, lost, lost, exited, lost]);
}

#[test]
fn scenarios_30_33_behind_the_turn_whoever_is_killed_it_is_completed_with_its_text() {
    hold(&["before:stage", "after:stage"], [&[DONE]; 7]);
}

#[test]
fn scenarios_34_36_behind_its_end_on_the_ledger_whoever_is_killed_it_is_completed_with_its_text() {
    hold(&["before:terminal", "after:terminal"], [&[DONE]; 7]);
}

#[test]
fn scenario_25_a_daemon_that_dies_in_the_middle_of_the_line_to_its_host_has_sent_nothing() {
    let mut world = World::journaled(&["--linger-ms", "5000"]);
    let session = world.session();
    let cast = world.cast(&session);
    world.signal(&[cast.host], "STOP");
    // Far more than the host's input holds.
    let text = format!("say {}", "x".repeat(1_000_000));
    let (mut connection, path) = (world.connect(), format!("/session/{session}/return-requests"));
    let request = body("X", &text);
    let sent = request.to_string();
    let posting = thread::spawn(move || connection.try_call("POST", &path, &sent));
    until("it is being sent", || {
        (world.call("GET", "/return-requests/X", "").1["phase"] == "dispatching").then_some(())
    });
    kill(&mut world, cast, "d");
    assert_eq!(posting.join().unwrap(), None);
    assert_eq!(what_became(&mut world, &session, &request), UNKNOWN);
    assert_eq!(world.heard(), 0);
}

#[test]
fn a_daemon_that_is_killed_around_the_commit_of_a_deadline_has_it_passed_in_the_next_life() {
    for plan in ["before:deadline=kill", "after:deadline=kill"] {
        let mut world = World::journaled(&["--linger-ms", "5000"]);
        world.restart_failing(plan);
        let session = world.session();
        submit_with(&mut world, &session, &with(body("X", "slow 60000"), &json!({ "timeoutMs": 1_500 })));
        world.until_killed();
        assert_eq!(told(&ended(&mut world, "X")), "timed_out deadline yes", "{plan}");
        all_events(&mut world, 1);
        assert_eq!(world.heard(), 1, "{plan}");
    }
}

#[test]
fn scenario_56_a_daemon_that_is_stopped_over_deadline_and_answer_ends_its_request_once_when_it_goes_on() {
    let mut world = World::journaled(&["--linger-ms", "5000"]);
    let session = world.session();
    let cast = world.cast(&session);
    submit_with(&mut world, &session, &with(body("X", "slow 1500"), &json!({ "timeoutMs": 1_000 })));
    world.signal(&[cast.daemon], "STOP");
    until("the host has recorded the answer", || world.transcript(&session).contains("turn_result").then_some(()));
    world.signal(&[cast.daemon], "CONT");
    let over = ended(&mut world, "X");
    match &*told(&over) {
        DONE => assert!(over["terminal"]["final_message"].as_str().unwrap().ends_with(" 30 done"), "{over}"),
        "timed_out deadline yes" => {
            until("the answer is kept beside it", || {
                (super::get(&mut world, "X")["late_outcome"]["state"] == "completed").then_some(())
            });
        }
        told => panic!("{told}"),
    }
    assert_eq!(all_events(&mut world, 1), [over["terminal"].clone()]);
    assert_eq!(world.heard(), 1);
}

#[test]
fn a_host_that_is_stopped_in_the_line_holds_up_neither_deadline_nor_cancel_and_changes_nothing_when_it_goes_on() {
    for (point, written) in [("taken", "maybe"), ("half", "maybe"), ("whole", "maybe"), ("told", "yes")] {
        for ending in ["timed_out deadline", "cancelled client_cancel"] {
            let mut world = World::journaled(&["--linger-ms", "5000"]);
            world.restart_failing(&format!("host:{point}=stop"));
            let session = world.session();
            let cast = world.cast(&session);
            let timeout_ms = if ending.starts_with("timed_out") { 700 } else { 0 };
            let request = with(body("X", "slow 400"), &json!({ "timeoutMs": timeout_ms })).to_string();
            let (mut connection, path) = (world.connect(), format!("/session/{session}/return-requests"));
            let posting = thread::spawn(move || connection.try_call("POST", &path, &request));
            world.until_stopped(cast.host);
            if point == "told" {
                posting.join().unwrap().unwrap();
            }
            if timeout_ms == 0 {
                super::cancel(&mut world, "X", &json!({}));
            }
            let over = ended(&mut world, "X");
            assert_eq!(told(&over), format!("{ending} {written}"), "{point}");
            world.signal(&[cast.host], "CONT");
            let late = until("the outcome is kept beside it", || {
                let late = super::get(&mut world, "X");
                late["late_outcome"].is_object().then_some(late)
            });
            assert_eq!(late["terminal"], over["terminal"], "{point} {ending}");
            assert_eq!(world.heard(), 1, "{point} {ending}");
            assert_eq!(all_events(&mut world, 1), [over["terminal"].clone()]);
        }
    }
}

#[test]
fn a_daemon_that_is_stopped_over_a_deadline_before_the_dispatch_says_not_sent_only_of_what_was_not() {
    for point in ["after:register", "before:admitted", "after:admitted", "before:dispatched", "after:dispatched"] {
        let mut world = World::journaled(&["--linger-ms", "5000"]);
        world.restart_failing(&format!("{point}=stop*1"));
        let session = world.session();
        let cast = world.cast(&session);
        let request = with(body("X", "slow 400"), &json!({ "timeoutMs": 100 }));
        let (mut connection, path) = (world.connect(), format!("/session/{session}/return-requests"));
        let sent = request.to_string();
        let posting = thread::spawn(move || connection.try_call("POST", &path, &sent));
        world.until_stopped(cast.daemon);
        // So many looks are longer than it.
        let mut looks = 0..50;
        until("the deadline has passed", || looks.next().is_none().then_some(()));
        world.signal(&[cast.daemon], "CONT");
        assert_eq!(posting.join().unwrap().unwrap().0, 202, "{point}");
        let told = what_became(&mut world, &session, &request);
        // At the other points the mark of the dispatch may be on its way already.
        let known =
            told == "timed_out deadline no" || (point != "after:register" && told.starts_with("timed_out deadline "));
        assert!(known, "{point}: {told}");
    }
}
