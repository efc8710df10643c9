//! The bounded reading gives the verdict that a reading of the whole file gives, with two exceptions that are named here.
//!
//! Of a damaged file it may withhold more. It may settle what the whole file withholds for two reasons only, both of
//! them written down: the damage made a foreign record, or a compression that nobody can date, out of something so far
//! back that it is not on the way to the evidence.

use attribution::strategies::{Deed, Event, Flaw, Parent, Story, What};
use attribution::{Evidence, Verdict, Withheld, judge, open_admissions};
use damage::{damaged, damages, with_long_ids};
use proptest::prelude::*;

#[path = "../../../transcript/tests/it/damage.rs"]
mod damage;

use crate::files::{Files, SESSION_ID, WORKSPACE};
use crate::told;

/// The verdict with a window of this size.
fn judged(files: &Files, window_bytes: u64) -> Verdict {
    let session = files.session();
    let reading = session.ledger.read().unwrap();
    let transcript = transcript::open(session.transcript, SESSION_ID, WORKSPACE.as_ref()).ok();
    let admissions = open_admissions(&reading.records);
    let gather = |transcript| Evidence::gather(transcript, SESSION_ID, &admissions, window_bytes);
    judge(&reading.records, &reading.open_wishes(), transcript.as_ref().and_then(gather).as_ref())
}

/// The events that stories are made of.
const EVENTS: &str = "A if, B if, A if marked, B if marked, A if marked 1, A term, B term, B cancelled, A user, B user, \
     user, user, answer, answer, answer, answer, call, tool, A result completed, B result completed, B result failed, \
     note, compression, compression undated, reminder, notification, job, mid-turn, command, command answered, goal tool, goal end, \
     rewind on 2, answer torn, answer glued, answer undated, same ms, back 5s";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_window_gives_the_same_verdict(
        events in prop::collection::vec(prop::sample::select(EVENTS.split(", ").collect::<Vec<_>>()), 0..20),
        turns in 0..40_usize,
        window_bytes in 0..2_000_u64,
    ) {
        // A long history before it, so that there is something not to be read.
        let story = told::story(&format!("[{}{}]", "user, answer, ".repeat(turns), events.join(", ")));
        let files = told::files(&story.remains());
        let (bounded, whole) = (judged(&files, window_bytes), judged(&files, u64::MAX));
        let is_excused = is_a_fence_out_of_sight(&story, &files, &whole) || names_a_later_parent(&story) && is_less(&bounded, &whole);
        prop_assert!(bounded == whole || is_excused, "{}: {:?}, {:?}", story, bounded, whole);
    }

    #[test]
    fn of_a_damaged_file_no_window_settles_otherwise(
        events in prop::collection::vec(prop::sample::select(EVENTS.split(", ").collect::<Vec<_>>()), 0..20),
        turns in 0..40_usize,
        damages in damages(),
        window_bytes in 0..2_000_u64,
    ) {
        let story = told::story(&format!("[{}{}]", "user, answer, ".repeat(turns), events.join(", ")));
        let remains = story.remains();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let transcript = damaged(with_long_ids(&text(remains.transcript)).into_bytes(), &damages);
        let files = Files::with(Some(with_long_ids(&text(remains.ledger)).as_bytes()), Some(&transcript));
        let (bounded, whole) = (judged(&files, window_bytes), judged(&files, u64::MAX));
        let is_far_back = shows_foreign_record(&files) || whole.withheld == Some(Withheld::CompressionFence);
        prop_assert!(
            bounded == whole || is_less(&bounded, &whole) || is_far_back,
            "{story}: {bounded:?} and {whole:?}"
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

/// Whether a record names one as its parent that was written after it. Beyond a window a parent is looked for before its child
/// alone, so the branch counts as cut there, and what is left of a turn as that of the prompt before the cut.
fn names_a_later_parent(story: &Story) -> bool {
    let records = story.events.iter().filter_map(|event| match &event.deed {
        Deed::Write(entry) => Some(entry.parent),
        _ => None,
    });
    records.enumerate().any(|(number, parent)| matches!(parent, Parent::Record(later) if later >= number))
}

/// Whether all that a window can hide was hidden: an admission without a marker is fenced by the time of a compression, and
/// where the clock stepped back or did not date it, one that stands before a record older than the admission may still
/// count as later than that. Reconciliation reads [`transcript::WINDOW_BYTES`] in any case, so this takes a longer history than that.
fn is_a_fence_out_of_sight(story: &Story, files: &Files, whole: &Verdict) -> bool {
    let is_out_of_time = |event: &Event| event.after_ms < 0 || is_undated_compression(&event.deed);
    let admissions = open_admissions(&files.ledger().read().unwrap().records);
    whole.withheld == Some(Withheld::CompressionFence)
        && story.events.iter().any(is_out_of_time)
        && admissions.iter().any(|admission| admission.marker.is_none())
}

fn is_undated_compression(deed: &Deed) -> bool {
    matches!(deed, Deed::Write(entry) if entry.what == What::Compression && entry.has(Flaw::Undated))
}

#[test]
fn windows_that_once_disagreed_agree() {
    for notation in [
        "[B user, compression, A user, user, B if, user]",
        "[A result completed, notification, A if, compression, A user]",
    ] {
        let files = told::files(&told::story(notation).remains());
        assert_eq!(judged(&files, 0), judged(&files, u64::MAX), "{notation}");
    }
}

#[test]
fn a_fence_that_the_clock_hides_is_seen_within_the_window() {
    for notation in
        ["[compression, back 5s, compression, A if, A user]", "[compression undated, compression, A if, A user]"]
    {
        let files = told::files(&told::story(notation).remains());
        assert_eq!(judged(&files, transcript::WINDOW_BYTES).withheld, Some(Withheld::CompressionFence), "{notation}");
        assert_eq!(judged(&files, 0).withheld, None, "{notation}");
    }
}
