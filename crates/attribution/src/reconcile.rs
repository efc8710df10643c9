//! Weighing the evidence of a session, and writing down what it gives. Plan, then apply.

use std::path::Path;

use ledger::{AppendError, Ledger, Reading, Record, Wish};
use transcript::{Transcript, WINDOW_BYTES};

use crate::admission::{Admission, open_admissions};
use crate::evidence::{Evidence, Met};
use crate::judge::{Basis, Settled, Verdict, judge};
use crate::withheld::Withheld;

/// The latest time of a wish that an ending is dated by, in epoch milliseconds: the year 5138. It keeps the ending within the
/// numbers that every reader holds exactly.
const WISH_MS_MAX: f64 = 1e14;

/// The session whose open prompts are judged.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// Its ledger.
    pub ledger: &'a Ledger,
    /// Its transcript.
    pub transcript: &'a Path,
    /// Its id, as every record of the transcript must carry it.
    pub session_id: &'a str,
    /// The workspace in which the transcript must have been begun.
    pub workspace: &'a Path,
}

/// What the evidence gives, before anything is written.
#[derive(Debug)]
pub struct Plan {
    /// The ledger as it was read; none when it could not be.
    pub reading: Option<Reading>,
    /// The verdict on its open prompts.
    pub verdict: Verdict,
    /// When the transcript was last written visibly, in epoch milliseconds, as far as it says so. Where something stays
    /// open, no ending of this plan gets an earlier time: what is said in the transcript was said before that ending, also
    /// when the clock was set back since, and must not look later than it to whoever judges the rest. The same of an ending
    /// that a wish decided, which is not before that wish either.
    pub not_before_ms: u64,
}

/// What was written.
#[derive(Debug)]
pub struct Reconciliation {
    /// The terminals that were appended, in order.
    pub appended: Vec<Record>,
    /// What each of them rests on.
    pub settled: Vec<Settled>,
    /// Why something stays unknown; none when nothing does.
    pub withheld: Option<Withheld>,
    /// Why the ledger could not be written, if that is why.
    pub failure: Option<AppendError>,
}

/// Judges the open prompts of a session and appends the endings that are known. To be called once for each cold load,
/// while no prompt is active. Terminals get `now_ms`, in epoch milliseconds. Never fails: a doubt or an error leaves the
/// prompt unknown and says why.
#[must_use]
pub fn reconcile(session: &Session<'_>, now_ms: u64) -> Reconciliation {
    plan(session).apply(session.ledger, now_ms)
}

/// Judges the open prompts of a session and writes nothing.
#[must_use]
pub fn plan(session: &Session<'_>) -> Plan {
    plan_watched(session, &mut |_, _, _| ()).0
}

