//! Each cell of the table (return requests, section 2.4), a line each.

use super::notation::check_all;

#[test]
fn ledger_admission_durable() {
    check_all(
        "registered > admitted = admitted no
         registered > admitted > admitted = admitted no
         registered > admitted > dispatched > admitted = dispatching maybe
         registered > dispatched > written > admitted = submitted yes
         registered > dispatched > written > bound > admitted = bound yes",
    );
}

#[test]
fn refused_while_the_caller_still_waits() {
    check_all(
        "registered > refused = removed
         registered > admitted > refused = removed
         registered > dispatched > refused = delivery_failed refused_before_dispatch no (not_recorded)
         registered > dispatched > written > refused = indeterminate turn_changed yes",
    );
}

#[test]
fn refused_later() {
    check_all(
        "queued > admitted > dropped = delivery_failed refused_before_dispatch no (turn_cancelled)
         queued > admitted > dropped(tainted) = delivery_failed refused_before_dispatch no (session_tainted)
         queued > admitted > dispatched > dropped = delivery_failed refused_before_dispatch no (turn_cancelled)
         queued > dispatched > written > dropped = indeterminate turn_changed yes (turn_cancelled)",
    );
}

#[test]
fn dispatch_marker_durable() {
    check_all(
        "registered > admitted > dispatched = dispatching maybe
         registered > dispatched = dispatching maybe
         registered > dispatched > dispatched = dispatching maybe
         registered > dispatched > written > dispatched = submitted yes
         registered without a process > dispatched = dispatching maybe
         registered > dispatched(to another process) = delivery_failed refused_before_dispatch no (incarnation_changed)
         registered > dispatched(behind another turn) = delivery_failed refused_before_dispatch no (baseline_moved)
         queued > dispatched(behind another turn) = dispatching maybe
         queued > dispatched(to another process) = delivery_failed refused_before_dispatch no (incarnation_changed)",
    );
}

#[test]
fn whole_line_accepted_by_the_agents_input() {
    check_all(
        "registered > admitted > dispatched > written = submitted yes
         registered > dispatched > written > written = submitted yes
         registered > dispatched > written > bound > written = bound yes
         registered > admitted > written = indeterminate not_after_marker maybe",
    );
}

#[test]
fn write_failed() {
    check_all(
        "registered > dispatched > write failed(part) = delivery_failed write_failed no
         registered > dispatched > write failed(whole) = indeterminate write_unknown maybe
         registered > dispatched > written > write failed(part) = indeterminate write_unknown yes
         registered > admitted > write failed(part) = indeterminate not_after_marker maybe",
    );
}

#[test]
fn an_error_which_means_that_the_call_never_started() {
    check_all(
        "registered > dispatched > written > rejected = delivery_failed rejected_by_agent yes
         registered > dispatched > written > first update > rejected = aborted turn_error yes
         registered > dispatched > written > bound > rejected = aborted turn_error yes
         registered > dispatched > rejected = delivery_failed rejected_by_agent yes
         registered > rejected = indeterminate not_after_marker maybe",
    );
}

#[test]
fn any_other_error() {
    check_all(
        "registered > dispatched > written > failed = aborted turn_error yes
         registered > dispatched > written > bound > failed = aborted turn_error yes
         registered > dispatched > failed = aborted turn_error yes
         registered > dispatched > perhaps failed = indeterminate unattributable maybe
         registered > dispatched > written > perhaps failed = indeterminate unattributable yes
         registered > failed = indeterminate not_after_marker maybe",
    );
}

#[test]
fn binding_evidence() {
    check_all(
        "registered > dispatched > written > bound = bound yes
         registered > dispatched > written > first update = bound yes
         registered > dispatched > written > first update > bound = bound yes
         registered > dispatched > written > bound > first update = bound yes
         registered > dispatched > written > bound(u1) > bound(u1) = bound yes
         registered > dispatched > written > bound(u1) > bound(u2) = indeterminate turn_changed yes
         registered > dispatched > bound = bound yes
         registered > dispatched > first update = dispatching maybe
         registered > admitted > first update = indeterminate not_after_marker maybe",
    );
}

