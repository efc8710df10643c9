//! A clock that was set back between what is judged and the judging.

use crate::told;

/// Before anything of a story, in epoch milliseconds.
const LONG_AGO_MS: u64 = 1_000;

#[test]
fn what_was_withheld_beside_an_exact_ending_stays_so_though_the_clock_was_set_back() {
    for (words, settled, withheld) in [
        (
            "[A if, B if, user, answer, A result completed]",
            "A result completed max_tokens",
            "tail_before_other_terminal",
        ),
        ("[B if, A if, user, answer, A result completed]", "A result completed max_tokens", "attribution_guard"),
    ] {
        let files = told::files(&told::story(words).remains());
        assert_eq!(told::verdict(&files), format!("{settled}; {withheld}"), "{words}");
        let first = files.plan().apply(files.ledger(), LONG_AGO_MS);
        assert_eq!(first.appended.len(), 1, "{words}");
        let again = files.plan().apply(files.ledger(), LONG_AGO_MS + 1);
        assert_eq!(again.appended, [], "{words}");
    }
}

#[test]
fn an_ending_beside_which_nothing_stays_open_gets_the_time_of_the_judging() {
    let files = told::files(&told::story("[A if, user, answer, A result completed]").remains());
    let outcome = files.plan().apply(files.ledger(), LONG_AGO_MS);
    assert_eq!(outcome.appended[0].at_ms, LONG_AGO_MS as f64);
}
