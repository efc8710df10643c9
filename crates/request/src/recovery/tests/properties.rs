//! What holds of every transcript.

use proptest::prelude::*;

use super::*;

fn records() -> impl Strategy<Value = String> {
    let words = vec![
        "U(p1)",
        "U(p1)",
        "U(p1 other)",
        "U(p1 untold)",
        "U(p2)",
        "U(-)",
        "T(p0 end_turn \"before\")",
        "T(p1 end_turn \"hi\")",
        "T(p1 end_turn \"hi\")",
        "T(p1 end_turn lost)",
        "T(p1 cancelled)",
        "T(p2 end_turn \"ho\")",
        "T(- end_turn \"hm\")",
        "replaced",
        "new writer",
    ];
    prop::collection::vec(prop::sample::select(words), 0..6).prop_map(|words| words.join(", "))
}

/// The rule, told another way: but for the turn before ours, our question and then our turn's end are the first things behind the tail.
fn is_exact(records: &str) -> bool {
    let mut words = records.split(", ").filter(|word| !word.starts_with("T(p0"));
    words.next() == Some("U(p1)") && words.next() == Some("T(p1 end_turn \"hi\")")
}

/// Between question and end not even the turn before ours may be.
fn is_clean(records: &str) -> bool {
    records.split(", ").skip_while(|word| *word != "U(p1)").nth(1) == Some("T(p1 end_turn \"hi\")")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn only_our_question_and_then_our_turn_complete(records in records(), ledger in 0..3_usize) {
        let ledger = [LedgerFound::Open, LedgerFound::Ended, LedgerFound::Reconstructed][ledger];
        let found = Found { ledger, ..shown(&records) };
        let said = said(&submitted(), &found);
        let expected = is_exact(&records) && is_clean(&records);
        prop_assert_eq!(said == "completed yes \"hi\"", expected, "{} of {}", said, records);
        prop_assert!(expected || !said.starts_with("completed"), "{} of {}", said, records);
    }

    #[test]
    fn whatever_is_found_is_decided_and_stays_decided(records in records(), deadline in prop::option::of(1..10_000_u64), now in 1..10_000_u64) {
        for script in ["registered", "registered > dispatched", "registered > dispatched > written > bound"] {
            let request = crashed(script, deadline);
            let verdict = recover(&request, &shown(&records), now);
            prop_assert!(matches!(verdict, Verdict::Decided(_)));
            prop_assert_eq!(verdict, recover(&request, &shown(&records), now));
        }
    }
}
