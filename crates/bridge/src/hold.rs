//! Why a session cannot be held.

use thiserror::Error;

/// Why nobody may change what the session's agent remembers now. Nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HoldError {
    /// A prompt runs or waits, the agent is being replaced, or somebody else holds the session.
    #[error("session is busy")]
    Busy,
    /// It is being closed.
    #[error("session is closing")]
    Closing,
    /// It is gone.
    #[error("session is gone")]
    Gone,
}
