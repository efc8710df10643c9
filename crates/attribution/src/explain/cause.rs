//! The very records on which a verdict turned. It looks up and does not judge: which check failed is the judge's word.

use std::path::Path;

use ledger::Record;
use transcript::{Absent, Interruption, Message, Role, Transcript, classify};

use super::report::{Report, is_late};
use super::seen::Sighting;
use super::words::{count, ended, ending, list, moment, printable, printable_path};
use crate::admission::Admission;
use crate::evidence::Evidence;
use crate::judge::Basis;
use crate::reconcile::Session;
use crate::withheld::Withheld;

/// Why the ledger is not read, as far as it is still so.
pub(super) fn unreadable(session: &Session<'_>) -> String {
    let error = session.ledger.read().err().map(|error| error.to_string());
    error.unwrap_or_else(|| Withheld::LedgerUnreadable.explanation().to_owned())
}

/// Why no transcript loads, with what was found in its place.
pub(super) fn absence(session: &Session<'_>) -> String {
    match transcript::check(session.transcript, session.session_id, session.workspace) {
        Err(Absent::ForeignWorkspace) => {
            let workspace = printable_path(session.workspace);
            let found = first_folder(session).map_or_else(
                || "does not say where it was written".to_owned(),
                |cwd| format!("was written in {}", printable_path(Path::new(&cwd))),
            );
            format!("the workspace is {workspace}, and the transcript's first record {found}")
        }
        Err(Absent::NoFile) => "there is no such file, or nothing in it".to_owned(),
        Err(absent) => absent.to_string(),
        // The first record and the end are this session's; what lies between was read on the way to the marker.
        Ok(()) => Absent::TwoSessions.to_string(),
    }
}

/// The folder in which the transcript was begun.
fn first_folder(session: &Session<'_>) -> Option<String> {
    Transcript::open(session.transcript).ok()??.first_record().ok()??.cwd
}

/// What the conversation ends with.
pub(super) fn end(evidence: &Evidence) -> String {
    let Ok(history) = &evidence.history else { return "damage: no conversation can be read off it".to_owned() };
    let last = history.entries.last();
    match classify(&history.entries) {
        Interruption::Turn { calls } => {
            let names: Vec<_> = calls.iter().map(|call| call.name).collect();
            format!("{} that nobody answered: {}", count(calls.len(), "call"), list(names.into_iter()))
        }
        Interruption::Prompt { .. } if last.is_some_and(Message::is_notification) => {
            "a note on work in the background, which nobody answered".to_owned()
        }
        Interruption::Prompt { entries } => format!("{} that nobody answered", count(entries.len(), "message")),
        Interruption::None => nothing_open(history.is_closed_by_goal, last).to_owned(),
    }
}

fn nothing_open(is_closed_by_goal: bool, last: Option<&Message>) -> &'static str {
    match last {
        None => "nothing, because nothing was said",
        Some(_) if is_closed_by_goal => "a tool's answer that closed a turn for a goal",
        Some(last) if last.has_call() => "a call that nobody could answer, because it has no id",
        Some(last) if last.is_reminder() => "a reminder of the session, which asks nothing",
        Some(last) if last.role == Role::Model => "an answer, and nothing is left open",
        Some(_) => "a message that asks nothing",
    }
}

impl Report {
    /// What a terminal rests on, with the record.
    pub(super) fn basis(&self, admission: &Admission, basis: Basis) -> String {
        match (basis, self.seen.own_result(admission), &self.evidence) {
            (Basis::TurnResult, Some(result), _) => format!("its own turn result says so: {}", result.told()),
            (Basis::TurnResult, None, _) | (_, _, None) => "its own turn result says so".to_owned(),
            (_, _, Some(evidence)) => {
                format!("inferred, with no check against it: the conversation ends with {}", end(evidence))
            }
        }
    }

