//! Putting another process in the place of an agent that does not stop (design, section 3, rule 2).
//!
//! The daemon asks for it when a turn goes on that was cancelled or whose caller was released, and says which session it is about.
//! The order is the promise: the old agent's whole tree is gone first; then the turn's result is written and its prompt answered;
//! then the new process is greeted and given the session; then the daemon hears of it and may hand on the next prompt. Until its end
//! the old agent is listened to, and what it says belongs to its own turn, which it may even settle.
//!
//! An agent that can bring no session back is left alone: to end it would cost the conversation. One that says it can and then
//! cannot has lost it already, and gets a new session that says so.

use acp::{Message, Outcome, RequestId, compose};

use super::passed::Passed;
use super::written::Failed;
use super::{Effect, Machine, Phase};
use crate::options::Mode;
use crate::turn::Ending;
use crate::wire::{self, Capabilities, code};

/// A replacement under way.
#[derive(Debug)]
pub(super) struct Replacement {
    /// The daemon's request.
    request: RequestId,
    /// Its parameters.
    params: String,
    /// The host's own greeting that the new agent has; none while the old one is on its way to its end.
    greeting: Option<RequestId>,
}

impl Machine {
    pub(super) fn begin_replacement(&mut self, id: &RequestId, message: &Message) {
        if self.replacement.is_some() || self.is_changing_session() {
            return self.refuse_as_busy(id);
        }
        if self.running.is_none() {
            let details = "the agent has answered what it was asked";
            return self.refuse(id, &wire::refusal(code::TURN_SETTLED, "there is nothing to replace", details));
        }
        if !self.can_be_replaced() {
            let details = "the agent can neither resume nor load a session";
            return self.refuse(id, &wire::refusal(code::AGENT_CANNOT_RESTORE, "the agent is not replaced", details));
        }
        let params = message.params().unwrap_or("{}").to_owned();
        self.replacement = Some(Replacement { request: id.clone(), params, greeting: None });
        self.orphaned.extend(std::mem::take(&mut self.asked).into_keys());
        // The whole tree goes, and the command is part of it.
        self.stop_command();
        self.effects.push(Effect::Replace);
    }

    fn can_be_replaced(&self) -> bool {
        let knows_how = self.capabilities.resume || self.capabilities.load;
        let knows_what = self.mode == Mode::Native || self.agent_session.is_some();
        knows_how && knows_what && self.introduction.is_some()
    }

    /// The old agent is surely gone. What it owed is answered, and its successor, if there is one, is greeted.
    pub(super) fn replaced(&mut self, at_ms: u64, result: Result<(), String>) {
        self.stop_turn(at_ms);
        let gone = wire::refusal(code::AGENT_REPLACED, "the agent was replaced", "its process was ended");
        for request in std::mem::take(&mut self.awaited).into_keys() {
            self.refuse(&request, &gone);
        }
        if self.phase == Phase::Lingering {
            return self.over();
        }
        let greeting = self.own_id();
        let introduction = self.introduction.clone().unwrap_or_else(|| "{}".to_owned());
        match (&mut self.replacement, result) {
            (None, _) => self.over(),
            (Some(replacement), Err(cause)) => {
                let request = replacement.request.clone();
                self.replacement_failed(&request, &cause);
            }
            (Some(replacement), Ok(())) => {
                replacement.greeting = Some(greeting.clone());
                self.forget_strayed();
                self.passed = Passed::default();
                self.remembered = self.agent_session.take().or(self.remembered.take());
                (self.initialized, self.capabilities) = (false, Capabilities::default());
                self.tell_agent(compose::request_raw(&greeting, wire::INITIALIZE, &introduction));
            }
        }
    }

    /// The turn that was not stopped otherwise: one that was to be cancelled is cancelled, any other has failed.
    fn stop_turn(&mut self, at_ms: u64) {
        let reach = self.reach();
        let Some(running) = self.running.take() else { return };
        let message = "the agent did not stop when it was told to, and was replaced";
        let error = wire::refusal(code::AGENT_REPLACED, message, message);
        let request = running.request.clone();
        let ending = match running.cancelled_at {
            Some(at_ms) => Ending::Cancelled { cancelled_at: Some(at_ms), agent_stop_reason: None },
            None => Ending::Failed { message: message.to_owned(), code: code::AGENT_REPLACED.to_owned() },
        };
        self.end_turn(at_ms, running, ending);
        self.refuse_turn(&Failed { request, reach }, error);
    }

    pub(super) fn is_greeting_with(&self, id: &RequestId) -> bool {
        self.replacement.as_ref().is_some_and(|replacement| replacement.greeting.as_ref() == Some(id))
    }

    /// The new agent has answered its greeting; the rest is a restore like any other.
    pub(super) fn greeted(&mut self, outcome: &Outcome<'_>) {
        let Some(Replacement { request, params, .. }) = self.replacement.take() else { return };
        match outcome {
            Outcome::Result(result) => {
                self.initialized = true;
                self.capabilities = Capabilities::read(result);
                self.restore(request, params, true);
            }
            Outcome::Error(error) => self.replacement_failed(&request, &wire::code_and_message(error).1),
        }
    }

    /// There is no agent any more that has the session.
    pub(super) fn replacement_failed(&mut self, request: &RequestId, cause: &str) {
        let message = "no other agent could be put in its place";
        self.refuse(request, &wire::refusal(code::AGENT_UNAVAILABLE, message, cause));
        self.over();
    }

    /// The same once the old agent is gone.
    pub(super) fn take_greeting_request(&mut self) -> Option<RequestId> {
        let greeting = self.replacement.take_if(|replacement| replacement.greeting.is_some());
        greeting.map(|replacement| replacement.request)
    }

    /// The daemon's request that a replacement under way belongs to.
    pub(super) fn take_replacement_request(&mut self) -> Option<RequestId> {
        self.replacement.take().map(|replacement| replacement.request)
    }
}
