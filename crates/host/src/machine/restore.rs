//! Giving an agent its memory back.
//!
//! The daemon asks once and names its own session. In recorded mode the host asks the agent for the session it noted,
//! by `session/resume` where that is advertised, else by `session/load`, and begins a new session where neither works:
//! capability flags lie both ways, and some agents refuse every load. In native mode the session's name is the same for
//! both, and an error goes back as it is.
//!
//! A load replays the conversation, which the transcript has already and better. The replay is swallowed, also the part
//! that comes behind the answer: until the next prompt is handed on, nothing that belongs to a conversation is
//! shown. What is said behind the answer may be words of the agent's own, and the daemon is told that there were some
//! (`straying.rs`). State (commands, modes, usage) passes, since agents send it once.

use acp::{Message, Outcome, RequestId, RpcError, compose};

use super::Machine;
use super::rewind::Told;
use super::setting::{Kindred, Opened};
use crate::options::Mode;
use crate::wire::{self, Memory};

/// A restore under way.
#[derive(Debug)]
pub(super) struct Restore {
    /// The daemon's request.
    request: RequestId,
    /// Its parameters.
    params: String,
    /// The id of the host's own request that the agent has.
    asked_as: RequestId,
    /// What it asked for.
    step: Memory,
    /// The agent's session that is being restored.
    session: Option<String>,
    /// The agent took the place of another, so that the session has no agent when this fails.
    replacement: bool,
}

impl Machine {
    pub(super) fn begin_restore(&mut self, id: &RequestId, message: &Message) {
        self.restore(id.clone(), message.params().unwrap_or("{}").to_owned(), false);
    }

    pub(super) fn restore(&mut self, request: RequestId, params: String, replacement: bool) {
        let session = match self.mode {
            Mode::Recorded => self.remembered.clone(),
            Mode::Native => wire::session_id(&params),
        };
        let step = match session {
            Some(_) if self.capabilities.resume => Memory::Resumed,
            Some(_) if self.capabilities.load || self.mode == Mode::Native => Memory::Loaded,
            _ => Memory::Fresh,
        };
        // A session that the agent cannot bring back is none of its sessions.
        let session = session.filter(|_| step != Memory::Fresh);
        self.replaying = true;
        self.agent_session.clone_from(&session);
        let asked_as = self.own_id();
        self.ask_to_restore(Restore { request, params, asked_as, step, session, replacement });
    }

    /// A number for a request of our own to the agent.
    pub(super) fn own_id(&mut self) -> RequestId {
        let id = RequestId::from(self.next_own_id);
        self.next_own_id += 1;
        id
    }

    fn ask_to_restore(&mut self, restore: Restore) {
        let Restore { params, step, session, .. } = &restore;
        let known = session.as_deref().unwrap_or_default();
        let (method, raw) = match step {
            Memory::Resumed => (wire::SESSION_RESUME, wire::restore_params(params, known)),
            Memory::Loaded => (wire::SESSION_LOAD, wire::restore_params(params, known)),
            Memory::Fresh | Memory::Cut => (wire::SESSION_NEW, wire::fresh_params(params)),
        };
        self.tell_agent(compose::request_raw(&restore.asked_as, method, &raw));
        self.restore = Some(restore);
    }

    pub(super) fn is_restoring_with(&self, id: &RequestId) -> bool {
        self.restore.as_ref().is_some_and(|restore| restore.asked_as == *id)
    }

    pub(super) fn restore_answered(&mut self, outcome: &Outcome<'_>) {
        let Some(restore) = self.restore.take() else { return };
        match outcome {
            Outcome::Result(result) => self.restore_succeeded(restore, result),
            Outcome::Error(_) if self.mode == Mode::Recorded && restore.step != Memory::Fresh => {
                self.agent_session = None;
                let asked_as = self.own_id();
                self.ask_to_restore(Restore { asked_as, step: Memory::Fresh, session: None, ..restore });
            }
            Outcome::Error(error) => self.restore_failed(&restore, error),
        }
    }

    fn restore_succeeded(&mut self, restore: Restore, result: &str) {
        // A new session has the name that the agent gives it; a restored one keeps its own, whatever the answer says.
        let Some(session) = restore.session.clone().or_else(|| wire::session_id(result)) else {
            let error = RpcError::new(acp::rpc_error::INTERNAL_ERROR, "the agent gave its new session no id");
            return self.restore_failed(&Restore { session: None, ..restore }, &error);
        };
        self.told = if restore.step == Memory::Fresh { Told::nothing() } else { Told::unknown() };
        let kind = Kindred::Restored { cwd: wire::cwd(&restore.params) };
        let Restore { request, step: memory, .. } = restore;
        self.open(Opened { request, session, result: result.to_owned(), memory, kind });
    }

    /// Without an agent that has the session there is nothing to stay for; one that had never lost it goes on.
    fn restore_failed(&mut self, restore: &Restore, error: &RpcError) {
        if restore.replacement {
            return self.replacement_failed(&restore.request, &wire::code_and_message(error).1);
        }
        self.refuse(&restore.request, error);
    }

    /// The daemon's request that a restore under way belongs to.
    pub(super) fn take_restore_request(&mut self) -> Option<RequestId> {
        self.restore.take().map(|restore| restore.request)
    }
}
