//! Everything a session can bring about, to be performed in the order of the list.

use std::sync::Arc;

use acp::RequestId;

use crate::event::{Event, News};
use crate::moment::Moment;
use crate::permission::Ruling;
use crate::prompt::{PromptId, Receipt};
use crate::session::steering::Said;
use crate::steering::Steered;
use crate::witness::{Baseline, Cause, FinalText};
use crate::{AdmitError, FlushOrigin, HoldError, InputWritten, NotOpen, Terminal, VoteOutcome};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Put the admission on record, with this time.
    RecordAdmission { prompt_id: PromptId, at_ms: u64 },
    /// Put the outcome on record, with this time.
    RecordTerminal { prompt_id: PromptId, terminal: Terminal, at_ms: u64 },
    /// Put on record that a client wants the running prompt cancelled, with this time.
    RecordWish { prompt_id: PromptId, at_ms: u64 },
    /// Answer whoever caused the step.
    Reply(Reply),
    /// Tell the readers.
    Publish(Event),
    /// Tell the agent.
    Tell(Tell),
    /// Tell the witness of a prompt.
    Witness { prompt_id: PromptId, word: Word },
    /// Every stream ends here.
    EndStreams,
    /// The session is over: nobody can find it any more, and its streams to the agent are dropped.
    Forget,
}

/// What a witness is told of its prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It is the next to run, and waits for [`Input::Dispatch`](crate::input::Input::Dispatch). What is written for it is younger than `after_ms`.
    Dispatching { baseline: Baseline, after_ms: u64 },
    /// The agent has the whole of it.
    Written,
    /// The agent has said something in its turn.
    HeardUpdate,
    /// The agent has said what it takes for the user's words: a raw JSON content block.
    HeardUser { message_id: Option<String>, content: String },
    /// The agent has answered. The outcome waits for [`Input::Confirm`](crate::input::Input::Confirm).
    Settling(Told),
    /// It has ended.
    Ended { cause: Cause, told: Told },
    /// The agent has answered although it had ended.
    Late(Told),
}

/// An outcome as a witness is told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) terminal: Terminal,
    pub(crate) input_written: InputWritten,
    pub(crate) text: FinalText,
    pub(crate) heard: bool,
    /// The agent says words outside of its turns, so that nobody can tell whose the text is, and there is none here.
    pub(crate) strayed: bool,
    /// Something that the agent wrote in the turn could not be read, or not exactly, so that nobody can tell whether all of it is there.
    pub(crate) unreadable: bool,
    pub(crate) stopped_by: Option<FlushOrigin>,
}

/// The answer to a client's input. An input that needs none has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Admitted(Receipt),
    NotAdmitted(AdmitError),
    Steered(Steered),
    Done,
    Removed(bool),
    Voted(VoteOutcome),
    /// The session is held. What is written for it meanwhile is dated with this time, and nothing else is.
    Held {
        at_ms: u64,
    },
    NotHeld(HoldError),
    NotOpen(NotOpen),
}

/// A message to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    /// Here is a prompt. What is written for it is younger than `after_ms`.
    Prompt {
        prompt_id: PromptId,
        content: Arc<str>,
        extra: Option<Arc<str>>,
        originator: Option<Arc<str>>,
        after_ms: u64,
        /// The host is to say when the whole of it is in the agent's input.
        witnessed: bool,
    },
    /// Stop what you are doing.
    Cancel,
    /// To the host: this prompt's agent does not stop; put another one in its place.
    Replace { prompt_id: PromptId },
    /// This is decided.
    Ruling(Ruling),
    /// This was said into your turn; and whether a prompt waits.
    Drained { agent_request: RequestId, said: Vec<Said>, queued: bool },
    /// Nobody here does that.
    Unsupported { agent_request: RequestId, method: String },
    /// End yourself.
    Close(FlushOrigin),
}

/// One step of a session: when it happens and what it brings about.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) at: Moment,
    pub(crate) effects: Vec<Effect>,
}

impl Step {
    pub(crate) fn new(at: Moment) -> Self {
        Self { at, effects: Vec::new() }
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        self.push(Effect::Reply(reply));
    }

    pub(crate) fn tell(&mut self, tell: Tell) {
        self.push(Effect::Tell(tell));
    }

    pub(crate) fn witness(&mut self, prompt_id: PromptId, word: Word) {
        self.push(Effect::Witness { prompt_id, word });
    }

    pub(crate) fn publish(&mut self, prompt_id: Option<PromptId>, originator: Option<Arc<str>>, news: News) {
        self.push(Effect::Publish(Event { prompt_id, originator, news }));
    }
}
