//! The bounded reading gives the verdict that a reading of the whole file gives.
//!
//! Of a damaged file it may withhold more. It may settle what the whole file withholds for two reasons only, both of
//! them written down: the damage made a foreign record, or a compression that nobody can date, out of something so far
//! back that it is not on the way to the evidence.

use attribution::{Evidence, judge, open_admissions};
use proptest::prelude::*;

#[path = "../../../transcript/tests/it/damage.rs"]
mod damage;

use attribution::{Verdict, Withheld};
use damage::{damaged, damages, with_long_ids};

use crate::files::{Files, SESSION_ID, WORKSPACE};
use crate::story::Story;

/// The verdict with a window of this size.
fn judged(files: &Files, window_bytes: u64) -> Verdict {
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

    #[test]
    fn of_a_damaged_file_no_window_settles_otherwise(
        words in prop::collection::vec(prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()), 0..20),
        turns in 0..40_usize,
        damages in damages(),
        window_bytes in 0..2_000_u64,
    ) {
        let story = Story::new(&("? ! ".repeat(turns) + &words.join(" ")));
        let transcript = damaged(with_long_ids(&story.transcript).into_bytes(), &damages);
        let files = Files::with(Some(with_long_ids(&story.ledger).as_bytes()), Some(&transcript));
        let (bounded, whole) = (judged(&files, window_bytes), judged(&files, u64::MAX));
        let is_far_back = shows_foreign_record(&files) || whole.withheld == Some(Withheld::CompressionFence);
        prop_assert!(
            bounded == whole || is_less(&bounded, &whole) || is_far_back,
            "{words:?}: {bounded:?} and {whole:?}"
        );
    }
}

/// Whether any record of the whole file belongs to another session.
fn shows_foreign_record(files: &Files) -> bool {
    let transcript = transcript::Transcript::open(files.session().transcript).unwrap();
    transcript.is_some_and(|transcript| transcript.branch(u64::MAX).unwrap().is_mixed())
}

/// Whether everything that `less` settles is settled the same by `more`, and something is withheld instead of the rest.
fn is_less(less: &Verdict, more: &Verdict) -> bool {
    less.withheld.is_some() && less.settled.iter().all(|settled| more.settled.contains(settled))
}
