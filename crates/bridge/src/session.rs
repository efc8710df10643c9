//! One session: what may happen to it, and what that brings about.
//!
//! [`Session`] is a value without clock, task or await. [`Session::step`] takes one [`Input`] and the time, and gives the list of
//! [`Effect`]s in the order in which they are to be performed. The promises of the daemon are properties of that list:
//!
//! - *Written ahead*: an admission is on record before its receipt, and before the agent sees the prompt.
//! - *Recorded before published*: an outcome is on record before anybody hears of it, and so is a client's wish to cancel.
//! - *Exactly one terminal* for each admitted prompt, and it never changes.
//! - *First in, first out*, and the agent never holds two unanswered prompts.
//! - A prompt that has a *witness* is dispatched when its witness says so, and while the session is open its outcome is out when the witness has it.
//! - After a close, a kill, a lost channel or a shutdown nothing is dispatched.

mod asking;
mod cancelling;
mod deadlines;
mod draining;
mod ending;
mod holding;
mod replacing;
pub(crate) mod steering;
mod straying;
#[cfg(test)]
mod tests;
mod views;
mod witnessing;

use std::sync::Arc;

use acp::Whose;

use crate::announcement::Announcement;
use crate::effect::{Effect, Reply, Step, Tell};
use crate::event::News;
use crate::incoming::Update;
use crate::input::Input;
use crate::latest::Latest;
use crate::limits::Timeouts;
use crate::moment::{Moment, Steady};
use crate::outcome::Answer;
use crate::overlay::Overlay;
use crate::permission::Permissions;
use crate::prompt::{Prompt, PromptId, Receipt};
use crate::queue::{Entry, Queue};
use crate::recording::Recording;
use crate::steering::Steering;
use crate::turn::Turn;
use crate::{AdmitError, Meanwhile, Mediation, NotOpen, Reason, TurnError};
use ending::Outcome;
use replacing::Replacing;
use straying::Straying;
use witnessing::Witnessing;

/// A live session.
#[derive(Debug)]
pub(crate) struct Session {
    phase: Phase,
    /// Prompts that wait.
    queue: Queue,
    /// What was said into the running turn.
    steering: Steering,
    /// The prompt that the agent holds, at most one.
    turn: Option<Turn>,
    /// What waits for a witness.
    witnessing: Witnessing,
    /// What the agent says outside of its turns.
    straying: Straying,
    permissions: Permissions,
    overlay: Overlay,
    latest: Latest,
    recording: Recording,
    turn_error: Option<TurnError>,
    /// When a turn last settled.
    updated_at_ms: Option<u64>,
    /// When anything last happened that speaks against calling the session idle.
    active_at_ms: u64,
    replacing: Replacing,
    /// Somebody changes what the agent remembers.
    held: Option<Meanwhile>,
    /// How often the conversation was taken back.
    rewinds: u64,
    /// A cancel that found nothing to cancel has been told; the next one is not, until a prompt runs again.
    idle_cancel_told: bool,
    /// Answers to prompts whose outcome was out already.
    late_answers: u64,
    /// The time for the ledger: it never goes back, and a dispatch moves it one millisecond ahead. So what the host dates
    /// later than the dispatch is later than every line before it, and no line after it is older. The evidence is compared
    /// by the millisecond, and a tie decides nothing.
    ledger_ms: u64,
    pending_prompts_max: usize,
    timeouts: Timeouts,
    mediation: Mediation,
}

/// Where a session is in its life. It only ever moves downward.
#[derive(Debug)]
enum Phase {
    /// It takes prompts and runs them.
    Open,
    /// It was closed; its running turn has until then to settle.
    Closing { settle_until: Steady, farewell: News },
    /// The daemon is stopping; the running turn goes on until the one time, and has until the other to settle.
    Draining { cancel_at: Steady, settle_until: Steady },
    /// The agent was told to end itself, or its host says that it is gone; its stream has until then to end. The farewell is what readers hear after that.
    Ending { until: Steady, farewell: Option<News> },
    /// Nothing can happen any more.
    Over,
}

