//! What the transcript says, as far as the verdict on a few admissions depends on it.
//!
//! The active branch is walked from its end. Everything is kept by its place in that walk, the newest record being the
//! first, so that "after the marker" is a comparison of two numbers.

use std::collections::HashMap;

use transcript::{
    Branch, History, HistoryTail, Kind, Payload, Record, Snapshot, Transcript, TurnResult, Unreadable, WINDOW_BYTES,
};

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
    /// The prompt that the newest real user record is stamped with; the outer option is whether there is such a record.
    pub last_prompt: Option<Option<String>>,
    /// The end of the model's history.
    pub history: Result<History, Unreadable>,
    compressions: Compressions,
    by_prompt: HashMap<String, PromptEvidence>,
    markers: HashMap<String, Place>,
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
    /// Its newest turn result.
    result: Option<(Place, TurnResult)>,
    /// Whether a real user record is stamped with it.
    is_stamped: bool,
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
    /// record older than it, and to the beginning of the end of the history. The window is always read. None when the
    /// records read belong to another session, or to several, or the file cannot be read.
    #[must_use]
    pub fn gather(transcript: &Transcript, session_id: &str, admissions: &[Admission]) -> Option<Self> {
        let branch = transcript.branch(WINDOW_BYTES).ok()?;
        Self::walk(transcript, branch, session_id, admissions)
    }

    fn walk(
        transcript: &Transcript,
        mut branch: Branch<'_>,
        session_id: &str,
        admissions: &[Admission],
    ) -> Option<Self> {
        let mut gathering = Gathering::new(admissions);
        loop {
            let Some(record) = branch.next_record().ok()? else {
                gathering.history.reach_the_beginning();
                break;
            };
            gathering.take(transcript, record)?;
            if branch.is_beyond_window() && gathering.is_complete() {
                break;
            }
        }
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
    /// snapshot that nobody can date counts as later.
    #[must_use]
    pub fn is_compressed_since(&self, admission: &Admission) -> bool {
        match self.marker_place(admission) {
            Some(Some(marker)) => self.compressions.newest.is_some_and(|place| place < marker),
            Some(None) => self.compressions.newest.is_some(),
            None => {
                let latest_ms = self.compressions.latest_ms;
                self.compressions.has_undated || latest_ms.is_some_and(|at_ms| at_ms as f64 >= admission.at_ms)
            }
        }
    }

    /// The prompt's own outcome, if the branch holds it behind the admission's marker. Without a marker any result of the
    /// prompt is meant, unless the prompt had ended before and was admitted again: then nothing says of which admission.
    #[must_use]
    pub fn exact_result(&self, admission: &Admission) -> Option<&TurnResult> {
        let (place, result) = self.by_prompt.get(&admission.prompt_id)?.result.as_ref()?;
        let is_its_own = match self.marker_place(admission) {
            Some(marker) => marker.is_some_and(|marker| *place < marker),
            None => !admission.is_readmission,
        };
        (is_its_own && admission.has_exact_id).then_some(result)
    }

    /// Whether the branch shows another prompt where the admission's turn should be (evidence rules, section 5): the last
    /// real user record is stamped with another id, or it is not stamped and stands behind the admission's own.
    #[must_use]
    pub fn shows_foreign_prompt(&self, admission: &Admission) -> bool {
        match &self.last_prompt {
            Some(Some(stamp)) => *stamp != admission.prompt_id,
            Some(None) => self.by_prompt.get(&admission.prompt_id).is_some_and(|evidence| evidence.is_stamped),
            None => false,
        }
    }
}

/// The evidence while the branch is walked.
struct Gathering {
    place: Place,
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
            history: Err(Unreadable),
            compressions: Compressions::default(),
            by_prompt: admissions.iter().map(|open| (open.prompt_id.clone(), PromptEvidence::default())).collect(),
            markers: HashMap::new(),
        };
        let unmarked = admissions.iter().filter(|open| open.marker.is_none());
        Self {
            place: 0,
            evidence,
            history: HistoryTail::default(),
            open_markers: admissions.iter().filter_map(|open| open.marker.clone()).collect(),
            open_since_ms: unmarked.map(|open| open.at_ms).reduce(f64::min),
        }
    }

    fn is_complete(&self) -> bool {
        self.history.is_complete() && self.open_markers.is_empty() && self.open_since_ms.is_none()
    }

    /// Takes the next record towards the beginning. None when the file cannot be read.
    fn take(&mut self, transcript: &Transcript, record: Record) -> Option<()> {
        self.history.push(&record);
        self.take_marker(&record);
        self.take_visible(&record);
        self.take_prompt(&record);
        self.take_compression(&record);
        self.take_result(transcript, &record)?;
        if let (Some(at_ms), Some(since_ms)) = (record.at_ms, self.open_since_ms) {
            self.open_since_ms = Some(since_ms).filter(|since_ms| at_ms as f64 >= *since_ms);
        }
        self.place += 1;
        Some(())
    }

    fn take_marker(&mut self, record: &Record) {
        let count = self.open_markers.len();
        self.open_markers.retain(|marker| *marker != record.uuid);
        if self.open_markers.len() < count {
            self.evidence.markers.insert(record.uuid.clone(), self.place);
        }
    }

    fn take_visible(&mut self, record: &Record) {
        if record.is_visible() && self.evidence.last_visible.is_none() {
            self.evidence.last_visible = Some((record.kind, record.uuid.clone()));
        }
        if record.is_visible_write() && self.evidence.last_write.is_none() {
            self.evidence.last_write = Some(Write { place: self.place, at_ms: record.at_ms });
        }
    }

    fn take_prompt(&mut self, record: &Record) {
        if !record.is_real_prompt() {
            return;
        }
        if let Some(evidence) = record.prompt_id.as_ref().and_then(|id| self.evidence.by_prompt.get_mut(id)) {
            evidence.is_stamped = true;
        }
        self.evidence.last_prompt.get_or_insert_with(|| record.prompt_id.clone());
    }

    fn take_compression(&mut self, record: &Record) {
        let Payload::Compression(Snapshot::Entries(_) | Snapshot::Unreadable) = record.payload else { return };
        let compressions = &mut self.evidence.compressions;
        compressions.newest.get_or_insert(self.place);
        compressions.latest_ms = compressions.latest_ms.max(record.at_ms);
        compressions.has_undated |= record.at_ms.is_none();
    }

    fn take_result(&mut self, transcript: &Transcript, record: &Record) -> Option<()> {
        let Payload::TurnResult { prompt_id: Some(prompt_id) } = &record.payload else { return Some(()) };
        let Some(evidence) = self.evidence.by_prompt.get_mut(prompt_id) else { return Some(()) };
        if evidence.result.is_none() {
            evidence.result = transcript.turn_result(record).ok()?.map(|result| (self.place, result));
        }
        Some(())
    }

    fn finish(mut self) -> Evidence {
        self.evidence.history = self.history.finish();
        self.evidence
    }
}
