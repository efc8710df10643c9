//! The explanation for a person: which prompts are open, what the two files show, and what follows for each.

use std::collections::HashSet;
use std::fmt;

use ledger::{Fact, Reading, Record, Wish};
use transcript::Owner;

use super::page::Page;
use super::seen::Seen;
use super::sequel::Sequel;
use super::words::{count, ended, ending, list, moment, printable, printable_path};
use super::{Standing, cause, unreadable_transcript};
use crate::admission::{Admission, open_admissions};
use crate::evidence::Evidence;
use crate::judge::DEADLINE_EXCEEDED;
use crate::reconcile::{Plan, Reconciliation, Session, plan_watched};
use crate::withheld::Withheld;

/// Open prompts that have a paragraph of their own: more than that is for a program to read.
const PROMPTS_TOLD_MAX: usize = 100;

/// The reasoning about a session in plain words: displays as a page of at most a hundred columns, in which nothing from
/// the files can steer a terminal. Nothing is written; the plan inside can be applied.
#[derive(Debug)]
pub struct Report {
    /// The ledger as it was read, and the verdict.
    pub plan: Plan,
    /// Why the transcript is there and cannot be read; none when it can, or is not there.
    pub error: Option<String>,
    session_id: String,
    pub(super) admissions: Vec<Admission>,
    pub(super) evidence: Option<Evidence>,
    pub(super) seen: Seen,
    /// Why a file that is needed does not load, and where it lies.
    pub(super) absence: Option<(String, String)>,
    sequel: Sequel,
}

