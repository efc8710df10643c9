//! How a script leaves its turn.

use acp::RpcError;
use acp::schema::StopReason;

/// What is owed to the client when a script is through.
pub(crate) enum Ending {
    /// An answer with this stop reason.
    Stop(StopReason),
    /// The same with a reason that the protocol need not know.
    StopFor(String),
    /// An error.
    Fail(RpcError),
    /// Nothing more: the script has answered by itself.
    Answered,
    /// The process dies without a word.
    Death,
}

impl Ending {
    /// The usual ending.
    pub(crate) const END_TURN: Self = Self::Stop(StopReason::EndTurn);
}

/// The client cancelled the turn. Scripts pass it up with `?`, and the turn ends as cancelled.
pub(crate) struct Cancelled;

/// What a script comes to.
pub(crate) type Outcome = Result<Ending, Cancelled>;
