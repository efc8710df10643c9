//! What holds of any life.

use proptest::prelude::*;
use serde_json::Value;

use super::notation::Life;
use super::reader::read;
use crate::compaction::Bounds;

fn words() -> impl Strategy<Value = String> {
    let below = prop_oneof![3 => Just(""), 1 => Just(" below c"), 1 => Just(" below d")];
    let about = prop_oneof![6 => Just(""), 1 => Just(" usage 1"), 1 => Just(" usage 2"), 1 => Just(" from r")];
    let text = prop_oneof![Just(""), Just("a"), Just("b\""), Just("\\"), Just("ü\n")];
    let chunk = (prop_oneof![4 => Just("say"), 1 => Just("think"), 1 => Just("notice")], text, about, below.clone())
        .prop_map(|(kind, text, about, below)| format!("{kind} {text}{about}{below}"));
    let call = (
        prop_oneof![Just("call"), Just("update")],
        prop_oneof![Just("c"), Just("e"), Just("f")],
        prop_oneof![Just(""), Just(" title=x"), Just(" status=a"), Just(" status=b title=null")],
    )
        .prop_map(|(kind, id, members)| {
            // A call stays where it is.
            let below = if id == "e" { " below c" } else { "" };
            format!("{kind} {id}{members}{below}")
        });
    let other = prop_oneof![
        Just("commands 1"),
        Just("commands 2"),
        Just("mode a"),
        Just("plan 1"),
        Just("echo hi"),
        Just("usage_update 1"),
        Just("end"),
        Just("fail"),
    ];
    prop_oneof![5 => chunk, 3 => call, 2 => other.prop_map(str::to_owned)]
}

fn number(frame: &Value) -> u64 {
    frame["id"].as_u64().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Who reads what is shown sees what somebody sees who has read everything.
    #[test]
    fn the_short_form_says_the_same(script in prop::collection::vec(words(), 0..40)) {
        let mut life = Life::of("", Bounds::default());
        for words in &script {
            life.say(words);
            prop_assert_eq!(read(&life.told()), read(&life.raw), "after {}", words);
        }
        prop_assert!(life.told().is_sorted_by(|one, next| number(one) < number(next)));
        prop_assert_eq!(life.told().last().map(number), life.raw.last().map(number));
    }

    /// Within bounds, what is shown is within them and in order, and nothing is missing that is not said to be.
    #[test]
    fn what_is_left_out_is_said(
        script in prop::collection::vec(words(), 1..60),
        window_bytes in 0_usize..3_000,
        journal_bytes in 300_usize..3_000,
        journal_events in 1_usize..12,
    ) {
        let bounds = Bounds { window_bytes, journal_events, journal_bytes };
        let mut life = Life::of("", bounds);
        for words in &script {
            life.say(words);
            let (turns, journal) = life.compaction.told("s");
            let bytes = |frames: &[bytes::Bytes]| frames.iter().map(bytes::Bytes::len).sum::<usize>();
            prop_assert!(bytes(&turns.frames) <= window_bytes);
            prop_assert!(journal.frames.len() <= journal_events);
            // One text that grows may be alone and larger: it has a bound of its own.
            prop_assert!(bytes(&journal.frames) <= journal_bytes || journal.frames.len() == 1);
            let is_whole = turns.left_out == 0 && journal.left_out == 0;
            if is_whole {
                prop_assert_eq!(read(&life.told()), read(&life.raw));
            } else {
                prop_assert!(life.told().len() < life.raw.len());
            }
            prop_assert!(life.told().is_sorted_by(|one, next| number(one) < number(next)));
        }
    }
}
