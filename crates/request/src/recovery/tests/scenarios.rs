//! The scenarios of return requests, part 4, that are decisions of recovery, and the crash points of section 2.7.

use super::*;
use crate::recovery::{is_never_dispatched, needs_transcript};

fn not_yet() -> Found {
    Found { stage: None, ledger: LedgerFound::Open, transcript: TranscriptFound::NotYet }
}

#[test]
fn scenario_22_c2_a_row_and_no_more() {
    let request = crashed("registered", None);
    assert_eq!(said(&request, &not_yet()), "indeterminate crash_before_submitted no");
    assert!(is_never_dispatched(&request));
}

#[test]
fn scenario_23_c3_an_admission_and_no_dispatch() {
    let request = crashed("registered > admitted", None);
    assert_eq!(said(&request, &not_yet()), "indeterminate crash_before_submitted no");
    assert!(is_never_dispatched(&request));
}

#[test]
fn scenario_24_c4_a_dispatch_and_perhaps_no_byte() {
    let request = crashed("registered > admitted > dispatched", None);
    assert_eq!(said(&request, &not_yet()), "indeterminate crash_in_dispatch maybe");
    assert!(!is_never_dispatched(&request));
}

#[test]
fn scenario_25_c5_a_line_cut_in_the_middle() {
    let request = crashed("registered > admitted > dispatched", None);
    assert_eq!(said(&request, &shown("")), "indeterminate crash_in_dispatch maybe");
}

#[test]
fn scenario_26_c6_a_turn_that_ran_to_its_end_before_its_request_was_marked_as_submitted() {
    let request = crashed("registered > admitted > dispatched", None);
    let found = shown("U(p1), T(p1 end_turn \"hi\")");
    assert_eq!(said(&request, &found), "indeterminate crash_in_dispatch maybe");
    assert_eq!(said(&request, &staged("end_turn \"hi\"", found)), "indeterminate crash_in_dispatch maybe");
}

#[test]
fn scenario_28_the_agent_died_with_the_daemon() {
    check("U(p1)", "indeterminate daemon_lost yes (turn_interrupted)");
    let bound = crashed("registered > admitted > dispatched > written > bound", None);
    assert_eq!(said(&bound, &shown("U(p1)")), "indeterminate daemon_lost yes (turn_interrupted)");
}

/// A departure: the host that outlived the daemon is not ended but waited for, and what it wrote, stamped, counts as written by the same
/// incarnation.
#[test]
fn scenario_29_a_surviving_host_is_waited_for_and_what_it_recorded_counts() {
    assert!(needs_transcript(&submitted(), None));
    assert_eq!(said(&submitted(), &not_yet()), "wait");
    check("U(p1), T(p1 end_turn \"hi\")", "completed yes \"hi\"");
    check("U(p1), new writer, T(p1 end_turn \"hi\")", "indeterminate daemon_lost yes (turn_interrupted)");
    assert_eq!(said(&submitted(), &lost(Loss::StillWritten)), "indeterminate daemon_lost yes (session_still_written)");
}

#[test]
fn scenario_30_an_exact_stamped_turn_record() {
    check("U(p1), T(p1 end_turn \"hi\")", "completed yes \"hi\"");
    let Verdict::Decided(recovered) = recover(&submitted(), &shown("U(p1), T(p1 end_turn \"hi\")"), NOW) else {
        panic!("undecided")
    };
    let mut played = Played { request: submitted(), is_removed: false, ends: 0, late: Vec::new() };
    played.take(&Input::Recovered(recovered), NOW);
    assert_eq!(played.request.evidence, Some(Evidence::TranscriptExact));
    assert_eq!(played.request.ended_at, Some(ENDED_AT));
}

#[test]
fn scenario_53_a_turn_of_an_agent_that_spoke_outside_of_its_turns_completes_nothing() {
    check("U(p1), T(p1 strayed end_turn \"hi\")", "indeterminate unattributable yes (stray_words)");
    check("U(p1), T(p1 unreadable end_turn \"hi\")", "indeterminate unattributable yes (unreadable_words)");
    check("U(p1), T(p1 strayed unreadable end_turn \"hi\")", "indeterminate unattributable yes (unreadable_words)");
    check("U(p1), T(p1 unreadable max_tokens \"hi\")", "aborted max_tokens yes");
    check("U(p1), T(p1 unread)", "indeterminate unattributable yes (unreadable_answer)");
    check("U(p1), T(p1 strayed end_turn lost)", "indeterminate unattributable yes (stray_words)");
    check("U(p1), T(p1 strayed max_tokens \"hi\")", "aborted max_tokens yes");
    check("U(p1), T(p1 strayed cancelled)", "aborted turn_cancelled yes");
    let found = staged("unreadable end_turn", not_yet());
    assert_eq!(said(&submitted(), &found), "indeterminate unattributable yes (unreadable_words)");
    let found = staged("unread", not_yet());
    assert_eq!(said(&submitted(), &found), "indeterminate unattributable yes (unreadable_answer)");
    let found = staged("strayed end_turn", not_yet());
    assert_eq!(said(&submitted(), &found), "indeterminate unattributable yes (stray_words)");
}

