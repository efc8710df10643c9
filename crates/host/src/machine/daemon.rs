//! What the daemon sends.

use acp::{Kind, Message, RequestId, RpcError, rpc_error};

use super::written::Witnessed;
use super::{Asked, Awaited, Effect, Machine, Running, line_of};
use crate::choice::Choice;
use crate::options::Mode;
use crate::turn::Turn;
use crate::wire::{self, code};

impl Machine {
    pub(super) fn daemon_says(&mut self, at_ms: u64, message: &Message) {
        match message.kind() {
            Kind::Request { method, .. } | Kind::Notification { method } if method == wire::CLOSE => {
                self.close(at_ms, &wire::closing(message));
            }
            Kind::Request { id, method } => self.request(at_ms, id, method, message),
            Kind::Notification { method } if method == wire::SESSION_CANCEL => self.cancel(at_ms, message),
            Kind::Notification { .. } => self.tell_agent(line_of(message)),
            Kind::Response { id } => {
                let orphaned = id.as_ref().is_some_and(|id| self.orphaned.remove(id));
                if let Some(id) = id.as_ref().filter(|_| !orphaned)
                    && self.asked.remove(id) == Some(Asked::MidTurn)
                {
                    self.record_drained(message);
                }
                if !orphaned {
                    self.tell_agent(line_of(message));
                }
            }
        }
    }

    fn request(&mut self, at_ms: u64, id: &RequestId, method: &str, message: &Message) {
        if let Some(error) = self.unavailable.take() {
            self.refuse(id, &error);
            return self.over();
        }
        if method == wire::REPLACE_AGENT {
            return self.begin_replacement(id, message);
        }
        if method == wire::RECORD {
            return self.record_about(id, message);
        }
        if self.replacement.is_some() {
            return self.refuse_as_busy(id);
        }
        if method == wire::REWIND {
            return self.begin_rewind(id, message);
        }
        if method == wire::RUN_COMMAND {
            return self.run_command(id, message);
        }
        let takes_the_session = matches!(method, wire::SESSION_PROMPT | wire::SESSION_NEW | wire::SESSION_LOAD);
        if takes_the_session && (self.running.is_some() || self.is_changing_session()) {
            return self.refuse_as_busy(id);
        }
        if self.refuses_choice(id, method, message) {
            return;
        }
        let awaited = match method {
            wire::SESSION_PROMPT => return self.prompt(at_ms, id, message),
            wire::SESSION_LOAD => return self.begin_restore(id, message),
            wire::INITIALIZE => return self.introduce(id, message),
            wire::SESSION_NEW => Some(Awaited::NewSession { cwd: wire::cwd(message.params().unwrap_or_default()) }),
            _ => Choice::read(method, message.params().unwrap_or("{}")).map(Awaited::Choice),
        };
        match awaited {
            Some(awaited) => drop(self.awaited.insert(id.clone(), awaited)),
            None => self.passed.note(id.clone()),
        }
        self.tell_agent(line_of(message));
    }

    /// Greets the agent in the daemon's words, which are kept for an agent that may have to take its place.
    fn introduce(&mut self, id: &RequestId, message: &Message) {
        self.awaited.insert(id.clone(), Awaited::Initialize);
        let params = message.params().unwrap_or("{}");
        let (line, params) = match &self.capability {
            Some(capability) => {
                let params = wire::introduction_trusted(params, capability);
                (acp::compose::request_raw(id, wire::INITIALIZE, &params), params)
            }
            None => (line_of(message), params.to_owned()),
        };
        self.introduction = Some(params);
        self.tell_agent(line);
    }

    /// The agent never has two unanswered prompts of one session: what it would make of them, and whose words would be
    /// whose, is different with every agent. Nor does the session change under a turn, which would lose its words.
    pub(super) fn refuse_as_busy(&mut self, id: &RequestId) {
        let details = "the agent has not answered what was asked before";
        self.refuse(id, &wire::refusal_unwritten(code::TURN_IN_PROGRESS, "a turn is in progress", details));
    }

    fn prompt(&mut self, at_ms: u64, id: &RequestId, message: &Message) {
        if self.refuses_laxer_mode(id) {
            return;
        }
        let witnessed = wire::witnessed(message).map(Witnessed::new);
        if self.mode == Mode::Native {
            let request = id.clone();
            self.running = Some(Running { request, undispatched: None, witnessed, cancelled_at: None, turn: None });
            self.replaying = false;
            return self.feed(line_of(message));
        }
        let prompt = match wire::prompt(message) {
            Some(prompt) if self.agent_session.is_some() && message.session_id() == self.agent_session => prompt,
            _ => {
                let details = "it must name the agent's session, a prompt id and its content";
                let mut error =
                    wire::refusal_unwritten(code::INVALID_PROMPT, "this prompt cannot be recorded", details);
                error.code = rpc_error::INVALID_PARAMS;
                return self.refuse(id, &error);
            }
        };
        let late = self.late.take();
        self.append(late.into_iter().collect());
        let after_ms = prompt.after_ms;
        let witnessed = witnessed.map(|witnessed| witnessed.asking(&prompt.raw_blocks));
        let (turn, record) = Turn::begin(prompt, at_ms, self.model.clone());
        let undispatched = Some(self.with_context(id, message));
        let request = id.clone();
        self.running = Some(Running { request, undispatched, witnessed, cancelled_at: None, turn: Some(turn) });
        self.begin_listening();
        self.effects.push(Effect::Admit { record, after_ms });
    }

    /// The prompt goes to the agent only when its user record is on disk. An agent that works on a prompt the
    /// transcript does not know would leave its words as evidence for somebody else's.
    pub(super) fn admitted(&mut self, result: Result<(), String>) {
        let Some(running) = &mut self.running else { return };
        let Some(line) = running.undispatched.take() else { return };
        match result {
            Ok(()) => {
                self.replaying = false;
                let prompt_id = running.turn.as_ref().map(|turn| turn.prompt_id().to_owned());
                self.told.note(&prompt_id.unwrap_or_default());
                self.remember_again();
                self.forget_heard();
                self.feed(line);
            }
            Err(cause) => {
                let request = running.request.clone();
                self.running = None;
                let message = "the transcript cannot be written, so the prompt was not handed to the agent";
                self.refuse(&request, &wire::refusal_unwritten(code::TRANSCRIPT_UNWRITABLE, message, &cause));
            }
        }
    }

    /// A cancel is for the running turn. One that comes behind the turn's end must not reach the agent, because some
    /// agents would apply it to the next.
    fn cancel(&mut self, at_ms: u64, message: &Message) {
        let Some(running) = &mut self.running else { return };
        running.cancelled_at.get_or_insert(at_ms);
        self.tell_agent(line_of(message));
    }

    pub(super) fn refuse(&mut self, id: &RequestId, error: &RpcError) {
        self.tell_daemon(acp::compose::error_response(id, error));
    }
}
