//! What was said into a running turn and waits for its agent to ask (wire rules, section 13.6).
//!
//! A message leaves by one of three doors and by none twice: the agent takes it into its turn, the turn ends and it becomes a prompt,
//! or a client takes it back.

use std::collections::VecDeque;

use crate::limits::STEERING_IDS_MAX;
use crate::prompt::{PromptId, Receipt};
use crate::queue::{Admitted, Entry};

/// The messages of one session.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    waiting: VecDeque<Entry>,
    /// Those that were taken, by the agent or back; oldest first.
    settled: VecDeque<(PromptId, Admitted)>,
    /// Those that became prompts; oldest first.
    promoted: VecDeque<PromptId>,
}

/// What came of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steered {
    /// It waits for the agent. The receipt is the one of the prompt that it may become.
    Accepted(Receipt),
    /// No turn runs that could take it.
    Idle,
}

/// The messages of a session, as a client sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteeringView {
    /// Id and text of those that wait, oldest first.
    pub waiting: Vec<(String, String)>,
    /// Those that the agent or a client took, oldest first; the newest of them.
    pub settled: Vec<String>,
    /// Those that became prompts, oldest first; the newest of them.
    pub promoted: Vec<String>,
}

impl Steering {
    pub(crate) fn push(&mut self, entry: Entry) {
        self.waiting.push_back(entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.iter()
    }

    /// The admission of a message that waits or was taken lately.
    pub(crate) fn admission(&self, id: &str) -> Option<&Admitted> {
        let waiting = self.waiting.iter().find(|entry| *entry.prompt_id == *id).map(|entry| &entry.admission);
        waiting.or_else(|| self.settled.iter().find(|(settled, _)| **settled == *id).map(|(_, admission)| admission))
    }

    /// Whether a message of that id became a prompt lately.
    pub(crate) fn was_promoted(&self, id: &str) -> bool {
        self.promoted.iter().any(|promoted| **promoted == *id)
    }

    /// The agent takes all that waits.
    pub(crate) fn drain(&mut self) -> Vec<Entry> {
        let drained: Vec<_> = self.waiting.drain(..).collect();
        drained.iter().for_each(|entry| self.settle(entry));
        drained
    }

    /// A client takes one back.
    pub(crate) fn remove(&mut self, id: &str) -> Option<Entry> {
        let place = self.waiting.iter().position(|entry| *entry.prompt_id == *id)?;
        let entry = self.waiting.remove(place)?;
        self.settle(&entry);
        Some(entry)
    }

    /// All that waits becomes prompts.
    pub(crate) fn promote(&mut self) -> Vec<Entry> {
        let promoted: Vec<_> = self.waiting.drain(..).collect();
        self.promoted.extend(promoted.iter().map(|entry| entry.prompt_id.clone()));
        while self.promoted.len() > STEERING_IDS_MAX {
            self.promoted.pop_front();
        }
        promoted
    }

    pub(crate) fn view(&self) -> SteeringView {
        SteeringView {
            waiting: self.waiting.iter().map(|entry| (entry.prompt_id.to_string(), entry.text.text.clone())).collect(),
            settled: self.settled.iter().map(|(id, _)| id.to_string()).collect(),
            promoted: self.promoted.iter().map(ToString::to_string).collect(),
        }
    }

    fn settle(&mut self, entry: &Entry) {
        self.settled.push_back((entry.prompt_id.clone(), entry.admission.clone()));
        if self.settled.len() > STEERING_IDS_MAX {
            self.settled.pop_front();
        }
    }
}
