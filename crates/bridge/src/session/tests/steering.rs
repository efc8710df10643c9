//! Words for a turn that runs, row by row.

use super::notation::{Play, check, word};

#[test]
fn a_message_waits_until_the_agent_asks_and_is_told_once() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("steer m", "steered m, added m"),
        ("steer n", "steered n, added n"),
        ("drain", "> drained m+n, injected m+n A, taken m, taken n"),
        ("drain A", "> drained -"),
        ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
    ]);
}

#[test]
fn what_the_agent_did_not_take_becomes_a_prompt_under_its_own_id_behind_those_that_wait() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("steer m", "steered m, added m"),
        ("admit B", "record B, receipt B, added B"),
        ("drain B", "> drained - and more"),
        (
            "settle A end_turn",
            "record A completed end_turn, complete A end_turn, record m, started B, echo B, > prompt B",
        ),
        (
            "settle B end_turn",
            "record B completed end_turn, complete B end_turn, left B, started m, echo m, > prompt m",
        ),
        ("settle m end_turn", "record m completed end_turn, complete m end_turn, left m"),
    ]);
}

#[test]
fn without_a_turn_that_somebody_waits_for_nothing_is_accepted() {
    check(&[
        ("steer m", "idle"),
        ("admit A 300", "record A, receipt A, echo A, > prompt A"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("steer m", "idle"),
        ("drain", "> drained -"),
        ("settle A cancelled", "record A cancelled, complete A cancelled"),
        ("steer m", "idle"),
    ]);
}

#[test]
fn a_turn_that_is_to_stop_is_told_nothing_more_and_its_words_become_prompts() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("steer m", "steered m, added m"),
        ("cancel", "wish A, cancel A, > cancel, ok"),
        ("drain", "> drained -"),
        ("settle A end_turn", "record A cancelled, complete A cancelled, record m, started m, echo m, > prompt m"),
    ]);
}

#[test]
fn an_id_is_one_messages_or_one_prompts() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("steer A", "known false"),
        ("steer m", "steered m, added m"),
        ("steer m", "steered m"),
        ("admit m", "known false"),
        ("drain", "> drained m, injected m A, taken m"),
        ("steer m", "steered m"),
        ("admit m", "known false"),
        ("drain", "> drained -"),
    ]);
}

#[test]
fn a_message_that_is_taken_back_is_no_prompt_and_frees_its_place() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("steer m", "steered m, added m"),
        ("steer n", "steered n, added n"),
        ("steer o", "steered o, added o"),
        ("steer p", "steered p, added p"),
        ("steer q", "full 5"),
        ("admit q", "full 5"),
        ("remove n", "taken n, removed true"),
        ("remove n", "removed false"),
        ("steer q", "steered q, added q"),
        ("drain", "> drained m+o+p+q, injected m+o+p+q A, taken m, taken o, taken p, taken q"),
    ]);
}

#[test]
fn the_end_of_the_session_gives_each_message_its_one_outcome() {
    for (end, code) in [
        ("kill", "session_killed"),
        ("shutdown", "daemon_shutdown"),
        ("lost", "channel_closed"),
        ("hostgone A", "channel_closed"),
        ("close", "session_closed"),
    ] {
        let mut play = Play::new();
        play.act("admit A");
        play.act("steer m");
        let words: Vec<String> = play.act(end).iter().map(word).collect();
        let place = |wanted: String| {
            words.iter().position(|word| *word == wanted).unwrap_or_else(|| panic!("{wanted}: {words:?}"))
        };
        let admitted = place("record m".to_owned());
        let ended = place(format!("record m error {code}"));
        assert!(admitted < ended && ended < place(format!("error m {code}")), "{end}: {words:?}");
    }
}

#[test]
fn an_agent_that_asks_for_another_session_gets_nothing() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("steer m", "steered m, added m"),
        ("drain foreign", "> drained -"),
        ("drain other", "> drained -"),
        ("drain A", "> drained m, injected m A, taken m"),
    ]);
}

#[test]
fn a_client_that_was_away_learns_what_became_of_its_messages() {
    let mut play = Play::new();
    for statement in ["admit A", "steer m", "drain", "steer n", "remove n", "steer o", "steer p"] {
        play.act(statement);
    }
    let view = play.session.steering();
    assert_eq!(view.waiting, [("o".to_owned(), "o".to_owned()), ("p".to_owned(), "p".to_owned())]);
    assert_eq!((view.settled, view.promoted.len()), (vec!["m".to_owned(), "n".to_owned()], 0));
    play.act("settle A end_turn");
    assert_eq!(play.session.steering().promoted, ["o", "p"]);
}
