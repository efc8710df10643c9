//! Prompts whose witness is asked before they run and before they end.

use proptest::prelude::*;

use super::notation::{Play, after, check, word};
use super::properties::play;
use super::races::{Race, orders};
use crate::effect::{Effect, Word};
use crate::witness::FinalText;
use crate::{Clipped, InputWritten, PromptState};

#[test]
fn a_witnessed_prompt_runs_when_its_witness_says_so_and_its_outcome_is_out_when_the_witness_has_it() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        ("written A", "~ written A"),
        ("say hi", "~ heard A, update A"),
        ("settle A end_turn", ""),
        ("wait 10", "~ settling A completed end_turn yes"),
        ("confirm A", "record A completed end_turn, ~ ended A completed end_turn yes answered, complete A end_turn"),
        ("witness B", "record B, receipt B, ~ next B after 1 A"),
    ]);
}

#[test]
fn while_a_prompt_waits_for_its_witness_nothing_else_runs_and_it_is_asked_once() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("admit B", "record B, receipt B, added B"),
        ("witness C", "record C, receipt C, added C"),
        ("remove B", "taken B, record B cancelled, complete B cancelled, removed true"),
        ("wait 60000", ""),
        ("hold", "busy"),
        ("alone D", "busy"),
        ("go C", ""),
        ("go A", "echo A, > prompt A"),
        ("go A", ""),
        ("settle A end_turn", "~ written A"),
        ("wait 10", "~ settling A completed end_turn yes"),
    ]);
}

#[test]
fn one_that_waits_in_the_queue_is_asked_for_when_its_turn_comes() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("witness B", "record B, receipt B, added B"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
        ("wait 10", "~ next B after 1 A"),
        ("go B", "started B, echo B, > prompt B"),
        ("written B", "~ written B"),
        ("settle B end_turn", ""),
        ("wait 10", "~ settling B completed end_turn yes"),
        (
            "confirm B",
            "record B completed end_turn, ~ ended B completed end_turn yes answered, complete B end_turn, left B",
        ),
    ]);
}

#[test]
fn one_that_its_witness_drops_ends_without_having_run_and_the_next_has_its_turn() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("witness B", "record B, receipt B, added B"),
        ("admit C", "record C, receipt C, added C"),
        (
            "drop A",
            "taken A, record A cancelled, ~ ended A cancelled no dropped, complete A cancelled, ~ next B after 0 -",
        ),
        ("drop A", ""),
        (
            "drop B",
            "taken B, record B cancelled, ~ ended B cancelled no dropped, complete B cancelled, started C, echo C, \
             > prompt C",
        ),
    ]);
}

#[test]
fn whatever_ends_a_prompt_that_waits_for_its_witness_ends_it_unwritten_and_what_the_witness_says_then_means_nothing() {
    let table = [
        (
            "remove A",
            "taken A, record A cancelled, ~ ended A cancelled no taken back, complete A cancelled, removed true, started B, echo B, > prompt B",
        ),
        (
            "cancel",
            "cancel A, record A cancelled, ~ ended A cancelled no taken back, complete A cancelled, ok, started B, echo B, > prompt B",
        ),
        (
            "cancel A",
            "cancel A, record A cancelled, ~ ended A cancelled no taken back, complete A cancelled, ok, started B, echo B, > prompt B",
        ),
        (
            "wait 300",
            "record A error prompt_deadline_exceeded, ~ ended A error prompt_deadline_exceeded no expired, error A prompt_deadline_exceeded, started B, echo B, > prompt B",
        ),
        (
            "close",
            "ok, record A error session_closed, ~ ended A error session_closed no flushed, error A session_closed, record B error session_closed, error B session_closed, left B, > close session_closed",
        ),
        (
            "kill",
            "ok, record A error session_killed, ~ ended A error session_killed no flushed, error A session_killed, record B error session_killed, error B session_killed, left B, died killed, end, > close session_killed",
        ),
        (
            "shutdown",
            "record A error daemon_shutdown, ~ ended A error daemon_shutdown no flushed, error A daemon_shutdown, record B error daemon_shutdown, error B daemon_shutdown, left B, died daemon_shutdown, end, > close daemon_shutdown",
        ),
        (
            "lost",
            "record A error channel_closed, ~ ended A error channel_closed no flushed, error A channel_closed, record B error channel_closed, error B channel_closed, left B, died channel_closed, end, forget",
        ),
    ];
    for (ends, expected) in table {
        for late in ["go A", "drop A", "confirm A", "written A"] {
            check(&[
                ("witness A 300", "record A, receipt A, ~ next A after 0 -"),
                ("admit B", "record B, receipt B, added B"),
                (ends, expected),
                (late, ""),
            ]);
        }
    }
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("cancel B", "ok"),
        ("go A", "echo A, > prompt A"),
    ]);
}

