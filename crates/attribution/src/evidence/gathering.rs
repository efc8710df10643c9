//! Evidence while the branch is walked, newest record first.

use std::collections::HashMap;

use transcript::{HistoryTail, Payload, REWIND_SUBTYPE, Record, Snapshot, Transcript, Unreadable};

use super::last_turn::LastTurn;
use super::{Compressions, Evidence, Moment, PromptEvidence, Write};
use crate::admission::Admission;

/// The evidence while the branch is walked.
pub(super) struct Gathering {
    moment: Moment,
    evidence: Evidence,
    history: HistoryTail,
    /// Markers that have not been met.
    open_markers: Vec<String>,
    /// The earliest admission without a marker, in epoch milliseconds, until a record older than it was met.
    open_since_ms: Option<f64>,
}

impl Gathering {
    pub(super) fn new(admissions: &[Admission]) -> Self {
        let evidence = Evidence {
            last_visible: None,
            last_write: None,
            last_turn: LastTurn::default(),
            is_disputed: false,
            history: Err(Unreadable),
            compressions: Compressions::default(),
            newest_rewind: None,
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

    /// Whether nothing further back can change what the admissions depend on.
    pub(super) fn is_complete(&self) -> bool {
        self.history.is_complete()
            && self.open_markers.is_empty()
            && self.open_since_ms.is_none()
            && self.evidence.last_turn.has_question()
    }

    /// Takes the next record towards the beginning. None when the file cannot be read.
    pub(super) fn take(&mut self, transcript: &Transcript, record: Record) -> Option<()> {
        if let Some(at_ms) = record.at_ms {
            self.take_time(at_ms);
        }
        self.history.push(&record);
        self.take_marker(&record);
        self.take_visible(&record);
        self.take_prompt(&record);
        self.take_compression(&record);
        if record.is_note(REWIND_SUBTYPE) {
            self.evidence.newest_rewind.get_or_insert(self.moment.place);
        }
        self.take_result(transcript, &record)?;
        self.moment.place += 1;
        Some(())
    }

    /// Takes the end of the branch, with the prompt that stands before it in the file where the branch is cut.
    pub(super) fn take_end(&mut self, is_cut: bool, before_cut: Option<&Record>) {
        self.history.reach_the_beginning();
        if is_cut {
            self.evidence.last_turn.take_cut(before_cut, self.moment.place);
        }
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
        let own = record.prompt_id.as_ref().filter(|_| record.is_real_prompt());
        if let Some(evidence) = own.and_then(|id| self.evidence.by_prompt.get_mut(id)) {
            evidence.stamped.get_or_insert((self.moment, record.at_ms));
        }
        self.evidence.last_turn.take(record, self.moment.place);
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
        self.evidence.last_turn.take_result(prompt_id, self.moment);
        let Some(evidence) = self.evidence.by_prompt.get_mut(prompt_id) else { return Some(()) };
        if evidence.result.is_none() {
            evidence.result = Some((self.moment, transcript.turn_result(record).ok()?));
        }
        Some(())
    }

    pub(super) fn finish(mut self, is_disputed: bool) -> Evidence {
        self.evidence.is_disputed = is_disputed;
        self.evidence.history = self.history.finish();
        self.evidence
    }
}
