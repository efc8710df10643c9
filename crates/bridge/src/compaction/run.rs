//! Adjacent pieces of one text while they become one.

use std::borrow::Cow;

use bytes::Bytes;

use super::chunk::Chunk;
use super::{Entry, Head, Shape};
use crate::event::{Event, News};
use crate::json::Object;
use crate::limits::RUN_BYTES_MAX;
use crate::wire;

/// Metadata that is about a piece and not about whose it is: what it took. A text takes one account of each kind, and a second one
/// begins a text of its own: two are two, be they alike.
const ACCOUNTS: [&str; 3] = ["usage", "durationMs", "timing"];
/// When a piece was said. The last one counts.
const TIMESTAMP: &str = "timestamp";

/// A text that grows.
#[derive(Debug)]
pub(super) struct Run {
    head: Head,
    events: u64,
    /// How many pieces it is made of.
    pieces: usize,
    /// The first piece as it came.
    first: Bytes,
    text: String,
    members: Vec<(String, String)>,
    meta: Vec<(String, String)>,
    timestamp: Option<String>,
    /// The tool call below which it is said.
    parent: Option<String>,
    /// What stood around the text of the newest piece, unless it holds an account: most pieces of a text differ in nothing else.
    around: Option<(String, String)>,
}

impl Run {
    /// A text of one piece; none when nothing could join it.
    pub(super) fn begin(head: Head, json: &Bytes, events: u64, update: &str) -> Option<Self> {
        let chunk = Chunk::of(update).filter(|chunk| chunk.text.len() <= RUN_BYTES_MAX)?;
        let owned = |members: &[(Cow<'_, str>, &str)]| {
            members.iter().map(|(name, value)| (name.clone().into_owned(), (*value).to_owned())).collect()
        };
        Some(Self {
            head,
            events,
            pieces: 1,
            first: json.clone(),
            text: chunk.text.to_owned(),
            members: owned(&chunk.members),
            meta: owned(&chunk.meta),
            timestamp: chunk.timestamp.map(str::to_owned),
            parent: acp::parent_call(update).map(str::to_owned),
            around: around(update, &chunk),
        })
    }

    /// Joins one more piece to it, if it belongs to it and there is room; whether it did. `is_last` when nothing stands behind the text
    /// so far: then it takes the number of its last piece, and keeps its own otherwise, so that numbers never go back.
    pub(super) fn join(&mut self, head: &Head, events: u64, update: &str, pieces_max: usize, is_last: bool) -> bool {
        if self.pieces >= pieces_max || !self.head.is_beside(head) || !self.join_text(update) {
            return false;
        }
        self.pieces += 1;
        self.events += events;
        if is_last {
            (self.head.id, self.head.at_ms) = (head.id, head.at_ms);
        }
        true
    }

    fn join_text(&mut self, update: &str) -> bool {
        if let Some(text) = self.like_the_last(update) {
            let has_room = self.text.len() + text.len() <= RUN_BYTES_MAX;
            self.text.push_str(if has_room { text } else { "" });
            return has_room;
        }
        let Some(chunk) = Chunk::of(update) else { return false };
        if self.text.len() + chunk.text.len() > RUN_BYTES_MAX || !self.is_of(&chunk, update) {
            return false;
        }
        self.text.push_str(chunk.text);
        for (name, value) in &chunk.meta {
            set(&mut self.meta, name, value);
        }
        self.timestamp = chunk.timestamp.map(str::to_owned).or(self.timestamp.take());
        self.around = around(update, &chunk);
        true
    }

    /// The text of a piece that differs from the newest one in nothing else, as far as that is seen at a glance.
    fn like_the_last<'a>(&self, update: &'a str) -> Option<&'a str> {
        let (before, after) = self.around.as_ref()?;
        let text = update.strip_prefix(before.as_str())?.strip_suffix(after.as_str())?;
        (!text.contains('"') && !text.ends_with('\\')).then_some(text)
    }

    /// Whether a piece says nothing that contradicts the text so far, and nothing that would get lost.
    fn is_of(&self, chunk: &Chunk<'_>, update: &str) -> bool {
        let has = |name: &str| self.meta.iter().any(|(known, _)| known == name);
        let is_second = |name: &str| ACCOUNTS.contains(&name) && has(name);
        let is_whose = |name: &str| !ACCOUNTS.contains(&name) && name != TIMESTAMP;
        self.parent.as_deref() == acp::parent_call(update)
            && !chunk.meta.iter().any(|(name, _)| is_second(name))
            && are_same(&self.members, &chunk.members, |_| true)
            && are_same(&self.meta, &chunk.meta, is_whose)
    }

    /// The text as one event.
    pub(super) fn entry(&self, session_id: &str) -> Entry {
        let json = if self.pieces == 1 { self.first.clone() } else { self.joined(session_id) };
        Entry { head: self.head.clone(), json, events: self.events, shape: Shape::Chunk }
    }

    /// How many bytes its event has at most.
    pub(super) fn bytes(&self) -> usize {
        // Numbers that grew by some digits, and the name and the braces of metadata that the first piece had not.
        const GROWN_BYTES: usize = 64;
        if self.pieces == 1 {
            return self.first.len();
        }
        let meta = self.meta.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
        self.first.len() + self.text.len() + meta + GROWN_BYTES
    }

    fn joined(&self, session_id: &str) -> Bytes {
        let content = format!(r#"{{"type":"text","text":"{}"}}"#, self.text);
        let member = |object: Object, (name, value): &(String, String)| object.member(name, value);
        let update = self.members.iter().fold(Object::new(), member).raw("content", &content);
        let meta = (!self.meta.is_empty()).then(|| self.meta.iter().fold(Object::new(), member).finish());
        let update = update.maybe_raw("_meta", meta.as_deref()).maybe_raw(TIMESTAMP, self.timestamp.as_deref());
        written(&self.head, session_id, update.finish())
    }
}

/// The envelope of an update that was put together.
pub(super) fn written(head: &Head, session_id: &str, raw: String) -> Bytes {
    let (prompt_id, originator) = (head.prompt_id.clone(), head.originator.clone());
    let event = Event { prompt_id, originator, news: News::Update { raw } };
    wire::event(&event, session_id, head.id, head.at_ms)
}

/// Sets a member, the one of that name if there is one.
pub(super) fn set(members: &mut Vec<(String, String)>, name: &str, value: &str) {
    match members.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => value.clone_into(known),
        None => members.push((name.to_owned(), value.to_owned())),
    }
}

/// Whether both hold the same members of those that count, in whatever order.
fn are_same(ours: &[(String, String)], theirs: &[(Cow<'_, str>, &str)], counts: impl Fn(&str) -> bool) -> bool {
    let in_ours = |name: &str, value: &str| ours.iter().any(|(known, own)| known == name && own == value);
    let counted = theirs.iter().filter(|(name, _)| counts(name));
    let mut number = 0;
    let all_in_ours = counted.inspect(|_| number += 1).all(|(name, value)| in_ours(name, value));
    all_in_ours && number == ours.iter().filter(|(name, _)| counts(name)).count()
}

/// What stands around the text of a piece; none when it holds an account, which no other piece can have in common with it.
fn around(update: &str, chunk: &Chunk<'_>) -> Option<(String, String)> {
    if chunk.meta.iter().any(|(name, _)| ACCOUNTS.contains(&name.as_ref())) {
        return None;
    }
    let start = chunk.text.as_ptr() as usize - update.as_ptr() as usize;
    Some((update[..start].to_owned(), update[start + chunk.text.len()..].to_owned()))
}
