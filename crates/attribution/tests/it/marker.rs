//! A story's `marked` takes for its marker what the daemon would take, whatever the transcript ends with.

use ledger::Fact;
use proptest::prelude::*;

use crate::told;

/// What a transcript may end with.
const EVENTS: &str = "user, answer, note, artifact, rewind on 0, answer huge, user mute, answer unreadable, \
     answer torn, answer torn 0, answer torn 980, answer torn 990, answer torn 996, answer torn 999, answer torn 1000, \
     answer glued, note glued, user torn glued, user torn 1000 glued";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_marked_admission_carries_what_the_transcript_ends_with(
        events in prop::collection::vec(prop::sample::select(EVENTS.split(", ").collect::<Vec<_>>()), 0..6),
    ) {
        let story = told::story(&format!("[{}, A if marked]", events.join(", ")));
        let files = told::files(&story.remains());
        let expected = transcript::tail_uuid(files.session().transcript);
        let admission = files.ledger().read().unwrap().records.pop().unwrap();
        prop_assert_eq!(admission.fact, Fact::InFlight { tail_uuid: expected }, "{}", story);
    }
}
