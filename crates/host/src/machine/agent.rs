//! What the agent sends.

use acp::{Kind, Message, Outcome, RequestId, Speech, Whose};

use super::rewind::Told;
use super::{Asked, Awaited, Effect, Machine, Phase, line_of};
use crate::limits::ASKED_MAX;
use crate::options::Mode;
use crate::outgoing::Reach;
use crate::turn::json::{CallFields, Update};
use crate::wire::{self, Capabilities};

impl Machine {
    pub(super) fn agent_says(&mut self, at_ms: u64, message: &Message) {
        match message.kind() {
            Kind::Notification { method } if method == wire::SESSION_UPDATE => self.update(message),
            // What only a host may say is nothing in an agent's mouth.
            Kind::Notification { method } if method.starts_with(wire::OURS) => {}
            Kind::Notification { .. } => self.tell_daemon(line_of(message)),
            Kind::Request { id, method } => self.asked(id, self.asks_for(method, message), message),
            Kind::Response { id: Some(id) } => match wire::without_our_words(message) {
                Some(cleaned) => self.answer(at_ms, id, &cleaned),
                None => self.answer(at_ms, id, message),
            },
            // An answer to nothing: the agent could not read a line. It ends no turn.
            Kind::Response { id: None } => self.tell_daemon(line_of(message)),
        }
    }

    fn update(&mut self, message: &Message) {
        let update = Update::read(message.params().unwrap_or_default());
        self.hear_behind_opening(&update, message);
        self.hear_inexact(&update, message);
        if self.replaying && update.is_conversation() {
            return;
        }
        let whose = self.whose(message);
        if self.mode == Mode::Recorded && whose == Whose::Own {
            if let Some(options) = message.params().and_then(wire::options_update) {
                self.options_are(options);
            }
            if let Some(title) = message.params().and_then(wire::title_update) {
                self.agent_entitles(&title);
            }
            return self.record(update, message);
        }
        self.tell_daemon(line_of(message));
        if self.mode == Mode::Recorded && whose == Whose::Unclear {
            self.hear_unclear(&update, message);
        }
    }

    /// Whose words the agent says, as the daemon takes them too.
    pub(super) fn whose(&self, message: &Message) -> Whose {
        message.whose(self.agent_session.as_deref().unwrap_or_default(), &self.session)
    }

    /// Only what an agent says about its own session is recorded: subagents have sessions of their own. The daemon is told.
    fn record(&mut self, update: Update, message: &Message) {
        let is_in_turn = self.is_in_turn(&update, message);
        self.hear_echo(&update);
        match &mut self.running {
            Some(running) if is_in_turn => {
                let records = running.turn.as_mut().map(|turn| turn.observe(update));
                self.append(records.unwrap_or_default());
                self.tell_daemon(line_of(message));
            }
            _ => {
                // The daemon listens for it only for a moment, and a disk may take longer.
                self.tell_daemon(line_of(message));
                self.keep_late(&update);
            }
        }
    }

    /// The agent wants something of its client. Nobody but the daemon can say what, so without one it is told no at once.
    fn asked(&mut self, id: &RequestId, about: Asked, message: &Message) {
        if about == Asked::Permission && self.asked.len() < ASKED_MAX {
            self.record_permission(message);
        }
        // An agent on its way to its end is answered by nobody but us: the daemon's answer could reach the next one.
        if self.phase == Phase::Lingering || self.replacement.is_some() {
            return self.answer_for_nobody(id, about);
        }
        if self.asked.len() >= ASKED_MAX {
            return self.tell_agent(wire::not_served(id, "too many requests are open"));
        }
        self.asked.insert(id.clone(), about);
        self.tell_daemon(line_of(message));
    }

    fn asks_for(&self, method: &str, message: &Message) -> Asked {
        match method {
            wire::REQUEST_PERMISSION => Asked::Permission,
            wire::DRAIN if self.drains(message) => Asked::MidTurn,
            _ => Asked::Other,
        }
    }

    /// A question may be the first sign of a call. One that gives nothing to choose from, or comes before the prompt is read, is none to
    /// the daemon either.
    fn record_permission(&mut self, message: &Message) {
        let whose = self.whose(message);
        let is_unread = self.reach().is_some_and(|reach| reach != Reach::Whole);
        let turn = self.running.as_mut().and_then(|running| running.turn.as_mut());
        let (Some(turn), Some(call), false) = (turn, message.asked_call(), is_unread) else { return };
        match (whose, Speech::asked_about(call)) {
            (Whose::Own, Speech::ToolCallUpdate { .. }) => {
                let records = turn.permission_asked(&CallFields::read(call));
                self.append(records);
            }
            (Whose::Unclear, _) => turn.note_unclear(),
            _ => {}
        }
    }

    pub(super) fn answer_for_nobody(&mut self, id: &RequestId, about: Asked) {
        self.tell_agent(match about {
            Asked::Permission => wire::permission_cancelled(id),
            Asked::MidTurn | Asked::Other => wire::not_served(id, "the client is gone"),
        });
    }

    /// The daemon takes `7.0` for its own `7`, and so must the host: one of them alone would end a turn that goes on for the other.
    fn answer(&mut self, at_ms: u64, id: &RequestId, message: &Message) {
        let id = &id.as_numbered();
        let Some(outcome) = message.outcome() else { return };
        if self.is_greeting_with(id) {
            return self.greeted(&outcome);
        }
        if self.is_restoring_with(id) {
            return self.restore_answered(&outcome);
        }
        if self.is_rewinding_with(id) {
            return self.session_made(&outcome);
        }
        if self.is_setting_with(id) {
            return self.set_again(&outcome);
        }
        if self.unheard.take_if(|unheard| unheard == id).is_some() {
            return;
        }
        if self.running.as_ref().is_some_and(|running| running.request == *id) {
            if self.is_answered_unread() {
                tracing::warn!("the agent has answered a prompt that it cannot have read; that is no answer");
                return;
            }
            return self.settle(at_ms, &outcome, message);
        }
        match (self.awaited.remove(id), outcome) {
            (Some(Awaited::Initialize), outcome) => self.initialize_answered(&outcome),
            (Some(Awaited::NewSession { cwd }), Outcome::Result(result)) => {
                self.session_known(result, cwd);
                if let Some(process) = &self.process {
                    let line = wire::opened_by(id, result, process);
                    return self.tell_daemon(line);
                }
            }
            (Some(Awaited::Choice(choice)), Outcome::Result(answer)) => self.chosen(choice, answer),
            (Some(_), Outcome::Error(_)) => {}
            (None, _) if self.passed.take(id) => {}
            (None, _) => {
                tracing::warn!("the agent has answered what it was not asked; that is no answer");
                return;
            }
        }
        self.tell_daemon(line_of(message));
    }

    fn initialize_answered(&mut self, outcome: &Outcome<'_>) {
        self.initialized = true;
        if let Outcome::Result(result) = outcome {
            self.capabilities = Capabilities::read(result);
        }
    }

    fn session_known(&mut self, result: &str, cwd: String) {
        let Some(agent_session) = wire::session_id(result) else { return };
        self.model = wire::model(result);
        self.told = Told::nothing();
        self.remember(agent_session, cwd);
    }

    /// The agent's session from now on, noted for the next host where that one cannot know it otherwise.
    pub(super) fn remember(&mut self, agent_session: String, cwd: String) {
        self.agent_session = Some(agent_session.clone());
        self.cwd.clone_from(&cwd);
        self.is_forgotten = false;
        if self.mode == Mode::Recorded {
            self.effects.push(Effect::Remember { agent_session, cwd });
        }
    }
}
