//! Prompts that wait, first in first out.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::deadline::Clocks;
use crate::limits::TEXT_UNITS_MAX;
use crate::moment::Moment;
use crate::prompt::{Prompt, PromptId, Receipt};
use crate::{Clipped, InputWritten, LivePrompt, PendingPrompt, PromptState};

/// An admitted prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) prompt_id: PromptId,
    pub(crate) content: Arc<str>,
    pub(crate) extra: Option<Arc<str>>,
    pub(crate) text: Clipped,
    pub(crate) originator: Option<Arc<str>>,
    pub(crate) retry: bool,
    pub(crate) witnessed: bool,
    pub(crate) queued: Moment,
    pub(crate) clocks: Clocks,
    /// It could not run at once, so the list of waiting prompts shows it and hears of its end.
    pub(crate) waited: bool,
    pub(crate) admission: Admitted,
}

/// What is kept of an admission for whoever submits the same id again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) receipt: Receipt,
    fingerprint: Fingerprint,
}

/// Stands for a prompt's content without holding it. Two hashes of 64 bits, as the content's author is no adversary of himself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint(u64, u64);

impl Entry {
    /// `None` when the content is not a JSON array or the further members are not a JSON object.
    pub(crate) fn new(prompt: Prompt, receipt: Receipt, queued: Moment) -> Option<Self> {
        let fingerprint = Fingerprint::of(&prompt);
        blocks(&prompt.content)?;
        if let Some(extra) = &prompt.extra {
            serde_json::from_str::<&RawValue>(extra).ok().filter(|extra| extra.get().starts_with('{'))?;
        }
        Some(Self {
            prompt_id: receipt.prompt_id.as_str().into(),
            content: prompt.content.into(),
            extra: prompt.extra.map(Into::into),
            text: Clipped::new(&prompt.text, TEXT_UNITS_MAX),
            originator: prompt.originator.map(Into::into),
            retry: prompt.retry,
            witnessed: prompt.witnessed,
            queued,
            clocks: Clocks { absolute_ms: prompt.deadline_ms, run_ms: prompt.run_deadline_ms },
            waited: false,
            admission: Admitted { receipt, fingerprint },
        })
    }

    /// The content blocks, each as raw JSON text.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = String> {
        blocks(&self.content).unwrap_or_default().into_iter().map(|block| block.get().to_owned())
    }

    pub(crate) fn pending(&self, state: PromptState, input_written: InputWritten) -> PendingPrompt {
        PendingPrompt {
            prompt_id: self.prompt_id.to_string(),
            text: self.text.text.clone(),
            content: self.content.to_string(),
            queued_at_ms: self.queued.at_ms,
            state,
            originator: self.originator.as_deref().map(str::to_owned),
            input_written,
        }
    }

    /// The poll's view while it waits.
    pub(crate) fn queued(&self) -> LivePrompt {
        LivePrompt {
            prompt_id: self.prompt_id.to_string(),
            state: PromptState::Queued,
            prompt_text: self.text.clone(),
            queued_at_ms: self.queued.at_ms,
            started_at_ms: None,
            heard_at_ms: None,
            silent_for_ms: None,
            waiting: None,
            wished_at_ms: None,
            originator: self.originator.as_deref().map(str::to_owned),
            input_written: InputWritten::No,
        }
    }
}

impl Admitted {
    pub(crate) fn is_of_same_content(&self, prompt: &Prompt) -> bool {
        self.fingerprint == Fingerprint::of(prompt)
    }
}

impl Fingerprint {
    fn of(prompt: &Prompt) -> Self {
        let hash = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &prompt.content, &prompt.extra).hash(&mut hasher);
            hasher.finish()
        };
        Self(hash(0), hash(1))
    }
}

fn blocks(content: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(content).ok()
}

/// The prompts that wait. Leaving it, by whatever door, frees the slot.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Entry>,
}

impl Queue {
    pub(crate) fn push(&mut self, entry: Entry) {
        self.waiting.push_back(entry);
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.waiting.pop_front()
    }

    pub(crate) fn remove(&mut self, prompt_id: &str) -> Option<Entry> {
        let place = self.waiting.iter().position(|entry| *entry.prompt_id == *prompt_id)?;
        self.waiting.remove(place)
    }

    pub(crate) fn get(&self, prompt_id: &str) -> Option<&Entry> {
        self.waiting.iter().find(|entry| *entry.prompt_id == *prompt_id)
    }