    /// What exactly made a check fail.
    pub(super) fn cause(&self, admission: &Admission, withheld: Withheld) -> String {
        let seen = &self.seen;
        let id = printable(&admission.prompt_id);
        let said = || told(seen.last_write.as_ref());
        match withheld {
            Withheld::SeveralDangling => format!("open beside it: {}", self.beside(admission)),
            Withheld::AttributionGuard => self.used_before(admission),
            Withheld::NoTranscript => self.absence.as_ref().map(|(why, _)| why.clone()).unwrap_or_default(),
            Withheld::MarkerAbsent => {
                let marker = admission.marker.as_deref().map(printable).unwrap_or_default();
                format!("record {marker} is not among the {} that were looked at", count(seen.records, "record"))
            }
            Withheld::MarkerNothingAfter => self.after_marker(admission),
            Withheld::DeadlineFence => self.deadline(admission),
            Withheld::CompressionFence => {
                let summary = told(seen.compression_since(admission));
                format!("a summary took the place of what was said before it: {summary}")
            }
            Withheld::NoVisibleWrite => match &seen.last_write {
                Some(undated) if !undated.is_dated() => format!("said last: {}", undated.told()),
                _ => "no user, agent or tool has said anything on the active branch".to_owned(),
            },
            Withheld::SameMsAsAdmission | Withheld::TailBeforeAdmission => {
                format!("said last: {}; {id} was admitted at {}", said(), moment(admission.at_ms))
            }
            Withheld::SameMsAsOtherTerminal | Withheld::TailBeforeOtherTerminal => {
                format!("said last: {}; {}", said(), self.other_end(admission))
            }
            Withheld::HistoryUnreadable => {
                "a message's parts are no list, or a summary is no conversation, at or before what was said last"
                    .to_owned()
            }
            Withheld::TailIsNoAnswer => format!("stands last: {}", told(seen.last_entry.as_ref())),
            Withheld::ForeignPrompt => self.foreign(admission),
            Withheld::LedgerUnreadable | Withheld::NoDangling | Withheld::LedgerChanged => String::new(),
        }
    }

    /// The prompts that are open and stay unknown beside this one.
    fn beside(&self, admission: &Admission) -> String {
        let settled = &self.plan.verdict.settled;
        let is_unknown = |id: &&str| settled.iter().all(|settled| settled.prompt_id != *id);
        let ids = self.admissions.iter().map(|open| open.prompt_id.as_str());
        let others: Vec<_> = ids.filter(|id| *id != admission.prompt_id).filter(is_unknown).collect();
        match others.len() {
            0 => "another admission of what reads as the same id".to_owned(),
            _ => list(others.into_iter()),
        }
    }

    fn used_before(&self, admission: &Admission) -> String {
        if !admission.is_readmission {
            return "its id holds bytes that are no text, so that several ids read alike".to_owned();
        }
        let is_own = |record: &&Record| !record.is_in_flight() && record.prompt_id == admission.prompt_id;
        let before = self.records().iter().rev().find(is_own).map(ended).unwrap_or_default();
        let again = moment(admission.at_ms);
        let result = self
            .seen
            .own_result(admission)
            .map(|result| format!("; a turn result with its id, {}, may be of the earlier admission", result.id()));
        format!("{before}; it was admitted again at {again}{}", result.unwrap_or_default())
    }

    fn after_marker(&self, admission: &Admission) -> String {
        let Some(marker) = self.seen.marker(admission) else { return String::new() };
        let behind = count(marker.place, "record");
        format!("its marker: {}; behind it {behind}, none of them by a user, an agent or a tool", marker.told())
    }

    fn deadline(&self, admission: &Admission) -> String {
        let late = self.others(admission).filter(|record| is_late(record)).last();
        late.map_or_else(String::new, ended)
    }

    /// The end that the last thing said is not later than.
    fn other_end(&self, admission: &Admission) -> String {
        if let Some(settled) = self.plan.verdict.settled.first() {
            let other = printable(&settled.prompt_id);
            return format!("{other} ends only now ({}), and that was written before", ending(&settled.fact));
        }
        let latest = self.others(admission).max_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
        latest.map_or_else(|| "that is no time of this age".to_owned(), ended)
    }

    fn foreign(&self, admission: &Admission) -> String {
        let Some(last) = &self.seen.last_prompt else { return String::new() };
        let own = self.seen.own_prompt(admission).filter(|own| own.place > last.place);
        let own = own.map(|own| format!("; the prompt's own question stands before it, {}", own.id()));
        format!("asked last: {}{}", last.asked(), own.unwrap_or_default())
    }

    /// The terminals of other prompts, in the order of the file.
    fn others<'a>(&'a self, admission: &'a Admission) -> impl Iterator<Item = &'a Record> {
        let others = self.records().iter().filter(|record| record.prompt_id != admission.prompt_id);
        others.filter(|record| !record.is_in_flight())
    }

    fn records(&self) -> &[Record] {
        self.plan.reading.as_ref().map_or(&[], |reading| &reading.records)
    }
}

fn told(sighting: Option<&Sighting>) -> String {
    sighting.map_or_else(|| "nothing".to_owned(), Sighting::told)
}