impl Session {
    /// A session that goes live now.
    pub(crate) fn new(pending_prompts_max: usize, timeouts: Timeouts, mediation: Mediation, at: Moment) -> Self {
        Self {
            phase: Phase::Open,
            queue: Queue::default(),
            steering: Steering::default(),
            turn: None,
            witnessing: Witnessing::new(at.steady),
            straying: Straying::default(),
            permissions: Permissions::default(),
            overlay: Overlay::default(),
            latest: Latest::default(),
            recording: Recording::default(),
            turn_error: None,
            updated_at_ms: None,
            active_at_ms: at.at_ms,
            replacing: Replacing::No,
            held: None,
            rewinds: 0,
            idle_cancel_told: false,
            late_answers: 0,
            ledger_ms: at.at_ms,
            pending_prompts_max,
            timeouts,
            mediation,
        }
    }

    /// Lets something happen.
    pub(crate) fn step(&mut self, input: Input, at: Moment) -> Vec<Effect> {
        self.ledger_ms = self.ledger_ms.max(at.at_ms);
        let mut step = Step::new(at);
        match input {
            Input::Admit { prompt, receipt } => self.admit(prompt, receipt, &mut step),
            Input::Steer { prompt, receipt } => self.steer(prompt, receipt, &mut step),
            Input::Cancel { prompt_id, by } => self.cancel(prompt_id.as_deref(), by, &mut step),
            Input::Remove { prompt_id, by } => self.remove(&prompt_id, by, &mut step),
            Input::Vote { request_id, vote, voter } => self.vote(&request_id, &vote, &voter, &mut step),
            Input::ClientGone { client_id } => self.lose_client(&client_id, &mut step),
            Input::Announced { announcement, by } => self.announce(announcement, by, &mut step),
            Input::Hold { meanwhile } => self.hold(meanwhile, &mut step),
            Input::Release => self.release(&mut step),
            Input::Rewound { announcement, by } => self.rewound(announcement, by, &mut step),
            Input::Dispatch { prompt_id, go } => self.dispatch(&prompt_id, go, &mut step),
            Input::Confirm { prompt_id } => self.confirm(&prompt_id, &mut step),
            Input::PauseOver => self.end_pause(&mut step),
            Input::Close { reason, closed_by } => self.close(News::SessionClosed { reason, closed_by }, &mut step),
            Input::Kill => self.kill(&mut step),
            Input::Shutdown => self.shut_down(&mut step),
            Input::Recording(recording) => self.note_recording(recording, &mut step),
            Input::Updated(update) => self.update(update, &mut step),
            Input::Asked { ask, request_id, registered } => self.ask(ask, request_id, registered, &mut step),
            Input::Drain(drain) => self.drain(drain, &mut step),
            Input::AskedUnknown { agent_request, method } => self.refuse_unknown(agent_request, method, &mut step),
            Input::Written { prompt_id } => self.note_written(&prompt_id, &mut step),
            Input::Strayed => self.has_strayed(),
            Input::Unreadable => self.hear_unreadable(),
            Input::Settled { prompt_id, answer } => self.settle(&prompt_id, &answer, &mut step),
            Input::ChannelLost { exit } => self.lose_channel(exit, &mut step),
            Input::DeadlineExpired { prompt_id, deadline } => self.expire(&prompt_id, deadline, &mut step),
            Input::PermissionExpired { request_id } => self.expire_permission(&request_id, &mut step),
            Input::Replaced(succession) => self.replaced(succession, &mut step),
            Input::GraceOver => self.stop_waiting_for_obedience(&mut step),
            Input::ReplaceOver => self.stop_waiting_for_successor(&mut step),
            Input::ChanceOver => self.cancel_drained(&mut step),
            Input::SettleOver => self.stop_waiting_for_settle(&mut step),
            Input::EndOver => self.lose_channel(None, &mut step),
        }
        step.effects
    }

