//! The bounded reading gives the verdict that a reading of the whole file gives, with one exception that is named here.

use attribution::strategies::{Deed, Entry, Event, Flaw, Story, What};
use attribution::{Evidence, Verdict, Withheld, judge, open_admissions};
use proptest::prelude::*;

use crate::files::{Files, SESSION_ID, WORKSPACE};
use crate::told;

/// The verdict with a window of this size.
fn judged(files: &Files, window_bytes: u64) -> Verdict {
    let session = files.session();
    let records = session.ledger.read().unwrap().records;
    let transcript = transcript::open(session.transcript, SESSION_ID, WORKSPACE.as_ref()).ok();
    let admissions = open_admissions(&records);
    let gather = |transcript| Evidence::gather(transcript, SESSION_ID, &admissions, window_bytes);
    judge(&records, transcript.as_ref().and_then(gather).as_ref())
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
        prop_assert!(bounded == whole || is_a_fence_out_of_sight(&story, &files, &whole), "{}: {:?}, {:?}", story, bounded, whole);
    }
}

/// Whether all that a window can hide was hidden. An admission without a marker is fenced by the time of a compression: where
/// the clock stepped back or did not date it, one that stands before a record older than the admission may still count as
/// later. It is fenced by place, too, behind the prompt's own record, and that may stand before the admission. Reconciliation
/// reads [`transcript::WINDOW_BYTES`] in any case, so this takes a longer history than that.
fn is_a_fence_out_of_sight(story: &Story, files: &Files, whole: &Verdict) -> bool {
    let is_out_of_time = |event: &Event| event.after_ms < 0 || is_undated_compression(&event.deed);
    let admissions = open_admissions(&files.ledger().read().unwrap().records);
    whole.withheld == Some(Withheld::CompressionFence)
        && (story.events.iter().any(is_out_of_time) || is_asked_before_its_admission(story))
        && admissions.iter().any(|admission| admission.marker.is_none())
}

/// Whether a prompt's own record stands before an admission of it.
fn is_asked_before_its_admission(story: &Story) -> bool {
    let admitted = |event: &Event| match event.deed {
        Deed::Admit { prompt, .. } => Some(prompt),
        _ => None,
    };
    story.events.iter().enumerate().any(|(index, event)| match &event.deed {
        Deed::Write(Entry { what: What::User, owner: Some(owner), .. }) => {
            story.events[index..].iter().filter_map(admitted).any(|prompt| prompt == *owner)
        }
        _ => false,
    })
}

fn is_undated_compression(deed: &Deed) -> bool {
    matches!(deed, Deed::Write(entry) if entry.what == What::Compression && entry.has(Flaw::Undated))
}

#[test]
fn windows_that_once_disagreed_agree() {
    let files = told::files(&told::story("[A result completed, notification, A if, compression, A user]").remains());
    assert_eq!(judged(&files, 0), judged(&files, u64::MAX));
}

#[test]
fn a_fence_that_is_out_of_sight_is_seen_within_the_window() {
    for notation in [
        "[compression, back 5s, compression, A if, A user]",
        "[compression undated, compression, A if, A user]",
        "[B user, compression, A user, user, B if, user]",
    ] {
        let files = told::files(&told::story(notation).remains());
        assert_eq!(judged(&files, transcript::WINDOW_BYTES).withheld, Some(Withheld::CompressionFence), "{notation}");
        assert_eq!(judged(&files, 0).withheld, None, "{notation}");
    }
}
