//! Setting an agent again to what its predecessor was set to, before anybody goes on (docs/design/2026-11-30-settings.md).
//!
//! An agent that takes another's place, and a session that is made anew or brought back, begins in its own mode, which may allow more
//! than a client has set. So what was set through the host is set again before the daemon hears of the session. Where the agent
//! refuses the mode, the daemon is told what the session is set to, and no prompt is handed on until a client has set a mode.

use std::collections::VecDeque;

use acp::{Message, Outcome, RequestId, compose};

use super::{Awaited, Effect, Machine};
use crate::choice::{self, Choice};
use crate::limits::CHOICE_BYTES_MAX;
use crate::options::Mode;
use crate::wire::{self, Memory, code};

/// A session of the agent that the daemon is about to be told of.
#[derive(Debug)]
pub(super) struct Opened {
    /// The daemon's request.
    pub(super) request: RequestId,
    pub(super) session: String,
    /// What the agent answered when it gave the session, with what was set since.
    pub(super) result: String,
    pub(super) memory: Memory,
    pub(super) kind: Kindred,
}

/// What the session is to the one before.
#[derive(Debug)]
pub(super) enum Kindred {
    /// It goes on with it, in this folder.
    Restored { cwd: String },
    /// It stands in its place, and is noted already; the agent may drop the old one.
    Rewound { old: Option<String> },
}

/// A session that is being set.
#[derive(Debug)]
pub(super) struct Setting {
    opened: Opened,
    /// The id of the host's own request that the agent has.
    asked_as: RequestId,
    /// What it sets.
    choice: Choice,
    rest: VecDeque<Choice>,
}

impl Machine {
    /// The same with what an earlier host's agent was set to.
    pub(crate) fn choosing(self, choices: Vec<Choice>) -> Self {
        Self { choices, ..self }
    }

    /// Whether the agent's session is on its way to be another one.
    pub(super) fn is_changing_session(&self) -> bool {
        self.restore.is_some() || self.rewinding.is_some() || self.setting.is_some()
    }

    /// Whether the agent has not answered everything that it was to be set to.
    pub(super) fn is_being_set(&self) -> bool {
        self.awaited.values().any(|awaited| matches!(awaited, Awaited::Choice(_)))
    }

    /// Sets the session to what its predecessor was set to, and then tells the daemon of it.
    pub(super) fn open(&mut self, opened: Opened) {
        self.agent_session = Some(opened.session.clone());
        self.missing_guards.clear();
        let choices = self.choices.clone().into();
        self.set_next(opened, choices);
    }

    fn set_next(&mut self, opened: Opened, mut rest: VecDeque<Choice>) {
        let Some(choice) = rest.pop_front() else { return self.opened(opened) };
        let asked_as = self.own_id();
        self.tell_agent(compose::request_raw(&asked_as, choice.method(), &choice.params(&opened.session)));
        self.setting = Some(Setting { opened, asked_as, choice, rest });
    }

    fn opened(&mut self, opened: Opened) {
        let Opened { request, session, result, memory, kind } = opened;
        let line = wire::restored(&request, &result, &session, memory);
        match kind {
            Kindred::Restored { cwd } => {
                self.model = wire::model(&result);
                self.tell_daemon(match &self.process {
                    Some(process) => wire::restored(&request, &wire::with_process(&result, process), &session, memory),
                    None => line,
                });
                self.tell_strayed();
                self.remember(session, cwd);
            }
            Kindred::Rewound { old } => {
                self.model = wire::model(&result).or(self.model.take());
                self.tell_daemon(line);
                if let Some(old) = old {
                    self.close_session(&old);
                }
            }
        }
    }

    pub(super) fn is_setting_with(&self, id: &RequestId) -> bool {
        self.setting.as_ref().is_some_and(|setting| setting.asked_as == *id)
    }

    /// The session is set to what it was to be set to, or not.
    pub(super) fn set_again(&mut self, outcome: &Outcome<'_>) {
        let Some(Setting { mut opened, choice, rest, .. }) = self.setting.take() else { return };
        match outcome {
            Outcome::Result(answer) => opened.result = choice.put_into(&opened.result, answer),
            // A model allows nothing: the daemon tells its readers which one it is.
            Outcome::Error(error) if choice.is_guard() => {
                tracing::warn!(%error, mode = %choice.value, "the agent cannot be set to the mode of before");
                self.missing_guards.push(choice);
            }
            Outcome::Error(_) => {}
        }
        self.set_next(opened, rest);
    }

    /// A client's choice is made. It is noted before the daemon hears so, for the next host.
    pub(super) fn chosen(&mut self, choice: Choice, answer: &str) {
        let choice = choice.told(answer);
        match choice.method() {
            wire::SET_MODEL => {
                if let Some(model) = choice.value.as_str() {
                    self.model_is(model.to_owned());
                }
            }
            wire::SET_OPTION => self.options_are(answer),
            _ => {}
        }
        self.missing_guards.retain(|missing| !choice.is_about_the_same(missing));
        let before = self.choices.clone();
        choice::note(&mut self.choices, choice);
        if self.mode == Mode::Recorded && self.choices != before {
            self.effects.push(Effect::Keep(self.choices.clone()));
        }
    }

    /// A request of the daemon that sets the agent; whether it was one that cannot be handed on now.
    pub(super) fn refuses_choice(&mut self, id: &RequestId, method: &str, message: &Message) -> bool {
        if !Choice::is_choice(method) {
            return false;
        }
        if self.is_changing_session() {
            // It would be made in a session that nobody has any more.
            self.refuse_as_busy(id);
            return true;
        }
        if message.params().is_some_and(|params| params.len() > CHOICE_BYTES_MAX) {
            let details = "it is too long to be kept";
            self.refuse(id, &wire::refusal(code::NOT_RECORDED, "this cannot be set", details));
            return true;
        }
        false
    }

    /// A prompt is not handed on in a mode that may allow more than the one that was set.
    pub(super) fn refuses_laxer_mode(&mut self, id: &RequestId) -> bool {
        let Some(choice) = self.missing_guards.first() else { return false };
        let details = format!("the agent's session could not be set to {} again; set a mode first", choice.value);
        let message = "the agent is not in the approval mode that was set";
        self.refuse(id, &wire::refusal_unwritten(code::APPROVAL_MODE_NOT_RESTORED, message, &details));
        true
    }

    /// The daemon's request that a session which is being set belongs to.
    pub(super) fn take_setting_request(&mut self) -> Option<RequestId> {
        self.setting.take().map(|setting| setting.opened.request)
    }
}
