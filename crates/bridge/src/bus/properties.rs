//! What every reader may rely on, whatever was published, read and missed before.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::{Bus, Cursor, Mailbox};
use crate::Frame;
use crate::limits::Limits;

/// A reader that comes and goes, and what it has seen.
#[derive(Default)]
struct Reader {
    mailbox: Option<Arc<Mailbox>>,
    /// The last event seen, with which it comes back.
    last_seen: Option<u64>,
    /// Since the last event seen it was told of a gap.
    told_of_gap: bool,
    seen: usize,
}

impl Reader {
    fn read(&mut self, frames_max: usize) {
        let Some(mailbox) = self.mailbox.clone() else { return };
        for _ in 0..frames_max {
            let Some(frame) = mailbox.lane.lock().pop() else { break };
            self.take(&frame);
        }
        if mailbox.lane.lock().is_ended() {
            self.mailbox = None;
        }
    }

    /// Numbers rise by one, unless a gap was announced (demand on event numbers).
    fn take(&mut self, frame: &Frame) {
        match frame.id {
            Some(id) => {
                let next = self.last_seen.map_or(id, |last| last + 1);
                assert!(id == next || (self.told_of_gap && id > next), "{id} behind {:?}", self.last_seen);
                (self.last_seen, self.told_of_gap) = (Some(id), false);
                self.seen += 1;
            }
            None => self.told_of_gap |= frame.kind == "state_resync_required",
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Publish { bytes: usize },
    Read { reader: usize, frames_max: usize },
    Leave { reader: usize },
    Return { reader: usize, frames_max: usize },
}

fn act() -> impl Strategy<Value = Act> {
    let reader = 0..3usize;
    prop_oneof![
        6 => (0usize..300_000).prop_map(|bytes| Act::Publish { bytes }),
        6 => (0usize..40).prop_map(|bytes| Act::Publish { bytes }),
        4 => (reader.clone(), 0usize..20).prop_map(|(reader, frames_max)| Act::Read { reader, frames_max }),
        1 => reader.clone().prop_map(|reader| Act::Leave { reader }),
        2 => (reader, 16usize..40).prop_map(|(reader, frames_max)| Act::Return { reader, frames_max }),
    ]
}

fn play(acts: &[Act]) -> (Bus, Vec<Reader>) {
    let text = Bytes::from(vec![b'x'; 300_000]);
    let mut bus = Bus::new(0, Limits { subscribers: 3, ..Limits::default() });
    let mut readers: Vec<Reader> = (0..3).map(|_| Reader::default()).collect();
    for act in acts {
        match *act {
            Act::Publish { bytes } => drop(bus.publish("event", 0, |_| text.slice(..bytes))),
            Act::Read { reader, frames_max } => readers[reader].read(frames_max),
            Act::Leave { reader } => readers[reader].mailbox = None,
            Act::Return { reader, frames_max } => {
                let reader = &mut readers[reader];
                reader.mailbox = None;
                let cursor = reader.last_seen.map(|last_seen| Cursor { last_seen, same_epoch: true });
                reader.mailbox = Some(bus.subscribe(cursor, frames_max, 0).unwrap());
            }
        }
    }
    (bus, readers)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_reader_misses_an_event_unless_it_is_told(acts in prop::collection::vec(act(), 0..120)) {
        let (mut bus, mut readers) = play(&acts);
        bus.end();
        for reader in &mut readers {
            reader.read(usize::MAX);
            prop_assert!(reader.mailbox.is_none(), "every stream ends");
        }
    }

    #[test]
    fn a_reader_that_keeps_up_sees_everything(sizes in prop::collection::vec(0usize..100_000, 0..60)) {
        let mut bus = Bus::new(9, Limits { subscribers: 1, ..Limits::default() });
        let mut reader = Reader { mailbox: Some(bus.subscribe(None, 16, 0).unwrap()), ..Reader::default() };
        for size in &sizes {
            bus.publish("event", 0, |_| Bytes::from(vec![b'x'; *size]));
            reader.read(usize::MAX);
        }
        prop_assert_eq!(reader.seen, sizes.len());
        prop_assert_eq!(reader.last_seen.unwrap_or(9), 9 + sizes.len() as u64);
        prop_assert!(reader.mailbox.is_some());
    }

    #[test]
    fn memory_stays_within_its_bounds(sizes in prop::collection::vec(0usize..3_000_000, 0..40), frames_max in 16usize..64) {
        let mut bus = Bus::new(0, Limits { subscribers: 1, ..Limits::default() });
        let stalled = bus.subscribe(None, frames_max, 0).unwrap();
        let text = Bytes::from(vec![b'x'; 3_000_000]);
        for size in sizes {
            bus.publish("event", 0, |_| text.slice(..size));
        }
        let kept: usize = bus.recent().events.iter().map(Bytes::len).sum();
        prop_assert!(kept <= crate::limits::RING_BYTES_MAX);
        let mut lane = stalled.lane.lock();
        let waiting: Vec<Frame> = std::iter::from_fn(|| lane.pop()).filter(|frame| frame.id.is_some()).collect();
        let bytes: usize = waiting.iter().map(|frame| frame.json.len()).sum();
        prop_assert!(waiting.len() <= frames_max);
        prop_assert!(waiting.len() <= 1 || bytes <= crate::limits::SUBSCRIBER_BYTES_MAX);
    }

    #[test]
    fn a_cursor_is_answered_with_everything_behind_it_or_with_a_gap(events in 0u64..40, seeded in 0u64..10, cursor in 0u64..60) {
        let mut bus = Bus::new(seeded, Limits { subscribers: 1, ..Limits::default() });
        for _ in 0..events {
            bus.publish("event", 0, |_| Bytes::from_static(b"{}"));
        }
        let tip = seeded + events;
        let mailbox = bus.subscribe(Some(Cursor { last_seen: cursor, same_epoch: true }), 16, 0).unwrap();
        let mut lane = mailbox.lane.lock();
        let frames: Vec<Frame> = std::iter::from_fn(|| lane.pop()).collect();
        let ids: Vec<u64> = frames.iter().filter_map(|frame| frame.id).collect();
        let gap = frames.iter().any(|frame| frame.kind == "state_resync_required");
        prop_assert_eq!(gap, cursor > tip || cursor < seeded);
        let from = if gap { seeded + 1 } else { cursor + 1 };
        prop_assert_eq!(ids, (from..=tip).collect::<Vec<_>>());
        prop_assert_eq!(frames.last().map(|frame| frame.kind), Some("replay_complete"));
    }
}
