//! What the transcript says, as far as the verdict on a few admissions depends on it.
//!
//! The active branch is walked from its end. Everything is kept by its place in that walk, the newest record being the
//! first, so that "after the marker" is a comparison of two numbers.

use std::collections::HashMap;

use transcript::{History, HistoryTail, Kind, Message, Payload, Record, Snapshot, Transcript, TurnResult, Unreadable};

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
    /// The prompt that the newest real user record is stamped with; the outer option is whether there is such a record,
    /// wherever it stands: what a turn wrote late is not the next one's, even when that one's admission came between.
    pub last_prompt: Option<Option<String>>,
    /// The same, where a note on background work that carries no stamp is passed over: it looks like a prompt, and the session
    /// may have written it into the turn of the prompt before it.
    pub last_question: Option<Option<String>>,
    /// Where that stands; beyond everything when it is not on the branch.
    last_question_place: Place,
    /// The newest stamp on a user record at or behind the last question, whatever else that record is.
    pub last_stamp: Option<String>,
    /// Whether the session itself asked something behind the last question: its own turns carry no stamp.
    pub has_session_question: bool,
    /// Whether the branch is cut in the middle of a turn, and what stands before the cut does not say whose that was: it is
    /// stamped, so that the stamp which is missing may be another one, or it only looks like a prompt.
    pub has_lost_beginning: bool,
    /// Whether records were read that not every reader of the format finds.
    pub is_disputed: bool,
    /// The end of the model's history.
    pub history: Result<History, Unreadable>,
    compressions: Compressions,
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
                gathering.history.reach_the_beginning();
                let before_cut = branch.prompt_before_cut();
                before_cut.iter().for_each(|prompt| watch(transcript, Met::BeforeCut(prompt)));
                if branch.is_cut() {
                    gathering.take_cut(before_cut);
                }
                break;
            };
            watch(transcript, Met::OnBranch(&record));
            gathering.take(transcript, record)?;
            if branch.is_beyond_window() && gathering.is_complete() {
                break;
            }
        }
        gathering.evidence.is_disputed = branch.is_disputed();
        (branch.session_id() == Some(session_id)).then(|| gathering.finish())
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
        let is_in_last_turn = result.is_some_and(|(moment, _)| moment.place < self.last_question_place);
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
            None => moment.place < self.last_question_place,
        }
    }

    /// Whether the branch shows another prompt where the admission's turn should be (evidence rules, section 5): the last
    /// real user record is stamped with another id, or it is not stamped and stands behind the admission's own. A note that
    /// only looks like a prompt counts both ways; a stamp counts on whatever user record it stands; and what the session asked by
    /// itself behind the admission's own prompt is a turn of its own.
    #[must_use]
    pub fn shows_foreign_prompt(&self, admission: &Admission) -> bool {
        let last = [&self.last_prompt, &self.last_question].into_iter().flatten();
        last.map(Option::as_deref).any(|stamp| self.is_foreign(stamp, admission))
            || self.last_stamp.as_ref().is_some_and(|stamp| *stamp != admission.prompt_id)
            || self.has_session_question && self.shows_own_prompt(admission)
            || self.has_lost_beginning
    }

    /// Whether a last prompt with this stamp is another's than the admission's.
    pub(crate) fn is_foreign(&self, stamp: Option<&str>, admission: &Admission) -> bool {
        match stamp {
            Some(stamp) => stamp != admission.prompt_id,
            None => self.shows_own_prompt(admission),
        }
    }

    /// Whether a real user record behind the admission is stamped with its id.
    fn shows_own_prompt(&self, admission: &Admission) -> bool {
        let stamped = self.by_prompt.get(&admission.prompt_id).and_then(|evidence| evidence.stamped);
        stamped.is_some_and(|(moment, _)| self.is_since(moment, admission))
    }
}

/// The evidence while the branch is walked.
struct Gathering {
    moment: Moment,
    evidence: Evidence,
    history: HistoryTail,
    /// Markers that have not been met.
    open_markers: Vec<String>,
    /// The earliest admission without a marker, in epoch milliseconds, until a record older than it was met.
    open_since_ms: Option<f64>,
}

impl Gathering {
    fn new(admissions: &[Admission]) -> Self {
        let evidence = Evidence {
            last_visible: None,
            last_write: None,
            last_prompt: None,
            last_question: None,
            last_question_place: Place::MAX,
            last_stamp: None,
            has_session_question: false,
            has_lost_beginning: false,
            is_disputed: false,
            history: Err(Unreadable),
            compressions: Compressions::default(),
            by_prompt: admissions.iter().map(|open| (open.prompt_id.clone(), PromptEvidence::default())).collect(),
            markers: HashMap::new(),
        };
        let unmarked = admissions.iter().filter(|open| open.marker.is_none());
        Self {
            moment: Moment { place: 0, earliest_ms: None },
            evidence,
            history: HistoryTail::default(),
            open_markers: admissions.iter().filter_map(|open| open.marker.clone()).collect(),
            open_since_ms: unmarked.map(|open| open.at_ms).reduce(f64::min),
        }
    }

