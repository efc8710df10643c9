//! All that is said of one tool call while it becomes one event.

use bytes::Bytes;

use super::chunk::Members;
use super::run::{set, written};
use super::{Entry, Head, Shape, update_in};
use crate::json::Object;

/// A tool call as it stands after the words about it so far. Later words win, and a null says nothing.
#[derive(Debug)]
pub(super) struct Call {
    head: Head,
    events: u64,
    /// The first word as it came.
    first: Bytes,
    /// What all of them come to, as soon as there are two.
    members: Option<Said>,
}

#[derive(Debug)]
struct Said {
    members: Vec<(String, String)>,
    meta: Vec<(String, String)>,
}

impl Call {
    pub(super) fn begin(entry: Entry) -> Self {
        Self { head: entry.head, events: entry.events, first: entry.json, members: None }
    }

    /// Takes one more word about the call; whether it could be understood and is about the same prompt.
    pub(super) fn join(&mut self, entry: &Entry, is_last: bool) -> bool {
        if !self.head.is_beside(&entry.head) {
            return false;
        }
        let Some(later) = entry.update().and_then(Said::of) else { return false };
        let Some(said) = self.members.take().or_else(|| update_in(&self.first).and_then(Said::of)) else {
            return false;
        };
        self.members = Some(said.then(later));
        self.events += entry.events;
        if is_last {
            (self.head.id, self.head.at_ms) = (entry.head.id, entry.head.at_ms);
        }
        true
    }

    pub(super) fn entry(self, session_id: &str) -> Entry {
        let json = self.members.map_or(self.first, |said| written(&self.head, session_id, said.text()));
        Entry { head: self.head, json, events: self.events, shape: Shape::Call }
    }
}

impl Said {
    fn of(update: &str) -> Option<Self> {
        let owned = |members: Members<'_>| {
            members.0.into_iter().map(|(name, value)| (name.into_owned(), value.to_owned())).collect::<Vec<_>>()
        };
        let mut members = owned(Members::of(update)?);
        let meta = match members.iter().position(|(name, value)| name == "_meta" && value != "null") {
            Some(at) => owned(Members::of(&members.remove(at).1)?),
            None => Vec::new(),
        };
        Some(Self { members, meta })
    }

    fn then(mut self, later: Self) -> Self {
        const KIND: &str = "sessionUpdate";
        for (name, value) in &later.members {
            // Whoever has heard of its beginning may take the whole for the beginning.
            let is_less = name == KIND && value == "\"tool_call_update\"";
            if value != "null" && !is_less {
                set(&mut self.members, name, value);
            }
        }
        for (name, value) in later.meta.iter().filter(|(_, value)| value != "null") {
            set(&mut self.meta, name, value);
        }
        self
    }

    fn text(&self) -> String {
        let member = |object: Object, (name, value): &(String, String)| object.member(name, value);
        let meta = (!self.meta.is_empty()).then(|| self.meta.iter().fold(Object::new(), member).finish());
        let update = self.members.iter().filter(|(name, _)| meta.is_none() || name != "_meta");
        update.fold(Object::new(), member).maybe_raw("_meta", meta.as_deref()).finish()
    }
}
