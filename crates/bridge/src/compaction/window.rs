//! The finished turns, within a size.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{Entry, Part, Seed, Shape};

/// The newest finished turns, the history of a load before them.
pub(super) struct Window {
    turns: VecDeque<Turn>,
    bytes: usize,
    bytes_max: usize,
    left_out: u64,
    left_out_turns: u64,
}

/// A finished turn; or the history of a load, of which single events may be left out.
struct Turn {
    frames: VecDeque<Shown>,
    is_history: bool,
}

struct Shown {
    json: Bytes,
    events: u64,
    shape: Shape,
}

impl Window {
    pub(super) fn new(seed: Seed, bytes_max: usize) -> Self {
        let shown = |json| Shown { json, events: 1, shape: Shape::Other };
        let frames: VecDeque<_> = seed.frames.into_iter().map(shown).collect();
        let bytes = bytes_of(&frames);
        let turns = if frames.is_empty() { VecDeque::new() } else { [Turn { frames, is_history: true }].into() };
        let mut window = Self { turns, bytes, bytes_max, left_out: seed.left_out, left_out_turns: 0 };
        window.stay_within();
        window
    }

    /// Takes a turn, of which `left_out` events are missing at its beginning.
    pub(super) fn push(&mut self, turn: Vec<Entry>, left_out: u64) {
        if left_out > 0 {
            // Nothing is shown before a hole, or it would look as if there were none.
            while !self.turns.is_empty() {
                self.drop_oldest();
            }
            self.left_out += left_out;
        }
        for entry in &turn {
            if let Shape::State(_) = entry.shape {
                self.forget(entry.shape);
            }
        }
        let shown = |entry: Entry| Shown { json: entry.json, events: entry.events, shape: entry.shape };
        let frames: VecDeque<_> = turn.into_iter().map(shown).collect();
        self.bytes += bytes_of(&frames);
        self.turns.push_back(Turn { frames, is_history: false });
        self.stay_within();
    }

    pub(super) fn part(&self) -> Part {
        let frames = self.turns.iter().flat_map(|turn| &turn.frames).map(|shown| shown.json.clone());
        Part { frames: frames.collect(), left_out: self.left_out, left_out_turns: self.left_out_turns }
    }

    /// A newer word about a state is there; the older ones say nothing any more.
    fn forget(&mut self, shape: Shape) {
        for turn in self.turns.iter_mut().filter(|turn| !turn.is_history) {
            let mut bytes = 0;
            turn.frames.retain(|shown| {
                let is_kept = shown.shape != shape;
                bytes += if is_kept { 0 } else { shown.json.len() };
                is_kept
            });
            self.bytes -= bytes;
        }
    }

    fn stay_within(&mut self) {
        while self.bytes > self.bytes_max && !self.turns.is_empty() {
            let is_only = self.turns.len() == 1;
            let Some(oldest) = self.turns.front_mut() else { return };
            if !oldest.is_history && !is_only {
                self.drop_oldest();
                continue;
            }
            let Some(first) = oldest.frames.pop_front() else { return self.drop_oldest() };
            self.bytes -= first.json.len();
            self.left_out += first.events;
            if oldest.frames.is_empty() {
                self.drop_oldest();
            }
        }
    }

    fn drop_oldest(&mut self) {
        let Some(turn) = self.turns.pop_front() else { return };
        self.bytes -= bytes_of(&turn.frames);
        self.left_out += turn.frames.iter().map(|shown| shown.events).sum::<u64>();
        self.left_out_turns += u64::from(!turn.is_history);
    }
}

fn bytes_of(frames: &VecDeque<Shown>) -> usize {
    frames.iter().map(|shown| shown.json.len()).sum()
}