#[test]
fn any_fact_mismatches() {
    check_all(
        "registered > mismatch(no) = delivery_failed refused_before_dispatch no (prompt_mismatch)
         registered > admitted > mismatch(maybe) = delivery_failed refused_before_dispatch no (prompt_mismatch)
         registered > admitted > mismatch(yes) = indeterminate not_after_marker maybe
         registered > dispatched > mismatch(no) = delivery_failed refused_before_dispatch no (prompt_mismatch)
         registered > dispatched > mismatch(maybe) = indeterminate prompt_mismatch maybe
         registered > dispatched > mismatch(yes) = indeterminate prompt_mismatch yes
         registered > dispatched > written > mismatch(no) = indeterminate prompt_mismatch yes
         registered > dispatched > written > bound > mismatch(yes) = indeterminate prompt_mismatch yes",
    );
}

#[test]
fn turn_ended_naturally_with_final_text() {
    check_all(
        "registered > admitted > dispatched > written > bound > end_turn \"hi\" = completed yes \"hi\"
         registered > admitted > dispatched > written > end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > written > first update > end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > written > perhaps end_turn \"hi\" = indeterminate unattributable yes
         registered > dispatched > written > first update > perhaps end_turn \"hi\" = indeterminate unattributable yes
         registered > dispatched > written > bound > perhaps end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > perhaps end_turn \"hi\" = indeterminate unattributable maybe
         registered > admitted > end_turn \"hi\" = indeterminate not_after_marker maybe",
    );
}

#[test]
fn turn_ended_naturally_without_final_text() {
    check_all(
        "registered > dispatched > written > end_turn = indeterminate no_final_message yes
         registered > dispatched > written > bound > end_turn = indeterminate no_final_message yes
         registered > dispatched > written > bound > end_turn \"  \" = indeterminate no_final_message yes",
    );
}

#[test]
fn turn_ended_by_limit_or_refusal_or_for_an_unknown_reason() {
    check_all(
        "registered > dispatched > written > max_tokens \"hi\" = aborted max_tokens yes
         registered > dispatched > written > bound > max_turn_requests \"hi\" = aborted max_turn_requests yes
         registered > dispatched > written > bound > refusal = aborted refusal yes
         registered > dispatched > written > bound > unheard_of \"hi\" = aborted unheard_of yes
         registered > dispatched > written > bound > ünheard \"hi\" = aborted other_stop_reason yes
         registered > dispatched > written > bound > deadline_ \"hi\" = aborted deadline_ yes
         registered > dispatched > written > bound > cancelled \"hi\" = aborted turn_cancelled yes",
    );
}

#[test]
fn turn_cancelled_by_someone_else_or_session_ended() {
    check_all(
        "registered > session closed(no) = delivery_failed refused_before_dispatch no (session_closed)
         registered > admitted > session rewound(maybe) = delivery_failed refused_before_dispatch no (session_rewound)
         registered > admitted > session closed(yes) = indeterminate not_after_marker maybe
         registered > dispatched > session closed(no) = delivery_failed refused_before_dispatch no (session_closed)
         registered > dispatched > session closed(maybe) = indeterminate write_unknown maybe (session_closed)
         registered > dispatched > session closed(yes) = aborted session_closed yes
         registered > dispatched > written > session closed(no) = aborted session_closed yes
         registered > dispatched > written > bound > session rewound(yes) = aborted session_rewound yes
         registered > dispatched > written > bound > daemon stops(yes) = aborted daemon_shutdown yes
         registered > dispatched > written > stopped = aborted turn_cancelled yes
         registered > dispatched > stopped = aborted turn_cancelled yes
         registered > stopped = indeterminate not_after_marker maybe",
    );
}

#[test]
fn agent_process_exits() {
    check_all(
        "registered > agent exits(no) = delivery_failed agent_exited no
         registered > admitted > agent exits(maybe) = delivery_failed agent_exited no
         registered > admitted > agent exits(yes) = indeterminate not_after_marker maybe
         registered > dispatched > agent exits(no) = delivery_failed agent_exited no
         registered > dispatched > agent exits(maybe) = indeterminate agent_exited maybe
         registered > dispatched > agent exits(yes) = indeterminate agent_exited yes
         registered > dispatched > written > agent exits(no) = indeterminate agent_exited yes
         registered > dispatched > written > bound > agent exits(yes) = indeterminate agent_exited yes",
    );
}

#[test]
fn cancel_call() {
    check_all(
        "registered > cancel = cancelled client_cancel no
         registered > admitted > cancel = cancelled client_cancel no
         registered > dispatched > cancel = cancelled client_cancel maybe
         registered > dispatched > written > cancel = cancelled client_cancel yes
         registered > dispatched > written > bound > cancel = cancelled client_cancel yes",
    );
}

