//! Who keeps a record of a prompt outside the bridge. The bridge declares it; a crate above knows the record.
//!
//! A prompt may be *witnessed* ([`Prompt::witnessed`](crate::Prompt::witnessed)). Its witness is asked before it is handed to the agent
//! and before its outcome is put on record, and hears of everything in between. In this order, for each witnessed prompt:
//!
//! 1. [`dispatching`](Witness::dispatching), at most once: the prompt is the next to run, and the answer before it is a moment old. Nothing is handed to the agent before
//!    [`Session::dispatch`](crate::Session::dispatch).
//! 2. [`written`](Witness::written), at most once: the agent has the whole of it. An answer of the agent itself proves that, so it
//!    comes before 4; where the host answers in its place it may never come.
//! 3. [`heard`](Witness::heard), any number of times, before or after 2: an agent may speak without being asked.
//! 4. [`settling`](Witness::settling), at most once: the agent has answered, and what it may say late has had
//!    [a moment](crate::limits::LATE_WORDS_MS) to come. The prompt counts as running until [`Session::confirm`](crate::Session::confirm).
//! 5. [`ended`](Witness::ended), exactly once for each prompt that was admitted: behind the line of the ledger, and before any reader hears
//!    of the end. It may come after any of the above, or after none.
//! 6. [`late`](Witness::late), at most once: the agent has answered a prompt that had ended.
//!
//! A session that is being closed, or ends in another way, waits for no witness: what waits at 1 ends without having run, and what waits
//! at 4 ends with the outcome that is known. Only where the daemon stops does the prompt that runs go on to 4 and 5 as ever, within a bound.

use std::sync::Arc;

use crate::{Expiry, FlushOrigin, InputWritten, Terminal};

/// The witness as the bridge sees it.
///
/// All calls are made under the session's lock, in the order in which things happen: an implementation hands on and returns. It must not
/// call the session back from within; the answers come later, from elsewhere. What it is told of a session that has ended is the
/// last that it hears of it.
pub trait Witness: Send + Sync {
    /// The prompt is the next to run, and waits for [`Session::dispatch`](crate::Session::dispatch).
    fn dispatching(&self, session: &str, prompt: &str, facts: Dispatch<'_>);
    /// The whole of it is in the agent's input.
    fn written(&self, session: &str, prompt: &str);
    /// The agent has said something in this turn.
    fn heard(&self, session: &str, prompt: &str, what: Heard<'_>);
    /// The answer came. It is put on record and published after [`Session::confirm`](crate::Session::confirm).
    fn settling(&self, session: &str, prompt: &str, outcome: Settling<'_>);
    /// The prompt has ended, in whatever way. Its line is in the ledger, and nobody has seen the outcome.
    fn ended(&self, session: &str, prompt: &str, ending: Ended<'_>);
    /// The agent has answered a prompt that had ended before. The answer changes nothing.
    fn late(&self, session: &str, prompt: &str, outcome: Settling<'_>);
}

/// The last turn of a session before a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// Its prompt; none before the first, and behind a rewind.
    pub prompt_id: Option<Arc<str>>,
    /// How many turns this live session has settled.
    pub turn: u64,
}

/// The agent's process, as its host knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub start_ticks: u64,
    /// Which boot of the machine that was.
    pub boot_id: String,
}

/// How a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// No prompt runs or waits.
    pub idle: bool,
    /// The last turn that was settled.
    pub baseline: Baseline,
    /// The agent has not answered a prompt whose caller was released by its deadline. What it still says about that would mix with
    /// what it says about the next one.
    pub tainted: bool,
    /// The agent's process; none of a host that does not say.
    pub incarnation: Option<Process>,
    /// The number of the newest event.
    pub last_event_id: u64,
}

/// How a session stands when a prompt is the next to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch<'a> {
    /// The last turn that was settled.
    pub baseline: &'a Baseline,
    /// The agent's process; none of a host that does not say.
    pub incarnation: Option<&'a Process>,
    /// The number of the newest event: those of the turn are newer.
    pub last_event_id: u64,
    /// Epoch milliseconds. What the host records of the turn is dated later than that.
    pub after_ms: u64,
}

/// What an agent says in a turn that tells something of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// The first update while the agent holds this prompt and no other. Once a turn.
    FirstUpdate,
    /// A piece of a message that the agent takes for the user's. At most
    /// [`HEARD_USER_MESSAGES_MAX`](crate::limits::HEARD_USER_MESSAGES_MAX) a turn.
    UserMessage {
        /// The agent's id of that message, if it gives one.
        message_id: Option<&'a str>,
        /// The piece: the raw JSON text of a content block.
        content: &'a str,
    },
}

/// The final answer: what the agent said after its last tool call, without thoughts and without what subagents say (turn status seed).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FinalText {
    /// There is none.
    #[default]
    None,
    /// All of it.
    Whole(Arc<str>),
    /// It is longer than [`FINAL_TEXT_BYTES_MAX`](crate::limits::FINAL_TEXT_BYTES_MAX), or came after the end: it is in the transcript, with
    /// the record of the turn's result.
    Elsewhere,
}

/// The agent's answer to a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling<'a> {
    /// The outcome. The code of an error is the agent's JSON-RPC number, or else a word of the host.
    pub terminal: &'a Terminal,
    /// Whether the agent had its input.
    pub input_written: InputWritten,
    /// The final answer of a completed turn. None of one that has strayed or was not readable.
    pub text: &'a FinalText,
    /// The agent has said words that belong to no turn, before this one or around it, so that nobody can tell whether all that was said in
    /// this turn is its answer, or the whole of it.
    pub strayed: bool,
    /// Something that the agent wrote in the turn could not be read, or not exactly, so that nobody can tell whether all of it is there.
    pub unreadable: bool,
    /// The agent has said something in the turn.
    pub heard: bool,
    /// What the agent was told to stop for, where that was the end of its session and no client's cancel.
    pub stopped_by: Option<FlushOrigin>,
    /// The agent's process now; none of a host that does not say.
    pub incarnation: Option<&'a Process>,
}

/// The end of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    /// What ended it.
    pub cause: Cause,
    /// The outcome as the ledger has it.
    pub terminal: &'a Terminal,
    /// Whether the agent had its input.
    pub input_written: InputWritten,
    /// The final answer of a completed turn. None of one that has strayed or was not readable.
    pub text: &'a FinalText,
    /// The agent has said words that belong to no turn, before this one or around it, so that nobody can tell whether all that was said in
    /// this turn is its answer, or the whole of it.
    pub strayed: bool,
    /// Something that the agent wrote in the turn could not be read, or not exactly, so that nobody can tell whether all of it is there.
    pub unreadable: bool,
    /// The agent has said something in the turn.
    pub heard: bool,
    /// What the agent was told to stop for, where that was the end of its session and no client's cancel.
    pub stopped_by: Option<FlushOrigin>,
    /// The agent's process now; none of a host that does not say.
    pub incarnation: Option<&'a Process>,
}

/// What ended a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The answer of the agent, or of its host in the agent's place. Also where the session's end came before the witness confirmed it.
    Answered,
    /// The witness itself did not let it run.
    Dropped,
    /// A client took it back before it ran.
    TakenBack,
    /// Its caller has waited long enough.
    Expired(Expiry),
    /// The session ended.
    Flushed(FlushOrigin),
}