    fn admit(&mut self, prompt: Prompt, receipt: Receipt, step: &mut Step) {
        let alone = prompt.alone;
        match self.admissible(prompt, receipt, step.at) {
            Err(error) => step.reply(Reply::NotAdmitted(error)),
            Ok(mut entry) => {
                // One that is alone waits for nobody but its own caller, who holds the session.
                entry.waited = !alone && (self.is_busy() || self.is_kept_waiting());
                self.active_at_ms = step.at.at_ms;
                step.push(Effect::RecordAdmission { prompt_id: entry.prompt_id.clone(), at_ms: self.ledger_ms });
                step.reply(Reply::Admitted(entry.admission.receipt.clone()));
                if entry.waited {
                    let news = News::PendingAdded { text: entry.text.clone(), queued_at_ms: entry.queued.at_ms };
                    step.publish(Some(entry.prompt_id.clone()), entry.originator.clone(), news);
                }
                self.queue.push(entry);
                self.dispatch_next(step);
            }
        }
    }

    fn admissible(&self, prompt: Prompt, receipt: Receipt, at: Moment) -> Result<Entry, AdmitError> {
        self.open()?;
        if let Some(admission) = self.admission(&receipt.prompt_id) {
            let same_content = admission.is_of_same_content(&prompt);
            return Err(AdmitError::Known { first: admission.receipt.clone(), same_content });
        }
        if let Some(admission) = self.steering.admission(&receipt.prompt_id) {
            return Err(AdmitError::Known { first: admission.receipt.clone(), same_content: false });
        }
        let is_shut = self.held == Some(Meanwhile::Refuse);
        if is_shut || prompt.alone && (self.is_busy() || self.is_replacing()) {
            return Err(AdmitError::Busy);
        }
        self.entry(prompt, receipt, at)
    }

    /// What takes the next place among those that wait, a message into a turn as well as a prompt.
    fn entry(&self, prompt: Prompt, receipt: Receipt, at: Moment) -> Result<Entry, AdmitError> {
        let pending = self.unfinished() + self.steering.len();
        if pending >= self.pending_prompts_max {
            return Err(AdmitError::QueueFull { limit: self.pending_prompts_max, pending });
        }
        Entry::new(prompt, receipt, at).ok_or(AdmitError::NotContent)
    }

    /// Whether nothing may be handed to the agent for now, although it holds nothing.
    fn is_kept_waiting(&self) -> bool {
        self.is_replacing() || self.held.is_some()
    }

    /// Hands the head of the queue to the agent, if the agent holds nothing.
    fn dispatch_next(&mut self, step: &mut Step) {
        if self.turn.is_none() && matches!(self.phase, Phase::Open) {
            self.promote(step);
        }
        let is_taken = self.turn.is_some() || self.settling().is_some();
        if !matches!(self.phase, Phase::Open) || is_taken || self.is_kept_waiting() {
            return;
        }
        match self.queue.head() {
            Some(head) if head.witnessed => self.ask_witness(head.prompt_id.clone(), step),
            Some(_) | None => {
                let next = self.queue.pop();
                next.into_iter().for_each(|entry| self.hand_on(entry, step));
            }
        }
    }

    /// Hands a prompt to the agent, which holds nothing.
    fn hand_on(&mut self, entry: Entry, step: &mut Step) {
        let (prompt_id, originator) = (entry.prompt_id.clone(), entry.originator.clone());
        if entry.waited {
            let news = News::PendingStarted { text: entry.text.clone() };
            step.publish(Some(prompt_id.clone()), originator.clone(), news);
        }
        // The text of a prompt that repeats a failed one is in the history already.
        if !(entry.retry && self.turn_error.is_some()) {
            for block in entry.blocks() {
                step.publish(Some(prompt_id.clone()), originator.clone(), News::Echo { block });
            }
        }
        let (content, extra) = (entry.content.clone(), entry.extra.clone());
        let (after_ms, witnessed) = (self.ledger_ms, entry.witnessed);
        step.tell(Tell::Prompt { prompt_id, content, extra, originator, after_ms, witnessed });
        self.ledger_ms += 1;
        self.idle_cancel_told = false;
        self.active_at_ms = step.at.at_ms;
        let mut turn = Turn::new(entry, step.at);
        turn.strayed = self.straying.begin_turn();
        self.turn = Some(turn);
    }

