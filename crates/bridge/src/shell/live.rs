//! The lock around a session, and what is done under it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use acp::Pending;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::ask::Answered;
use super::bridge::Registry;
use super::outbox::Outbox;
use super::settings::Asker;
use crate::background::Background;
use crate::bus::Bus;
use crate::clients::Clients;
use crate::compaction::Compaction;
use crate::effect::{Effect, Reply, Tell};
use crate::event::{Event, Exit};
use crate::input::Input;
use crate::limits::Timeouts;
use crate::prompt::PromptId;
use crate::settings::Settings;
use crate::witness::Process;
use crate::{Admission, Clock, Ending, PromptLedger, Status, Wish, Witness, outgoing, session, wire};

/// Everything that one live session is.
pub(super) struct Live {
    pub(super) id: String,
    pub(super) workspace_cwd: String,
    pub(super) created_at_ms: u64,
    /// The life of the event stream.
    pub(super) epoch: String,
    pub(super) clock: Clock,
    pub(super) timeouts: Timeouts,
    pub(super) ledger: Arc<dyn PromptLedger>,
    /// Who keeps a record of witnessed prompts.
    pub(super) witness: Option<Arc<dyn Witness>>,
    pub(super) registry: Weak<Registry>,
    /// Held for one step at a time and never across an await.
    pub(super) state: Mutex<State>,
    pub(super) outbox: Outbox,
    /// Something may be due earlier than the driver thinks.
    pub(super) alarm: Notify,
    /// How many prompts have ended: whoever waits for one looks again when it changes.
    pub(super) endings: watch::Sender<u64>,
    /// The session is over and its driver gone.
    pub(super) over: watch::Sender<bool>,
}

/// What the lock guards.
pub(super) struct State {
    pub(super) machine: session::Session,
    pub(super) bus: Bus,
    /// What clients that attach late are shown.
    pub(super) compaction: Compaction,
    pub(super) agent: AgentSession,
    /// What the agent or its host has not answered.
    pub(super) asked: Pending<Asked>,
    /// Who listens to the texts that the agent makes, by the askers' names for them.
    pub(super) generations: HashMap<String, mpsc::Sender<String>>,
    pub(super) clients: Clients,
    /// What the agent said last of its work beside prompts.
    pub(super) background: Option<Background>,
    /// What the host said about the agent's end.
    pub(super) exit: Option<Exit>,
    pub(super) oddities: Oddities,
}

/// The agent's side of the session. Another one takes its place with the agent's.
pub(super) struct AgentSession {
    /// Its name there.
    pub(super) id: String,
    /// What it answered to the opening request, and is set to since.
    pub(super) settings: Settings,
    /// Its own session file is the transcript.
    pub(super) writes_transcript: bool,
    /// Its process, if the host says.
    pub(super) process: Option<Process>,
}

/// What is asked of the agent or its host, and answered later.
pub(super) enum Asked {
    /// A prompt.
    Prompt(PromptId),
    /// Another agent in the place of this one.
    Replacement,
    /// What is no prompt, and who waits for the answer.
    Inquiry(oneshot::Sender<Answered>),
    /// A text beside the conversation, its asker's name for it, and who waits for its end.
    Generation { request_id: String, answer: oneshot::Sender<Answered> },
    /// A change of the session, whose answer is news for the readers too.
    Change(Asker),
}

impl Asked {
    /// An inquiry that somebody waits for.
    fn is_awaited(&self) -> bool {
        match self {
            Self::Inquiry(answer) => !answer.is_closed(),
            Self::Change(asker) => asker.is_awaited(),
            Self::Generation { answer, .. } => !answer.is_closed(),
            Self::Prompt(_) | Self::Replacement => false,
        }
    }
}

/// What the agent sent and nobody could use. A few are normal; many are worth a look.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Oddities {
    pub(super) skipped: acp::Skipped,
    /// What could not be read and may have been a message.
    pub(super) unreadable: u64,
    pub(super) unknown_notifications: u64,
    pub(super) stray_answers: u64,
    pub(super) foreign_updates: u64,
}

impl Live {
    /// Lets something happen now.
    pub(super) fn step(&self, input: impl FnOnce(&State) -> Input) -> Option<Reply> {
        self.step_at(self.clock.now_ms(), input)
    }

    /// Lets something happen: the machine decides, and its effects are performed in their order under the one lock.
    pub(super) fn step_at(&self, at_ms: u64, input: impl FnOnce(&State) -> Input) -> Option<Reply> {
        let mut state = self.state.lock();
        let input = input(&state);
        self.step_locked(&mut state, input, at_ms)
    }