/// Explains a session to a person: reads both files as far as the verdict needs them, and writes nothing.
#[must_use]
pub fn report(session: &Session<'_>) -> Report {
    let mut seen = Seen::default();
    let (plan, evidence) = plan_watched(session, &mut |open, transcript, met| seen.look(open, transcript, met));
    let admissions = plan.reading.as_ref().map_or_else(Vec::new, |reading| open_admissions(&reading.records));
    let absence = match (&plan.reading, &evidence) {
        (None, _) => Some((cause::unreadable(session), session.ledger.path())),
        (Some(_), None) if !admissions.is_empty() => Some((cause::absence(session), session.transcript)),
        (Some(_), _) => None,
    };
    let absence = absence.map(|(why, path)| (why, printable_path(path)));
    Report {
        plan,
        error: unreadable_transcript(session),
        session_id: session.session_id.to_owned(),
        admissions,
        evidence,
        seen,
        absence,
        sequel: Sequel::default(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut page = Page::default();
        if let Some(warning) = self.sequel.warning() {
            page.heading(&warning);
        }
        page.heading(&self.summary());
        match &self.plan.reading {
            Some(reading) => self.show_ledger(&mut page, reading),
            None => {
                let (why, path) = self.absence.clone().unwrap_or_default();
                page.row("because", &why);
                page.row("", &path);
                page.row("help", Withheld::LedgerUnreadable.remedy());
            }
        }
        if !self.admissions.is_empty() {
            self.show_transcript(&mut page);
        } else if let Some(error) = &self.error {
            page.row("transcript", error);
        }
        let mut first_unknown = None;
        for admission in self.admissions.iter().take(PROMPTS_TOLD_MAX) {
            self.show_prompt(&mut page, admission, &mut first_unknown);
        }
        if let Some(left_off @ 1..) = self.admissions.len().checked_sub(PROMPTS_TOLD_MAX) {
            page.heading(&format!("{} not told here: --json lists them all", count(left_off, "more open prompt")));
        }
        formatter.write_str(&page.finish())
    }
}

impl Report {
    /// The same of a session that another process has: its files are no last word, and every verdict is only what a load
    /// would come to if that process died now.
    #[must_use]
    pub fn live(self, owner: Option<Owner>) -> Self {
        Self { sequel: Sequel::Live(owner), ..self }
    }

    /// The same after the plan was applied, with what came of it.
    #[must_use]
    pub fn applied(self, done: &Reconciliation) -> Self {
        Self { sequel: Sequel::Applied(done.appended.clone()), ..self }
    }

    /// Where the session stands, in one line.
    fn summary(&self) -> String {
        let session = printable(&self.session_id);
        let open = self.admissions.len();
        let known = self.plan.verdict.settled.len();
        let word = self.sequel.settled();
        let standing = match self.plan.standing() {
            Standing::Unreadable => return format!("session {session}: the ledger cannot be read"),
            Standing::NothingOpen => return format!("session {session}: no prompt is open"),
            Standing::Resolvable | Standing::Unknown if matches!(self.sequel, Sequel::Live(_)) => {
                "not settled".to_owned()
            }
            Standing::Resolvable => word.to_owned(),
            Standing::Unknown if known == 0 => "unknown".to_owned(),
            Standing::Unknown => format!("{known} {word}, {} unknown", open - known),
        };
        format!("session {session}: {}, {standing}", count(open, "open prompt"))
    }

    fn show_ledger(&self, page: &mut Page, reading: &Reading) {
        let Reading { records, dropped_lines, .. } = reading;
        let records_told = count(records.len(), "record");
        if *dropped_lines == 0 {
            page.row("ledger", &records_told);
        } else {
            let dropped = count(*dropped_lines, "line");
            let warning = "that cannot be read; a prompt whose admission was among them is not seen here";
            page.row("ledger", &format!("{records_told}, and {dropped} {warning}"));
        }
        if self.admissions.is_empty() {
            return;
        }
        let open: HashSet<_> = self.admissions.iter().map(|open| open.prompt_id.as_str()).collect();
        let is_other = |record: &&Record| !open.contains(record.prompt_id.as_str());
        let others: Vec<_> = records.iter().filter(|record| !record.is_in_flight()).filter(is_other).collect();
        let latest = others.iter().copied().max_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
        if let Some(latest) = latest {
            let ends = count(others.len(), "ending");
            page.row("", &format!("{ends} of other prompts, the latest: {}", ended(latest)));
        }
        let late: Vec<_> = others.iter().filter(|record| is_late(record)).collect();
        if !late.is_empty() {
            let names = list(late.iter().map(|record| record.prompt_id.as_str()));
            page.row("", &format!("ran into their deadline, their agent perhaps still writing: {names}"));
        }
    }

    fn show_transcript(&self, page: &mut Page) {
        let Some(evidence) = &self.evidence else {
            let (why, path) = self.absence.clone().unwrap_or_default();
            page.row("transcript", &format!("none that loads: {why}"));
            page.row("", &path);
            return;
        };
        let records = count(self.seen.records, "record");
        let of = if self.seen.is_whole { "on" } else { "at the end of" };
        page.row("transcript", &format!("{records} {of} the active branch (the conversation as it stands)"));
        if let Some(asked) = &self.seen.last_prompt {
            page.row("", &format!("asked last: {}", asked.asked()));
        }
        if let Some(written) = &self.seen.last_write {
            let is_question = self.seen.last_prompt.as_ref().is_some_and(|asked| asked.place == written.place);
            let told = if is_question { "the same record".to_owned() } else { written.told() };
            page.row("", &format!("said last: {told}"));
        }
        if let Some(compressed) = self.seen.compression() {
            page.row("", &format!("replaced by a summary up to {}", compressed.told()));
        }
        page.row("", &format!("ends with: {}", cause::end(evidence)));
    }

    /// The reason is one for all prompts that stay unknown: it is told once, and the later ones refer to the first.
    fn show_prompt<'a>(&'a self, page: &mut Page, admission: &'a Admission, first_unknown: &mut Option<&'a str>) {
        let id = printable(&admission.prompt_id);
        let settled = self.plan.verdict.settled.iter().find(|settled| settled.prompt_id == admission.prompt_id);
        let verdict = settled.map_or_else(|| "unknown".to_owned(), |settled| ending(&settled.fact));
        page.heading(&format!("prompt {id}: {}", self.sequel.verdict(verdict)));
        page.row("admitted", &format!("{}, {}", moment(admission.at_ms), self.queue(admission)));
        page.row("", &marker(admission));
        if let Some(wish) = self.wish(admission) {
            page.row("wished", &format!("cancelled, by a client, at {}", moment(wish.at_ms)));
        }
        match (settled, self.plan.verdict.withheld, *first_unknown) {
            (Some(settled), ..) => {
                page.row("because", &self.basis(admission, settled.basis));
                let (label, text) = self.sequel.next(settled);
                page.row(label, &text);
            }
            (None, Some(withheld), None) => {
                page.row("because", &format!("{} ({withheld})", withheld.explanation()));
                page.row("", &self.cause(admission, withheld));
                page.row("help", withheld.remedy());
                page.row("meanwhile", self.sequel.advice());
                *first_unknown = Some(&admission.prompt_id);
            }
            (None, Some(withheld), Some(first)) => {
                page.row("because", &format!("the same as of prompt {} ({withheld})", printable(first)));
            }
            (None, None, _) => {}
        }
    }

    /// The wish to cancel the prompt, when somebody had it.
    fn wish(&self, admission: &Admission) -> Option<&Wish> {
        let wishes = self.plan.reading.as_ref().map_or_else(Vec::new, Reading::open_wishes);
        wishes.into_iter().find(|wish| wish.prompt_id == admission.prompt_id)
    }

    /// Which place the prompt had in the queue: the prompts that were open when it was admitted.
    fn queue(&self, admission: &Admission) -> String {
        let records = self.plan.reading.as_ref().map_or(&[][..], |reading| &reading.records);
        let is_own = |record: &Record| record.is_in_flight() && record.prompt_id == admission.prompt_id;
        let until = records.iter().rposition(is_own).unwrap_or(0);
        let mut before = ledger::dangling(&records[..until]);
        before.retain(|id| *id != admission.prompt_id);
        match before.len() {
            0 => "nothing queued in front of it".to_owned(),
            _ => format!("queued behind {}", list(before.into_iter())),
        }
    }
}

/// What the admission says of the transcript.
fn marker(admission: &Admission) -> String {
    match &admission.marker {
        Some(marker) => format!("its marker, the last record at that time: record {}", printable(marker)),
        None => "without a marker, so that only times tell what came after it".to_owned(),
    }
}

/// Whether the prompt ran into its deadline.
pub(super) fn is_late(record: &Record) -> bool {
    matches!(&record.fact, Fact::Terminal { code: Some(code), .. } if code == DEADLINE_EXCEEDED)
}
