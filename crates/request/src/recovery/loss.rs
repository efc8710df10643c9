//! Why the transcript does not say how a turn ended.

/// A reason, kept as the detail of `daemon_lost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// There is no transcript.
    Missing,
    /// It cannot be read, or not in one way only.
    Unreadable,
    /// The armed tail is not on its active branch.
    MarkerAbsent,
    /// The conversation was taken back, or its history replaced, behind the armed tail.
    TakenBack,
    /// The turn has no end there.
    Interrupted,
    /// The turn is not there at all.
    NotShown,
    /// The agent's process ended in the turn, and its host put that on record.
    AgentGone,
    /// Its writer did not let go of it in time.
    StillWritten,
}

impl Loss {
    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "transcript_missing",
            Self::Unreadable => "transcript_unreadable",
            Self::MarkerAbsent => "marker_absent",
            Self::TakenBack => "history_replaced",
            Self::Interrupted => "turn_interrupted",
            Self::NotShown => "turn_not_shown",
            Self::AgentGone => "agent_gone",
            Self::StillWritten => "session_still_written",
        }
    }
}
