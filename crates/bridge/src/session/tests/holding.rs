//! Holding a session while what its agent remembers is changed.

use super::notation::{Play, after, check, word};
use crate::Ended;

#[test]
fn what_comes_while_a_session_is_held_waits_and_runs_afterwards() {
    check(&[
        ("hold", "held 1"),
        ("admit A", "record A, receipt A, added A"),
        ("admit B", "record B, receipt B, added B"),
        ("remove B", "taken B, record B cancelled, complete B cancelled, removed true"),
        ("release", "started A, echo A, > prompt A"),
        ("release", ""),
    ]);
}

#[test]
fn what_comes_while_a_session_is_shut_is_refused_and_what_was_admitted_before_is_known() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("shut", "busy"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
        ("shut", "held 2"),
        ("admit B", "busy"),
        ("admit A", "known true"),
        ("hold", "busy"),
        ("release", ""),
        ("admit B", "record B, receipt B, echo B, > prompt B"),
    ]);
}

#[test]
fn only_an_idle_session_is_held_and_by_one_at_a_time() {
    check(&[("admit A", "record A, receipt A, echo A, > prompt A"), ("hold", "busy")]);
    check(&[("hold", "held 1"), ("hold", "busy"), ("release", ""), ("hold", "held 3")]);
    check(&[("kill", "ok, died killed, end, > close session_killed"), ("hold", "closing")]);
    check(&[("lost", "died channel_closed, end, forget"), ("hold", "gone")]);
}

#[test]
fn a_prompt_that_is_to_be_alone_runs_before_all_that_comes_while_the_session_is_held() {
    check(&[
        ("hold", "held 1"),
        ("alone A", "record A, receipt A"),
        ("admit B", "record B, receipt B, added B"),
        ("release", "echo A, > prompt A"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn, started B, echo B, > prompt B"),
    ]);
    check(&[("alone A", "record A, receipt A, echo A, > prompt A"), ("alone B", "busy")]);
}

#[test]
fn a_prompt_that_is_to_be_alone_and_finds_another_is_not_admitted() {
    check(&[
        ("hold", "held 1"),
        ("admit A", "record A, receipt A, added A"),
        ("alone B", "busy"),
        ("release", "started A, echo A, > prompt A"),
        ("alone B", "busy"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn, left A"),
        ("alone B", "record B, receipt B, echo B, > prompt B"),
    ]);
}

#[test]
fn a_turn_whose_caller_was_released_is_running_still() {
    let mut play = Play::new();
    for statement in ["admit A 100", "wait 200"] {
        play.act(statement);
    }
    assert!(play.session.turn(Some("A")).live.is_none());
    assert_eq!(play.act("hold").iter().map(word).collect::<Vec<_>>(), ["busy"]);
}

#[test]
fn a_held_session_that_ends_loses_no_prompt() {
    check(&[
        ("hold", "held 1"),
        ("admit A", "record A, receipt A, added A"),
        ("close", "ok, record A error session_closed, error A session_closed, left A, > close session_closed"),
        ("rewound", "session_rewound"),
        ("release", ""),
        ("lost", "closed client_close, end, forget"),
    ]);
}

#[test]
fn a_rewind_forgets_what_had_ended_and_a_release_without_one_does_not() {
    let known = |script: &str| after(script).turn(Some("A")).overlay.is_some();
    assert!(known("admit A; settle A end_turn; hold; release"));
    assert!(!known("admit A; settle A end_turn; hold; rewound; release"));
    assert!(after("admit A; settle A end_turn; hold; rewound; release").turn(None).overlay.is_none());
    assert!(known("admit A; settle A end_turn; rewound"), "nobody holds it");
    assert!(after("admit A; fail A; hold; rewound; release").status(0, 0, 0).turn_error.is_none());
}

#[test]
fn an_id_stays_taken_behind_a_rewind() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
        ("hold", "held 2"),
        ("rewound", "session_rewound"),
        ("release", ""),
        ("admit A", "known true"),
    ]);
}

#[test]
fn what_a_poll_had_read_before_the_rewind_is_not_taken_in_behind_it() {
    let mut play = Play::new();
    for statement in ["admit A", "settle A end_turn"] {
        play.act(statement);
    }
    let (ended, before): (Ended, u64) = (play.session.turn(Some("A")).overlay.unwrap(), play.session.rewinds());
    for statement in ["hold", "rewound", "release"] {
        play.act(statement);
    }
    play.session.absorb(ended.clone(), before);
    assert!(play.session.turn(Some("A")).overlay.is_none());
    play.session.absorb(ended, play.session.rewinds());
    assert!(play.session.turn(Some("A")).overlay.is_some(), "what was read behind it counts");
}
