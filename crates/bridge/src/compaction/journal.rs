//! The events since the last end, adjacent pieces of a text as one.

use std::collections::VecDeque;

use bytes::Bytes;

use super::chunk::shape;
use super::fold::fold;
use super::run::Run;
use super::{Bounds, Entry, Head, Part, Shape};
use crate::limits::RUN_EVENTS_MAX;

/// The newest events since the last end, within a number and a size.
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The text that the newest event is a piece of; it stands behind the entries.
    run: Option<Run>,
    left_out: u64,
    bounds: Bounds,
    /// What came since entries were put together last, of that which can be.
    foldable: Foldable,
}

#[derive(Clone, Copy, Default)]
struct Foldable {
    events: usize,
    bytes: usize,
}

impl Journal {
    pub(super) fn new(bounds: Bounds) -> Self {
        let foldable = Foldable::default();
        Self { entries: VecDeque::new(), bytes: 0, run: None, left_out: 0, bounds, foldable }
    }

    /// Takes what the agent says.
    pub(super) fn update(&mut self, session_id: &str, head: Head, raw: &str, json: &Bytes) {
        if let Some(run) = &mut self.run
            && run.join(&head, 1, raw, RUN_EVENTS_MAX, true)
        {
            return self.stay_within(session_id);
        }
        let shape = shape(raw);
        if shape == Shape::Chunk {
            self.end_run(session_id);
            self.run = Run::begin(head.clone(), json, 1, raw);
            if self.run.is_some() {
                return self.stay_within(session_id);
            }
        }
        self.push(session_id, Entry { head, json: json.clone(), events: 1, shape });
    }

    /// Takes an event as it is.
    pub(super) fn push(&mut self, session_id: &str, entry: Entry) {
        self.end_run(session_id);
        self.keep(entry);
        self.stay_within(session_id);
    }

    /// The turn is over: gives it in short, and how many of its events are not in it.
    pub(super) fn close(&mut self, session_id: &str) -> (Vec<Entry>, u64) {
        self.end_run(session_id);
        let turn = fold(session_id, self.entries.drain(..));
        (self.bytes, self.foldable) = (0, Foldable::default());
        // What a long turn took is not kept for a short one.
        self.entries = VecDeque::new();
        (turn, std::mem::take(&mut self.left_out))
    }

    pub(super) fn part(&self, session_id: &str) -> Part {
        let run = self.run.as_ref().map(|run| run.entry(session_id).json);
        let frames = self.entries.iter().map(|entry| entry.json.clone()).chain(run);
        Part { frames: frames.collect(), left_out: self.left_out, left_out_turns: 0 }
    }

    fn end_run(&mut self, session_id: &str) {
        if let Some(run) = self.run.take() {
            self.keep(run.entry(session_id));
        }
    }

    fn keep(&mut self, entry: Entry) {
        self.bytes += entry.json.len();
        if matches!(entry.shape, Shape::Call | Shape::State(_)) {
            self.foldable.events += 1;
            self.foldable.bytes += entry.json.len();
        }
        self.entries.push_back(entry);
    }

    /// Lets the oldest go of what is too much. Before that it puts together what belongs together: a tool that shows its output over and
    /// over is the most common long turn, and it comes to little.
    fn stay_within(&mut self, session_id: &str) {
        if !self.is_over() {
            return;
        }
        // Only when much has come that may, or a turn that cannot get shorter would be worked through for each of its events.
        let Foldable { events, bytes } = self.foldable;
        if events > self.bounds.journal_events / 4 || bytes > self.bounds.journal_bytes / 4 {
            self.entries = fold(session_id, self.entries.drain(..)).into();
            self.bytes = self.entries.iter().map(|entry| entry.json.len()).sum();
            self.foldable = Foldable::default();
        }
        while self.is_over() {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.json.len();
            self.left_out += oldest.events;
        }
    }

    fn is_over(&self) -> bool {
        let run = self.run.as_ref().map_or(0, Run::bytes);
        let events = self.entries.len() + usize::from(self.run.is_some());
        events > self.bounds.journal_events || self.bytes + run > self.bounds.journal_bytes
    }
}