    pub(super) fn step_locked(&self, state: &mut State, input: Input, at_ms: u64) -> Option<Reply> {
        let due = state.machine.due().map(|(due, _)| due);
        let was_busy = state.machine.is_busy();
        let (mut reply, mut endings) = (None, 0);
        for effect in state.machine.step(input, self.clock.moment(at_ms)) {
            match effect {
                Effect::RecordAdmission { prompt_id, at_ms } => {
                    self.ledger.admitted(&Admission { session_id: &self.id, prompt_id: &prompt_id, at_ms });
                }
                Effect::RecordTerminal { prompt_id, terminal, at_ms } => {
                    let (session_id, prompt_id) = (self.id.as_str(), &*prompt_id);
                    self.ledger.ended(&Ending { session_id, prompt_id, terminal: &terminal, at_ms });
                    endings += 1;
                }
                Effect::RecordWish { prompt_id, at_ms } => {
                    self.ledger.cancel_wished(&Wish { session_id: &self.id, prompt_id: &prompt_id, at_ms });
                }
                Effect::Reply(answer) => reply = Some(answer),
                Effect::Publish(event) => self.publish(state, &event, at_ms),
                Effect::Tell(tell) => self.tell(state, &tell),
                Effect::Witness { prompt_id, word } => self.tell_witness(state, &prompt_id, &word),
                Effect::EndStreams => state.bus.end(),
                Effect::Forget => {
                    self.forget();
                    // Nobody may wait on for a session that is gone, not even where a fault kept an outcome from being recorded.
                    endings += 1;
                }
            }
        }
        if endings > 0 || was_busy && !state.machine.is_busy() {
            // Whoever wakes takes the lock before it looks, and finds the whole step done.
            self.endings.send_modify(|count| *count += endings.max(1));
        }
        if state.machine.due().map(|(due, _)| due) != due || state.machine.is_over() {
            self.alarm.notify_one();
        }
        reply
    }

    fn publish(&self, state: &mut State, event: &Event, at_ms: u64) {
        let published = state.bus.publish(wire::kind(&event.news), at_ms, |id| wire::event(event, &self.id, id, at_ms));
        if let Some((id, json)) = published {
            state.compaction.note(&self.id, event, id, at_ms, &json);
        }
    }

    fn tell(&self, state: &mut State, tell: &Tell) {
        let message = match tell {
            Tell::Prompt { prompt_id, content, extra, originator, after_ms, witnessed } => {
                let number = state.asked.insert(Asked::Prompt(prompt_id.clone()));
                let dispatch = outgoing::Dispatch {
                    session_id: &self.id,
                    agent_session_id: &state.agent.id,
                    prompt_id,
                    content,
                    extra: extra.as_deref(),
                    originator: originator.as_deref(),
                    after_ms: *after_ms,
                    witnessed: *witnessed,
                };
                outgoing::prompt(number, &dispatch)
            }
            Tell::Cancel => outgoing::cancel(&state.agent.id),
            Tell::Replace { prompt_id } => {
                let number = state.asked.insert(Asked::Replacement);
                outgoing::replace_agent(number, &self.id, &self.workspace_cwd, prompt_id)
            }
            Tell::Ruling(ruling) => outgoing::ruling(ruling),
            Tell::Drained { agent_request, said, queued } => outgoing::drained(agent_request, said, *queued),
            Tell::Unsupported { agent_request, method } => outgoing::unsupported(agent_request, method),
            Tell::Close(origin) => outgoing::close(*origin),
        };
        self.outbox.push(message);
    }

    fn forget(&self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.forget(&self.id);
        }
    }

    /// Resolves when no prompt of this id is unfinished.
    pub(super) async fn settled(&self, prompt_id: &str) {
        let mut endings = self.endings.subscribe();
        while self.state.lock().machine.is_unfinished(prompt_id) {
            // The sender lives in `self`, so waiting cannot fail.
            let _ = endings.changed().await;
        }
    }

    /// Resolves when no prompt runs or waits.
    pub(super) async fn idle(&self) {
        let mut endings = self.endings.subscribe();
        while self.state.lock().machine.is_busy() {
            // The sender lives in `self`, so waiting cannot fail.
            let _ = endings.changed().await;
        }
    }

    /// The session at a glance.
    pub(super) fn status(&self, state: &mut State) -> Status {
        let (clients, subscribers) = (state.clients.len(), state.bus.subscriber_count());
        Status {
            inquiry_count: state.asked.iter().filter(|(_, asked)| asked.is_awaited()).count(),
            background: state.background,
            ..state.machine.status(self.created_at_ms, clients, subscribers)
        }
    }

    /// Notes that somebody was there until now.
    pub(super) fn note_activity(&self) {
        self.state.lock().machine.note_activity(self.clock.now_ms());
    }

    /// Resolves when the session is over and its task has ended.
    pub(super) async fn ended(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}
