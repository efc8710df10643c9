//! What the transcript says, as far as the verdict on a few admissions depends on it.
//!
//! The active branch is walked from its end. Everything is kept by its place in that walk, the newest record being the
//! first, so that "after the marker" is a comparison of two numbers.

mod gathering;
mod last_turn;

use std::collections::HashMap;

use gathering::Gathering;
pub(crate) use last_turn::Foreign;
use last_turn::LastTurn;
use transcript::{History, Kind, Record, Transcript, TurnResult, Unreadable};

use crate::admission::Admission;

/// A place in the walk from the end of the branch; the last record has place 0.
type Place = usize;

/// What a transcript says about some admissions.
#[derive(Debug)]
pub struct Evidence {
    /// The newest record that is somebody's own, by its kind and its uuid.
    pub last_visible: Option<(Kind, String)>,
    /// The newest visible write.
    pub last_write: Option<Write>,
    /// Whether records were read that not every reader of the format finds.
    pub is_disputed: bool,
    /// The end of the model's history.
    pub history: Result<History, Unreadable>,
    last_turn: LastTurn,
    compressions: Compressions,
    /// Where the branch was last taken back.
    newest_rewind: Option<Place>,
    by_prompt: HashMap<String, PromptEvidence>,
    markers: HashMap<String, Place>,
}

/// A record that the evidence is gathered from, as whoever looks on is shown it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Met<'a> {
    /// The next one of the active branch, towards its beginning.
    OnBranch(&'a Record),
    /// The newest prompt in the file that stands before the record at which the branch was cut.
    BeforeCut(&'a Record),
}

/// When something visible was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    place: Place,
    /// In epoch milliseconds; none when the record does not say.
    pub at_ms: Option<i64>,
}

/// What is known of one prompt by its own id.
#[derive(Debug, Default)]
struct PromptEvidence {
    /// Its newest turn result; none inside when it cannot be read as one.
    result: Option<(Moment, Option<TurnResult>)>,
    /// The newest real user record that is stamped with it, and when that was written, in epoch milliseconds.
    stamped: Option<(Moment, Option<i64>)>,
}

/// Where the walk was when it met something.
#[derive(Debug, Clone, Copy)]
struct Moment {
    place: Place,
    /// The earliest time of any record up to this one, in epoch milliseconds.
    earliest_ms: Option<i64>,
}

/// Where and when the history was replaced.
#[derive(Debug, Default)]
struct Compressions {
    newest: Option<Place>,
    latest_ms: Option<i64>,
    has_undated: bool,
}

impl Evidence {
    /// Reads what the admissions depend on and no more: back to every marker, or, for an admission without one, to a
    /// record older than it, to the last prompt, and to the beginning of the end of the history. The last `window_bytes` are read in any
    /// case; [`transcript::WINDOW_BYTES`] is what reconciliation takes. None when the records read belong to another
    /// session, or to several, or the file cannot be read.
    #[must_use]
    pub fn gather(
        transcript: &Transcript,
        session_id: &str,
        admissions: &[Admission],
        window_bytes: u64,
    ) -> Option<Self> {
        Self::gather_watched(transcript, session_id, admissions, window_bytes, &mut |_, _| ())
    }

    /// The same, while somebody looks on: `watch` is shown every record that the evidence is gathered from, newest first,
    /// so that what a person is told is what was judged.
    pub(crate) fn gather_watched(
        transcript: &Transcript,
        session_id: &str,
        admissions: &[Admission],
        window_bytes: u64,
        watch: &mut dyn FnMut(&Transcript, Met<'_>),
    ) -> Option<Self> {
        let mut branch = transcript.branch(window_bytes).ok()?;
        let mut gathering = Gathering::new(admissions);
        loop {
            let Some(record) = branch.next_record().ok()? else {
                let before_cut = branch.prompt_before_cut();
                before_cut.iter().for_each(|prompt| watch(transcript, Met::BeforeCut(prompt)));
                gathering.take_end(branch.is_cut(), before_cut);
                break;
            };
            watch(transcript, Met::OnBranch(&record));
            gathering.take(transcript, record)?;
            if branch.is_beyond_window() && gathering.is_complete() {
                break;
            }
        }
        (branch.session_id() == Some(session_id)).then(|| gathering.finish(branch.is_disputed()))
    }

    /// Where the admission's marker stands: none when it has none, and none inside when it is not on the branch.
    fn marker_place(&self, admission: &Admission) -> Option<Option<Place>> {
        let marker = admission.marker.as_ref()?;
        Some(self.markers.get(marker).copied())
    }

    /// Whether the admission has a marker that is not on the active branch.
    #[must_use]
    pub fn lacks_marker(&self, admission: &Admission) -> bool {
        self.marker_place(admission) == Some(None)
    }

    /// Whether the admission has a marker and nothing visible was written behind it.
    #[must_use]
    pub fn nothing_follows_marker(&self, admission: &Admission) -> bool {
        let Some(marker) = self.marker_place(admission).flatten() else { return false };
        self.last_write.is_none_or(|write| write.place >= marker)
    }

    /// Whether the history was replaced after the admission: by position when it has a marker, else by time, where a
    /// snapshot that nobody can date counts as later, and by position behind the prompt's own record of after the admission.
    #[must_use]
    pub fn is_compressed_since(&self, admission: &Admission) -> bool {
        match self.marker_place(admission) {
            Some(Some(marker)) => self.compressions.newest.is_some_and(|place| place < marker),
            Some(None) => self.compressions.newest.is_some(),
            None => {
                let compressions = &self.compressions;
                let is_since = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms as f64 >= admission.at_ms);
                let own = self.by_prompt.get(&admission.prompt_id).and_then(|evidence| evidence.stamped);
                let own = own.filter(|(_, at_ms)| is_since(*at_ms));
                compressions.has_undated
                    || is_since(compressions.latest_ms)
                    || own.zip(compressions.newest).is_some_and(|((own, _), place)| place < own.place)
            }
        }
    }

