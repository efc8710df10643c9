//! The newest events, and what a reader with a cursor gets of them.

use std::collections::VecDeque;

use crate::limits::{EVENT_BYTES_MAX, REPLAY_BYTES_MAX, RING_BYTES_MAX};
use crate::{Frame, wire};

/// The newest events within a number and a size.
pub(crate) struct Ring {
    frames: VecDeque<Frame>,
    bytes: usize,
    tip: u64,
    seeded: u64,
    bounds: Bounds,
}

#[derive(Clone, Copy)]
struct Bounds {
    events_max: usize,
    bytes_max: usize,
    event_bytes_max: usize,
    replay_bytes_max: usize,
}

/// Where a reader left off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The last event it has seen.
    pub(crate) last_seen: u64,
    /// It was seen in this life of the stream, as far as the reader said.
    pub(crate) same_epoch: bool,
}

/// Why a reader cannot simply go on (wire specification, section 10.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// The cursor is not of this life of the stream: it lies ahead of it.
    EpochReset,
    /// The cursor is not of this life of the stream: the reader says so itself.
    EpochMismatch,
    /// Events behind the cursor are forgotten, or one was too large to be sent.
    RingEvicted,
    /// Events behind the cursor were part of a replayed history and never in the ring.
    SeededReplay,
    /// There is more than one replay may carry.
    ReplayBudget,
}

impl Ring {
    pub(crate) fn new(seeded: u64, events_max: usize) -> Self {
        let bounds = Bounds {
            events_max,
            bytes_max: RING_BYTES_MAX,
            event_bytes_max: EVENT_BYTES_MAX,
            replay_bytes_max: REPLAY_BYTES_MAX,
        };
        Self::bounded(seeded, bounds)
    }

    fn bounded(seeded: u64, bounds: Bounds) -> Self {
        Self { frames: VecDeque::new(), bytes: 0, tip: seeded, seeded, bounds }
    }

    /// The number of the newest event.
    pub(crate) fn tip(&self) -> u64 {
        self.tip
    }

    #[cfg(test)]
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    /// How many events of this life are not remembered any more.
    #[cfg(test)]
    pub(crate) fn forgotten(&self) -> u64 {
        self.earliest() - self.seeded - 1
    }

    /// Takes the next event; the oldest make room. One that is too large is numbered and not kept, nor what was before it: what is
    /// remembered has no hole. Then the frame is given that stands for it.
    pub(crate) fn push(&mut self, frame: Frame, at_ms: u64) -> Option<Frame> {
        self.tip += 1;
        if frame.json.len() > self.bounds.event_bytes_max {
            self.frames.clear();
            self.bytes = 0;
            return Some(wire::resync(Gap::RingEvicted, self.tip - 1, self.earliest(), at_ms));
        }
        self.bytes += frame.json.len();
        self.frames.push_back(frame);
        while self.frames.len() > self.bounds.events_max || self.bytes > self.bounds.bytes_max {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes -= oldest.json.len();
        }
        None
    }

    /// What a reader gets before anything new: events, and frames that say where there is a gap.
    pub(crate) fn replay(&self, cursor: Cursor, at_ms: u64) -> VecDeque<Frame> {
        let gap = self.gap(cursor);
        let from = if gap.is_some() { self.earliest() } else { cursor.last_seen + 1 };
        let mut replay = VecDeque::new();
        replay.extend(gap.map(|gap| wire::resync(gap, cursor.last_seen, self.earliest(), at_ms)));
        let (mut count, mut last, mut bytes) = (0, None, 0);
        for frame in self.frames.iter().filter(|frame| frame.id >= Some(from)) {
            bytes += frame.json.len();
            // One event always fits, or a reader of a large one would never get past it.
            if bytes > self.bounds.replay_bytes_max && count > 0 {
                let next = frame.id.unwrap_or_default();
                replay.push_back(wire::resync(Gap::ReplayBudget, last.unwrap_or_default(), next, at_ms));
                break;
            }
            replay.push_back(frame.clone());
            count += 1;
            last = frame.id;
        }
        replay.push_back(wire::replay_complete(count, last, self.tip, at_ms));
        replay
    }

    fn gap(&self, cursor: Cursor) -> Option<Gap> {
        if !cursor.same_epoch {
            return Some(Gap::EpochMismatch);
        }
        if cursor.last_seen > self.tip {
            return Some(Gap::EpochReset);
        }
        if cursor.last_seen + 1 >= self.earliest() {
            return None;
        }
        let only_seeded = self.tip == self.seeded;
        Some(if only_seeded { Gap::SeededReplay } else { Gap::RingEvicted })
    }

