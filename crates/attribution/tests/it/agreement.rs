//! The bounded reading gives the verdict that a reading of the whole file gives.

use attribution::{Evidence, judge, open_admissions};
use proptest::prelude::*;

use crate::files::{Files, SESSION_ID, WORKSPACE};
use crate::story::Story;

/// The verdict with a window of this size.
fn judged(files: &Files, window_bytes: u64) -> attribution::Verdict {
    let session = files.session();
    let records = session.ledger.read().unwrap().records;
    let transcript = transcript::open(session.transcript, SESSION_ID, WORKSPACE.as_ref()).ok();
    let admissions = open_admissions(&records);
    let gather = |transcript| Evidence::gather(transcript, SESSION_ID, &admissions, window_bytes);
    judge(&records, transcript.as_ref().and_then(gather).as_ref())
}

/// The words that stories are made of.
const WORDS: &str = "A+ B+ A+m B+m A+m1 A=done B=done B=cancelled A? B? ? ! \
     ! ! call tool A#done B#done B#failed note zip remind task job mid";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_window_gives_the_same_verdict(
        words in prop::collection::vec(prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()), 0..20),
        turns in 0..40_usize,
        window_bytes in 0..2_000_u64,
    ) {
        // A long history before it, so that there is something not to be read.
        let story = Story::new(&("? ! ".repeat(turns) + &words.join(" ")));
        let files = story.files();
        prop_assert_eq!(judged(&files, window_bytes), judged(&files, u64::MAX), "{:?}", words);
    }
}
