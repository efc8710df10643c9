//! The whole reasoning about a session's open prompts, for a program ([`explain`]) or for a person ([`report()`]).

mod cause;
mod json;
mod page;
mod report;
mod seen;
mod sequel;
mod words;

pub use report::{Report, report};
pub use words::{printable, printable_path};

use std::io::ErrorKind;

use ledger::{Record, recent_terminals};
use transcript::{Absent, Classified, HistoryTail, Transcript, WINDOW_BYTES};

use crate::admission::open_admissions;
use crate::reconcile::{Plan, Session, plan};
use crate::withheld::Withheld;

/// Where a session stands, as its plan has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No prompt is open.
    NothingOpen,
    /// The ending of every open prompt is known.
    Resolvable,
    /// Some open prompt stays unknown.
    Unknown,
    /// The ledger is there and cannot be read.
    Unreadable,
}

impl Plan {
    /// Where the session stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match self.verdict.withheld {
            None => Standing::Resolvable,
            Some(Withheld::NoDangling) => Standing::NothingOpen,
            Some(Withheld::LedgerUnreadable) => Standing::Unreadable,
            Some(_) => Standing::Unknown,
        }
    }
}

/// Everything that is known and concluded about a session (evidence rules, section 6). Nothing is written; the plan
/// inside can be applied.
#[derive(Debug)]
pub struct Explanation {
    /// The ledger as it was read, and the verdict.
    pub plan: Plan,
    /// The ids of the open prompts.
    pub dangling: Vec<String>,
    /// The dispatch marker that an admission would get now.
    pub tail_uuid: Option<String>,
    /// The uuids of the active branch, oldest first; none when no transcript loads.
    pub projection: Option<Vec<String>>,
    /// How the model's history was left; none when there is none.
    pub classified: Option<Classified>,
    /// The ledger's recent terminals, as a load gives them out; none when there are none.
    pub terminals: Option<Vec<Record>>,
    /// Whether another process has the session, so that its files are no last word. Whoever looked at the lock says so.
    pub is_live: bool,
    /// Why the transcript is there and cannot be read; none when it can, or is not there.
    pub error: Option<String>,
}

/// Explains a session to a program: reads both files, the whole active branch included, and writes nothing.
#[must_use]
pub fn explain(session: &Session<'_>) -> Explanation {
    let plan = plan(session);
    let records = plan.reading.as_ref().map_or(&[][..], |reading| &reading.records);
    let dangling = open_admissions(records).into_iter().map(|open| open.prompt_id).collect();
    let transcript = transcript::open(session.transcript, session.session_id, session.workspace).ok();
    let branch = transcript.as_ref().and_then(|transcript| read_branch(transcript, session.session_id));
    let (projection, classified) = branch.unzip();
    Explanation {
        plan,
        dangling,
        tail_uuid: transcript::tail_uuid(session.transcript),
        projection,
        classified: classified.flatten(),
        terminals: recent_terminals(session.ledger).ok().filter(|terminals| !terminals.is_empty()),
        is_live: false,
        error: unreadable_transcript(session),
    }
}

/// Why the transcript cannot be read, where that is the system's word and not a matter of what stands in it.
fn unreadable_transcript(session: &Session<'_>) -> Option<String> {
    match transcript::check(session.transcript, session.session_id, session.workspace) {
        Err(Absent::Unreadable(damage)) if damage.kind() == ErrorKind::InvalidData => None,
        Err(error @ Absent::Unreadable(_)) => Some(error.to_string()),
        Err(_) | Ok(()) => None,
    }
}

/// The uuids of the active branch, oldest first, and what the end of the history looks like.
fn read_branch(transcript: &Transcript, session_id: &str) -> Option<(Vec<String>, Option<Classified>)> {
    let mut branch = transcript.branch(WINDOW_BYTES).ok()?;
    let mut history = HistoryTail::default();
    let mut uuids = Vec::new();
    while let Some(record) = branch.next_record().ok()? {
        history.push(&record);
        uuids.push(record.uuid);
    }
    history.reach_the_beginning();
    uuids.reverse();
    let history = history.finish().ok();
    let classified = history.and_then(|history| transcript.classified(&history.entries).ok());
    (branch.session_id() == Some(session_id)).then_some((uuids, classified))
}
