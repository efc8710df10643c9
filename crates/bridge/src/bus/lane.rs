//! What waits for one subscriber.

use std::collections::VecDeque;

use crate::{Frame, wire};

/// A subscriber's frames, oldest first: first its replay, which does not count, then what is live, which is bounded.
pub(crate) struct Lane {
    replay: VecDeque<Frame>,
    live: VecDeque<Frame>,
    arrears: Arrears,
    bounds: Arrears,
    last_event_id: u64,
    warned: bool,
    ended: bool,
}

/// Events that wait, and their bytes. Frames about the stream itself do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrears {
    pub(crate) frames: usize,
    pub(crate) bytes: usize,
}

/// Which of the two bounds is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Frames,
    Bytes,
}

impl Lane {
    pub(crate) fn new(replay: VecDeque<Frame>, last_event_id: u64, frames_max: usize, bytes_max: usize) -> Self {
        Self {
            replay,
            live: VecDeque::new(),
            arrears: Arrears::default(),
            bounds: Arrears { frames: frames_max, bytes: bytes_max },
            last_event_id,
            warned: false,
            ended: false,
        }
    }

    /// Takes a live event. A reader that is too far behind loses it and everything after it, and is told so if it still reads.
    pub(crate) fn push(&mut self, frame: &Frame, at_ms: u64) {
        if self.ended {
            return;
        }
        if let Some(bound) = self.overflow(frame) {
            self.live.push_back(wire::evicted(bound, self.arrears, self.bounds, self.last_event_id, at_ms));
            self.ended = true;
            return;
        }
        self.arrears.frames += 1;
        self.arrears.bytes += frame.json.len();
        self.last_event_id = frame.id.unwrap_or(self.last_event_id);
        self.live.push_back(frame.clone());
        if let Some(bound) = self.beyond(3, 4).filter(|_| !self.warned) {
            self.warned = true;
            self.live.push_back(wire::slow(bound, self.arrears, self.bounds, self.last_event_id, at_ms));
        }
    }

    /// Passes over an event, which `gap` tells of. Such a frame counts no more than others about the stream; events in a row that
    /// are passed over are one gap.
    pub(crate) fn skip(&mut self, id: u64, gap: &Frame) {
        if self.ended {
            return;
        }
        self.last_event_id = id;
        if self.live.back().is_none_or(|last| last.kind != gap.kind) {
            self.live.push_back(gap.clone());
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Frame> {
        if let Some(frame) = self.replay.pop_front() {
            return Some(frame);
        }
        let frame = self.live.pop_front()?;
        if frame.id.is_some() {
            self.arrears.frames -= 1;
            self.arrears.bytes -= frame.json.len();
            // Half of the warning threshold, so that a reader at the edge is not warned at every event.
            self.warned &= self.beyond(3, 8).is_some();
        }
        Some(frame)
    }

    /// Nothing is taken any more; what waits can still be read.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// The bound that the event would break. An event larger than all that may wait is taken alone, or nobody would ever get it.
    fn overflow(&self, frame: &Frame) -> Option<Bound> {
        if self.arrears.frames >= self.bounds.frames {
            return Some(Bound::Frames);
        }
        let too_much = self.arrears.frames > 0 && self.arrears.bytes + frame.json.len() > self.bounds.bytes;
        too_much.then_some(Bound::Bytes)
    }

    /// The bound of which this share is used.
    fn beyond(&self, share: usize, of: usize) -> Option<Bound> {
        if self.arrears.frames * of >= self.bounds.frames * share {
            return Some(Bound::Frames);
        }
        (self.arrears.bytes * of >= self.bounds.bytes * share).then_some(Bound::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a script of `+` (an event of ten bytes), `+N` (of N bytes), `-` (one read) and tells what was read: `.` for an
    /// event, the type of anything else; `$` at the end for an ended lane.
    fn check(frames_max: usize, bytes_max: usize, script: &str, expected: &str) {
        let mut lane = Lane::new(VecDeque::new(), 0, frames_max, bytes_max);
        let (mut read, mut id) = (Vec::new(), 0);
        for step in script.split_whitespace() {
            if let Some(size) = step.strip_prefix('+') {
                id += 1;
                let size = if size.is_empty() { 10 } else { size.parse().unwrap() };
                lane.push(&Frame { id: Some(id), kind: "event", json: vec![b'x'; size].into() }, 0);
            } else {
                read.push(lane.pop().map_or("nothing", |frame| if frame.id.is_some() { "." } else { frame.kind }));
            }
        }
        let mut short = read.join(" ");
        short.push_str(if lane.is_ended() { " $" } else { "" });
        assert_eq!(short, expected, "{script}");
    }

    #[test]
    fn events_come_in_order_and_then_nothing() {
        check(16, 1000, "+ + - - -", ". . nothing");
    }

    #[test]
    fn three_quarters_full_is_warned_of_once() {
        check(4, 1000, "+ + + - - - -", ". . . slow_client_warning");
        check(8, 1000, "+ + + + + + + - - - - - - - -", ". . . . . . slow_client_warning .");
    }

    #[test]
    fn the_warning_is_armed_again_well_below_its_threshold() {
        // Six of eight warns; five and back to six does not; two and back to six does.
        check(8, 1000, "+ + + + + + - + - - - - - - -", ". . . . . . slow_client_warning .");
        check(8, 1000, "+ + + + + + - - - - + + + + - - - - - -", ". . . . . . slow_client_warning . . .");
        let again = ". . . . . . slow_client_warning . . . . . . slow_client_warning";
        check(8, 1000, "+ + + + + + - - - - - - - + + + + + + - - - - - - -", again);
    }

    #[test]
    fn bytes_warn_and_overflow_as_frames_do() {
        check(100, 40, "+ + + - - - -", ". . . slow_client_warning");
        check(100, 40, "+ + + + + - - - - - - -", ". . . slow_client_warning . client_evicted nothing $");
    }

    #[test]
    fn an_overflow_ends_the_lane_and_says_so_last() {
        check(2, 1000, "+ + + + - - - - -", ". . slow_client_warning client_evicted nothing $");
    }

    #[test]
    fn an_event_larger_than_the_bound_is_taken_alone() {
        check(16, 40, "+100 - - -", ". slow_client_warning nothing");
        check(16, 40, "+ +100 - - -", ". client_evicted nothing $");
    }

    #[test]
    fn events_passed_over_in_a_row_are_one_gap() {
        let mut lane = Lane::new(VecDeque::new(), 0, 16, 1000);
        let gap = Frame { id: None, kind: "gap", json: "{}".into() };
        for id in 1..=3 {
            lane.skip(id, &gap);
        }
        lane.push(&Frame { id: Some(4), kind: "event", json: "{}".into() }, 0);
        lane.skip(5, &gap);
        let read: Vec<_> = std::iter::from_fn(|| lane.pop()).map(|frame| frame.kind).collect();
        assert_eq!(read, ["gap", "event", "gap"]);
    }

    #[test]
    fn a_replay_comes_first_and_does_not_count() {
        let event = |id| Frame { id: Some(id), kind: "event", json: vec![b'x'; 500].into() };
        let mut lane = Lane::new((1..=20).map(event).collect(), 20, 2, 40);
        lane.push(&Frame { id: Some(21), kind: "event", json: vec![b'x'; 10].into() }, 0);
        let read: Vec<_> = std::iter::from_fn(|| lane.pop()).filter_map(|frame| frame.id).collect();
        assert_eq!(read, (1..=21).collect::<Vec<_>>());
        assert!(!lane.is_ended());
    }
}
