//! One row a statement: what happens, and the whole of what comes of it, in order.

use super::notation::{after, check};
use crate::{Deadline, Expiry, PromptState};

#[test]
fn an_admission_is_on_record_before_its_receipt_and_before_the_agent_sees_it() {
    check(&[("admit A", "record A, receipt A, echo A, > prompt A"), ("admit B", "record B, receipt B, added B")]);
}

#[test]
fn an_outcome_is_on_record_before_it_is_published_and_then_the_next_prompt_runs() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn, started B, echo B, > prompt B"),
        ("settle B refusal", "record B completed refusal, complete B refusal, left B"),
    ]);
}

#[test]
fn a_queue_holds_five_and_a_removed_prompt_frees_its_slot_at_once() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        ("admit C", "record C, receipt C, added C"),
        ("admit D", "record D, receipt D, added D"),
        ("admit E", "record E, receipt E, added E"),
        ("admit F", "full 5"),
        ("remove C", "taken C, record C cancelled, complete C cancelled, removed true"),
        ("admit F", "record F, receipt F, added F"),
        ("remove C", "removed false"),
    ]);
}

#[test]
fn a_cancel_is_written_once_and_decides_the_outcome() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("cancel", "ok"),
        ("settle A end_turn", "record A cancelled, complete A cancelled"),
    ]);
}

#[test]
fn a_cancel_that_names_a_prompt_does_nothing_to_any_other() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        ("cancel B", "ok"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn, started B, echo B, > prompt B"),
        ("cancel A", "ok"),
        ("cancel C", "ok"),
        ("cancel B", "wish B, cancel B, > cancel, ok"),
    ]);
}

#[test]
fn the_wish_to_cancel_is_on_record_once_before_anybody_hears_of_it() {
    let begun = [
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("remove A", "taken A, removed true"),
        ("cancel", "ok"),
    ];
    check(
        &[
            &begun[..],
            &[("settle A cancelled", "record A cancelled, complete A cancelled, started B, echo B, > prompt B")],
        ]
        .concat(),
    );
    // The next one's is its own.
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("settle A end_turn", "record A cancelled, complete A cancelled"),
        ("cancel", "cancel, ok"),
        ("admit B", "record B, receipt B, echo B, > prompt B"),
        ("remove B", "wish B, cancel B, taken B, > cancel, removed true"),
    ]);
}

#[test]
fn what_no_client_wished_is_not_on_record_as_a_wish() {
    check(&[
        ("admit A 10", "record A, receipt A, echo A, > prompt A"),
        ("wait 10", "record A error prompt_deadline_exceeded, error A prompt_deadline_exceeded, cancel A, > cancel"),
        ("cancel", "cancel, ok"),
        ("remove A", "removed false"),
    ]);
    check(&[("admit A", "record A, receipt A, echo A, > prompt A"), ("close", "ok, > cancel"), ("cancel", "closing")]);
}

#[test]
fn a_cancel_after_the_end_of_its_prompt_does_nothing_to_the_next() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
        ("cancel", "cancel, ok"),
        ("cancel", "ok"),
        ("admit B", "record B, receipt B, echo B, > prompt B"),
        ("settle B end_turn", "record B completed end_turn, complete B end_turn"),
        ("cancel", "cancel, ok"),
    ]);
}

#[test]
fn the_host_knows_better_than_a_cancel_and_than_the_agent() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("host A completed end_turn", "record A completed end_turn, complete A end_turn"),
        ("admit B", "record B, receipt B, echo B, > prompt B"),
        ("host B cancelled end_turn", "record B cancelled, complete B cancelled"),
    ]);
}

#[test]
fn an_error_after_a_cancel_is_a_cancelled_turn_unless_it_is_the_hosts() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("fail A", "record A cancelled, complete A cancelled"),
        ("admit B", "record B, receipt B, echo B, > prompt B"),
        ("cancel", "wish B, cancel B, > cancel, ok"),
        ("hostfail B", "record B error transcript_unwritable, error B transcript_unwritable"),
    ]);
}

#[test]
fn a_failed_prompt_says_that_the_agent_refused_it_before_its_error() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("fail A", "refused A, record A error -32603, error A -32603"),
    ]);
}

#[test]
fn a_running_prompt_that_is_removed_leaves_the_list_at_once_and_ends_when_it_settles() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        ("remove A", "wish A, cancel A, taken A, > cancel, removed true"),
        ("remove A", "removed false"),
        ("settle A cancelled", "record A cancelled, complete A cancelled, started B, echo B, > prompt B"),
        ("cancel", "wish B, cancel B, > cancel, ok"),
        ("remove B", "taken B, removed true"),
        ("settle B cancelled", "record B cancelled, complete B cancelled"),
    ]);
    let session = after("admit A; admit B; remove A");
    assert_eq!(session.pending().len(), 1, "gone from the list");
    assert_eq!(session.turn(Some("A")).live.unwrap().state, PromptState::Running, "and running for the poll");
}

