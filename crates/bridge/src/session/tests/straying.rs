//! Words that the agent says outside of its turns: what they take the certainty from, and for how long.

use proptest::prelude::*;

use super::notation::{Play, after, check, word};
use crate::Mediation;
use crate::effect::{Effect, Word};
use crate::limits::LATE_WORDS_MS;
use crate::witness::FinalText;

/// What an agent says in a turn, from the prompt to its answer.
const RUN: [(&str, &str); 3] =
    [("go A", "echo A, > prompt A"), ("written A", "~ written A"), ("say hi", "~ heard A, update A")];

/// A turn of a plain prompt.
const PLAIN: [(&str, &str); 2] = [
    ("admit Z", "record Z, receipt Z, echo Z, > prompt Z"),
    ("settle Z end_turn", "record Z completed end_turn, complete Z end_turn"),
];

fn rows<'a>(parts: &[&[(&'a str, &'a str)]]) -> Vec<(&'a str, &'a str)> {
    parts.concat()
}

#[test]
fn an_outcome_is_told_when_what_may_come_late_has_had_its_time_and_not_before() {
    check(&rows(&[
        &[("witness A", "record A, receipt A, ~ next A after 0 -")],
        &RUN,
        &[
            ("settle A end_turn", ""),
            ("confirm A", ""),
            ("wait 9", ""),
            ("confirm A", ""),
            ("wait 1", "~ settling A completed end_turn yes"),
            ("wait 60000", ""),
        ],
    ]));
}

#[test]
fn an_answer_that_its_own_agent_goes_on_after_is_not_the_whole_answer() {
    for late in ["say and", "call c", "done c"] {
        check(&rows(&[
            &[("witness A", "record A, receipt A, ~ next A after 0 -")],
            &RUN,
            &[
                ("settle A end_turn", ""),
                ("wait 9", ""),
                (late, "update"),
                ("wait 1", "~ settling A completed end_turn yes strayed"),
                (
                    "confirm A",
                    "record A completed end_turn, ~ ended A completed end_turn yes strayed answered, \
                     complete A end_turn",
                ),
            ],
        ]));
    }
}

#[test]
fn what_comes_when_the_witness_has_the_outcome_does_not_change_it_but_the_next_one() {
    check(&rows(&[
        &[("witness A", "record A, receipt A, ~ next A after 0 -")],
        &RUN,
        &[
            ("settle A end_turn", ""),
            ("wait 10", "~ settling A completed end_turn yes"),
            ("say late", "update"),
            (
                "confirm A",
                "record A completed end_turn, ~ ended A completed end_turn yes answered, complete A end_turn",
            ),
            ("witness B", "record B, receipt B, ~ next B after 1 A"),
            ("go B", "echo B, > prompt B"),
            ("written B", "~ written B"),
            ("settle B end_turn", "~ settling B completed end_turn yes strayed"),
        ],
    ]));
}

#[test]
fn behind_a_plain_prompt_too_a_request_waits_for_the_end_of_the_pause_and_no_other_prompt_does() {
    check(&rows(&[
        &PLAIN,
        &[
            ("witness A", "record A, receipt A"),
            ("go A", ""),
            ("drop A", ""),
            ("wait 9", ""),
            ("wait 1", "~ next A after 1 Z"),
        ],
    ]));
    check(&rows(&[&PLAIN, &[("admit B", "record B, receipt B, echo B, > prompt B")]]));
    check(&rows(&[&PLAIN, &[("wait 10", ""), ("witness A", "record A, receipt A, ~ next A after 1 Z")]]));
}

/// What the session does, statement by statement.
fn done(play: &mut Play, statement: &str) -> String {
    play.act(statement).iter().map(word).collect::<Vec<_>>().join(", ")
}

