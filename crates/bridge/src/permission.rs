//! What the agent asks before it acts, and who decides.

/// A client's answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// One of the options offered.
    Selected {
        /// The option's id as it was offered.
        option_id: String,
        /// Answers to questions: raw JSON text, passed on beside the outcome.
        answers: Option<String>,
    },
    /// The request is refused as a whole.
    Cancelled,
}

/// How a permission request was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This option.
    Selected {
        /// The option's id.
        option_id: String,
    },
    /// None: a vote, a cancel, or the end of the turn refused it.
    Cancelled,
}

/// What became of a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VoteOutcome {
    /// It decided the request.
    Recorded,
    /// The option was not offered; the request stays open.
    InvalidOption,
    /// The request was decided before.
    AlreadyResolved(Decision),
    /// No such request is known.
    Unknown,
}

/// An open request as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPermission {
    /// Our id for it, a UUID.
    pub request_id: String,
    /// When it was asked, epoch milliseconds.
    pub created_at_ms: u64,
    /// The prompt that was running.
    pub prompt_id: Option<String>,
    /// What the agent wants to do: raw JSON object text.
    pub tool_call: String,
    /// What it offers: raw JSON array text.
    pub options: String,
}
