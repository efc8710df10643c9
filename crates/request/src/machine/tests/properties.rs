//! What holds of every sequence of inputs.

use proptest::prelude::*;

use super::notation::{Played, input, registered};
use crate::{Input, InputWritten, State};

/// Every word of the notation that is an input.
const WORDS: [&str; 56] = [
    "admitted",
    "refused",
    "dropped",
    "dropped(tainted)",
    "dispatched",
    "dispatched(to another process)",
    "dispatched(behind another turn)",
    "written",
    "write failed(part)",
    "write failed(whole)",
    "bound",
    "bound(u1)",
    "bound(u2)",
    "accepted",
    "first update",
    "mismatch(no)",
    "mismatch(maybe)",
    "mismatch(yes)",
    "another process(maybe)",
    "session closed(no)",
    "session closed(maybe)",
    "session closed(yes)",
    "session rewound(no)",
    "daemon stops(yes)",
    "agent exits(no)",
    "agent exits(maybe)",
    "agent exits(yes)",
    "cancel",
    "deadline",
    "crash",
    "lost",
    "store made anew",
    "deadline passed",
    "unattributable",
    "text lost",
    "rejected",
    "failed",
    "perhaps failed",
    "stopped",
    "end_turn \"hi\"",
    "end_turn \"ho\"",
    "end_turn",
    "max_tokens \"hi\"",
    "perhaps end_turn \"hi\"",
    "perhaps max_tokens",
    "staged end_turn \"hi\"",
    "staged rejected",
    "staged stopped",
    "staged failed",
    "on record end_turn \"hi\"",
    "on record end_turn",
    "on record stopped",
    "on record failed",
    "on record max_tokens \"hi\"",
    "dropped(rewound)",
    "dispatched",
];

/// Half of the words are those that lead on, so that not every script ends at once.
fn script() -> impl Strategy<Value = Vec<&'static str>> {
    let onward = prop::sample::select(vec!["admitted", "dispatched", "written", "bound(u1)", "first update"]);
    prop::collection::vec(prop_oneof![onward, prop::sample::select(WORDS.to_vec())], 0..12)
}

/// Whether an input is the proof that a prompt which may be out is not.
fn proves_that_nothing_was_sent(input: &Input) -> bool {
    matches!(
        input,
        Input::WriteFailed { is_complete: false }
            | Input::Dropped(_)
            | Input::Refused
            | Input::Mismatch { written: InputWritten::No, .. }
            | Input::SessionEnded { written: InputWritten::No, .. }
            | Input::AgentExited { written: InputWritten::No }
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4_000, ..ProptestConfig::default() })]

    /// `Played::take` holds each step against what must hold of it.
    #[test]
    fn a_request_ends_once_and_nothing_changes_after_it(words in script(), queued: bool) {
        let mut request = registered();
        request.registration.options.queue = queued;
        let mut played = Played { request, is_removed: false, ends: 0, late: Vec::new() };
        for (place, word) in words.iter().enumerate() {
            let before = played.request.clone();
            let input = input(word);
            let late = played.late.len();
            played.take(&input, 10 + place as u64);
            prop_assert_eq!(played.ends, usize::from(played.request.state.is_terminal()));
            prop_assert!(played.late.len() == late || before.state.is_terminal() || before.state != State::Registered);
            let fell = before.input_written > played.request.input_written;
            prop_assert!(!fell || (before.input_written == InputWritten::Maybe && proves_that_nothing_was_sent(&input)), "{}", word);
            if played.is_removed {
                prop_assert_eq!(before.input_written, InputWritten::No);
                return Ok(());
            }
        }
    }

    #[test]
    fn only_what_is_tied_to_the_prompt_completes(words in script()) {
        let mut played = Played { request: registered(), is_removed: false, ends: 0, late: Vec::new() };
        let mut is_written = false;
        let mut is_dispatched = false;
        for word in &words {
            let before = played.request.state;
            played.take(&input(word), 10);
            is_dispatched |= *word == "dispatched";
            is_written |= is_dispatched && matches!(*word, "written" | "bound" | "bound(u1)" | "bound(u2)" | "accepted");
            if played.request.state == State::Completed && before != State::Completed {
                prop_assert!(is_dispatched, "{:?}", words);
                prop_assert!(is_written || word.starts_with("end_turn \""), "{:?}", words);
                prop_assert!(word.contains("end_turn \""), "{:?}", words);
            }
        }
    }
}

#[test]
fn every_input_ends_a_request_that_waits_or_leaves_it_as_it_is_or_leads_on() {
    for start in ["registered", "registered > admitted", "registered > dispatched", "registered > dispatched > written"]
    {
        for word in WORDS {
            let played = super::notation::play(&format!("{start} > {word}"));
            assert!(played.ends <= 1 && !(played.is_removed && played.ends > 0), "{start} > {word}");
        }
    }
}
