//! What is said of a request after a crash: from what is on disk to an [`Input`](crate::Input), or to the advice to wait.
//!
//! Pure. The points at which a daemon may die are C1 to C16 of return requests, section 2.7. What was staged is rolled forward; a turn in
//! the transcript counts only when it is exactly ours; everything else is lost, and says so. A host that outlived the daemon records its
//! turn to the end (design, section 7): what it wrote and stamped before another process opened the session was written by the same
//! incarnation, so that recovery waits for it instead of ending it.

mod loss;
#[cfg(test)]
mod tests;
mod transcript;

pub use loss::Loss;
pub use transcript::{PromptSeen, Seen, TextSeen, TurnSeen, TurnState};

use crate::{Phase, Recovered, Request, Stage, State};
use transcript::Reading;

/// What was found of a request that is not terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its outcome, where one was staged.
    pub stage: Option<Stage>,
    /// What the ledger says of its prompt.
    pub ledger: LedgerFound,
    /// What the transcript says of its turn.
    pub transcript: TranscriptFound,
}

/// What the ledger says of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerFound {
    /// Nothing, or its admission alone, or nothing that can be read.
    Open,
    /// How it ended, written by the daemon that saw it.
    Ended,
    /// How it ended, as it was concluded from place and time.
    Reconstructed,
}

/// What the transcript says of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptFound {
    /// It has a writer still, or it can only be read by loading the session, which has not happened yet.
    NotYet,
    /// It does not say.
    Lost(Loss),
    /// What stands on the active branch behind the armed tail, oldest first. What says nothing here is left out.
    Behind(Vec<Seen>),
}

/// What is to be done about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It ends. The input is for [`step`](crate::step).
    Decided(Recovered),
    /// Nothing can be said before the transcript is at rest. Whoever waits no longer than that asks again with a [`Loss`].
    Wait,
    /// It had ended.
    Nothing,
}

/// Says what becomes of a request whose daemon died. The time is in epoch milliseconds.
///
/// Nothing of it depends on how often it is asked: a second crash in the middle of a recovery comes to the same end.
#[must_use]
pub fn recover(request: &Request, found: &Found, now_ms: u64) -> Verdict {
    match request.state {
        state if state.is_terminal() => Verdict::Nothing,
        // The seed's rule: not durably marked as submitted is indeterminate, whatever else is found, and whatever the time.
        State::Registered => Verdict::Decided(Recovered::Unsubmitted),
        _ => submitted(request, found, now_ms),
    }
}

/// Whether the transcript has to be looked at before [`recover`] can decide, and so its writer has to be waited for.
#[must_use]
pub fn needs_transcript(request: &Request, stage: Option<&Stage>) -> bool {
    matches!(request.state, State::Submitted | State::Bound) && stage.is_none()
}

/// Whether the ledger's open admission is to be closed as never dispatched (C2, C3).
#[must_use]
pub fn is_never_dispatched(request: &Request) -> bool {
    request.state == State::Registered && request.phase != Phase::Dispatching
}

/// Evidence first, then the deadline: what ended at or before it wins.
fn submitted(request: &Request, found: &Found, now_ms: u64) -> Verdict {
    let deadline = request.registration.deadline_at;
    let is_late = |at_ms: u64| deadline.is_some_and(|deadline| at_ms > deadline);
    if let Some(stage) = &found.stage {
        return Verdict::Decided(match is_late(stage.at_ms) {
            true => Recovered::DeadlinePassed { late: Some(stage.clone()) },
            false => Recovered::Staged(stage.clone()),
        });
    }
    let Some(recovered) = look(request, found) else { return Verdict::Wait };
    Verdict::Decided(match recovered {
        Recovered::Exact(stage) if is_late(stage.at_ms) => Recovered::DeadlinePassed { late: Some(stage) },
        Recovered::Exact(stage) => Recovered::Exact(stage),
        _ if is_late(now_ms) => Recovered::DeadlinePassed { late: None },
        recovered => recovered,
    })
}

/// What ledger and transcript say together, the deadline aside. None while the transcript is not at rest.
fn look(request: &Request, found: &Found) -> Option<Recovered> {
    let reading = match &found.transcript {
        TranscriptFound::NotYet => return None,
        TranscriptFound::Lost(loss) => Reading::Lost(*loss),
        TranscriptFound::Behind(seen) => transcript::read(request, seen),
    };
    Some(match (reading, found.ledger) {
        (Reading::Exact(turn), _) => exact(turn),
        (Reading::Mismatch(fact), _) => Recovered::Mismatch(fact),
        // The daemon saw the end, and what it saw of the text went with it.
        (Reading::Unstamped | Reading::Lost(_), LedgerFound::Ended) => Recovered::FinalTextUnavailable,
        // Order is not ownership: another program may have gone on with the session.
        (Reading::Unstamped, _) | (Reading::Lost(_), LedgerFound::Reconstructed) => Recovered::Unattributable,
        (Reading::Lost(loss), LedgerFound::Open) => Recovered::DaemonLost(loss),
    })
}

/// The end that an exact turn record is.
fn exact(turn: &TurnSeen) -> Recovered {
    match transcript::outcome(turn) {
        Ok(outcome) => Recovered::Exact(Stage::new(outcome, turn.ended_at_ms)),
        Err(recovered) => recovered,
    }
}
