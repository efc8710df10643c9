//! Words for a turn that runs (wire rules, section 13.6).
//!
//! The agent asks for them between two tool calls. What it has not taken when the turn is over becomes a prompt of its own, under the
//! id of the message: on record first, at the end of the queue, with one outcome like any other. That holds at the end of the session
//! too, where the outcome follows at once: whoever was told that the message was accepted finds out what became of it.

use acp::RequestId;

use super::{Phase, Session};
use crate::AdmitError;
use crate::effect::{Effect, Reply, Step, Tell};
use crate::event::News;
use crate::moment::Moment;
use crate::prompt::{Prompt, Receipt};
use crate::queue::Entry;
use crate::steering::Steered;

/// The agent asks for what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drain {
    pub(crate) agent_request: RequestId,
    /// The turn that it asks for, if it says so.
    pub(crate) prompt_id: Option<String>,
    /// Whether it asks for this session.
    pub(crate) is_ours: bool,
}

/// A message as the agent and the readers get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) id: String,
    pub(crate) text: String,
    /// Raw JSON array text.
    pub(crate) content: String,
}

impl Session {
    pub(super) fn steer(&mut self, prompt: Prompt, receipt: Receipt, step: &mut Step) {
        let steered = self.steerable(prompt, receipt, step.at);
        match steered {
            Err(error) => step.reply(Reply::NotAdmitted(error)),
            Ok(Err(steered)) => step.reply(Reply::Steered(steered)),
            Ok(Ok(entry)) => {
                self.active_at_ms = step.at.at_ms;
                step.reply(Reply::Steered(Steered::Accepted(entry.admission.receipt.clone())));
                let news = News::PendingAdded { text: entry.text.clone(), queued_at_ms: entry.queued.at_ms };
                step.publish(Some(entry.prompt_id.clone()), entry.originator.clone(), news);
                self.steering.push(entry);
            }
        }
    }

    /// The message that will wait; or the answer to one that will not.
    fn steerable(&self, prompt: Prompt, receipt: Receipt, at: Moment) -> Result<Result<Entry, Steered>, AdmitError> {
        self.open()?;
        let said = self.steering.admission(&receipt.prompt_id);
        if let Some(admission) = said.or_else(|| self.admission(&receipt.prompt_id)) {
            let first = admission.receipt.clone();
            let was_said = said.is_some() || self.steering.was_promoted(&receipt.prompt_id);
            return match was_said && admission.is_of_same_content(&prompt) {
                true => Ok(Err(Steered::Accepted(first))),
                false => Err(AdmitError::Known { first, same_content: false }),
            };
        }
        if !self.takes_words() {
            return Ok(Err(Steered::Idle));
        }
        let mut entry = self.entry(Prompt { witnessed: false, ..prompt }, receipt, at)?;
        entry.waited = true;
        Ok(Ok(entry))
    }

    /// Whether a turn runs that somebody waits for and that nobody wants to stop.
    fn takes_words(&self) -> bool {
        let runs = self.turn.as_ref().is_some_and(|turn| !turn.over && turn.cancelled.is_none());
        runs && !self.is_replacing() && matches!(self.phase, Phase::Open)
    }

    /// The agent asks. A turn that is to stop, or that is not the one asked for, is told nothing more.
    pub(super) fn drain(&mut self, drain: Drain, step: &mut Step) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        self.hear_sign(step);
        let Drain { agent_request, prompt_id, is_ours } = drain;
        let held = self.turn.as_ref().map(|turn| turn.entry.prompt_id.clone());
        let is_meant = is_ours && prompt_id.is_none_or(|named| held.as_deref() == Some(&*named));
        let drained = if is_meant && self.takes_words() { self.steering.drain() } else { Vec::new() };
        let said: Vec<Said> = drained.iter().map(said).collect();
        let queued = !self.queue.is_empty();
        step.tell(Tell::Drained { agent_request, said: said.clone(), queued });
        if said.is_empty() {
            return;
        }
        step.publish(held, None, News::MidTurnInjected { said });
        for entry in drained {
            let news = News::PendingCompleted { removed: true };
            step.publish(Some(entry.prompt_id.clone()), entry.originator.clone(), news);
        }
    }

    /// A client takes a message back.
    pub(super) fn remove_steering(&mut self, id: &str, step: &mut Step) -> bool {
        let Some(entry) = self.steering.remove(id) else { return false };
        let news = News::PendingCompleted { removed: true };
        step.publish(Some(entry.prompt_id.clone()), entry.originator.clone(), news);
        true
    }

    /// No turn takes them any more: each message becomes a prompt.
    pub(super) fn promote(&mut self, step: &mut Step) {
        for mut entry in self.steering.promote() {
            entry.queued = step.at;
            step.push(Effect::RecordAdmission { prompt_id: entry.prompt_id.clone(), at_ms: self.ledger_ms });
            self.queue.push(entry);
        }
    }
}

fn said(entry: &Entry) -> Said {
    Said { id: entry.prompt_id.to_string(), text: entry.text.text.clone(), content: entry.content.to_string() }
}