#[test]
fn the_clock_of_a_run_stands_still_while_the_witness_is_asked() {
    check(&[
        ("witness A run 300", "record A, receipt A, ~ next A after 0 -"),
        ("wait 1000", ""),
        ("go A", "echo A, > prompt A"),
        ("wait 299", ""),
        (
            "wait 1",
            "record A error prompt_deadline_exceeded, ~ ended A error prompt_deadline_exceeded maybe expired, \
             error A prompt_deadline_exceeded, cancel A, > cancel",
        ),
    ]);
}

#[test]
fn an_outcome_that_waits_for_its_witness_is_changed_by_nothing_and_holds_the_next_prompt_up() {
    check(&[
        ("witness A 300", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        ("admit B", "record B, receipt B, added B"),
        ("settle A end_turn", "~ written A"),
        ("wait 10", "~ settling A completed end_turn yes"),
        ("cancel", "ok"),
        ("cancel A", "ok"),
        ("remove A", "removed false"),
        ("wait 60000", ""),
        ("say late", "update"),
        ("settle A refusal", ""),
        ("alone C", "busy"),
        ("admit A", "known true"),
        (
            "confirm A",
            "record A completed end_turn, ~ ended A completed end_turn yes answered, complete A end_turn, \
             started B, echo B, > prompt B",
        ),
        ("confirm A", ""),
    ]);
}

#[test]
fn the_end_of_a_session_waits_for_no_witness_and_keeps_the_outcome_that_is_known() {
    let ended = "record A completed end_turn, ~ ended A completed end_turn yes answered, complete A end_turn";
    let table = [
        ("close", format!("ok, {ended}, > close session_closed")),
        ("kill", format!("ok, {ended}, died killed, end, > close session_killed")),
        ("shutdown", format!("{ended}, died daemon_shutdown, end, > close daemon_shutdown")),
        ("lost", format!("{ended}, died channel_closed, end, forget")),
        ("exited", format!("{ended}, died channel_closed, end, forget")),
    ];
    for (ends, expected) in &table {
        check(&[
            ("witness A", "record A, receipt A, ~ next A after 0 -"),
            ("go A", "echo A, > prompt A"),
            ("settle A end_turn", "~ written A"),
            ("wait 10", "~ settling A completed end_turn yes"),
            (ends, expected),
            ("confirm A", ""),
        ]);
    }
}

#[test]
fn what_is_answered_while_its_session_ends_has_its_outcome_at_once() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        ("close", "ok, > cancel"),
        (
            "settle A cancelled",
            "~ written A, record A cancelled, ~ ended A cancelled yes answered, complete A cancelled, \
             > close session_closed",
        ),
    ]);
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        (
            "hostgone A",
            "refused A, record A error channel_closed, ~ ended A error channel_closed no answered, \
             error A channel_closed",
        ),
    ]);
}

#[test]
fn a_session_that_ends_under_a_running_prompt_says_whether_it_was_written() {
    for (told, written) in [("", "maybe"), ("written A", "yes")] {
        let mut play = Play::new();
        for statement in ["witness A", "go A", told].into_iter().filter(|statement| !statement.is_empty()) {
            play.act(statement);
        }
        let running = play.session.turn(Some("A")).live.unwrap();
        assert_eq!((running.state, running.input_written.as_str()), (PromptState::Running, written));
        assert_eq!(play.session.pending()[0].input_written.as_str(), written);
        let words: Vec<_> = play.act("lost").iter().map(word).collect();
        let expected = format!("~ ended A error channel_closed {written} flushed");
        assert!(words.contains(&expected), "{words:?}");
    }
}

#[test]
fn a_late_answer_is_told_and_what_the_agent_says_before_it_is_not_taken_for_the_next() {
    check(&[
        ("witness A 300", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        ("written A", "~ written A"),
        (
            "wait 300",
            "record A error prompt_deadline_exceeded, ~ ended A error prompt_deadline_exceeded yes expired, \
             error A prompt_deadline_exceeded, cancel A, > cancel",
        ),
        ("say late", "update A"),
        ("user m", "update A"),
        ("witness B", "record B, receipt B, added B"),
        ("host A completed end_turn", "~ late A completed end_turn yes"),
        ("wait 10", "~ next B after 1 A"),
    ]);
}

#[test]
fn a_sign_of_the_agent_is_told_once_and_its_word_for_the_users_a_bounded_number_of_times() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("say before", "update"),
        ("go A", "echo A, > prompt A"),
        ("user m", "~ heard A, ~ user m A, update A"),
        ("odd", "> unsupported odd"),
        ("written A", "~ written A"),
        ("written A", ""),
        ("written B", ""),
    ]);
    let mut play = Play::new();
    for statement in ["witness A", "go A"] {
        play.act(statement);
    }
    let told = (0..100).filter(|_| play.act("user m").iter().any(|effect| word(effect) == "~ user m A")).count();
    assert_eq!(told, crate::limits::HEARD_USER_MESSAGES_MAX);
}

