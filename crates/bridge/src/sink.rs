//! Where admissions and outcomes are recorded. The bridge declares it; a crate above knows the files.

use crate::Terminal;

/// The ledger as the bridge sees it.
///
/// Both calls return nothing, so that a ledger problem cannot block a prompt. Both are made under the session's lock, before the
/// receipt or the event they precede: an implementation writes and returns.
pub trait PromptLedger: Send + Sync {
    /// A prompt was accepted; it is neither acknowledged nor dispatched before this returns.
    fn admitted(&self, admission: &Admission<'_>);
    /// A prompt has its outcome; nobody has seen it before this returns.
    fn ended(&self, ending: &Ending<'_>);
}

/// The fact that a prompt was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission<'a> {
    /// The session it belongs to.
    pub session_id: &'a str,
    /// The prompt.
    pub prompt_id: &'a str,
    /// Epoch milliseconds.
    pub at_ms: u64,
}

/// The fact that a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending<'a> {
    /// The session it belongs to.
    pub session_id: &'a str,
    /// The prompt.
    pub prompt_id: &'a str,
    /// Its outcome.
    pub terminal: &'a Terminal,
    /// Epoch milliseconds.
    pub at_ms: u64,
}
