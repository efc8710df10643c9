//! Taking the end of a conversation back, on disk and in the agent (docs/design/2026-11-30-rewind.md).
//!
//! The protocol has no word for it, so the agent is given another session that knows nothing of what is taken back: one that it makes
//! out of the old one up to the prompt, where it says that it can, or an empty one, where nothing would be lost with that or the caller
//! takes it so. That comes first, because it changes nothing: only when the other session is there does the host forget, on disk, the old
//! one and append the record, in this order. Whoever is killed in between leaves a session whose agent begins anew, never one whose agent
//! remembers what the transcript has taken back.

use acp::{Message, Outcome, RequestId, compose};

use super::setting::{Kindred, Opened};
use super::{Effect, Machine};
use crate::limits::TOLD_MAX;
use crate::options::Mode;
use crate::wire::{self, Memory, code};

/// A rewind under way.
#[derive(Debug)]
pub(super) struct Rewinding {
    /// The daemon's request.
    request: RequestId,
    /// Its parameters.
    params: String,
    target: wire::RewindTarget,
    /// The id of the host's own request for another session, which the agent has.
    asked_as: RequestId,
    /// What that session will remember.
    memory: Memory,
    /// The session that the agent made, once it has.
    made: Option<Made>,
}

/// A session that the agent made in the place of the old one.
#[derive(Debug)]
struct Made {
    session: String,
    result: String,
}

/// The prompts that the agent's session was given, oldest first, as long as the host knows all of them: it was new with this host.
#[derive(Debug, Default)]
pub(super) struct Told(Option<Vec<String>>);

impl Told {
    /// A session that knows nothing yet.
    pub(super) fn nothing() -> Self {
        Self(Some(Vec::new()))
    }

    /// A session that knows what nobody here does.
    pub(super) fn unknown() -> Self {
        Self(None)
    }

    pub(super) fn note(&mut self, prompt_id: &str) {
        match &mut self.0 {
            Some(prompts) if prompts.len() < TOLD_MAX => prompts.push(prompt_id.to_owned()),
            _ => self.0 = None,
        }
    }

    /// Whether the session remembers nothing of before the prompt for certain.
    fn begins_with(&self, prompt_id: Option<&str>) -> bool {
        let Some(prompts) = &self.0 else { return false };
        prompt_id.and_then(|id| prompts.iter().position(|told| told == id)).is_none_or(|place| place == 0)
    }

    /// The same without the prompt and all behind it.
    fn cut(&mut self, prompt_id: Option<&str>) {
        if let Some(prompts) = &mut self.0 {
            let place = prompt_id.and_then(|id| prompts.iter().position(|told| told == id));
            prompts.truncate(place.unwrap_or(0));
        }
    }
}

impl Machine {
    pub(super) fn begin_rewind(&mut self, id: &RequestId, message: &Message) {
        if self.running.is_some() || self.is_changing_session() || self.is_being_set() {
            return self.refuse_as_busy(id);
        }
        let params = message.params().unwrap_or("{}").to_owned();
        let (Some(old), Some(target)) = (self.agent_session.clone(), wire::rewind_target(&params)) else {
            return self.refuse_rewind(id, "nothing is known of the agent's session, or of the place");
        };
        if self.mode == Mode::Native {
            return self.refuse_rewind(id, "the agent keeps its own transcript");
        }
        let is_empty_before = target.kept == 0 || self.told.begins_with(target.prompt_id.as_deref());
        let asked_as = self.own_id();
        let (memory, line) = match &target.prompt_id {
            Some(prompt_id) if self.capabilities.fork_before && !is_empty_before => {
                let params = wire::fork_before_params(&params, &old, prompt_id);
                (Memory::Cut, compose::request_raw(&asked_as, wire::FORK_BEFORE, &params))
            }
            _ if is_empty_before || target.fresh_will_do => (Memory::Fresh, self.new_session(&asked_as, &params)),
            _ => return self.refuse_rewind(id, "the agent cannot forget a part of what it remembers"),
        };
        self.rewinding = Some(Rewinding { request: id.clone(), params, target, asked_as, memory, made: None });
        self.tell_agent(line);
    }

    fn new_session(&self, asked_as: &RequestId, params: &str) -> bytes::Bytes {
        compose::request_raw(asked_as, wire::SESSION_NEW, &wire::fresh_params(params))
    }

