//! Where a request is, and whether its prompt reached the agent.

/// The state that callers see. The first three are on the way, the others are terminal and absorb everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The row is on disk; [`Phase`] says how far it got.
    Registered,
    /// The whole prompt was handed to the agent.
    Submitted,
    /// A sign of the agent's own belongs to this prompt.
    Bound,
    /// The turn ended naturally and its final message is here.
    Completed,
    /// The turn ended early.
    Aborted,
    /// The deadline came first.
    TimedOut,
    /// The request was cancelled by its caller.
    Cancelled,
    /// The prompt was not delivered, or the agent would not have it.
    DeliveryFailed,
    /// We cannot honestly say.
    Indeterminate,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Registered,
        Self::Submitted,
        Self::Bound,
        Self::Completed,
        Self::Aborted,
        Self::TimedOut,
        Self::Cancelled,
        Self::DeliveryFailed,
        Self::Indeterminate,
    ];

    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Submitted => "submitted",
            Self::Bound => "bound",
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::DeliveryFailed => "delivery_failed",
            Self::Indeterminate => "indeterminate",
        }
    }

    /// The state of a word; none for any other, which is an error and no default.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether nothing changes any more.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Registered | Self::Submitted | Self::Bound)
    }
}

/// How far a registered request got. It stays at its last value afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// The row, and nothing else.
    Registered,
    /// The ledger has the admission.
    Admitted,
    /// The dispatch is on disk; from here on bytes may be out.
    Dispatching,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Registered, Self::Admitted, Self::Dispatching];

    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Admitted => "admitted",
            Self::Dispatching => "dispatching",
        }
    }

    /// The phase of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == word)
    }
}

/// Whether the complete prompt reached the agent: the caller's real question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InputWritten {
    /// Proven: it did not; under a new id the work may be done again.
    No,
    /// Not to be proven either way.
    Maybe,
    /// It was handed to the agent's process.
    Yes,
}

impl InputWritten {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::No, Self::Maybe, Self::Yes];

    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Maybe => "maybe",
            Self::Yes => "yes",
        }
    }

    /// What a word says.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|written| written.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_and_no_other_is_taken() {
        State::ALL.into_iter().for_each(|state| assert_eq!(State::parse(state.as_str()), Some(state)));
        Phase::ALL.into_iter().for_each(|phase| assert_eq!(Phase::parse(phase.as_str()), Some(phase)));
        InputWritten::ALL
            .into_iter()
            .for_each(|written| assert_eq!(InputWritten::parse(written.as_str()), Some(written)));
        assert_eq!(State::parse("Completed"), None);
        assert_eq!(State::parse("admitted"), None);
        assert_eq!(Phase::parse(""), None);
        assert_eq!(InputWritten::parse("true"), None);
    }

    #[test]
    fn six_states_are_terminal() {
        assert_eq!(State::ALL.iter().filter(|state| state.is_terminal()).count(), 6);
        assert!(!State::Bound.is_terminal());
    }
}
