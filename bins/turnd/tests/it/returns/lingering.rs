//! Requests whose daemon was killed and whose host goes on, and what is said of an id while the store cannot take requests.

use serde_json::{Value, json};

use super::{all_events, body, cancel, ended, get, interrupts, post, reached, sent, submit, submit_with, told, with};
use crate::world::{World, alive, until};

#[test]
fn a_deadline_fires_though_the_host_of_an_earlier_life_is_still_at_the_turn() {
    let mut world = World::journaled(&["--linger-ms", "60000"]);
    let session = world.session();
    submit_with(&mut world, &session, &with(body("X", "hang"), &json!({ "timeoutMs": 1_500 })));
    let host = world.cast(&session).host;
    world.kill_daemon();
    assert_eq!(told(&ended(&mut world, "X")), "timed_out deadline yes");
    assert!(alive(host), "it is not waited for");
    sent(&world, 1);
}

#[test]
fn a_cancel_ends_what_waits_for_the_host_of_an_earlier_life_and_its_session_waits_for_it_no_more() {
    let mut world = World::journaled(&["--linger-ms", "15000", "--session-restore-timeout-ms", "3000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "hang");
    world.kill_daemon();
    let path = format!("/session/{session}/load");
    let (status, refusal) = world.call("POST", &path, "");
    assert_eq!((status, &refusal["code"]), (409, &json!("session_writer_conflict")), "{refusal}");
    assert_eq!(
        refusal["error"].as_str().unwrap().split(" of session").next(),
        Some("A return request of an earlier life")
    );
    assert_eq!(told(&cancel(&mut world, "X", &json!({}))), "cancelled client_cancel yes");
    let (status, refusal) = world.call("POST", &path, "");
    assert_eq!((status, &refusal["code"]), (409, &json!("session_writer_conflict")), "the host has it still");
    assert!(refusal["pid"].is_u64(), "{refusal}");
}

/// The receipt once it shows what the turn came to behind the end of its request.
pub(super) fn with_late_outcome(world: &mut World, id: &str) -> Value {
    until("the late outcome is known", || {
        let receipt = get(world, id);
        receipt.get("late_outcome").is_some().then_some(receipt)
    })
}

/// State and code of a late outcome.
pub(super) fn late(receipt: &Value) -> String {
    let outcome = &receipt["late_outcome"];
    format!("{} {}", outcome["state"].as_str().unwrap(), outcome["code"].as_str().unwrap_or("-"))
}

#[test]
fn an_interrupt_reaches_the_agent_of_an_earlier_life_once_and_what_it_comes_to_is_shown_beside_the_end() {
    let mut world = World::journaled(&["--linger-ms", "60000"]);
    let session = world.session();
    let prompt = submit(&mut world, &session, "X", "hang")["prompt_id"].as_str().unwrap().to_owned();
    sent(&world, 1);
    world.kill_daemon();
    let first = cancel(&mut world, "X", &json!({ "interrupt": true }));
    assert_eq!(told(&first), "cancelled client_cancel yes");
    assert_eq!(cancel(&mut world, "X", &json!({ "interrupt": true }))["terminal"], first["terminal"]);
    let over = with_late_outcome(&mut world, "X");
    assert_eq!((told(&over).as_str(), late(&over).as_str()), ("cancelled client_cancel yes", "aborted turn_cancelled"));
    assert_eq!(interrupts(&world), 1);
    world.load(&session);
    assert_eq!(world.get(&format!("/session/{session}/turns/{prompt}"))["state"], "cancelled");
    submit(&mut world, &session, "Y", "hello");
    assert_eq!(ended(&mut world, "Y")["state"], "completed", "the session goes on");
    all_events(&mut world, 2);
    sent(&world, 2);
}

/// Its turn is looked at twice a second until it is over; the daemon passes on one wish once, and its host tells it once whatever it is told.
#[test]
fn an_agent_of_an_earlier_life_that_does_not_listen_hears_of_an_interrupt_once() {
    let mut world = World::journaled(&["--linger-ms", "60000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "deaf 8000");
    sent(&world, 1);
    world.kill_daemon();
    assert_eq!(told(&cancel(&mut world, "X", &json!({ "interrupt": true }))), "cancelled client_cancel yes");
    let over = with_late_outcome(&mut world, "X");
    assert_eq!((told(&over).as_str(), late(&over).as_str()), ("cancelled client_cancel yes", "aborted turn_cancelled"));
    assert_eq!(interrupts(&world), 1);
}

#[test]
fn what_a_turn_of_an_earlier_life_comes_to_behind_a_cancel_or_a_deadline_is_shown_beside_the_end() {
    let mut world = World::journaled(&["--linger-ms", "60000"]);
    let (one, two, three) = (world.session(), world.session(), world.session());
    submit(&mut world, &one, "X", "slow 3000");
    submit_with(&mut world, &two, &with(body("Y", "slow 4000"), &json!({ "timeoutMs": 1_000 })));
    let stopping = json!({ "timeoutMs": 1_000, "cancelOnTimeout": true });
    submit_with(&mut world, &three, &with(body("Z", "hang"), &stopping));
    sent(&world, 3);
    world.kill_daemon();
    cancel(&mut world, "X", &json!({}));
    // Somebody who opens the session in the meantime waits for its host, and changes nothing of that.
    world.load(&one);
    for (id, end, outcome) in [
        ("X", "cancelled client_cancel yes", "completed -"),
        ("Y", "timed_out deadline yes", "completed -"),
        ("Z", "timed_out deadline yes", "aborted turn_cancelled"),
    ] {
        let over = with_late_outcome(&mut world, id);
        assert_eq!((told(&over).as_str(), late(&over).as_str()), (end, outcome), "{over}");
    }
    assert_eq!(interrupts(&world), 1, "only the one whose deadline was to cancel it");
    all_events(&mut world, 3);
}

#[test]
fn a_host_that_is_stopped_when_its_daemon_dies_records_its_turn_when_it_goes_on() {
    let mut world = World::journaled(&["--linger-ms", "10000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "slow 500");
    let cast = world.cast(&session);
    // The kernel hangs up on those of a session of processes that are stopped when the last one dies that could let them go on.
    world.signal(&[cast.host], "STOP");
    world.until_stopped(cast.host);
    world.kill_daemon();
    world.signal(&[cast.host], "CONT");
    let over = ended(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["evidence"]), ("completed - yes", &json!("transcript_exact")));
    sent(&world, 1);
}

#[test]
fn an_id_that_was_sent_is_never_said_not_to_be_while_the_store_takes_nothing() {
    let mut world = World::journaled(&["--linger-ms", "100"]);
    let session = world.session();
    submit(&mut world, &session, "X", "hello");
    reached(&mut world, "X", "completed");
    assert_eq!(world.terminate(), Some(0));
    world.restart_failing("before:register=busy*2");
    let session = world.session();
    for (id, written, state) in [("X", "yes", json!("completed")), ("Y", "no", json!(null))] {
        let (status, refusal) = post(&mut world, &session, &body(id, "hello"));
        let said = (status, &refusal["code"], &refusal["input_written"], &refusal["state"]);
        assert_eq!(said, (503, &json!("store_busy"), &json!(written), &state), "{id}");
    }
    sent(&world, 1);
}

#[test]
fn an_id_that_waits_in_the_queue_may_be_sent_yet_and_a_store_that_takes_nothing_says_so() {
    let mut world = World::journaled(&["--linger-ms", "100"]);
    world.restart_failing("before:register=busy@3");
    let session = world.session();
    submit(&mut world, &session, "X", "hang");
    let queued = with(body("Q", "hello"), &json!({ "queue": true }));
    assert_eq!(submit_with(&mut world, &session, &queued)["input_written"], "no", "so far");
    let (status, refusal) = post(&mut world, &session, &queued);
    let said = (status, &refusal["code"], &refusal["input_written"], &refusal["state"], &refusal["request_id"]);
    assert_eq!(said, (503, &json!("store_busy"), &json!("maybe"), &json!("registered"), &json!("Q")), "{refusal}");
}

#[test]
fn what_a_turn_comes_to_behind_the_end_of_its_request_is_shown_though_the_daemon_died_in_between() {
    let mut world = World::journaled(&["--linger-ms", "20000"]);
    let (one, two) = (world.session(), world.session());
    submit(&mut world, &one, "X", "slow 1000");
    submit(&mut world, &two, "Y", "slow 4000");
    sent(&world, 2);
    let host = world.cast(&one).host;
    for id in ["X", "Y"] {
        assert_eq!(told(&cancel(&mut world, id, &json!({}))), "cancelled client_cancel yes");
    }
    let daemon = world.pid();
    world.signal(&[daemon], "KILL");
    until("the host has ended", || (!alive(host)).then_some(()));
    world.until_killed();
    // Of X there is only the transcript; Y goes on, unless the machine was busy.
    for id in ["X", "Y"] {
        let over = with_late_outcome(&mut world, id);
        let shown = (told(&over), late(&over));
        assert_eq!(shown, ("cancelled client_cancel yes".to_owned(), "completed -".to_owned()), "{over}");
    }
    assert_eq!(interrupts(&world), 0);
    all_events(&mut world, 2);
}
