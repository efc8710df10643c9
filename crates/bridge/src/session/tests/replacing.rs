//! The agent that does not stop: what is asked of its host, and what is not.

use super::notation::{after, check};
use crate::PromptState;

const ADMIT_A: (&str, &str) = ("admit A", "record A, receipt A, echo A, > prompt A");
const ADMIT_B: (&str, &str) = ("admit B", "record B, receipt B, added B");
/// A's caller is released after 10 ms.
const RELEASED: [(&str, &str); 3] = [
    ("admit A 10", "record A, receipt A, echo A, > prompt A"),
    ADMIT_B,
    ("wait 10", "record A error prompt_deadline_exceeded, error A prompt_deadline_exceeded, cancel A, > cancel"),
];
const GRACE: [(&str, &str); 2] = [("wait 29999", ""), ("wait 1", "> replace A")];

fn released(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [&RELEASED[..], &GRACE, more].concat()
}

#[test]
fn an_agent_that_does_not_hear_a_cancel_is_replaced_after_the_grace_period_also_with_nothing_queued() {
    check(&[
        ADMIT_A,
        ("cancel", "wish A, cancel A, > cancel, ok"),
        GRACE[0],
        GRACE[1],
        ("cancel", "ok"),
        ("hostreplaced A", "record A cancelled, complete A cancelled"),
        ("admit B", "record B, receipt B, added B"),
        ("replaced", "replaced A cancel fresh, started B, echo B, > prompt B"),
        ("settle B end_turn", "record B completed end_turn, complete B end_turn, left B"),
    ]);
}

#[test]
fn behind_a_deadline_an_agent_is_replaced_only_when_another_prompt_waits() {
    check(&released(&[
        ("hostreplaced A", ""),
        ("replaced", "replaced A deadline fresh, started B, echo B, > prompt B"),
    ]));
    check(&[RELEASED[0], RELEASED[2], ("wait 600000", ""), ADMIT_B, ("wait 0", "> replace A")]);
    check(&[
        RELEASED[0],
        RELEASED[2],
        ("wait 600000", ""),
        ("settle A end_turn", ""),
        ("admit B", "record B, receipt B, echo B, > prompt B"),
    ]);
}

#[test]
fn a_client_may_want_a_turn_to_stop_whose_caller_was_released() {
    check(&[
        RELEASED[0],
        RELEASED[2],
        ("cancel", "cancel, ok"),
        GRACE[0],
        GRACE[1],
        ("replaced", "replaced A cancel fresh"),
    ]);
}

#[test]
fn a_running_prompt_that_is_removed_is_to_stop_too() {
    check(&[
        ADMIT_A,
        ("remove A", "wish A, cancel A, taken A, > cancel, removed true"),
        GRACE[0],
        GRACE[1],
        ("hostreplaced A", "record A cancelled, complete A cancelled"),
        ("replaced", "replaced A cancel fresh"),
    ]);
}

#[test]
fn an_agent_that_obeys_within_the_grace_period_is_left_alone() {
    check(&[
        ADMIT_A,
        ("cancel", "wish A, cancel A, > cancel, ok"),
        GRACE[0],
        ("settle A cancelled", "record A cancelled, complete A cancelled"),
        ("admit B", "record B, receipt B, echo B, > prompt B"),
        ("wait 600000", ""),
    ]);
}

#[test]
fn nothing_is_dispatched_before_the_host_has_answered() {
    check(&released(&[("settle A end_turn", ""), ("wait 499", ""), ("needless", "started B, echo B, > prompt B")]));
}

#[test]
fn an_agent_that_cannot_be_replaced_keeps_the_queue_waiting_and_the_next_turn_has_its_own_grace() {
    check(&released(&[
        ("kept", "kept A deadline no"),
        ("wait 600000", ""),
        ("settle A end_turn", "started B, echo B, > prompt B"),
        ("cancel", "wish B, cancel B, > cancel, ok"),
        ("wait 30000", "> replace B"),
        ("kept", "kept B cancel no"),
        ("close", "ok"),
        ("wait 1000", "record B error session_closed, error B session_closed, left B, > close session_closed"),
    ]));
    let session = after("admit A; cancel; wait 30000; kept; wait 600000");
    assert_eq!(session.turn(Some("A")).live.unwrap().state, PromptState::Running, "nobody made an end up");
}

#[test]
fn a_session_that_lost_its_agent_ends() {
    let ended = "record B error channel_closed, error B channel_closed, left B";
    check(&released(&[
        ("hostreplaced A", ""),
        ("noagent", ended),
        ("admit C", "closing"),
        ("lost", "died channel_closed, end, forget"),
    ]));
    // A host that does not answer is given up with its agent, whichever that is.
    check(&released(&[
        ("wait 499", ""),
        ("wait 1", "record B error channel_closed, error B channel_closed, left B, > close channel_closed"),
        ("replaced", ""),
        ("wait 500", "died channel_closed, end, forget"),
    ]));
}

#[test]
fn a_host_that_forgot_the_prompt_does_not_leave_it_running() {
    check(&[
        ADMIT_A,
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ADMIT_B,
        GRACE[0],
        GRACE[1],
        (
            "replaced",
            "replaced A cancel fresh, record A cancelled, complete A cancelled, started B, echo B, > prompt B",
        ),
    ]);
}

#[test]
fn an_answer_to_nothing_changes_nothing() {
    check(&[ADMIT_A, ("replaced", ""), ("noagent", ""), ("kept", ""), ("needless", "")]);
}

#[test]
fn what_the_old_agent_asks_is_answered_before_the_host_is_asked_and_nothing_of_it_is_put_to_the_vote_then() {
    check(&[
        ("ask idle", "ask idle"),
        ADMIT_A,
        ("cancel", "wish A, cancel A, > cancel, ok"),
        GRACE[0],
        ("wait 1", "> ruling idle cancelled, resolved idle cancelled agent_replaced, > replace A"),
        ("hostreplaced A", "record A cancelled, complete A cancelled"),
        ("ask q", "> ruling q cancelled"),
    ]);
}

#[test]
fn a_session_that_ends_does_not_wait_for_another_agent() {
    check(&released(&[
        ("close", "ok, record B error session_closed, error B session_closed, left B, > close session_closed"),
        ("replaced", "replaced A deadline fresh"),
        ("lost", "closed client_close, end, forget"),
    ]));
    check(&released(&[
        (
            "kill",
            "ok, record B error session_killed, error B session_killed, left B, died killed, end, > close session_killed",
        ),
        ("replaced", ""),
        ("lost", "forget"),
    ]));
    check(&[
        ADMIT_A,
        ("close", "ok, > cancel"),
        ("wait 1000", "record A error session_closed, error A session_closed, > close session_closed"),
    ]);
}