    fn is_complete(&self) -> bool {
        self.history.is_complete()
            && self.open_markers.is_empty()
            && self.open_since_ms.is_none()
            && self.evidence.last_question.is_some()
    }

    /// Takes the next record towards the beginning. None when the file cannot be read.
    fn take(&mut self, transcript: &Transcript, record: Record) -> Option<()> {
        if let Some(at_ms) = record.at_ms {
            self.take_time(at_ms);
        }
        self.history.push(&record);
        self.take_marker(&record);
        self.take_visible(&record);
        self.take_prompt(&record);
        self.take_compression(&record);
        self.take_result(transcript, &record)?;
        self.moment.place += 1;
        Some(())
    }

    fn take_time(&mut self, at_ms: i64) {
        self.moment.earliest_ms = Some(self.moment.earliest_ms.map_or(at_ms, |earliest_ms| earliest_ms.min(at_ms)));
        self.open_since_ms = self.open_since_ms.filter(|since_ms| at_ms as f64 >= *since_ms);
    }

    fn take_marker(&mut self, record: &Record) {
        let count = self.open_markers.len();
        self.open_markers.retain(|marker| *marker != record.uuid);
        if self.open_markers.len() < count {
            self.evidence.markers.insert(record.uuid.clone(), self.moment.place);
        }
    }

    fn take_visible(&mut self, record: &Record) {
        if record.is_visible() && self.evidence.last_visible.is_none() {
            self.evidence.last_visible = Some((record.kind, record.uuid.clone()));
        }
        if record.is_visible_write() && self.evidence.last_write.is_none() {
            self.evidence.last_write = Some(Write { place: self.moment.place, at_ms: record.at_ms });
        }
    }

    fn take_prompt(&mut self, record: &Record) {
        if record.kind == Kind::User && self.evidence.last_question.is_none() {
            self.take_oddity(record);
        }
        if !record.is_real_prompt() {
            return;
        }
        if let Some(evidence) = record.prompt_id.as_ref().and_then(|id| self.evidence.by_prompt.get_mut(id)) {
            evidence.stamped.get_or_insert((self.moment, record.at_ms));
        }
        self.take_last_prompt(record);
    }

    /// Takes a user record at or behind the last question. It may be none itself.
    fn take_oddity(&mut self, record: &Record) {
        if self.evidence.last_stamp.is_none() {
            self.evidence.last_stamp.clone_from(&record.prompt_id);
        }
        let is_reminder = record.message.as_ref().is_some_and(Message::is_reminder);
        self.evidence.has_session_question |= record.is_from_session && record.is_material() && !is_reminder;
    }

    /// Takes the end of a branch that is cut, with the prompt that stands before the cut in the file. When no question was met
    /// the branch begins in the middle of a turn, and the record that is missing may have been its stamp.
    fn take_cut(&mut self, before_cut: Option<&Record>) {
        let is_note = |prompt: &Record| prompt.message.as_ref().is_some_and(Message::is_notification);
        let is_stamped = before_cut.is_some_and(|prompt| prompt.prompt_id.is_some() || is_note(prompt));
        self.evidence.has_lost_beginning = self.evidence.last_question.is_none() && is_stamped;
        before_cut.into_iter().for_each(|prompt| self.take_last_prompt(prompt));
    }

    /// Takes the newest prompt, unless there was one.
    fn take_last_prompt(&mut self, record: &Record) {
        self.evidence.last_prompt.get_or_insert_with(|| record.prompt_id.clone());
        let is_note = record.message.as_ref().is_some_and(Message::is_notification);
        if self.evidence.last_question.is_none() && (!is_note || record.prompt_id.is_some()) {
            self.evidence.last_question = Some(record.prompt_id.clone());
            self.evidence.last_question_place = self.moment.place;
        }
    }

    fn take_compression(&mut self, record: &Record) {
        let Payload::Compression(Snapshot::Entries(_) | Snapshot::Unreadable) = record.payload else { return };
        let compressions = &mut self.evidence.compressions;
        compressions.newest.get_or_insert(self.moment.place);
        compressions.latest_ms = compressions.latest_ms.max(record.at_ms);
        compressions.has_undated |= record.at_ms.is_none();
    }

    fn take_result(&mut self, transcript: &Transcript, record: &Record) -> Option<()> {
        let Payload::TurnResult { prompt_id: Some(prompt_id) } = &record.payload else { return Some(()) };
        let Some(evidence) = self.evidence.by_prompt.get_mut(prompt_id) else { return Some(()) };
        if evidence.result.is_none() {
            evidence.result = Some((self.moment, transcript.turn_result(record).ok()?));
        }
        Some(())
    }

    fn finish(mut self) -> Evidence {
        self.evidence.history = self.history.finish();
        self.evidence
    }
}