    /// The prompt's own outcome, if the branch holds it behind the admission. Of a prompt that had ended and was admitted
    /// again without a marker, nothing says of which admission a result is.
    #[must_use]
    pub fn exact_result(&self, admission: &Admission) -> Option<&TurnResult> {
        let (moment, result) = self.by_prompt.get(&admission.prompt_id)?.result.as_ref()?;
        let is_ambiguous = admission.is_readmission && admission.marker.is_none();
        let is_its_own = self.is_since(*moment, admission) && !is_ambiguous && admission.has_exact_id;
        result.as_ref().filter(|_| is_its_own)
    }

    /// Whether something was met behind the admission: behind its marker, or, when it has none, before any record that
    /// is older than it.
    fn is_since(&self, moment: Moment, admission: &Admission) -> bool {
        match self.marker_place(admission) {
            Some(marker) => marker.is_some_and(|marker| moment.place < marker),
            None => moment.earliest_ms.is_none_or(|at_ms| at_ms as f64 >= admission.at_ms),
        }
    }

    /// Whether the turn at the end of the branch holds a result with the prompt's id, and nothing says that it is of this
    /// admission: the admission has no marker, and the clock puts something behind the result before it.
    #[must_use]
    pub fn has_doubtful_result(&self, admission: &Admission) -> bool {
        let result = self.by_prompt.get(&admission.prompt_id).and_then(|evidence| evidence.result.as_ref());
        let is_in_last_turn = result.is_some_and(|(moment, _)| self.last_turn.holds(moment.place));
        admission.marker.is_none() && is_in_last_turn && self.exact_result(admission).is_none()
    }

    /// Whether the prompt's newest result of after its admission is there and cannot be read: it says how the turn ended, and
    /// nobody knows what it says.
    #[must_use]
    pub fn has_unread_result(&self, admission: &Admission) -> bool {
        let result = self.by_prompt.get(&admission.prompt_id).and_then(|evidence| evidence.result.as_ref());
        let Some((moment, None)) = result else { return false };
        match self.marker_place(admission) {
            Some(marker) => marker.is_some_and(|marker| moment.place < marker),
            None => self.last_turn.holds(moment.place),
        }
    }

    /// Whether the branch shows another prompt where the admission's turn should be (evidence rules, section 5).
    #[must_use]
    pub fn shows_foreign_prompt(&self, admission: &Admission) -> bool {
        self.foreign(admission).is_some()
    }

    /// Whether the last question of the branch, of whatever kind, is the admission's own and was written behind it.
    #[must_use]
    pub fn asks_last(&self, admission: &Admission) -> bool {
        self.last_turn.is_stamped_with(&admission.prompt_id) && self.shows_own_prompt(admission)
    }

    /// What makes the turn at the end of the branch another's than the admission's.
    pub(crate) fn foreign(&self, admission: &Admission) -> Option<Foreign<'_>> {
        let foreign = self.last_turn.foreign(&admission.prompt_id, self.shows_own_prompt(admission));
        let foreign = foreign.or_else(|| self.is_taken_back(admission).then_some(Foreign::TakenBack));
        foreign.or_else(|| self.gone_on_with(admission).map(Foreign::GoneOnWith))
    }

    /// The prompt that went on with the turn at the end of the branch, if one did behind the admission and it is another. It asked nothing,
    /// so that the last question is not its own, and its words look like the answer to that.
    fn gone_on_with(&self, admission: &Admission) -> Option<&str> {
        let (by, moment) = self.last_turn.ended_by_other(&admission.prompt_id)?;
        // Behind a question that is the admission's own it is, whatever the clock says.
        let is_behind = self.is_since(moment, admission) || self.last_turn.is_stamped_with(&admission.prompt_id);
        is_behind.then_some(by)
    }

    /// Whether the branch was taken back behind the admission's marker, and the admission's own question does not stand behind that: its
    /// turn, if it had one, is on no branch any more, and what stands there instead was asked by somebody else. Without a marker nothing
    /// says on which side of the admission that was.
    fn is_taken_back(&self, admission: &Admission) -> bool {
        let marker = self.marker_place(admission).flatten();
        let own = self.by_prompt.get(&admission.prompt_id).and_then(|evidence| evidence.stamped);
        let is_behind = |rewind: Place| own.is_some_and(|(moment, _)| moment.place < rewind);
        self.newest_rewind.zip(marker).is_some_and(|(rewind, marker)| rewind < marker && !is_behind(rewind))
    }

    /// Whether a last prompt with this stamp is another's than the admission's.
    pub(crate) fn is_foreign(&self, stamp: Option<&str>, admission: &Admission) -> bool {
        last_turn::is_foreign(stamp, &admission.prompt_id, self.shows_own_prompt(admission))
    }

    /// Whether a real user record behind the admission is stamped with its id.
    fn shows_own_prompt(&self, admission: &Admission) -> bool {
        let stamped = self.by_prompt.get(&admission.prompt_id).and_then(|evidence| evidence.stamped);
        stamped.is_some_and(|(moment, _)| self.is_since(moment, admission))
    }
}