#[test]
fn a_late_answer_changes_nothing() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
        ("settle A refusal", ""),
        ("fail A", ""),
        ("settle nobody end_turn", ""),
    ]);
}

#[test]
fn the_repetition_of_a_failed_prompt_is_not_echoed() {
    check(&[
        ("retry A", "record A, receipt A, echo A, > prompt A"),
        ("fail A", "refused A, record A error -32603, error A -32603"),
        ("retry B", "record B, receipt B, > prompt B"),
        ("settle B end_turn", "record B completed end_turn, complete B end_turn"),
        ("retry C", "record C, receipt C, echo C, > prompt C"),
    ]);
}

#[test]
fn a_deadline_releases_the_caller_and_the_agent_still_holds_one_prompt_only() {
    check(&[
        ("admit A 100", "record A, receipt A, echo A, > prompt A"),
        ("admit B 50", "record B, receipt B, added B"),
        ("admit C", "record C, receipt C, added C"),
        ("wait 49", ""),
        ("wait 1", "record B error prompt_deadline_exceeded, error B prompt_deadline_exceeded, left B"),
        ("wait 50", "record A error prompt_deadline_exceeded, error A prompt_deadline_exceeded, cancel A, > cancel"),
        ("cancel", "cancel, ok"),
        ("settle A end_turn", "started C, echo C, > prompt C"),
    ]);
}

#[test]
fn a_run_deadline_never_ends_what_only_waits_and_has_the_same_code() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B run 50", "record B, receipt B, added B"),
        ("runover B", ""),
        ("admit C 50", "record C, receipt C, added C"),
        ("wait 50", "record C error prompt_deadline_exceeded, error C prompt_deadline_exceeded, left C"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn, started B, echo B, > prompt B"),
        ("wait 49", ""),
        (
            "wait 1",
            "record B error prompt_deadline_exceeded, error B prompt_deadline_exceeded, left B, cancel B, > cancel",
        ),
    ]);
}

#[test]
fn an_expired_prompt_says_which_clock_ran_out_and_what_it_did() {
    let expiry = |script: &str, id: &str| after(script).turn(Some(id)).overlay.unwrap().expiry;
    let expired = |deadline, state| Some(Expiry { deadline, state });
    let script = "admit A; admit B 50; admit C 70; wait 50; settle A end_turn; wait 20";
    assert_eq!(expiry(script, "B"), expired(Deadline::Absolute, PromptState::Queued));
    assert_eq!(expiry(script, "C"), expired(Deadline::Absolute, PromptState::Running));
    assert_eq!(expiry("admit A 90 70; wait 100", "A"), expired(Deadline::Run, PromptState::Running));
    assert_eq!(expiry(script, "A"), None);
}

#[test]
fn a_deadline_after_a_cancel_does_not_cancel_again() {
    check(&[
        ("admit A 100", "record A, receipt A, echo A, > prompt A"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("wait 100", "record A error prompt_deadline_exceeded, error A prompt_deadline_exceeded"),
    ]);
}

#[test]
fn the_first_vote_decides_and_the_agent_hears_it_first() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("ask q", "ask q"),
        ("vote q no", "no such option"),
        ("vote q yes", "> ruling q \"yes\", resolved q yes, voted"),
        ("vote q cancelled", "was resolved q yes, too late yes"),
        ("vote p yes", "no such request"),
    ]);
}

#[test]
fn a_cancel_resolves_what_the_turn_waits_for_and_refuses_what_it_asks_then() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("ask q", "ask q"),
        ("cancel", "wish A, cancel A, > cancel, > ruling q cancelled, resolved q cancelled prompt_cancelled, ok"),
        ("ask p", "> ruling p cancelled"),
    ]);
}

#[test]
fn a_request_left_open_by_an_answered_turn_is_refused() {
    check(&[
        ("ask idle", "ask idle"),
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("ask q", "ask q"),
        (
            "settle A end_turn",
            "> ruling q cancelled, resolved q cancelled turn_ended, record A completed end_turn, complete A end_turn",
        ),
        ("vote idle yes", "> ruling idle \"yes\", resolved idle yes, voted"),
    ]);
}