    fn refuse_rewind(&mut self, id: &RequestId, details: &str) {
        let error = wire::refusal(code::REWIND_NOT_SUPPORTED, "the session is not rewound", details);
        self.refuse(id, &error);
    }

    pub(super) fn is_rewinding_with(&self, id: &RequestId) -> bool {
        self.rewinding.as_ref().is_some_and(|rewinding| rewinding.asked_as == *id)
    }

    /// The agent has made another session, or not. Until now nothing has changed.
    pub(super) fn session_made(&mut self, outcome: &Outcome<'_>) {
        let Some(mut rewinding) = self.rewinding.take() else { return };
        match outcome {
            Outcome::Result(result) => {
                match wire::session_id(result).filter(|id| Some(id) != self.agent_session.as_ref()) {
                    Some(session) => {
                        rewinding.made = Some(Made { session, result: (*result).to_owned() });
                        let rewind = rewinding.target.rewind.clone();
                        self.effects.push(Effect::Rewind { rewind, at_ms: rewinding.target.at_ms });
                        self.rewinding = Some(rewinding);
                    }
                    None => self.refuse_rewind(&rewinding.request, "the agent gave its new session no id of its own"),
                }
            }
            Outcome::Error(_) if rewinding.memory == Memory::Cut && rewinding.target.fresh_will_do => {
                let asked_as = self.own_id();
                let line = self.new_session(&asked_as, &rewinding.params);
                self.rewinding = Some(Rewinding { asked_as, memory: Memory::Fresh, ..rewinding });
                self.tell_agent(line);
            }
            Outcome::Error(error) => self.refuse_rewind(&rewinding.request, &wire::code_and_message(error).1),
        }
    }

    /// The old session is forgotten and the record written, or why not.
    pub(super) fn rewound(&mut self, result: Result<(), NotRewound>) {
        let Some(rewinding) = self.rewinding.take() else { return };
        let Rewinding { request, params, target, memory, made: Some(made), .. } = rewinding else { return };
        match result {
            Ok(()) => {
                match memory {
                    Memory::Cut => self.told.cut(target.prompt_id.as_deref()),
                    _ => self.told = Told::nothing(),
                }
                let old = self.agent_session.take();
                // What it said behind its last turn is about what is taken back.
                drop(self.late.take());
                // A session that is made out of another one may be told again, which is no word of a turn.
                self.replaying = true;
                self.remember(made.session.clone(), wire::cwd(&params));
                let Made { session, result } = made;
                self.open(Opened { request, session, result, memory, kind: Kindred::Rewound { old } });
            }
            Err(not_rewound) => {
                // The old session is noted again behind the next record: only then is it certain what the branch is.
                self.is_forgotten = true;
                self.close_session(&made.session);
                let (code, cause) = match not_rewound {
                    NotRewound::Grown => {
                        (code::TRANSCRIPT_CHANGED, "it has grown since the place was looked up".to_owned())
                    }
                    NotRewound::Unwritable(cause) => (code::TRANSCRIPT_UNWRITABLE, cause),
                };
                self.refuse(&request, &wire::refusal(code, "the session is not rewound", &cause));
            }
        }
    }

    /// The session that the agent has made and that is not the daemon's yet.
    pub(super) fn made_session(&self) -> Option<&str> {
        let made = self.rewinding.as_ref()?.made.as_ref()?;
        Some(&made.session)
    }

    /// Lets the agent drop a session that nobody will ask for again. How it answers is nothing to anybody.
    pub(super) fn close_session(&mut self, session: &str) {
        if self.capabilities.close {
            let id = self.own_id();
            self.tell_agent(compose::request_raw(&id, wire::SESSION_CLOSE, &wire::close_params(session)));
            self.unheard = Some(id);
        }
    }

    /// The agent's session is noted again where a rewind that failed had forgotten it.
    pub(super) fn remember_again(&mut self) {
        if std::mem::take(&mut self.is_forgotten)
            && let Some(agent_session) = self.agent_session.clone()
        {
            self.effects.push(Effect::Remember { agent_session, cwd: self.cwd.clone() });
        }
    }

    /// The daemon's request that a rewind under way belongs to.
    pub(super) fn take_rewind_request(&mut self) -> Option<RequestId> {
        self.rewinding.take().map(|rewinding| rewinding.request)
    }
}

/// Why a branch was not taken back on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotRewound {
    /// Something was written since the daemon looked at the transcript.
    Grown,
    /// The disk did not take it.
    Unwritable(String),
}