#[test]
fn behind_the_opening_of_its_session_a_request_waits_for_the_end_of_the_pause_and_no_other_prompt_does() {
    let mut play = Play::opened(Mediation::default());
    for (statement, expected) in [
        ("witness A", "record A, receipt A"),
        ("go A", ""),
        ("wait 99", ""),
        ("wait 1", "~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
    ] {
        assert_eq!(done(&mut play, statement), expected, "{statement}");
    }
    let mut play = Play::opened(Mediation::default());
    assert_eq!(done(&mut play, "admit A"), "record A, receipt A, echo A, > prompt A");
}

#[test]
fn a_turn_that_ends_soon_behind_the_opening_does_not_cut_its_pause_short() {
    let mut play = Play::opened(Mediation::default());
    for statement in ["admit Z", "wait 60", "settle Z end_turn", "witness A", "wait 39"] {
        assert!(!done(&mut play, statement).contains("~ next"), "{statement}");
    }
    assert_eq!(done(&mut play, "wait 1"), "~ next A after 1 Z");
}

#[test]
fn words_behind_the_opening_are_of_no_turn() {
    let mut play = Play::opened(Mediation::default());
    for statement in ["witness A", "wait 99", "say hello", "wait 1", "go A"] {
        play.act(statement);
    }
    assert!(play.session.turn.unwrap().strayed);
}

#[test]
fn behind_a_change_of_what_the_agent_remembers_a_request_waits_for_the_end_of_the_pause() {
    for rewound in [true, false] {
        let mut play = Play::new();
        play.act("hold");
        play.act("witness A");
        play.act("admit B");
        play.act("wait 60000");
        if rewound {
            play.act("rewound");
        }
        assert_eq!(done(&mut play, "release"), "");
        assert_eq!(done(&mut play, "wait 99"), "");
        assert_eq!(done(&mut play, "wait 1"), "~ next A after 0 -");
    }
    let mut play = Play::new();
    play.act("hold");
    play.act("admit A");
    assert!(done(&mut play, "release").ends_with("> prompt A"));
}

#[test]
fn behind_another_process_in_the_agents_place_a_request_waits_for_the_end_of_the_pause() {
    let mut play = Play::new();
    for statement in ["admit C", "cancel", "witness A", "wait 30000", "hostreplaced C", "wait 20"] {
        play.act(statement);
    }
    let next = "~ next A after 1 C";
    assert!(!done(&mut play, "replaced").contains(next));
    assert_eq!(done(&mut play, "wait 99"), "");
    assert_eq!(done(&mut play, "wait 1"), next);
}

#[test]
fn what_the_host_has_heard_for_itself_counts_as_if_it_was_heard_here() {
    assert!(after("strayed; witness A; go A; written A").turn.unwrap().strayed);
    assert!(after("witness A; go A; strayed; written A").turn.unwrap().strayed);
    let replaced = "admit C; cancel; wait 30000; hostreplaced C; replaced";
    assert!(after(&format!("{replaced}; strayed; wait 100; witness A; go A")).turn.unwrap().strayed);
    assert!(!after(&format!("strayed; {replaced}; wait 100; witness A; go A")).turn.unwrap().strayed);
}

/// Set back, it would make an hour of ten milliseconds; set forward, nothing.
#[test]
fn a_pause_is_as_long_as_it_is_whoever_sets_the_wall_clock() {
    for set in ["clock -50000", "clock 50000"] {
        let mut play = Play::new();
        for statement in ["wait 60000", "admit Z", "settle Z end_turn", set, "wait 9", "witness A"] {
            assert!(!done(&mut play, statement).contains("~ next"), "{set}: {statement}");
        }
        assert!(done(&mut play, "wait 1").starts_with("~ next A after"), "{set}");
        let mut play = Play::new();
        for statement in ["wait 60000", "admit Z", "settle Z end_turn", "wait 10", set] {
            play.act(statement);
        }
        assert!(done(&mut play, "witness A").contains("~ next A after"), "{set}");
    }
}

#[test]
fn whatever_ends_a_prompt_that_waits_for_the_end_of_the_pause_ends_it_unwritten() {
    for ends in ["cancel", "cancel A", "remove A", "close", "kill", "shutdown", "lost"] {
        let mut play = Play::new();
        for statement in ["admit Z", "settle Z end_turn", "witness A", "admit B"] {
            play.act(statement);
        }
        let words: Vec<_> = play.act(ends).iter().map(word).collect();
        assert!(words.iter().any(|word| word.starts_with("~ ended A") && word.contains(" no ")), "{ends}: {words:?}");
        let goes_on = words.contains(&"> prompt B".to_owned());
        assert_eq!(goes_on, ends.starts_with("cancel") || ends.starts_with("remove"), "{ends}: {words:?}");
        let later: Vec<_> = play.act("wait 10").iter().map(word).collect();
        assert!(!later.iter().any(|word| word.contains(" A")), "{ends}: {later:?}");
    }
}

#[test]
fn whatever_comes_in_the_pause_behind_its_own_answer_leaves_the_outcome_as_it_is() {
    let ended = "record A completed end_turn, ~ ended A completed end_turn yes answered, complete A end_turn";
    for (meets, expected) in [
        ("cancel", "ok".to_owned()),
        ("cancel A", "ok".to_owned()),
        ("remove A", "removed false".to_owned()),
        ("settle A refusal", String::new()),
        ("close", format!("ok, {ended}, > close session_closed")),
        ("kill", format!("ok, {ended}, died killed, end, > close session_killed")),
        ("lost", format!("{ended}, died channel_closed, end, forget")),
    ] {
        check(&rows(&[
            &[("witness A 5", "record A, receipt A, ~ next A after 0 -")],
            &RUN,
            &[("settle A end_turn", ""), ("tick 7", ""), (meets, &expected)],
        ]));
    }
}

#[test]
fn what_is_no_answer_is_told_at_once() {
    for (answer, told) in [("fail A", "error -32603 yes"), ("host A cancelled end_turn", "cancelled yes")] {
        let told = format!("~ settling A {told}");
        check(&rows(&[&[("witness A", "record A, receipt A, ~ next A after 0 -")], &RUN, &[(answer, &told)]]));
    }
}

#[test]
fn what_is_said_before_any_of_a_prompt_can_be_read_is_not_said_to_it() {
    check(&[
        ("witness A", "record A, receipt A, ~ next A after 0 -"),
        ("go A", "echo A, > prompt A"),
        ("say before", "~ heard A, update A"),
        ("written A", "~ written A"),
        ("say hi", "update A"),
        ("settle A end_turn", "~ settling A completed end_turn yes strayed"),
    ]);
}

#[test]
fn a_message_that_began_in_another_turn_or_in_none_is_no_part_of_this_one() {
    let strays = |script: &str| after(&format!("{script}; written A")).turn.unwrap().strayed;
    assert!(!strays(
        "admit Z; say m: hi; settle Z end_turn; wait 10; witness A; go A; written A; say n: hi; say n: ho"
    ));
    assert!(strays("admit Z; say m: hi; settle Z end_turn; wait 10; witness A; go A; written A; say m: ho"));
    assert!(strays("say m: hi; witness A; go A; written A; say m: ho"));
}

#[test]
fn what_is_no_part_of_an_answer_may_come_at_any_time() {
    for other in ["user m", "odd", "say", "say m:", "ask q"] {
        assert!(!after(&format!("{other}; witness A; go A; written A")).turn.unwrap().strayed, "{other}");
    }
    assert!(after("say x; witness A; go A").turn.unwrap().strayed);
}

#[test]
fn what_is_said_to_a_prompt_whose_caller_was_released_is_said_in_a_turn() {
    let released = "admit Z 5; wait 5; say z; settle Z end_turn";
    assert!(!after(&format!("{released}; wait 10; witness A; go A")).turn.unwrap().strayed);
    assert!(after(&format!("{released}; say z; wait 10; witness A; go A")).turn.unwrap().strayed);
}

#[test]
fn what_an_agent_has_shown_is_forgotten_with_its_process_and_not_before() {
    let strayed = "witness Z; go Z; written Z; settle Z end_turn; say z; wait 100; confirm Z";
    let runs = "witness A; go A; written A; say a; settle A end_turn; wait 100; confirm A; witness B; wait 100; go B";
    assert!(after(&format!("{strayed}; {runs}")).turn.unwrap().strayed);
    let held = "hold; rewound; release; wait 100";
    assert!(after(&format!("{strayed}; {held}; {runs}")).turn.unwrap().strayed);
    let replaced = "admit C; cancel; wait 30000; hostreplaced C; replaced; wait 100";
    assert!(!after(&format!("{strayed}; {replaced}; {runs}")).turn.unwrap().strayed);
    let kept = "admit C; cancel; wait 30000; kept; settle C cancelled; wait 100";
    assert!(after(&format!("{strayed}; {kept}; {runs}")).turn.unwrap().strayed);
}

#[test]
fn what_is_withheld_has_no_text() {
    let mut play = Play::new();
    for statement in ["say x", "witness A", "go A", "written A", "say hi"] {
        play.act(statement);
    }
    let told = play.act("settle A end_turn");
    let texts: Vec<_> = told.iter().filter_map(text_of).collect();
    assert_eq!(texts, [&FinalText::None]);
}

fn text_of(effect: &Effect) -> Option<&FinalText> {
    match effect {
        Effect::Witness { word: Word::Settling(told) | Word::Ended { told, .. } | Word::Late(told), .. } => {
            Some(&told.text)
        }
        _ => None,
    }
}

/// What an actor does: it runs one request after the other, and says words of an earlier one whenever it likes.
#[derive(Clone, Debug)]
enum Deed {
    Own,
    Late,
    Settle,
    Wait(u64),
    Next { is_plain: bool },
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => Just(Deed::Own),
        2 => Just(Deed::Late),
        3 => Just(Deed::Settle),
        3 => (0u64..2 * LATE_WORDS_MS).prop_map(Deed::Wait),
        3 => any::<bool>().prop_map(|is_plain| Deed::Next { is_plain }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_another_turn_is_told_once_an_agent_was_heard_outside_of_one(
        deeds in prop::collection::vec(deed(), 0..80),
    ) {
        let mut play = Play::new();
        // The last prompt, the words of the turn that runs, and whether the agent was heard outside of a turn.
        let (mut last, mut said, mut was_heard) = (0_u32, Vec::new(), false);
        for deed in deeds {
            let runs = play.session.turn.is_some();
            let statement = match deed {
                Deed::Own if runs => format!("say {last}"),
                Deed::Late => format!("say {}", last.saturating_sub(u32::from(runs))),
                Deed::Settle if runs => format!("settle p{last} end_turn"),
                Deed::Wait(ms) => format!("wait {ms}"),
                Deed::Next { is_plain } if !play.session.is_busy() => {
                    last += 1;
                    said.clear();
                    format!("{} p{last}", if is_plain { "admit" } else { "witness" })
                }
                Deed::Own | Deed::Settle | Deed::Next { .. } => continue,
            };
            let mut effects = play.act(&statement);
            if let Some(word) = statement.strip_prefix("say ") {
                was_heard |= !runs;
                if runs {
                    said.push(word.to_owned());
                }
            }
            // The witness lets everything run, and has every outcome, at once.
            for follows in [format!("go p{last}"), format!("written p{last}"), format!("confirm p{last}")] {
                effects.extend(play.act(&follows));
            }
            for told in effects.iter().filter_map(text_of) {
                let FinalText::Whole(text) = told else { continue };
                prop_assert!(!was_heard, "{:?} is told of an agent that was heard outside of its turns", text);
                prop_assert_eq!(said.concat(), &**text);
            }
        }
    }
}

#[test]
fn a_turn_of_which_something_could_not_be_read_is_told_so_and_no_later_one_is() {
    check(&rows(&[
        &[("witness A", "record A, receipt A, ~ next A after 0 -")],
        &RUN,
        &[
            ("unreadable", ""),
            ("settle A end_turn", "~ settling A completed end_turn yes unreadable"),
            (
                "confirm A",
                "record A completed end_turn, ~ ended A completed end_turn yes unreadable answered, \
                 complete A end_turn",
            ),
        ],
    ]));
    let next = after("witness A; go A; written A; unreadable; settle A end_turn; confirm A; wait 10; witness B; go B");
    assert!(!next.turn.unwrap().is_doubtful());
}

#[test]
fn what_cannot_be_read_behind_an_answer_is_a_stray_word_as_well() {
    check(&rows(&[
        &[("witness A", "record A, receipt A, ~ next A after 0 -")],
        &RUN,
        &[
            ("settle A end_turn", ""),
            ("wait 9", ""),
            ("unreadable", ""),
            ("wait 1", "~ settling A completed end_turn yes strayed unreadable"),
        ],
    ]));
    for outside in ["unreadable; witness A; go A", "witness A; go A; unreadable"] {
        let turn = after(&format!("{outside}; written A")).turn.unwrap();
        assert!(turn.strayed && !turn.unreadable, "{outside}");
    }
}