#[test]
fn deadline() {
    check_all(
        "registered > deadline = timed_out deadline no
         registered > admitted > deadline = timed_out deadline no
         registered > dispatched > deadline = timed_out deadline maybe
         registered > dispatched > written > deadline = timed_out deadline yes
         registered > dispatched > written > bound > deadline = timed_out deadline yes",
    );
}

#[test]
fn restart_recovery() {
    check_all(
        "registered > crash = indeterminate crash_before_submitted no
         registered > admitted > crash = indeterminate crash_before_submitted no
         registered > admitted > staged end_turn \"hi\" = indeterminate not_after_marker maybe
         registered > admitted > on record end_turn \"hi\" = indeterminate not_after_marker maybe
         registered > dispatched > crash = indeterminate crash_in_dispatch maybe
         registered > dispatched > on record end_turn \"hi\" = indeterminate crash_in_dispatch maybe
         registered > dispatched > staged end_turn \"hi\" = indeterminate crash_in_dispatch maybe
         registered > dispatched > written > crash = indeterminate daemon_lost yes
         registered > dispatched > written > lost = indeterminate daemon_lost yes (turn_interrupted)
         registered > dispatched > written > bound > lost = indeterminate daemon_lost yes (turn_interrupted)
         registered > dispatched > written > agent gone = indeterminate daemon_lost yes (agent_gone)
         registered > dispatched > written > agent gone > agent gone = indeterminate daemon_lost yes (agent_gone)
         registered > dispatched > written > cancel > agent gone = cancelled client_cancel yes + late agent_exit -
         registered > dispatched > written > staged end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > written > staged rejected = delivery_failed rejected_by_agent yes
         registered > dispatched > written > on record end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > written > bound > on record max_tokens \"hi\" = aborted max_tokens yes
         registered > dispatched > written > on record stopped = aborted turn_cancelled yes
         registered > dispatched > written > on record failed = aborted turn_error yes
         registered > dispatched > written > unattributable = indeterminate unattributable yes
         registered > dispatched > written > text lost = indeterminate final_text_unavailable yes
         registered > dispatched > written > deadline passed = timed_out deadline yes
         registered > store made anew = indeterminate store_recovered no
         registered > dispatched > store made anew = indeterminate store_recovered maybe
         registered > dispatched > written > store made anew = indeterminate store_recovered yes",
    );
}

#[test]
fn terminal_states_absorb_everything() {
    check_all(
        "registered > cancel > cancel = cancelled client_cancel no
         registered > cancel > deadline = cancelled client_cancel no
         registered > deadline > cancel = timed_out deadline no
         registered > cancel > refused = cancelled client_cancel no
         registered > cancel > admitted > dispatched = cancelled client_cancel no
         registered > cancel > written = cancelled client_cancel no + late write yes
         registered > dispatched > cancel > write failed(part) = cancelled client_cancel maybe + late write no
         registered > dispatched > cancel > write failed(whole) = cancelled client_cancel maybe
         registered > dispatched > written > cancel > written = cancelled client_cancel yes
         registered > dispatched > written > cancel > write failed(part) = cancelled client_cancel yes
         registered > cancel > write failed(part) = cancelled client_cancel no
         registered > dispatched > written > cancel > end_turn \"hi\" = cancelled client_cancel yes + late outcome completed
         registered > dispatched > written > deadline > stopped = timed_out deadline yes + late outcome aborted
         registered > dispatched > written > deadline > session closed(yes) = timed_out deadline yes + late outcome aborted
         registered > dispatched > written > deadline > agent exits(yes) = timed_out deadline yes + late agent_exit -
         registered > dispatched > written > deadline > mismatch(yes) = timed_out deadline yes + late mismatch prompt_mismatch
         registered > dispatched > written > deadline > staged end_turn \"hi\" = timed_out deadline yes + late outcome completed",
    );
}

#[test]
fn what_merely_repeats_the_end_is_no_late_evidence() {
    check_all(
        "registered > dispatched > written > end_turn \"hi\" > end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > written > end_turn \"hi\" > staged end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > written > end_turn \"hi\" > end_turn \"ho\" = completed yes \"hi\" + late outcome completed
         registered > dispatched > written > session closed(yes) > session closed(yes) = aborted session_closed yes
         registered > dispatched > written > agent exits(yes) > agent exits(yes) = indeterminate agent_exited yes
         registered > dispatched > written > mismatch(yes) > mismatch(yes) = indeterminate prompt_mismatch yes",
    );
}
