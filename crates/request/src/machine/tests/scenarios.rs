//! The scenarios of return requests, part 4, as far as they are decisions of the machine.

use super::notation::{check, check_all, play, registered};
use crate::limits::FINAL_BYTES_MAX;
use crate::{Advance, Code, Effect, Evidence, FinalText, Hash, Input, LateKind, Mismatch, Outcome, State, step};

#[test]
fn scenario_10_what_ended_delivery_failed_is_not_sent_again() {
    let played = play("registered > dispatched > write failed(part) > dispatched > written");
    assert_eq!(played.request.state, State::DeliveryFailed);
    assert_eq!(played.ends, 1);
}

#[test]
fn scenario_15_a_fresh_session_has_no_turn_before_ours() {
    let mut played = play("registered");
    played.request.registration.baseline = crate::Baseline::default();
    let armed = crate::ArmedCursor::default();
    let incarnation_id = Some("i1".to_owned());
    played.take(&Input::Dispatched { armed, baseline: crate::Baseline::default(), incarnation_id }, 10);
    played.take(&Input::Written, 11);
    played.take(&super::notation::input("end_turn \"hi\""), 12);
    assert_eq!(played.shown(), "completed yes \"hi\"");
}

#[test]
fn scenario_18_all_but_the_newline_may_have_been_read() {
    check("registered > admitted > dispatched > write failed(whole) = indeterminate write_unknown maybe");
    check("registered > admitted > dispatched > write failed(part) = delivery_failed write_failed no");
}

#[test]
fn scenario_19_an_agent_that_refuses_the_call_has_not_taken_it() {
    check("registered > admitted > dispatched > written > rejected = delivery_failed rejected_by_agent yes");
}

#[test]
fn scenario_22_registered_and_no_more() {
    check("registered > crash = indeterminate crash_before_submitted no");
}

#[test]
fn scenario_23_admitted_and_no_more() {
    check("registered > admitted > crash = indeterminate crash_before_submitted no");
}

#[test]
fn scenario_24_25_26_dispatched_and_no_more_whatever_the_agent_did() {
    check_all(
        "registered > admitted > dispatched > crash = indeterminate crash_in_dispatch maybe
         registered > admitted > dispatched > on record end_turn \"hi\" = indeterminate crash_in_dispatch maybe",
    );
}

#[test]
fn scenario_27_a_request_that_is_with_the_agent_is_not_sent_again() {
    let request = play("registered > admitted > dispatched > written").request;
    assert_eq!(step(&request, &super::notation::input("dispatched"), 99), []);
}

#[test]
fn scenario_44_another_process_behind_the_same_pid() {
    check_all(
        "registered > dispatched > written > another process(yes) = indeterminate incarnation_changed yes
         registered > admitted > dispatched(to another process) = delivery_failed refused_before_dispatch no (incarnation_changed)",
    );
}

#[test]
fn scenario_45_an_agent_that_exits_without_an_answer() {
    check("registered > dispatched > written > agent exits(yes) = indeterminate agent_exited yes");
}

#[test]
fn scenario_46_an_echo_of_another_prompt() {
    check(
        "registered > dispatched > written > mismatch(yes) > end_turn \"hi\" = indeterminate prompt_mismatch yes + late outcome completed",
    );
}

#[test]
fn scenario_47_a_second_user_record_and_no_final_message() {
    let mut played = play("registered > dispatched > written > bound");
    let written = crate::InputWritten::Yes;
    played.take(&Input::Mismatch { fact: Mismatch::ExtraUserMessage, written }, 20);
    played.take(&Input::Settled(super::notation::outcome("end_turn \"hi\"", Evidence::RpcResponse)), 21);
    assert_eq!(played.shown(), "indeterminate extra_user_message yes + late outcome completed");
    assert_eq!(played.request.final_message, None);
}

#[test]
fn scenario_48_another_turns_final_is_never_put_in_its_place() {
    let played = play("registered > dispatched > written > bound(u1) > bound(u2) > end_turn \"other\"");
    assert_eq!(played.request.code, Some(Code::Mismatch(Mismatch::TurnChanged)));
    assert_eq!(played.request.final_message, None);
    assert_eq!(played.request.final_sha256, None);
}