/// The same with the evidence it rests on, while somebody looks on: `watch` is shown every record of the transcript that
/// was weighed, newest first, and for which admissions.
pub(crate) fn plan_watched(
    session: &Session<'_>,
    watch: &mut dyn FnMut(&[Admission], &Transcript, Met<'_>),
) -> (Plan, Option<Evidence>) {
    let Ok(reading) = session.ledger.read() else {
        return (Plan { reading: None, verdict: nothing(Withheld::LedgerUnreadable), not_before_ms: 0 }, None);
    };
    let admissions = open_admissions(&reading.records);
    let wishes = reading.open_wishes();
    // Most loads find nothing open and never look at the transcript.
    let (verdict, evidence) = match &admissions[..] {
        [] => (judge(&reading.records, &wishes, None), None),
        open => weigh(session, (&reading.records, &wishes), open, &mut |transcript, met| watch(open, transcript, met)),
    };
    let last_write_ms = evidence.as_ref().and_then(|evidence| evidence.last_write?.at_ms);
    let not_before_ms = last_write_ms.and_then(|at_ms| u64::try_from(at_ms).ok()).unwrap_or(0);
    let not_before_ms = not_before_ms.max(last_wish_ms(&verdict, &wishes));
    (Plan { reading: Some(reading), verdict, not_before_ms }, evidence)
}

impl Plan {
    /// Appends what the plan gives, all of it in one write and only if the ledger is as long as it was when it was read.
    #[must_use]
    pub fn apply(&self, ledger: &Ledger, now_ms: u64) -> Reconciliation {
        let Verdict { settled, withheld } = self.verdict.clone();
        let is_bound = withheld.is_some() || settled.iter().any(|settled| settled.basis == Basis::Wish);
        let at_ms = if is_bound { now_ms.max(self.not_before_ms) } else { now_ms };
        let records: Vec<_> = settled.iter().map(|settled| settled.record(at_ms)).collect();
        let len_bytes = self.reading.as_ref().map_or(0, |reading| reading.len_bytes);
        match ledger.append_if_unchanged(&records, len_bytes) {
            Ok(()) => Reconciliation { appended: records, settled, withheld, failure: None },
            Err(AppendError::Changed { .. }) => Reconciliation {
                appended: Vec::new(),
                settled: Vec::new(),
                withheld: Some(Withheld::LedgerChanged),
                failure: None,
            },
            Err(failure) => {
                Reconciliation { appended: Vec::new(), settled: Vec::new(), withheld, failure: Some(failure) }
            }
        }
    }
}

impl Settled {
    /// The line of the ledger that says so.
    #[must_use]
    pub fn record(&self, at_ms: u64) -> Record {
        Record { prompt_id: self.prompt_id.clone(), at_ms: at_ms as f64, fact: self.fact.clone() }
    }
}

/// Judges by what the transcript says; without evidence when it does not load. A line that not every reader of the format
/// reads alike is read both ways.
fn weigh(
    session: &Session<'_>,
    (records, wishes): (&[Record], &[&Wish]),
    admissions: &[Admission],
    watch: &mut dyn FnMut(&Transcript, Met<'_>),
) -> (Verdict, Option<Evidence>) {
    let Ok(transcript) = transcript::open(session.transcript, session.session_id, session.workspace) else {
        return (judge(records, wishes, None), None);
    };
    let evidence = Evidence::gather_watched(&transcript, session.session_id, admissions, WINDOW_BYTES, watch);
    let mut verdict = judge(records, wishes, evidence.as_ref());
    if evidence.as_ref().is_some_and(|evidence| evidence.is_disputed) {
        let transcript = transcript.leaving_out_disputed();
        let other = Evidence::gather(&transcript, session.session_id, admissions, WINDOW_BYTES);
        verdict = agreed(verdict, &judge(records, wishes, other.as_ref()));
    }
    (verdict, evidence)
}

/// What stands of a verdict where another reading of a damaged line gives another one: results with the prompt's own id,
/// and what both infer. Where two readings part, nothing is said (evidence rules, section 9).
fn agreed(verdict: Verdict, other: &Verdict) -> Verdict {
    let stands = |settled: &Settled| {
        let same = |other: &Settled| other.prompt_id == settled.prompt_id && other.fact == settled.fact;
        settled.basis == Basis::TurnResult || other.settled.iter().any(same)
    };
    let count = verdict.settled.len();
    let settled: Vec<_> = verdict.settled.into_iter().filter(stands).collect();
    let withheld = if settled.len() < count { Some(Withheld::HistoryUnreadable) } else { verdict.withheld };
    Verdict { settled, withheld }
}

/// When the wish came that an ending of the verdict rests on, in epoch milliseconds; 0 when none does. A time that no clock of
/// this age shows is none.
fn last_wish_ms(verdict: &Verdict, wishes: &[&Wish]) -> u64 {
    let decided = |wish: &&&Wish| {
        verdict.settled.iter().any(|settled| settled.basis == Basis::Wish && settled.prompt_id == wish.prompt_id)
    };
    let times = wishes.iter().filter(decided).map(|wish| wish.at_ms.ceil());
    times.filter(|at_ms| (0.0..=WISH_MS_MAX).contains(at_ms)).fold(0.0, f64::max) as u64
}

fn nothing(reason: Withheld) -> Verdict {
    Verdict { settled: Vec::new(), withheld: Some(reason) }
}
