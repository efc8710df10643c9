//! The very records on which a verdict turned. It looks up and does not judge: which check failed is the judge's word.

use std::path::Path;

use ledger::Record;
use transcript::{Absent, Interruption, Message, Role, Transcript, classify};

use super::report::{Report, is_late};
use super::seen::Sighting;
use super::words::{count, ended, ending, list, moment, printable, printable_path};
use crate::admission::Admission;
use crate::evidence::{Evidence, Foreign};
use crate::judge::{Basis, last_open_admission};
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
    Transcript::open(session.transcript).ok()??.begun_in().ok()?
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
        Interruption::None => nothing_open(history.closed_by_goal > 0, last).to_owned(),
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
            (Basis::Wish, _, Some(evidence)) => {
                format!("a client cancelled it, and its turn did not end: the conversation ends with {}", end(evidence))
            }
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
            Withheld::AttributionGuard => self.other_admission(admission),
            Withheld::NoTranscript => self.absence.as_ref().map(|(why, _)| why.clone()).unwrap_or_default(),
            Withheld::MarkerAbsent => {
                let marker = admission.marker.as_deref().map(printable).unwrap_or_default();
                format!("record {marker} is not among the {} that were looked at", count(seen.records, "record"))
            }
            Withheld::MarkerNothingAfter => self.after_marker(admission),
            Withheld::DeadlineFence => self.deadline(admission),
            Withheld::CompressionFence => self.summary_since(admission),
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
            Withheld::HistoryUnreadable
                if self.evidence.as_ref().is_some_and(|evidence| evidence.has_unread_result(admission)) =>
            {
                "its own turn result is there, and what it says cannot be read".to_owned()
            }
            Withheld::HistoryUnreadable if self.evidence.as_ref().is_some_and(|evidence| evidence.history.is_ok()) => {
                "a line holds a record behind a torn one: not every reader finds it, and without it the conversation \
                 ends otherwise"
                    .to_owned()
            }
            Withheld::HistoryUnreadable => "a summary is no conversation, at or before what was said last".to_owned(),
            Withheld::TailIsNoAnswer => format!("stands last: {}", told(seen.last_entry.as_ref())),
            Withheld::ForeignPrompt => self.foreign(admission),
            Withheld::AnsweredOrCancelled => format!("said last: {}", said()),
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

    fn other_admission(&self, admission: &Admission) -> String {
        let later = last_open_admission(self.records()).filter(|last| last.prompt_id != admission.prompt_id);
        match later {
            _ if admission.is_readmission => self.used_before(admission),
            Some(later) => self.admitted_later(later),
            None if !admission.has_exact_id => {
                "its id holds bytes that are no text, so that several ids read alike".to_owned()
            }
            None => self.doubtful_result(admission),
        }
    }

    /// A prompt that was admitted later and ends in this very judgement.
    fn admitted_later(&self, later: &Record) -> String {
        let settled = self.plan.verdict.settled.iter().find(|settled| settled.prompt_id == later.prompt_id);
        let end = settled.map(|settled| format!(", and ends only now ({})", ending(&settled.fact)));
        let (id, at) = (printable(&later.prompt_id), moment(later.at_ms));
        format!("{id} was admitted behind it, at {at}{}", end.unwrap_or_default())
    }

    /// The turn result with the prompt's id, and the record whose time makes it doubtful.
    fn doubtful_result(&self, admission: &Admission) -> String {
        let (result, earliest) = (self.seen.own_result(admission), self.seen.earliest_since_result(admission));
        let Some((result, earliest)) = result.zip(earliest) else { return String::new() };
        let older = match earliest.place == result.place {
            true => format!("its own time is {}", earliest.at()),
            false => format!("behind it stands {}", earliest.told()),
        };
        let (id, at) = (printable(&admission.prompt_id), moment(admission.at_ms));
        format!(
            "a turn result with its id, {}, may be of an earlier admission: {older}; {id} was admitted at {at}",
            result.id()
        )
    }

    fn used_before(&self, admission: &Admission) -> String {
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

    /// The summary, and why it counts when its own time does not say so.
    fn summary_since(&self, admission: &Admission) -> String {
        let summary = self.seen.compression_since(admission);
        let is_by_place =
            admission.marker.is_none() && summary.is_some_and(|summary| !summary.is_since(admission.at_ms));
        let own = self.seen.own_prompt(admission).filter(|_| is_by_place).map(own_before);
        let summary = told(summary);
        format!("a summary took the place of what was said before it: {summary}{}", own.unwrap_or_default())
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
        let (prompt, question) = (self.seen.last_prompt.as_ref(), self.seen.last_question.as_ref());
        let is_foreign = |asked: &&Sighting| {
            let stamp = asked.stamp.as_deref();
            self.evidence.as_ref().is_some_and(|evidence| evidence.is_foreign(stamp, admission))
        };
        let Some(foreign) = question.into_iter().chain(prompt).find(is_foreign) else {
            return self.foreign_turn(admission);
        };
        let is_last = prompt.is_some_and(|prompt| prompt.place == foreign.place);
        let but = if is_last { "" } else { ", but for a note on work in the background" };
        let own = self.seen.own_prompt(admission).filter(|own| own.place > foreign.place).map(own_before);
        format!("asked last{but}: {}{}", foreign.asked(), own.unwrap_or_default())
    }

    /// What makes the last turn another one's where no question says so.
    fn foreign_turn(&self, admission: &Admission) -> String {
        match self.evidence.as_ref().and_then(|evidence| evidence.foreign(admission)) {
            Some(Foreign::LostBeginning) => {
                "the branch is cut in the middle of a turn: the record that is missing may have been another prompt's question"
                    .to_owned()
            }
            Some(Foreign::Stamp(stamp)) => {
                format!("a record behind the last question is stamped with prompt {}", printable(stamp))
            }
            Some(Foreign::GoneOnWith(by)) => {
                format!("a turn result behind the last question is of prompt {}, which may have gone on with the turn", printable(by))
            }
            Some(Foreign::Session) => {
                "behind the prompt's own question the session asked something by itself".to_owned()
            }
            Some(Foreign::TakenBack) => {
                "the conversation was rewound behind the admission, and the prompt's own question does not stand behind that".to_owned()
            }
            Some(Foreign::Prompt) | None => String::new(),
        }
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

fn own_before(own: &Sighting) -> String {
    format!("; the prompt's own question stands before it, {}", own.id())
}

fn told(sighting: Option<&Sighting>) -> String {
    sighting.map_or_else(|| "nothing".to_owned(), Sighting::told)
}