    /// The oldest event that can be had; the next one, when none can.
    fn earliest(&self) -> u64 {
        self.frames.front().and_then(|frame| frame.id).unwrap_or(self.tip + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { events_max: 4, bytes_max: 100, event_bytes_max: 95, replay_bytes_max: 60 };

    /// A ring that was seeded with some events and then took others of the given sizes.
    fn ring(seeded: u64, sizes: &[usize]) -> Ring {
        let mut ring = Ring::bounded(seeded, BOUNDS);
        for size in sizes {
            let id = Some(ring.tip() + 1);
            ring.push(Frame { id, kind: "word", json: vec![b'x'; *size].into() }, 0);
        }
        ring
    }

    /// The replay in short: numbers of events, and synthetic frames as their data.
    fn replay(ring: &Ring, cursor: Cursor) -> String {
        let short = |frame: Frame| match frame.id {
            Some(id) => id.to_string(),
            None => {
                let text = String::from_utf8(frame.json.to_vec()).unwrap();
                let data = acp::raw_at(&text, &["data"]).unwrap().to_owned();
                let reason = acp::string_at(&data, &["reason"]);
                let detail = acp::string_at(&data, &["detail"]).map(|detail| format!("({detail})")).unwrap_or_default();
                let earliest = acp::raw_at(&data, &["earliestAvailableId"]).unwrap_or("-");
                match reason {
                    Some(reason) => format!("{reason}{detail}>{earliest}"),
                    None => format!("complete:{}", acp::raw_at(&data, &["replayedCount"]).unwrap()),
                }
            }
        };
        ring.replay(cursor, 0).into_iter().map(short).collect::<Vec<_>>().join(" ")
    }

    fn check(ring: &Ring, last_seen: u64, expected: &str) {
        assert_eq!(replay(ring, Cursor { last_seen, same_epoch: true }), expected, "cursor {last_seen}");
    }

    #[test]
    fn a_cursor_within_the_ring_gets_what_lies_behind_it() {
        let ring = ring(0, &[1, 1, 1]);
        check(&ring, 0, "1 2 3 complete:3");
        check(&ring, 1, "2 3 complete:2");
        check(&ring, 3, "complete:0");
    }

    #[test]
    fn a_cursor_from_the_future_is_of_another_life() {
        check(&ring(0, &[1, 1]), 3, "epoch_reset>1 1 2 complete:2");
        check(&ring(0, &[]), 1, "epoch_reset>1 complete:0");
        check(&ring(0, &[1]), u64::MAX, "epoch_reset>1 1 complete:1");
    }

    #[test]
    fn another_epoch_is_another_life_whatever_the_number() {
        let cursor = Cursor { last_seen: 1, same_epoch: false };
        assert_eq!(replay(&ring(0, &[1, 1]), cursor), "epoch_reset(epoch_mismatch)>1 1 2 complete:2");
    }

    #[test]
    fn a_cursor_older_than_the_ring_is_told_of_the_gap() {
        let ring = ring(0, &[1; 6]);
        check(&ring, 1, "ring_evicted>3 3 4 5 6 complete:4");
        check(&ring, 2, "3 4 5 6 complete:4");
    }

    #[test]
    fn a_replayed_history_is_not_in_the_ring() {
        check(&ring(5, &[]), 5, "complete:0");
        check(&ring(5, &[]), 0, "seeded_replay_not_in_ring>6 complete:0");
        check(&ring(5, &[1]), 0, "ring_evicted>6 6 complete:1");
        check(&ring(5, &[1]), 5, "6 complete:1");
    }

    #[test]
    fn a_replay_has_a_budget_and_says_where_it_stopped() {
        check(&ring(0, &[30, 30, 30]), 0, "1 2 replay_budget_exceeded>3 complete:2");
    }

    #[test]
    fn one_event_over_the_budget_is_replayed_all_the_same() {
        check(&ring(0, &[90]), 0, "1 complete:1");
        check(&ring(0, &[90, 5]), 0, "1 replay_budget_exceeded>2 complete:1");
    }

    #[test]
    fn the_ring_stays_within_its_bytes() {
        let kept = ring(0, &[60, 30, 30]);
        assert_eq!(kept.frames().map(|frame| frame.id.unwrap()).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn an_event_that_is_too_large_is_a_gap_and_the_ring_begins_behind_it() {
        let huge = ring(0, &[1, 96, 1]);
        assert_eq!(huge.frames().map(|frame| frame.id.unwrap()).collect::<Vec<_>>(), [3]);
        check(&huge, 1, "ring_evicted>3 3 complete:1");
        check(&huge, 2, "3 complete:1");
        assert_eq!(huge.forgotten(), 2);
    }

    #[test]
    fn what_is_forgotten_is_counted_from_the_life_s_own_first_event() {
        assert_eq!(ring(0, &[]).forgotten(), 0);
        assert_eq!(ring(7, &[1, 1]).forgotten(), 0);
        assert_eq!(ring(7, &[1; 6]).forgotten(), 2);
    }
}