    fn settle(&mut self, prompt_id: &PromptId, answer: &Answer, step: &mut Step) {
        let is_held = |turn: &mut Turn| turn.entry.prompt_id == *prompt_id;
        if self.is_draining() && answer.is_last() && self.turn.as_mut().is_some_and(is_held) {
            return self.die_with_daemon(step);
        }
        let Some(mut turn) = self.turn.take_if(is_held) else {
            self.late_answers += 1;
            return;
        };
        self.forget_kept();
        self.updated_at_ms = Some(step.at.at_ms);
        self.active_at_ms = step.at.at_ms;
        self.refuse_permissions(|open| open.about.prompt_id.as_ref() == Some(prompt_id), Reason::TurnEnded, step);
        self.note_settled(&mut turn, answer, step);
        let outcome = Outcome::of_answer(&turn, answer);
        if turn.over {
            self.late_answers += 1;
            if !self.is_over() {
                witnessing::tell_late(&turn, &outcome, step);
            }
        } else {
            let may_wait = matches!(self.phase, Phase::Open | Phase::Draining { .. }) && !answer.is_last();
            self.end_answered(turn, outcome, may_wait, step);
        }
        match self.phase {
            Phase::Closing { .. } => self.tell_to_end(step),
            Phase::Draining { .. } => self.leave_when_drained(step),
            Phase::Open if answer.is_last() => self.await_loss(step),
            Phase::Open | Phase::Ending { .. } | Phase::Over => self.dispatch_next(step),
        }
    }

    fn update(&mut self, update: Update, step: &mut Step) {
        if !self.has_readers() {
            return;
        }
        self.latest.note(&update);
        self.hear_stray(&update);
        let (mut prompt_id, mut originator) = (None, None);
        if let Some(turn) = &mut self.turn {
            witnessing::hear_sign(turn, step);
            if !turn.over {
                if turn.may_be_answered() {
                    turn.hear(&update.speech);
                    turn.strayed |= update.whose == Whose::Unclear && update.speech.is_words();
                }
                witnessing::hear_user(turn, &update.speech, step);
            }
            (prompt_id, originator) = (Some(turn.entry.prompt_id.clone()), turn.entry.originator.clone());
        }
        step.publish(prompt_id, originator, News::Update { raw: update.raw });
    }

    /// Tells the readers of a change. It is no part of a turn, whatever runs meanwhile.
    fn announce(&mut self, announcement: Announcement, by: Option<Arc<str>>, step: &mut Step) {
        if let Some(title) = announcement.title() {
            self.latest.name(title);
        }
        if self.has_readers() {
            step.publish(None, by, News::Announced(announcement));
        }
    }

    /// Tells the readers how the recording goes, which is no part of a turn either.
    fn note_recording(&mut self, recording: Recording, step: &mut Step) {
        self.recording = recording;
        if self.has_readers() {
            step.publish(None, None, News::Recording(recording));
        }
    }

    /// The streams have not ended yet.
    fn has_readers(&self) -> bool {
        !matches!(self.phase, Phase::Ending { farewell: None, .. } | Phase::Over)
    }

    fn open(&self) -> Result<(), NotOpen> {
        match self.phase {
            Phase::Open => Ok(()),
            Phase::Closing { .. } | Phase::Draining { .. } | Phase::Ending { .. } => Err(NotOpen::Closing),
            Phase::Over => Err(NotOpen::Gone),
        }
    }
}
