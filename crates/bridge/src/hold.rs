//! What becomes of prompts while a session is held, and why one cannot be held.

use thiserror::Error;

/// What becomes of prompts that come while a session is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// They are admitted and wait.
    Wait,
    /// They are refused: what an admission notes of the transcript, as the place behind which its turn will stand, may be taken back.
    Refuse,
}

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