#[test]
fn a_close_waits_for_the_running_turn_and_never_dispatches_the_queue() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        ("ask q", "ask q"),
        (
            "close",
            "ok, > ruling q cancelled, resolved q cancelled session_closed, record B error session_closed, \
             error B session_closed, left B, > cancel",
        ),
        ("admit C", "closing"),
        ("cancel", "closing"),
        ("remove A", "closing"),
        ("close", "closing"),
        ("settle A end_turn", "record A cancelled, complete A cancelled, > close session_closed"),
        ("lost", "closed client_close, end, forget"),
        ("admit D", "gone"),
        ("kill", "gone"),
        ("lost", ""),
    ]);
}

#[test]
fn a_close_gives_the_turn_a_second_and_the_host_half_of_one() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("close", "ok, > cancel"),
        ("wait 999", ""),
        ("wait 1", "record A error session_closed, error A session_closed, > close session_closed"),
        ("settle A end_turn", ""),
        ("wait 499", ""),
        ("wait 1", "closed client_close, end, forget"),
    ]);
}

#[test]
fn an_idle_session_is_told_to_end_at_once() {
    check(&[("close", "ok, > close session_closed"), ("lost", "closed client_close, end, forget")]);
}

#[test]
fn a_close_does_not_wait_for_a_turn_whose_caller_was_released() {
    check(&[
        ("admit A 10", "record A, receipt A, echo A, > prompt A"),
        ("wait 10", "record A error prompt_deadline_exceeded, error A prompt_deadline_exceeded, cancel A, > cancel"),
        ("close", "ok, > close session_closed"),
    ]);
}

#[test]
fn an_agent_that_dies_under_a_close_still_closes_the_session() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("close", "ok, > cancel"),
        ("lost", "record A error channel_closed, error A channel_closed, closed client_close, end, forget"),
    ]);
}

#[test]
fn a_kill_and_a_shutdown_end_everything_at_once_and_then_wait_for_the_host() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        (
            "kill",
            "ok, record A error session_killed, error A session_killed, record B error session_killed, \
             error B session_killed, left B, died killed, end, > close session_killed",
        ),
        ("settle A end_turn", ""),
        ("kill", "ok"),
        ("shutdown", ""),
        ("lost", "forget"),
    ]);
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        (
            "shutdown",
            "record A error daemon_shutdown, error A daemon_shutdown, cancel A, died daemon_shutdown, end, \
             > close daemon_shutdown",
        ),
        ("wait 500", "forget"),
    ]);
}

#[test]
fn a_shutdown_does_not_wait_for_a_close() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("close", "ok, > cancel"),
        (
            "shutdown",
            "record A error daemon_shutdown, error A daemon_shutdown, died daemon_shutdown, end, \
             > close daemon_shutdown",
        ),
    ]);
}

#[test]
fn a_lost_channel_ends_the_running_and_the_waiting_prompts_alike() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        (
            "exited",
            "refused A, record A error channel_closed, error A channel_closed, record B error channel_closed, \
             error B channel_closed, left B, died channel_closed, end, forget",
        ),
        ("settle A end_turn", ""),
        ("say late", ""),
    ]);
}

#[test]
fn a_host_that_says_its_agent_is_gone_gets_no_further_prompt() {
    let begun = [
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        (
            "hostgone A",
            "refused A, record A error channel_closed, error A channel_closed, record B error channel_closed, \
             error B channel_closed, left B",
        ),
        ("admit C", "closing"),
    ];
    check(&[&begun[..], &[("exited", "died channel_closed, end, forget")]].concat());
    // A host that hangs instead of ending is not waited for without end.
    check(&[&begun[..], &[("wait 499", ""), ("wait 1", "died channel_closed, end, forget")]].concat());
}

#[test]
fn a_host_whose_agent_is_gone_gets_nothing_after_a_deadline_either() {
    check(&[
        ("admit A 10", "record A, receipt A, echo A, > prompt A"),
        ("wait 10", "record A error prompt_deadline_exceeded, error A prompt_deadline_exceeded, cancel A, > cancel"),
        ("admit B", "record B, receipt B, added B"),
        ("hostgone A", "record B error channel_closed, error B channel_closed, left B"),
        ("lost", "died channel_closed, end, forget"),
    ]);
}

#[test]
fn an_update_bears_the_prompt_that_the_agent_holds() {
    check(&[
        ("say early", "update"),
        ("admit A 10", "record A, receipt A, echo A, > prompt A"),
        ("say hi", "update A"),
        ("wait 10", "record A error prompt_deadline_exceeded, error A prompt_deadline_exceeded, cancel A, > cancel"),
        ("admit B", "record B, receipt B, added B"),
        ("say late", "update A"),
        ("settle A end_turn", "started B, echo B, > prompt B"),
    ]);
}

#[test]
fn the_same_id_runs_once() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("admit A", "known true"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
        ("admit A", "known true"),
    ]);
}
