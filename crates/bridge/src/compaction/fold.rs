//! Many events become few that say the same.

use std::collections::HashMap;

use super::call::Call;
use super::run::Run;
use super::{Entry, Shape};
use crate::incoming::StateKind;

/// Puts together what belongs together: pieces of a text, the words about a tool call, and of some states the newest. The rest stays
/// as it is, where it is. What was put together already may be put together with more.
pub(super) fn fold(session_id: &str, entries: impl Iterator<Item = Entry>) -> Vec<Entry> {
    let mut folding = Folding::default();
    for entry in entries {
        folding.take(entry);
    }
    folding.slots.into_iter().filter_map(|slot| slot.entry(session_id)).collect()
}

/// A place in the order of what is shown.
enum Slot {
    /// What stood here has moved on.
    Empty,
    Entry(Entry),
    Run(Box<Run>),
    Call(Box<Call>),
}

#[derive(Default)]
struct Folding {
    slots: Vec<Slot>,
    /// The text that may go on, below each tool call and (none) at the top: nothing else has been shown there since.
    runs: HashMap<Option<String>, usize>,
    calls: HashMap<String, usize>,
    states: HashMap<StateKind, usize>,
}

impl Slot {
    fn entry(self, session_id: &str) -> Option<Entry> {
        match self {
            Self::Empty => None,
            Self::Entry(entry) => Some(entry),
            Self::Run(run) => Some(run.entry(session_id)),
            Self::Call(call) => Some(call.entry(session_id)),
        }
    }
}

impl Folding {
    fn take(&mut self, entry: Entry) {
        match entry.shape {
            Shape::Chunk => self.chunk(entry),
            Shape::Call => self.call(entry),
            Shape::State(kind) => self.state(kind, entry),
            Shape::Other => {
                self.runs.clear();
                self.slots.push(Slot::Entry(entry));
            }
        }
    }

    fn chunk(&mut self, entry: Entry) {
        let update = entry.update().unwrap_or("{}");
        let parent = acp::parent_call(update).map(str::to_owned);
        let last = self.slots.len();
        if let Some(&at) = self.runs.get(&parent)
            && let Some(Slot::Run(run)) = self.slots.get_mut(at)
            && run.join(&entry.head, entry.events, update, usize::MAX, at + 1 == last)
        {
            return;
        }
        self.runs.remove(&parent);
        match Run::begin(entry.head.clone(), &entry.json, entry.events, update) {
            Some(run) => {
                self.runs.insert(parent, last);
                self.slots.push(Slot::Run(Box::new(run)));
            }
            None => self.slots.push(Slot::Entry(entry)),
        }
    }

    fn call(&mut self, entry: Entry) {
        let update = entry.update().unwrap_or("{}");
        let (parent, id) = (acp::parent_call(update).map(str::to_owned), acp::string_at(update, &["toolCallId"]));
        let last = self.slots.len();
        if let Some(id) = &id
            && let Some(&at) = self.calls.get(id)
            && let Some(Slot::Call(call)) = self.slots.get_mut(at)
            && call.join(&entry, at + 1 == last)
        {
            return;
        }
        self.runs.remove(&parent);
        match id {
            Some(id) => {
                self.calls.insert(id, last);
                self.slots.push(Slot::Call(Box::new(Call::begin(entry))));
            }
            None => self.slots.push(Slot::Entry(entry)),
        }
    }

    fn state(&mut self, kind: StateKind, mut entry: Entry) {
        if let Some(at) = self.states.insert(kind, self.slots.len())
            && let Slot::Entry(before) = std::mem::replace(&mut self.slots[at], Slot::Empty)
        {
            entry.events += before.events;
        }
        self.slots.push(Slot::Entry(entry));
    }
}