    pub(crate) fn head(&self) -> Option<&Entry> {
        self.waiting.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(content: &str) -> Prompt {
        Prompt { content: content.to_owned(), ..Prompt::default() }
    }

    fn entry(prompt: Prompt) -> Option<Entry> {
        let receipt = Receipt { prompt_id: "A".into(), last_event_id: 0, event_epoch: "e".into() };
        Entry::new(prompt, receipt, Moment::of(10))
    }

    #[test]
    fn content_is_split_into_blocks_of_raw_text() {
        let entry = entry(prompt(r#" [ {"type":"text","text":"\ud83d"} , 7 ] "#)).unwrap();
        assert_eq!(entry.blocks().collect::<Vec<_>>(), [r#"{"type":"text","text":"\ud83d"}"#, "7"]);
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for content in ["", "{}", "[", "null", "[}", "[1]x", "\"[]\""] {
            assert_eq!(entry(prompt(content)), None, "{content}");
        }
    }

    #[test]
    fn further_members_must_be_an_object() {
        for (extra, fits) in [("{}", true), (" {\"a\":1} ", true), ("[]", false), ("{", false), ("1", false)] {
            let prompt = Prompt { extra: Some(extra.to_owned()), ..prompt("[]") };
            assert_eq!(entry(prompt).is_some(), fits, "{extra}");
        }
    }

    #[test]
    fn one_changed_byte_or_member_is_other_content() {
        let first = entry(prompt("[1]")).unwrap().admission;
        assert!(first.is_of_same_content(&prompt("[1]")));
        assert!(!first.is_of_same_content(&prompt("[2]")));
        assert!(!first.is_of_same_content(&Prompt { extra: Some("{}".into()), ..prompt("[1]") }));
    }

    #[test]
    fn how_long_a_caller_waits_is_no_part_of_what_it_asks() {
        let first = entry(prompt("[1]")).unwrap().admission;
        let hurried = Prompt { deadline_ms: Some(1), run_deadline_ms: Some(2), retry: true, ..prompt("[1]") };
        assert!(first.is_of_same_content(&hurried));
    }

    fn queue(ids: &str) -> Queue {
        let mut queue = Queue::default();
        for id in ids.chars() {
            let receipt = Receipt { prompt_id: id.to_string(), last_event_id: 0, event_epoch: "e".into() };
            queue.push(Entry::new(prompt("[]"), receipt, Moment::of(0)).unwrap());
        }
        queue
    }

    fn ids(queue: &Queue) -> String {
        queue.iter().map(|entry| entry.prompt_id.to_string()).collect()
    }

    #[test]
    fn what_came_first_leaves_first() {
        let mut queue = queue("ABC");
        assert_eq!(queue.head().map(|entry| entry.prompt_id.to_string()).as_deref(), Some("A"));
        assert_eq!(queue.pop().map(|entry| entry.prompt_id.to_string()).as_deref(), Some("A"));
        assert_eq!((ids(&queue).as_str(), queue.len(), queue.is_empty()), ("BC", 2, false));
    }

    #[test]
    fn one_is_taken_from_anywhere_and_the_others_keep_their_order() {
        for (id, left) in [("A", "BC"), ("B", "AC"), ("C", "AB"), ("D", "ABC")] {
            let mut queue = queue("ABC");
            assert_eq!(queue.remove(id).is_some(), id != "D");
            assert_eq!(ids(&queue), left);
            assert!(queue.get(id).is_none());
        }
    }

    #[test]
    fn a_waiting_prompt_shows_itself_without_a_start() {
        let prompt = Prompt { text: "hi".into(), originator: Some("c".into()), ..prompt("[1]") };
        let entry = entry(prompt).unwrap();
        let queued = entry.queued();
        assert_eq!(
            (queued.state, queued.started_at_ms, queued.input_written),
            (PromptState::Queued, None, InputWritten::No)
        );
        let pending = entry.pending(PromptState::Queued, InputWritten::No);
        assert_eq!((pending.text.as_str(), pending.content.as_str()), ("hi", "[1]"));
        assert_eq!((pending.queued_at_ms, pending.originator.as_deref()), (10, Some("c")));
    }

    #[test]
    fn a_long_text_is_clipped_at_admission() {
        let prompt = Prompt { text: "x".repeat(TEXT_UNITS_MAX + 1), ..prompt("[]") };
        let text = entry(prompt).unwrap().text;
        assert_eq!((text.text.len(), text.truncated), (TEXT_UNITS_MAX, true));
    }
}
