//! The notes of a user's own commands, put anywhere into any case: they prove nothing, leave nothing open and are nobody's turn.

use attribution::strategies::{Deed, Entry, Event, Marker, Parent, Story, What};

use super::file;
use crate::told;

/// The story with both notes before the event of that number, in the millisecond of the event before them.
fn with_command(story: &Story, place: usize) -> Story {
    let is_record = |event: &&Event| matches!(event.deed, Deed::Write(_));
    let count = story.events[..place].iter().filter(is_record).count();
    let moved = |number: usize| if number >= count { number + 2 } else { number };
    let mut story = story.clone();
    for event in &mut story.events {
        match &mut event.deed {
            Deed::Write(Entry { parent: Parent::Record(number), .. })
            | Deed::Admit { marker: Marker::Record(number), .. } => *number = moved(*number),
            _ => {}
        }
    }
    let note = |what| Event { after_ms: 0, ..Event::new(Deed::Write(Entry::new(None, what))) };
    story.events.splice(place..place, [note(What::ShellCommand), note(What::ShellResult)]);
    story
}

/// Whether an admission takes the record before this place for its marker.
fn is_marker(story: &Story, place: usize) -> bool {
    let next = story.events.get(place).map(|event| &event.deed);
    matches!(next, Some(Deed::Admit { marker: Marker::Tail, .. }))
}

/// Where a command may have been run: behind the first record, and not between the halves of a line.
fn places(story: &Story) -> impl Iterator<Item = usize> {
    let first = story.events.iter().position(|event| matches!(event.deed, Deed::Write(_)));
    let is_glued = |place: &usize| story.events.get(*place).is_some_and(|event| event.is_glued);
    let places = first.map_or(1..1, |first| first + 1..story.events.len() + 1);
    places.filter(move |place| !is_glued(place))
}

/// A note that an admission was marked with is a marker like any other: where the branch was taken back to before it, it is on no branch, and
/// where the record before it stands beside the branch, it is the better marker of the two. And a file that held no usable record holds one.
#[test]
fn a_users_command_anywhere_in_any_case_changes_no_verdict_but_withholds_it_by_its_marker() {
    let mut counted = 0;
    for case in file::all().into_iter().flat_map(|file| file.cases).filter(|case| case.settings.is_empty()) {
        let before = told::verdict(&told::files(&case.story.remains()));
        for place in places(&case.story) {
            let after = told::verdict(&told::files(&with_command(&case.story, place).remains()));
            let is_withheld =
                matches!((&*before, &*after), (_, "marker_absent") | ("no_transcript", "no_visible_write"));
            let is_better_marked = before == "marker_absent" && is_marker(&case.story, place);
            let what = format!("{} at {place}: {before} became {after}", case.name);
            assert!(after == before || is_withheld || is_better_marked, "{what}");
            counted += 1;
        }
    }
    assert!(counted > 500, "{counted} places were tried");
}
