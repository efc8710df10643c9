//! What a person is told of the transcript: the records that the verdict turns on.
//!
//! It looks on while the evidence is gathered, so that it knows no record that was not judged, and decides nothing.

use std::collections::HashMap;

use transcript::{Kind, Message, Payload, Record, Snapshot, Transcript};

use super::words::{moment, printable};
use crate::admission::Admission;
use crate::evidence::Met;

/// A record of the branch, as a person is told of it.
#[derive(Debug, Clone)]
pub(super) struct Sighting {
    uuid: String,
    /// Who wrote it, in words.
    author: &'static str,
    at_ms: Option<i64>,
    /// The prompt that a question is stamped with.
    pub(super) stamp: Option<String>,
    /// How many records stand behind it.
    pub(super) place: usize,
    /// Whether it is none of the branch, but stands in the file before the record at which the branch is cut.
    is_before_cut: bool,
}

impl Sighting {
    fn of(record: &Record, place: usize) -> Self {
        let (uuid, author) = (record.uuid.clone(), author(record));
        Self { uuid, author, at_ms: record.at_ms, stamp: record.prompt_id.clone(), place, is_before_cut: false }
    }

    pub(super) fn id(&self) -> String {
        format!("record {}", printable(&self.uuid))
    }

    /// Which record, by whom and when.
    pub(super) fn told(&self) -> String {
        format!("{}, {} at {}", self.id(), self.author, self.at())
    }

    pub(super) fn at(&self) -> String {
        self.at_ms.map_or_else(|| "an unknown time".to_owned(), |at_ms| moment(at_ms as f64))
    }

    /// The same of a question, with the prompt it was written for.
    pub(super) fn asked(&self) -> String {
        let stamp = self.stamp.as_deref().map(|stamp| format!("stamped with prompt {}", printable(stamp)));
        let cut = if self.is_before_cut { ", before the place where the branch is cut" } else { "" };
        format!("{}, {}{cut}", self.told(), stamp.as_deref().unwrap_or("stamped with no prompt"))
    }

    pub(super) fn is_dated(&self) -> bool {
        self.at_ms.is_some()
    }

    pub(super) fn is_since(&self, at_ms: f64) -> bool {
        self.at_ms.is_none_or(|own_ms| own_ms as f64 >= at_ms)
    }
}

/// Whether the note says in full how a turn ended; one that does not is no result.
fn is_whole_result(transcript: &Transcript, record: &Record) -> bool {
    transcript.turn_result(record).is_ok_and(|result| result.is_some())
}

fn author(record: &Record) -> &'static str {
    let message = record.message.as_ref();
    match record.kind {
        Kind::System => "a note of the session",
        _ if record.is_from_session => "by the session itself",
        _ if message.is_some_and(Message::is_reminder) => "a reminder of the session",
        _ if message.is_some_and(Message::is_notification) => "a note on work in the background",
        Kind::User => "by the user",
        Kind::Assistant => "by the agent",
        Kind::ToolResult => "by a tool",
    }
}

/// What was seen of the active branch. Bounded by the number of open prompts, whatever the transcript holds.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How many records were looked at.
    pub(super) records: usize,
    /// Whether the first of the branch was among them.
    pub(super) is_whole: bool,
    /// The newest record that enters the conversation, reminders included.
    pub(super) last_entry: Option<Sighting>,
    /// The newest visible write.
    pub(super) last_write: Option<Sighting>,
    /// The newest question that somebody asked as a prompt of its own.
    pub(super) last_prompt: Option<Sighting>,
    /// The same, where a note on background work that carries no stamp is passed over.
    pub(super) last_question: Option<Sighting>,
    /// The record with the earliest time so far.
    earliest: Option<Sighting>,
    compressions: Compressions,
    markers: HashMap<String, Sighting>,
    asked: HashMap<String, Sighting>,
    /// The newest turn result of each prompt, and what was the earliest record then.
    results: HashMap<String, (Sighting, Option<Sighting>)>,
}

/// Where the conversation was replaced by a summary: any of these may be the one that matters.
#[derive(Debug, Default)]
struct Compressions {
    newest: Option<Sighting>,
    latest: Option<Sighting>,
    undated: Option<Sighting>,
}

