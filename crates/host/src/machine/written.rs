//! How much of a prompt is in the agent's input, for the prompts whose sender keeps a record of that (*witnessed* ones).
//!
//! The daemon hears at once when the whole line is there, and with an error of the host's how much was. Nothing of that is said of any
//! other prompt.

use acp::{RequestId, RpcError};
use bytes::Bytes;

use super::{Effect, Machine, Running};
use crate::outgoing::Reach;
use crate::turn::echo::Echo;
use crate::turn::json::Update;
use crate::wire;

/// A witnessed prompt.
#[derive(Debug)]
pub(super) struct Witnessed {
    prompt_id: String,
    reach: Reach,
    /// Of a turn that is recorded here.
    echo: Echo,
}

impl Witnessed {
    pub(super) fn new(prompt_id: String) -> Self {
        Self { prompt_id, reach: Reach::Nothing, echo: Echo::default() }
    }

    /// The same with the prompt's content, to know its echo by.
    pub(super) fn asking(self, raw_blocks: &str) -> Self {
        Self { echo: Echo::of(raw_blocks), ..self }
    }
}

/// A request whose turn has failed, and how much of its prompt the agent has, if that is to be told.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) request: RequestId,
    pub(super) reach: Option<Reach>,
}

impl Machine {
    /// How much of the running prompt the agent has, if that is to be told.
    pub(super) fn reach(&self) -> Option<Reach> {
        self.running.as_ref()?.witnessed.as_ref().map(|witnessed| witnessed.reach)
    }

    /// Hands the running prompt to the agent.
    pub(super) fn feed(&mut self, line: Bytes) {
        self.effects.push(match self.reach() {
            Some(_) => Effect::Feed(line),
            None => Effect::ToAgent(line),
        });
    }

    /// More of it is in the agent's input than before.
    pub(super) fn reached(&mut self, reach: Reach) {
        let Some(witnessed) = self.running.as_mut().and_then(|running| running.witnessed.as_mut()) else { return };
        witnessed.reach = reach;
        if reach == Reach::Whole {
            let line = wire::prompt_written(&witnessed.prompt_id);
            self.tell_daemon(line);
        }
    }

    /// Listens to what the agent takes for its user's words.
    pub(super) fn hear_echo(&mut self, update: &Update) {
        let Update::User { message_id, content } = update else { return };
        if let Some(witnessed) = self.running.as_mut().and_then(|running| running.witnessed.as_mut()) {
            witnessed.echo.hear(message_id.as_deref(), content);
        }
    }

    /// Whether an answer to the running prompt comes from an agent that cannot have read it.
    pub(super) fn is_answered_unread(&self) -> bool {
        self.reach() == Some(Reach::Nothing)
    }

    pub(super) fn refuse_turn(&mut self, failed: &Failed, error: RpcError) {
        let error = match failed.reach {
            Some(reach) => wire::with_reach(error, reach),
            None => error,
        };
        self.refuse(&failed.request, &error);
    }
}

/// What the agent's echo of its prompt comes to is part of the turn's result.
pub(super) fn note_echo(running: &mut Running) {
    if let (Some(turn), Some(witnessed)) = (&mut running.turn, &running.witnessed) {
        turn.note_echo(witnessed.echo.contradiction());
    }
}
