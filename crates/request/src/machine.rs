//! One request: what may happen to it, and what comes of that.
//!
//! [`step`] takes a row, one [`Input`] and the time, and gives the [`Effect`]s in their order, all of which are one transaction. It is the
//! table of return requests, section 2.4. What it promises is a property of that list: one end for a request, nothing after it but late
//! evidence, and a final text only with `completed`.

mod after;
mod before;
mod dispatching;
mod running;
#[cfg(test)]
pub(crate) mod tests;

use crate::recovery::Loss;
use crate::{
    ArmedCursor, Baseline, Cause, Evidence, InputWritten, Mismatch, Outcome, Phase, Refusal, Request, Stage, State,
    Terminal,
};

/// All that can happen to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The admission is on the ledger.
    Admitted,
    /// The prompt was not admitted, and the caller still waits to be told so.
    Refused,
    /// The prompt will not be sent any more, and nobody waits: the queue let it go, or a check at its head failed.
    Dropped(Refusal),
    /// The prompt is about to be sent. It is not, before this is on disk.
    Dispatched {
        /// Where the session stands.
        armed: ArmedCursor,
        /// The turn before it, taken anew.
        baseline: Baseline,
        /// The agent's process.
        incarnation_id: Option<String>,
    },
    /// The whole line is in the agent's input.
    Written,
    /// The write failed.
    WriteFailed {
        /// Whether at least the complete JSON text was accepted, the newline or not.
        is_complete: bool,
    },
    /// A sign of the agent's own that is tied to the prompt.
    Bound {
        /// What ties it.
        evidence: Evidence,
        /// The agent's id of the user message, where it has one.
        user_record_id: Option<String>,
    },
    /// A fact does not hold.
    Mismatch {
        /// Which.
        fact: Mismatch,
        /// Whether the complete prompt had reached the agent by then.
        written: InputWritten,
    },
    /// The turn is over.
    Settled(Outcome),
    /// The prompt ended with its session, or somebody else took it back, and the agent did not answer.
    SessionEnded {
        /// Who ended it.
        cause: Cause,
        /// Whether the complete prompt had reached the agent by then.
        written: InputWritten,
    },
    /// The agent's process is gone and did not answer.
    AgentExited {
        /// Whether the complete prompt had reached the agent by then.
        written: InputWritten,
    },
    /// The request is cancelled by its caller.
    Cancel,
    /// The deadline has come.
    Deadline,
    /// The daemon died meanwhile; this is what is to be said.
    Recovered(Recovered),
}

/// What is to be said of a request after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// The daemon died before the whole prompt was known to be with the agent. What that means depends on the phase.
    Unsubmitted,
    /// The outcome was staged.
    Staged(Stage),
    /// The transcript has the turn, exactly.
    Exact(Stage),
    /// The deadline passed, and nothing is known to have ended before it.
    DeadlinePassed {
        /// What ended after it.
        late: Option<Stage>,
    },
    /// A fact does not hold.
    Mismatch(Mismatch),
    /// A turn ended, and only its place and time say whose it was.
    Unattributable,
    /// The turn ended, and its text is lost.
    FinalTextUnavailable,
    /// Nothing says how the turn ended.
    DaemonLost(Loss),
    /// The store was made anew from what could be read.
    StoreRecovered,
}

/// All that can come of it. Those of one step are one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The request goes on.
    Advance(Advance),
    /// The request ends: the row, its event and the stream's head.
    End(Terminal),
    /// Something came after the end. It is kept beside it, up to [`crate::limits::LATE_MAX`].
    Late(Late),
    /// The row goes; the id is free.
    Remove,
}

/// A step on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advance {
    /// The ledger has the admission.
    Admitted,
    /// From here on bytes may be out.
    Dispatching {
        /// Where the session stands.
        armed: ArmedCursor,
        /// The turn before it.
        baseline: Baseline,
        /// The agent's process.
        incarnation_id: Option<String>,
    },
    /// The whole prompt is with the agent.
    Submitted,
    /// A sign of the agent's own is tied to it, or a better one than before.
    Bound {
        /// The best so far.
        evidence: Evidence,
        /// The agent's id of the user message.
        user_record_id: Option<String>,
    },
}

/// What came after the end. Neither a change nor an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// What it is.
    pub kind: LateKind,
    /// JSON object text.
    pub payload: String,
}

/// What late evidence is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateKind {
    /// How the turn ended after all.
    Outcome,
    /// Whether the prompt reached the agent.
    Write,
    /// A fact that does not hold.
    Mismatch,
    /// The agent's process is gone.
    AgentExit,
}

impl LateKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Outcome, Self::Write, Self::Mismatch, Self::AgentExit];

    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outcome => "outcome",
            Self::Write => "write",
            Self::Mismatch => "mismatch",
            Self::AgentExit => "agent_exit",
        }
    }

    /// The kind of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Decides. The time is in epoch milliseconds.
#[must_use]
pub fn step(request: &Request, input: &Input, at_ms: u64) -> Vec<Effect> {
    match (request.state, request.phase) {
        (State::Registered, Phase::Registered | Phase::Admitted) => before::step(request, input, at_ms),
        (State::Registered, Phase::Dispatching) => dispatching::step(request, input, at_ms),
        (State::Submitted | State::Bound, _) => running::step(request, input, at_ms),
        _ => after::step(request, input, at_ms),
    }
}