impl Seen {
    /// Looks at the next record towards the beginning.
    pub(super) fn look(&mut self, admissions: &[Admission], transcript: &Transcript, met: Met<'_>) {
        match met {
            Met::OnBranch(record) => self.look_at(admissions, transcript, record),
            Met::BeforeCut(record) => {
                self.take_prompt(record, &Sighting { is_before_cut: true, ..Sighting::of(record, self.records) });
            }
        }
    }

    fn look_at(&mut self, admissions: &[Admission], transcript: &Transcript, record: &Record) {
        let place = self.records;
        let sighting = || Sighting::of(record, place);
        let earliest_ms = self.earliest.as_ref().and_then(|earliest| earliest.at_ms);
        if record.at_ms.is_some_and(|at_ms| earliest_ms.is_none_or(|earliest_ms| at_ms < earliest_ms)) {
            self.earliest = Some(sighting());
        }
        if record.is_material() {
            self.last_entry.get_or_insert_with(sighting);
        }
        if record.is_visible_write() {
            self.last_write.get_or_insert_with(sighting);
        }
        if record.is_real_prompt() {
            self.take_prompt(record, &sighting());
        }
        let is_open = |id: &&String| admissions.iter().any(|open| open.prompt_id == **id);
        if let Some(id) = record.prompt_id.as_ref().filter(|_| record.is_real_prompt()).filter(is_open) {
            self.asked.entry(id.clone()).or_insert_with(sighting);
        }
        match &record.payload {
            Payload::TurnResult { prompt_id: Some(id) } if is_open(&id) && is_whole_result(transcript, record) => {
                self.results.entry(id.clone()).or_insert_with(|| (sighting(), self.earliest.clone()));
            }
            Payload::Compression(Snapshot::Entries(_) | Snapshot::Unreadable) => self.compressions.take(sighting()),
            _ => {}
        }
        if admissions.iter().any(|open| open.marker.as_ref() == Some(&record.uuid)) {
            self.markers.entry(record.uuid.clone()).or_insert_with(sighting);
        }
        self.records += 1;
        self.is_whole = record.parent.is_none();
    }

    fn take_prompt(&mut self, record: &Record, sighting: &Sighting) {
        self.last_prompt.get_or_insert_with(|| sighting.clone());
        let is_note = record.message.as_ref().is_some_and(Message::is_notification);
        if !is_note || record.prompt_id.is_some() {
            self.last_question.get_or_insert_with(|| sighting.clone());
        }
    }

    /// The record that was the last one when the prompt was admitted.
    pub(super) fn marker(&self, admission: &Admission) -> Option<&Sighting> {
        self.markers.get(admission.marker.as_ref()?)
    }

    /// The prompt's own question.
    pub(super) fn own_prompt(&self, admission: &Admission) -> Option<&Sighting> {
        self.asked.get(&admission.prompt_id)
    }

    /// A turn result with the prompt's id.
    pub(super) fn own_result(&self, admission: &Admission) -> Option<&Sighting> {
        self.results.get(&admission.prompt_id).map(|(result, _)| result)
    }

    /// The record with the earliest time from that turn result on.
    pub(super) fn earliest_since_result(&self, admission: &Admission) -> Option<&Sighting> {
        self.results.get(&admission.prompt_id)?.1.as_ref()
    }

    /// The newest summary in the place of the conversation.
    pub(super) fn compression(&self) -> Option<&Sighting> {
        self.compressions.newest.as_ref()
    }

    /// A summary from after the admission, as far as can be known.
    pub(super) fn compression_since(&self, admission: &Admission) -> Option<&Sighting> {
        let Compressions { newest, latest, undated } = &self.compressions;
        match admission.marker {
            Some(_) => newest.as_ref(),
            None => {
                let since = latest.as_ref().filter(|latest| latest.is_since(admission.at_ms));
                let own = self.own_prompt(admission);
                let behind_own = newest.as_ref().filter(|newest| own.is_some_and(|own| newest.place < own.place));
                since.or(undated.as_ref()).or(behind_own)
            }
        }
    }
}

impl Compressions {
    fn take(&mut self, sighting: Sighting) {
        match (sighting.at_ms, &self.latest) {
            (None, _) => drop(self.undated.get_or_insert_with(|| sighting.clone())),
            (at_ms, Some(latest)) if latest.at_ms >= at_ms => {}
            _ => self.latest = Some(sighting.clone()),
        }
        self.newest.get_or_insert(sighting);
    }
}