#[test]
fn scenario_31_records_without_a_prompt_id() {
    check("U(-), T(- end_turn \"hi\")", "indeterminate unattributable yes");
}

#[test]
fn scenario_32_another_program_added_a_user_record() {
    check("U(p1), U(-), T(p1 end_turn \"hi\")", "indeterminate extra_user_message yes");
}

#[test]
fn scenario_33_c10_a_staged_outcome_is_rolled_forward() {
    let found = staged("end_turn \"hi\"", not_yet());
    assert_eq!(said(&submitted(), &found), "completed yes \"hi\"");
    assert!(!needs_transcript(&submitted(), found.stage.as_ref()));
    assert_eq!(said(&submitted(), &staged("max_tokens \"hi\"", not_yet())), "aborted max_tokens yes");
    assert_eq!(said(&submitted(), &staged("stopped", not_yet())), "aborted turn_cancelled yes");
    assert_eq!(said(&submitted(), &staged("rejected", not_yet())), "delivery_failed rejected_by_agent yes");
}

#[test]
fn scenario_34_c11_staged_and_on_the_ledger() {
    let found = Found { ledger: LedgerFound::Ended, ..staged("end_turn \"hi\"", shown("U(p1), U(-)")) };
    assert_eq!(said(&submitted(), &found), "completed yes \"hi\"");
}

#[test]
fn scenario_35_c11_on_the_ledger_and_neither_staged_nor_in_the_transcript() {
    for found in [lost(Loss::Interrupted), lost(Loss::Missing), shown("U(-), T(- end_turn \"hi\")")] {
        let found = Found { ledger: LedgerFound::Ended, ..found };
        assert_eq!(said(&submitted(), &found), "indeterminate final_text_unavailable yes");
    }
    let exact = Found { ledger: LedgerFound::Ended, ..shown("U(p1), T(p1 end_turn \"hi\")") };
    assert_eq!(said(&submitted(), &exact), "completed yes \"hi\"");
}

#[test]
fn c12_c15_what_had_ended_is_left_alone() {
    let cancelled = crashed("registered > admitted > dispatched > written > cancel", None);
    assert_eq!(said(&cancelled, &shown("U(p1), T(p1 end_turn \"hi\")")), "nothing");
}

#[test]
fn scenario_37_c14_a_second_recovery_comes_to_the_same_end() {
    for found in [shown("U(p1), T(p1 end_turn \"hi\")"), shown("U(p1)"), staged("end_turn \"hi\"", not_yet())] {
        let verdicts = [NOW, NOW + 1_000_000].map(|now| recover(&submitted(), &found, now));
        assert_eq!(verdicts[0], verdicts[1]);
    }
}

#[test]
fn scenario_50_a_rewind_or_a_compression_past_the_marker() {
    let bound = crashed("registered > admitted > dispatched > written > bound", None);
    for found in [lost(Loss::TakenBack), lost(Loss::MarkerAbsent), shown("U(p1), replaced, T(p1 end_turn \"hi\")")] {
        assert!(said(&bound, &found).starts_with("indeterminate daemon_lost yes"), "{found:?}");
    }
}

#[test]
fn scenario_63_a_deadline_that_passed_while_the_daemon_was_down() {
    let found = shown("U(p1), T(p1 end_turn \"hi\")");
    let until = |at| crashed("registered > admitted > dispatched > written", Some(at));
    assert_eq!(said(&until(ENDED_AT + 1), &found), "completed yes \"hi\"");
    assert_eq!(said(&until(ENDED_AT), &found), "completed yes \"hi\"", "at the deadline is in time");
    assert_eq!(said(&until(ENDED_AT - 1), &found), "timed_out deadline yes + late outcome completed");
    assert_eq!(
        said(&until(ENDED_AT - 1), &staged("end_turn \"hi\"", not_yet())),
        "timed_out deadline yes + late outcome completed"
    );
    assert_eq!(said(&until(ENDED_AT), &staged("end_turn \"hi\"", not_yet())), "completed yes \"hi\"");
    assert_eq!(said(&until(NOW - 1), &shown("U(p1)")), "timed_out deadline yes");
    assert_eq!(said(&until(NOW - 1), &shown("U(p1), U(-)")), "timed_out deadline yes");
    assert_eq!(said(&until(NOW), &shown("U(p1), U(-)")), "indeterminate extra_user_message yes");
    assert_eq!(said(&until(NOW - 1), &not_yet()), "wait", "an outcome in time may still be found");
}

#[test]
fn a_deadline_does_not_touch_what_was_never_submitted() {
    assert_eq!(said(&crashed("registered", Some(2)), &not_yet()), "indeterminate crash_before_submitted no");
    assert_eq!(said(&crashed("registered > dispatched", Some(2)), &not_yet()), "indeterminate crash_in_dispatch maybe");
}
