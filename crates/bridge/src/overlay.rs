//! The bounded memory of ended prompts, which the poll reads before the transcript.

use std::collections::VecDeque;

use crate::limits::OVERLAY_PROMPTS_MAX;
use crate::{Clipped, InputWritten, LivePrompt, Terminal};

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
}

/// What the bridge knows of one prompt, or of the newest one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnView {
    /// The unfinished prompt, unless its outcome has been published.
    pub live: Option<LivePrompt>,
    /// The ended prompt.
    pub overlay: Option<Ended>,
}

/// The last [`OVERLAY_PROMPTS_MAX`] ended prompts, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    ended: VecDeque<Ended>,
}

impl Overlay {
    /// Remembers an outcome, or replaces what was known of that prompt.
    pub(crate) fn insert(&mut self, ended: Ended) {
        if let Some(known) = self.ended.iter_mut().find(|known| known.prompt_id == ended.prompt_id) {
            *known = ended;
            return;
        }
        if self.ended.len() == OVERLAY_PROMPTS_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(ended);
    }

    pub(crate) fn get(&self, prompt_id: &str) -> Option<&Ended> {
        self.ended.iter().find(|ended| ended.prompt_id == prompt_id)
    }

    /// The one that ended last; of two in the same millisecond the later entry.
    pub(crate) fn newest(&self) -> Option<&Ended> {
        self.ended.iter().max_by_key(|ended| ended.ended_at_ms)
    }
}