#[test]
fn a_prompt_that_fails_is_told_with_what_the_host_says_of_its_input() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        ("hostfail A", "~ settling A error transcript_unwritable no"),
        (
            "confirm A",
            "refused A, record A error transcript_unwritable, ~ ended A error transcript_unwritable no answered, \
             error A transcript_unwritable",
        ),
        ("witness B", "record B, receipt B"),
        ("wait 10", "~ next B after 1 A"),
        ("go B", "echo B, > prompt B"),
        ("fail B", "~ written B, ~ settling B error -32603 yes"),
    ]);
}

#[test]
fn a_turn_that_was_replaced_or_cancelled_is_settled_like_any_other() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("wait 30000", "> replace A"),
        ("hostreplaced A", "~ settling A cancelled maybe"),
        ("replaced", "replaced A cancel fresh"),
        ("confirm A", "record A cancelled, ~ ended A cancelled maybe answered, complete A cancelled"),
    ]);
}

#[test]
fn a_session_that_loses_its_agent_waits_for_no_witness_either() {
    for loses in ["noagent", "wait 500"] {
        let mut play = Play::new();
        for statement in ["witness A", "go A", "cancel", "wait 30000", "settle A end_turn"] {
            play.act(statement);
        }
        let words: Vec<_> = play.act(loses).iter().map(word).collect();
        let expected = ["record A cancelled", "~ ended A cancelled yes answered", "complete A cancelled"];
        assert_eq!(words[..3], expected, "{loses}");
        assert!(play.act("confirm A").is_empty());
    }
}

#[test]
fn words_into_a_turn_have_no_witness() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("steer B", "idle"),
        ("go A", "echo A, > prompt A"),
        ("steer B", "steered B, added B"),
        ("settle A end_turn", "~ written A, record B"),
        ("wait 10", "~ settling A completed end_turn yes"),
        (
            "confirm A",
            "record A completed end_turn, ~ ended A completed end_turn yes answered, complete A end_turn, \
             started B, echo B, > prompt B",
        ),
    ]);
}

#[test]
fn what_waits_for_a_witness_is_queued_or_running_to_everybody() {
    let waits = after("admit Z; settle Z end_turn; witness A");
    let view = waits.turn(None).live.unwrap();
    assert_eq!((view.prompt_id.as_str(), view.state, view.input_written), ("A", PromptState::Queued, InputWritten::No));
    assert!(waits.is_busy() && waits.is_unfinished("A") && waits.status(0, 0, 0).pending_prompt_count == 1);
    let settling = after("witness A; go A; settle A end_turn");
    let view = settling.turn(None).live.unwrap();
    assert_eq!(
        (view.prompt_id.as_str(), view.state, view.input_written),
        ("A", PromptState::Running, InputWritten::Yes)
    );
    assert!(settling.turn(Some("A")).overlay.is_none());
    assert_eq!(settling.pending().len(), 1);
    assert!(settling.is_busy() && settling.is_unfinished("A") && settling.status(0, 0, 0).pending_prompt_count == 1);
    let over = after("witness A; go A; settle A end_turn; wait 10; confirm A");
    assert!(!over.is_busy() && !over.is_unfinished("A") && over.turn(Some("A")).overlay.is_some());
}

#[test]
fn a_session_is_tainted_while_its_agent_is_at_a_prompt_that_has_ended() {
    assert!(!after("admit A 10").is_tainted());
    assert!(after("admit A 10; wait 10").is_tainted());
    assert!(!after("admit A 10; wait 10; settle A end_turn").is_tainted());
    assert!(!after("witness A 10; wait 10").is_tainted(), "the agent never saw it");
}

#[test]
fn a_rewind_takes_the_baseline_back() {
    let baseline = |script: &str| {
        let session = after(script);
        (session.baseline().turn, session.baseline().prompt_id.as_deref().map(str::to_owned))
    };
    assert_eq!(baseline("admit A; fail A"), (1, Some("A".to_owned())));
    assert_eq!(baseline("admit A; settle A end_turn; hold; rewound; release"), (1, None));
}

/// The text that the witness is told.
fn told(script: &[&str]) -> Vec<FinalText> {
    let mut play = Play::new();
    let effects = script.iter().flat_map(|statement| play.act(statement));
    let texts = effects.filter_map(|effect| match effect {
        Effect::Witness { word: Word::Settling(told) | Word::Ended { told, .. } | Word::Late(told), .. } => {
            Some(told.text)
        }
        _ => None,
    });
    texts.collect()
}

