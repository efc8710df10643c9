//! The bounded memory of ended prompts, which the poll reads before the transcript.

use std::collections::VecDeque;

use crate::limits::OVERLAY_PROMPTS_MAX;
use crate::queue::Admitted;
use crate::{Clipped, Expiry, InputWritten, LivePrompt, Terminal};

/// An ended prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The prompt.
    pub prompt_id: String,
    /// Its text, bounded.
    pub prompt_text: Option<Clipped>,
    /// The final answer: what the agent said after its last tool call. Absent when it said nothing.
    pub result_text: Option<Clipped>,
    /// All that the agent had said in a turn that was cut.
    pub partial_text: Option<Clipped>,
    /// Admission, epoch milliseconds; a persisted outcome does not know it.
    pub queued_at_ms: Option<u64>,
    /// Dispatch, epoch milliseconds; absent when it never ran.
    pub started_at_ms: Option<u64>,
    /// The end, epoch milliseconds.
    pub ended_at_ms: u64,
    /// The client that submitted it.
    pub originator: Option<String>,
    /// The outcome.
    pub terminal: Terminal,
    /// Whether the agent had its input; absent when nothing is known.
    pub input_written: Option<InputWritten>,
    /// The deadline that ended it.
    pub expiry: Option<Expiry>,
}

/// What the bridge knows of one prompt, or of the newest one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnView {
    /// The unfinished prompt, unless its outcome has been published.
    pub live: Option<LivePrompt>,
    /// The ended prompt.
    pub overlay: Option<Ended>,
}

impl TurnView {
    /// The same, looked at at that time.
    pub(crate) fn seen_at(self, now_ms: u64) -> Self {
        Self { live: self.live.map(|live| live.seen_at(now_ms)), ..self }
    }
}

/// The last [`OVERLAY_PROMPTS_MAX`] ended prompts, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    kept: VecDeque<Kept>,
    /// Admissions of prompts whose outcomes were taken back with their turns, the last [`OVERLAY_PROMPTS_MAX`]: their ids stay taken.
    taken_back: VecDeque<Admitted>,
}

/// An ended prompt, and its admission if that was in this life.
#[derive(Debug)]
struct Kept {
    ended: Ended,
    admission: Option<Admitted>,
}

impl Overlay {
    /// Remembers the outcome of a prompt of this life; what an earlier life said of the same id gives way.
    pub(crate) fn insert(&mut self, ended: Ended, admission: Option<Admitted>) {
        self.kept.retain(|kept| kept.ended.prompt_id != ended.prompt_id);
        if self.kept.len() == OVERLAY_PROMPTS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Kept { ended, admission });
    }

    /// Takes an outcome that a poll put together in place of what was known.
    pub(crate) fn absorb(&mut self, ended: Ended) {
        match self.kept.iter_mut().find(|kept| kept.ended.prompt_id == ended.prompt_id) {
            Some(known) => known.ended = ended,
            None => self.insert(ended, None),
        }
    }

    pub(crate) fn get(&self, prompt_id: &str) -> Option<&Ended> {
        self.find(prompt_id).map(|kept| &kept.ended)
    }

    /// The admission of a prompt that has ended.
    pub(crate) fn admission(&self, prompt_id: &str) -> Option<&Admitted> {
        let taken_back = || self.taken_back.iter().find(|admission| admission.receipt.prompt_id == prompt_id);
        self.find(prompt_id).and_then(|kept| kept.admission.as_ref()).or_else(taken_back)
    }

    /// Forgets every outcome; of the prompts of this life it stays known that they were.
    pub(crate) fn take_back(&mut self) {
        self.taken_back.extend(self.kept.drain(..).filter_map(|kept| kept.admission));
        let surplus = self.taken_back.len().saturating_sub(OVERLAY_PROMPTS_MAX);
        self.taken_back.drain(..surplus);
    }

    /// The one that ended last; of two in the same millisecond the later entry.
    pub(crate) fn newest(&self) -> Option<&Ended> {
        self.kept.iter().map(|kept| &kept.ended).max_by_key(|ended| ended.ended_at_ms)
    }

    fn find(&self, prompt_id: &str) -> Option<&Kept> {
        self.kept.iter().find(|kept| kept.ended.prompt_id == prompt_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(prompt_id: &str, ended_at_ms: u64) -> Ended {
        Ended {
            prompt_id: prompt_id.into(),
            prompt_text: None,
            result_text: None,
            partial_text: None,
            queued_at_ms: None,
            started_at_ms: None,
            ended_at_ms,
            originator: None,
            terminal: Terminal::Completed { stop_reason: "end_turn".into() },
            input_written: None,
            expiry: None,
        }
    }

    #[test]
    fn the_oldest_of_sixty_five_is_forgotten() {
        let mut overlay = Overlay::default();
        for number in 0..=OVERLAY_PROMPTS_MAX {
            overlay.insert(ended(&number.to_string(), 0), None);
        }
        assert!(overlay.get("0").is_none());
        assert!(overlay.get("1").is_some());
        assert!(overlay.get("64").is_some());
    }

    #[test]
    fn the_newest_is_the_one_that_ended_last_and_not_the_one_absorbed_last() {
        let mut overlay = Overlay::default();
        assert!(overlay.newest().is_none());
        overlay.insert(ended("A", 10), None);
        overlay.insert(ended("B", 10), None);
        overlay.absorb(ended("old", 5));
        assert_eq!(overlay.newest().map(|ended| ended.prompt_id.as_str()), Some("B"));
    }

    #[test]
    fn an_outcome_of_this_life_takes_the_place_of_an_absorbed_one() {
        let mut overlay = Overlay::default();
        overlay.absorb(ended("A", 5));
        overlay.insert(ended("A", 10), None);
        assert_eq!(overlay.get("A").map(|ended| ended.ended_at_ms), Some(10));
        assert_eq!(overlay.kept.len(), 1);
    }

    #[test]
    fn what_is_taken_back_is_no_outcome_any_more() {
        let mut overlay = Overlay::default();
        overlay.insert(ended("A", 10), None);
        overlay.take_back();
        assert!(overlay.get("A").is_none() && overlay.newest().is_none());
        overlay.insert(ended("B", 12), None);
        assert_eq!(overlay.newest().map(|ended| ended.prompt_id.as_str()), Some("B"));
    }

    #[test]
    fn absorbing_replaces_the_outcome_in_its_place() {
        let mut overlay = Overlay::default();
        overlay.insert(ended("A", 10), None);
        overlay.absorb(ended("A", 12));
        assert_eq!(overlay.get("A").map(|ended| ended.ended_at_ms), Some(12));
        assert_eq!(overlay.kept.len(), 1);
    }
}
