//! Where admissions and outcomes are recorded. The bridge declares it; a crate above knows the files.

use crate::Terminal;

/// The ledger as the bridge sees it.
///
/// The calls return nothing, so that a ledger problem cannot block a prompt, nor a cancel. All are made under the session's lock,
/// before the receipt, the event or the message that they precede: an implementation writes and returns.
pub trait PromptLedger: Send + Sync {
    /// A prompt was accepted; it is neither acknowledged nor dispatched before this returns.
    fn admitted(&self, admission: &Admission<'_>);
    /// A client wants a running prompt cancelled; neither the client has its answer nor has the agent heard of it before this
    /// returns. Once a prompt.
    fn cancel_wished(&self, wish: &Wish<'_>);
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

/// The fact that a client wants a running prompt cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish<'a> {
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