#[test]
fn the_final_text_is_what_was_said_behind_the_last_tool_call_and_only_of_a_completed_turn() {
    let whole = FinalText::Whole("it is done".into());
    let script = ["witness A", "go A", "written A", "say let me see", "call c", "done c", "say it is done"];
    let then = |end: &[&'static str]| told(&[&script[..], end].concat());
    assert_eq!(then(&["settle A end_turn", "wait 10", "confirm A"]), [whole.clone(), whole.clone()]);
    assert_eq!(then(&["settle A max_tokens", "wait 10", "kill"]), [whole.clone(), whole]);
    assert_eq!(then(&["cancel", "settle A end_turn", "confirm A"]), [FinalText::None, FinalText::None]);
    assert_eq!(then(&["call d", "settle A end_turn", "wait 10"]), [FinalText::None]);
    assert_eq!(
        told(&["witness A 10", "go A", "written A", "say hi", "wait 10", "host A completed end_turn"]),
        [FinalText::None, FinalText::Elsewhere]
    );
}

#[test]
fn the_final_text_is_whole_where_the_poll_has_a_part_of_it() {
    let mut play = Play::new();
    let said = format!("say {}", "x".repeat(100_000));
    for statement in ["witness A", "go A", "written A", &said, "settle A end_turn", "wait 10"] {
        play.act(statement);
    }
    let confirmed = play.act("confirm A");
    let texts = confirmed.iter().filter_map(|effect| match effect {
        Effect::Witness { word: Word::Ended { told, .. }, .. } => Some(told.text.clone()),
        _ => None,
    });
    let FinalText::Whole(text) = texts.into_iter().next().unwrap() else { panic!("it is whole") };
    assert_eq!(text.len(), 100_000);
    let Clipped { text, truncated } = play.session.turn(Some("A")).overlay.unwrap().result_text.unwrap();
    assert!(truncated && text.len() < 100_000);
}

#[test]
fn what_meets_at_the_gate_in_one_millisecond_ends_each_prompt_once_and_runs_none_without_its_witness() {
    let meeting = ["go A", "cancel", "remove A", "wait 0", "drop A", "admit C", "go B", "close"];
    orders(&meeting, |order| {
        let mut race = Race::after(&["witness A 5", "witness B", "tick 5"]);
        order.iter().for_each(|statement| race.act(statement));
        race.rest();
    });
}

#[test]
fn what_meets_between_an_answer_and_its_confirmation_ends_each_prompt_once_with_its_own_outcome() {
    let meeting = ["settle A end_turn", "confirm A", "cancel", "wait 10", "go B", "confirm B", "lost"];
    orders(&meeting, |order| {
        let mut race = Race::after(&["witness A 5", "go A", "witness B", "tick 5"]);
        order.iter().for_each(|statement| race.act(statement));
        race.rest();
    });
}

fn statement() -> impl Strategy<Value = String> {
    let id = || prop::sample::select(&["A", "B", "C", "D"][..]);
    let fixed = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    prop_oneof![
        6 => id().prop_map(|id| format!("witness {id}")),
        2 => (id(), 0u64..600).prop_map(|(id, ms)| format!("witness {id} {ms}")),
        2 => id().prop_map(|id| format!("admit {id}")),
        6 => fixed(&["go ?", "go ?", "go ?", "drop ?"]),
        2 => id().prop_map(|id| format!("go {id}")),
        6 => fixed(&["confirm ?", "confirm ?", "written ?", "user m", "say hi"]),
        1 => id().prop_map(|id| format!("confirm {id}")),
        6 => fixed(&["settle ? end_turn", "settle ? cancelled", "fail ?", "host ? completed end_turn", "hostfail ?"]),
        2 => id().prop_map(|id| format!("settle {id} end_turn")),
        3 => fixed(&["cancel", "remove ?", "steer B", "drain"]),
        2 => id().prop_map(|id| format!("remove {id}")),
        2 => (0u64..400).prop_map(|ms| format!("wait {ms}")),
        1 => Just("wait 30000".to_owned()),
        1 => fixed(&["replaced", "kept", "needless", "noagent", "hostreplaced ?"]),
        1 => fixed(&["hold", "release", "rewound"]),
        1 => fixed(&["close", "kill", "shutdown", "lost", "exited", "hostgone ?"]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn each_witnessed_prompt_ends_once_runs_only_when_let_and_is_published_only_when_confirmed(
        script in prop::collection::vec(statement(), 0..60),
    ) {
        // What is to hold is said in the model.
        let model = play(&script);
        prop_assert!(model.forgotten);
        prop_assert!(model.witnessed.iter().all(|id| model.ended.contains(id)), "each end is told");
    }
}