#[test]
fn scenario_49_a_rewind_before_the_dispatch() {
    check_all(
        "queued > admitted > dropped(rewound) = delivery_failed refused_before_dispatch no (session_rewound)
         queued > admitted > session rewound(no) = delivery_failed refused_before_dispatch no (session_rewound)",
    );
}

#[test]
fn scenario_51_an_update_that_might_be_unrelated_is_not_enough_to_complete() {
    check_all(
        "registered > dispatched > written > first update = bound yes
         registered > dispatched > written > first update > perhaps end_turn \"hi\" = indeterminate unattributable yes
         registered > dispatched > written > first update > end_turn \"hi\" = completed yes \"hi\"",
    );
}

#[test]
fn scenario_52_a_second_version_agent_accepts_then_shows_the_message_then_is_idle() {
    let played = play("registered > dispatched > written > accepted > bound(u1) > perhaps end_turn \"hi\"");
    assert_eq!(played.shown(), "completed yes \"hi\"");
    assert_eq!(played.request.user_record_id.as_deref(), Some("u1"));
    assert_eq!(played.request.evidence, Some(Evidence::UserRecord));
}

#[test]
fn scenario_53_an_answer_of_an_agent_that_spoke_outside_of_its_turns_completes_nothing() {
    for bound in ["", " > first update"] {
        let sent = format!("registered > dispatched > written{bound}");
        check(&format!("{sent} > strayed end_turn = indeterminate unattributable yes (stray_words)"));
        check(&format!("{sent} > strayed end_turn \"hi\" = indeterminate unattributable yes (stray_words)"));
        check(&format!("{sent} > strayed refusal = aborted refusal yes"));
        check(&format!("{sent} > unreadable end_turn \"hi\" = indeterminate unattributable yes (unreadable_words)"));
        check(&format!("{sent} > strayed unreadable end_turn = indeterminate unattributable yes (unreadable_words)"));
        check(&format!("{sent} > unreadable refusal = aborted refusal yes"));
        check(&format!("{sent} > unread = indeterminate unattributable yes (unreadable_answer)"));
    }
    check("registered > dispatched > strayed end_turn = indeterminate unattributable yes (stray_words)");
}

#[test]
fn scenario_55_an_outcome_behind_the_deadline_changes_nothing() {
    let mut played = play("registered > dispatched > written > deadline");
    let ended = played.request.clone();
    played.take(&super::notation::input("end_turn \"hi\""), 50);
    assert_eq!(played.request, ended);
    assert_eq!(played.late.len(), 1);
    let said: serde_json::Value = serde_json::from_str(&played.late[0].payload).unwrap();
    assert_eq!((said["state"].as_str(), said["at"].as_u64()), (Some("completed"), Some(50)));
    assert!(!played.late[0].payload.contains("hi\""), "the text is not in it: {}", played.late[0].payload);
}

