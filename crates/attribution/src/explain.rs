//! The whole reasoning about a session's open prompts, for a person or for a program.

mod json;
mod report;

use ledger::{Record, recent_terminals};
use transcript::{Classified, HistoryTail, Transcript, WINDOW_BYTES};

use crate::admission::open_admissions;
use crate::reconcile::{Plan, Session, plan};

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
}

/// Explains a session: reads both files, the whole active branch included, and writes nothing.
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
    }
}

impl Explanation {
    /// Whether no prompt stays unknown once the plan is applied.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        use crate::withheld::Withheld::NoDangling;
        matches!(self.plan.verdict.withheld, None | Some(NoDangling))
    }

    /// Whether a file that is there could not be read.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.plan.reading.is_none()
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
