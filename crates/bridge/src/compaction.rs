//! What a client that attaches late is shown of a session's life: each finished turn in short, and the events since the last end
//! (wire specification, section 7.3).
//!
//! It is fed with every event as it is published, so that an attach costs no more than the copying of a list, and a turn is not lost
//! because the ring let go of its events. What is shown never has a hole that is not told: where something had to be left out, all
//! that came before it is left out too, or the part that begins behind the hole says so.

mod call;
mod chunk;
mod fold;
mod journal;
mod run;
#[cfg(test)]
mod tests;
mod window;

use std::sync::Arc;

use bytes::Bytes;

use crate::event::{Event, News};
use crate::incoming::StateKind;
use crate::limits::{JOURNAL_BYTES_MAX, JOURNAL_EVENTS_MAX, WINDOW_BYTES_MAX};
use crate::prompt::PromptId;
use journal::Journal;
use window::Window;

/// What came before the first event of a life: the history that a load has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seed {
    /// Its events, oldest first, each a whole envelope.
    pub frames: Vec<Bytes>,
    /// Events before them that are not shown: so many at least.
    pub left_out: u64,
}

/// A part of what a client that attaches is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Oldest first, each a whole envelope.
    pub frames: Vec<Bytes>,
    /// Events before them that are not shown: so many at least.
    pub left_out: u64,
    /// How many whole turns are among those.
    pub left_out_turns: u64,
}

/// All that a client that attaches is shown, at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The history of the load, and the turns that ended since, each in short.
    pub turns: Part,
    /// The events since the last end.
    pub journal: Part,
    /// The number of the newest event: the cursor with which a stream goes on behind these.
    pub last_event_id: u64,
    /// The agent holds a prompt, or one waits.
    pub has_active_prompt: bool,
}

/// How much is kept for clients that attach late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the finished turns.
    pub window_bytes: usize,
    /// Events since the last end; adjacent pieces of a text count as one.
    pub journal_events: usize,
    /// Bytes of those.
    pub journal_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { window_bytes: WINDOW_BYTES_MAX, journal_events: JOURNAL_EVENTS_MAX, journal_bytes: JOURNAL_BYTES_MAX }
    }
}

/// The finished turns and the running one.
pub(crate) struct Compaction {
    window: Window,
    journal: Journal,
}

/// What stands around the data of an event.
#[derive(Clone, Debug)]
struct Head {
    id: u64,
    at_ms: u64,
    prompt_id: Option<PromptId>,
    originator: Option<Arc<str>>,
}

/// One event, or several that became one.
#[derive(Clone, Debug)]
struct Entry {
    head: Head,
    json: Bytes,
    /// How many events it stands for.
    events: u64,
    shape: Shape,
}

/// What an event is to those who put events together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A piece of a text that others may join.
    Chunk,
    /// A word about a tool call.
    Call,
    /// A state of which only the newest word counts.
    State(StateKind),
    /// Anything else; it stays as it is, where it is.
    Other,
}

impl Head {
    fn new(event: &Event, id: u64, at_ms: u64) -> Self {
        Self { id, at_ms, prompt_id: event.prompt_id.clone(), originator: event.originator.clone() }
    }

    /// Whether both were said for one prompt, by one client.
    fn is_beside(&self, other: &Self) -> bool {
        self.prompt_id == other.prompt_id && self.originator == other.originator
    }
}

impl Entry {
    /// The update of an entry that is one: raw JSON text.
    fn update(&self) -> Option<&str> {
        update_in(&self.json)
    }
}

/// The update in the envelope of an event that is one.
fn update_in(json: &[u8]) -> Option<&str> {
    acp::raw_at(std::str::from_utf8(json).ok()?, &["data", "update"])
}

/// The events that end a turn.
fn is_end(news: &News) -> bool {
    matches!(news, News::TurnComplete { .. } | News::TurnError { .. })
}

impl Compaction {
    /// What is kept of a session that begins with `seed`.
    pub(crate) fn new(seed: Seed, bounds: Bounds) -> Self {
        Self { window: Window::new(seed, bounds.window_bytes), journal: Journal::new(bounds) }
    }

    /// Takes an event as it is published, `json` being its envelope.
    pub(crate) fn note(&mut self, session_id: &str, event: &Event, id: u64, at_ms: u64, json: &Bytes) {
        let head = Head::new(event, id, at_ms);
        match &event.news {
            News::Update { raw } => self.journal.update(session_id, head, raw, json),
            _ => self.journal.push(session_id, Entry { head, json: json.clone(), events: 1, shape: Shape::Other }),
        }
        if is_end(&event.news) {
            let (turn, left_out) = self.journal.close(session_id);
            self.window.push(turn, left_out);
        }
    }

    /// The two parts as they are now.
    pub(crate) fn told(&self, session_id: &str) -> (Part, Part) {
        (self.window.part(), self.journal.part(session_id))
    }
}