/// Every order of all these words in which each line keeps its own.
fn orders(lines: &[&[&'static str]]) -> Vec<Vec<&'static str>> {
    if lines.iter().all(|line| line.is_empty()) {
        return vec![Vec::new()];
    }
    let mut orders_of_all = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let Some((first, rest)) = line.split_first() else { continue };
        let mut left = lines.to_vec();
        left[place] = rest;
        orders_of_all.extend(orders(&left).into_iter().map(|order| [vec![*first], order].concat()));
    }
    orders_of_all
}

#[test]
fn scenarios_56_58_in_whatever_order_a_turn_its_deadline_and_its_cancels_come_the_first_end_is_the_only_one() {
    let turns: [&[&str]; 3] = [
        &["dispatched", "written", "first update", "end_turn \"hi\""],
        // The answer may be told before the news of the write, and again by a recovery.
        &["dispatched", "end_turn \"hi\"", "written"],
        &["dispatched", "written", "staged end_turn \"hi\"", "end_turn \"hi\""],
    ];
    let mut won = std::collections::BTreeMap::<&str, usize>::new();
    for turn in turns {
        for order in orders(&[&["admitted"], turn, &["deadline"], &["cancel", "cancel"]]) {
            let script = format!("registered > {}", order.join(" > "));
            let played = play(&script);
            let first = order.iter().find_map(|word| match *word {
                "deadline" => Some(State::TimedOut),
                "cancel" => Some(State::Cancelled),
                word if word.contains("end_turn") => Some(State::Completed),
                _ => None,
            });
            assert_eq!((played.ends, Some(played.request.state)), (1, first), "{script}");
            let is_completed = played.request.state == State::Completed;
            assert_eq!(played.request.final_message.as_deref(), is_completed.then_some("hi"), "{script}");
            let outcomes = played.late.iter().filter(|late| late.kind == LateKind::Outcome).count();
            let told = order.iter().filter(|word| word.contains("end_turn")).count();
            assert_eq!(outcomes, if is_completed { 0 } else { told }, "what came too late is kept beside it: {script}");
            *won.entry(played.request.state.as_str()).or_default() += 1;
        }
    }
    assert_eq!(won.keys().copied().collect::<Vec<_>>(), ["cancelled", "completed", "timed_out"]);
}

#[test]
fn scenario_57_a_second_cancel_changes_nothing() {
    let once = play("registered > dispatched > written > cancel").request;
    let twice = play("registered > dispatched > written > cancel > cancel").request;
    assert_eq!(once, twice);
}

#[test]
fn scenario_58_cancel_and_completion_race_and_one_wins() {
    check_all(
        "registered > dispatched > written > cancel > end_turn \"hi\" = cancelled client_cancel yes + late outcome completed
         registered > dispatched > written > end_turn \"hi\" > cancel = completed yes \"hi\"",
    );
}

#[test]
fn scenario_59_each_stop_reason_and_an_unknown_one() {
    check_all(
        "registered > dispatched > written > end_turn \"hi\" = completed yes \"hi\"
         registered > dispatched > written > max_tokens \"hi\" = aborted max_tokens yes
         registered > dispatched > written > max_turn_requests \"hi\" = aborted max_turn_requests yes
         registered > dispatched > written > refusal \"hi\" = aborted refusal yes
         registered > dispatched > written > cancelled \"hi\" = aborted turn_cancelled yes
         registered > dispatched > written > unheard_of \"hi\" = aborted unheard_of yes",
    );
    let played = play("registered > dispatched > written > unheard_of \"hi\"");
    assert_eq!(played.request.stop_reason.as_deref(), Some("unheard_of"));
}

#[test]
fn scenario_59_an_agent_that_stops_as_cancelled_is_passed_on_with_its_word_and_what_ties_it_to_the_prompt() {
    let mut played = play("registered > dispatched > written > first update");
    let stopped = Outcome::Stopped {
        cause: crate::Cause::TurnCancelled,
        stop_reason: Some("cancelled".to_owned()),
        evidence: Some(Evidence::RpcResponse),
    };
    played.take(&Input::Settled(stopped), 20);
    let request = &played.request;
    assert_eq!((request.stop_reason.as_deref(), request.evidence), (Some("cancelled"), Some(Evidence::RpcResponse)));
    assert_eq!(request.code, Some(Code::Ended(crate::Cause::TurnCancelled)));
    let unheard = play("registered > dispatched > written > first update > stopped");
    assert_eq!((unheard.request.stop_reason, unheard.request.evidence), (None, Some(Evidence::FirstUpdate)));
}

#[test]
fn scenario_60_a_turn_that_only_thought_and_used_tools() {
    check("registered > dispatched > written > end_turn = indeterminate no_final_message yes");
}

#[test]
fn scenario_61_three_mib_of_characters_are_cut_between_two_and_described_whole() {
    // Three bytes each, so that the bound falls into the middle of one.
    let whole = "€".repeat(1024 * 1024);
    let text = FinalText::new(&whole).unwrap();
    assert_eq!(text.text.len(), FINAL_BYTES_MAX - 1);
    assert!(whole.starts_with(&text.text) && text.is_truncated);
    assert_eq!(text.full_bytes, 3 * 1024 * 1024);
    let outcome = Outcome::Ended {
        stop_reason: "end_turn".to_owned(),
        final_text: Some(text.clone()),
        evidence: Evidence::RpcResponse,
        is_strayed: false,
        is_unreadable: false,
    };
    let mut played = play("registered > dispatched > written");
    played.take(&Input::Settled(outcome), 20);
    assert_eq!(played.request.final_bytes, Some(text.full_bytes));
    assert_eq!(played.request.final_sha256, Some(text.sha256));
    assert!(played.request.final_truncated);

    let short = FinalText::new("abc").unwrap();
    assert!(!short.is_truncated);
    assert_eq!(short.sha256, Hash::parse("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").unwrap());
    assert!(!FinalText::new(&"x".repeat(FINAL_BYTES_MAX)).unwrap().is_truncated);
}

#[test]
fn a_dispatch_takes_the_facts_anew() {
    let played = play("queued > admitted > dispatched(behind another turn)");
    assert_eq!(played.request.registration.baseline.turn, registered().registration.baseline.turn + 1);
    assert_eq!(played.request.armed.map(|armed| armed.event_id), Some(7));
    assert_eq!((played.request.admitted_at, played.request.dispatched_at), (Some(10), Some(11)));
}

#[test]
fn times_are_kept_as_they_first_were() {
    let request = play("registered > dispatched > admitted > written > first update > bound > end_turn \"hi\"").request;
    let times = [request.dispatched_at, request.admitted_at, request.submitted_at, request.bound_at, request.ended_at];
    assert_eq!(times, [Some(10), Some(11), Some(12), Some(13), Some(15)]);
}

#[test]
fn an_outcome_that_was_staged_ended_when_it_came() {
    let mut played = play("registered > dispatched > written");
    let outcome = super::notation::outcome("end_turn \"hi\"", Evidence::RpcResponse);
    played.take(&Input::Recovered(crate::Recovered::Staged(crate::Stage::new(outcome, 15))), 50);
    assert_eq!(played.request.ended_at, Some(15));
}

#[test]
fn an_answer_before_the_news_of_the_write_is_the_news_of_the_write() {
    let request = play("registered > dispatched").request;
    let effects = step(&request, &super::notation::input("end_turn \"hi\""), 20);
    assert!(matches!(effects[..], [Effect::Advance(Advance::Submitted), Effect::End(_)]), "{effects:?}");
}

#[test]
fn scenario_62_a_graceful_shutdown_in_the_middle_of_a_turn() {
    check("registered > dispatched > written > bound > daemon stops(yes) > crash = aborted daemon_shutdown yes");
}

#[test]
fn scenario_64_a_deadline_is_the_timers_word_and_not_the_wall_clocks() {
    let mut played = play("registered > dispatched > written");
    played.request.registration.deadline_at = Some(1_000_000);
    played.take(&Input::Deadline, 2);
    assert_eq!(played.shown(), "timed_out deadline yes");
    assert_eq!(
        played.request.ended_at, played.request.submitted_at,
        "the clock was set back, and nothing ends before it began"
    );
}

#[test]
fn scenario_64_no_time_of_a_request_is_before_an_earlier_one_however_far_the_clock_is_set_back() {
    let words = ["admitted", "dispatched", "written", "first update", "end_turn \"hi\""];
    // The clock stands at 1,000 before the step at which it is set back, and at 3 from there on; the request is made at 1.
    for set_back in 0..words.len() {
        for staged in [false, true] {
            let mut played = play("registered");
            for (place, word) in words.iter().enumerate() {
                let at_ms = if place < set_back { 1_000 + place as u64 } else { 3 };
                let is_last = place + 1 == words.len();
                let word = if staged && is_last { format!("staged {word}") } else { (*word).to_owned() };
                played.take(&super::notation::input(&word), at_ms);
            }
            let request = &played.request;
            let times = [
                Some(request.registration.created_at),
                request.admitted_at,
                request.dispatched_at,
                request.submitted_at,
                request.bound_at,
                request.ended_at,
            ];
            assert!(times.is_sorted() && times.iter().all(Option::is_some), "{times:?}");
        }
    }
}
