//! The event stream of one session: numbered, kept for a while, and sent to whoever reads.

mod lane;
#[cfg(test)]
mod properties;
mod ring;

use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use lane::{Arrears, Bound, Lane};
use ring::Ring;
pub(crate) use ring::{Cursor, Gap};

use crate::Frame;
use crate::limits::{Limits, SUBSCRIBER_BYTES_MAX};

/// Numbers events, remembers the newest, and hands them to the subscribers. Nobody's slowness reaches it: a full lane ends.
pub(crate) struct Bus {
    ring: Ring,
    /// A subscription owns its mailbox, so a dropped one simply is not there any more.
    mailboxes: Vec<Weak<Mailbox>>,
    subscribers_max: usize,
    ended: bool,
}

/// What waits for one subscriber, and the bell.
pub(crate) struct Mailbox {
    pub(crate) lane: Mutex<Lane>,
    pub(crate) bell: Notify,
}

/// What the ring remembers.
#[cfg(test)]
struct Recent {
    events: Vec<Bytes>,
    /// Events of this life that came before.
    forgotten: u64,
}

/// Why nobody came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There are as many subscribers as may be.
    Full { limit: usize },
    /// Nothing will be published any more.
    Ended,
}

impl Bus {
    /// A bus whose first event has the number after `seeded`, those being the events of a replayed history.
    pub(crate) fn new(seeded: u64, limits: Limits) -> Self {
        let ring = Ring::new(seeded, limits.ring_events);
        Self { ring, mailboxes: Vec::new(), subscribers_max: limits.subscribers, ended: false }
    }

    /// The number of the newest event.
    pub(crate) fn tip(&self) -> u64 {
        self.ring.tip()
    }

    /// Numbers an event, which `write` puts into its envelope, and sends it to all; one that is too large as the gap it leaves.
    /// Gives what was published; nothing is behind the end.
    pub(crate) fn publish(
        &mut self,
        kind: &'static str,
        at_ms: u64,
        write: impl FnOnce(u64) -> Bytes,
    ) -> Option<(u64, Bytes)> {
        if self.ended {
            return None;
        }
        let id = self.ring.tip() + 1;
        let json = write(id);
        let frame = Frame { id: Some(id), kind, json: json.clone() };
        let gap = self.ring.push(frame.clone(), at_ms);
        self.mailboxes.retain(|mailbox| {
            let Some(mailbox) = mailbox.upgrade() else { return false };
            let open = {
                let mut lane = mailbox.lane.lock();
                match &gap {
                    None => lane.push(&frame, at_ms),
                    Some(gap) => lane.skip(id, gap),
                }
                !lane.is_ended()
            };
            mailbox.bell.notify_one();
            open
        });
        Some((id, json))
    }

    /// Opens a lane that begins with what the cursor asks for; without a cursor, with what comes next.
    pub(crate) fn subscribe(
        &mut self,
        cursor: Option<Cursor>,
        frames_max: usize,
        at_ms: u64,
    ) -> Result<Arc<Mailbox>, Refused> {
        if self.ended {
            return Err(Refused::Ended);
        }
        if self.subscriber_count() >= self.subscribers_max {
            return Err(Refused::Full { limit: self.subscribers_max });
        }
        let replay = cursor.map(|cursor| self.ring.replay(cursor, at_ms)).unwrap_or_default();
        let lane = Lane::new(replay, self.ring.tip(), frames_max, SUBSCRIBER_BYTES_MAX);
        let mailbox = Arc::new(Mailbox { lane: Mutex::new(lane), bell: Notify::new() });
        self.mailboxes.push(Arc::downgrade(&mailbox));
        Ok(mailbox)
    }

    pub(crate) fn subscriber_count(&mut self) -> usize {
        self.mailboxes.retain(|mailbox| mailbox.strong_count() > 0);
        self.mailboxes.len()
    }

    /// The events still remembered.
    #[cfg(test)]
    fn recent(&self) -> Recent {
        let events = self.ring.frames().map(|frame| frame.json.clone()).collect();
        Recent { events, forgotten: self.ring.forgotten() }
    }

    /// Every stream ends after what it has been sent; no event follows.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        for mailbox in self.mailboxes.drain(..).filter_map(|mailbox| mailbox.upgrade()) {
            mailbox.lane.lock().end();
            mailbox.bell.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(subscribers_max: usize) -> Bus {
        Bus::new(0, Limits { subscribers: subscribers_max, ..Limits::default() })
    }

    fn say(bus: &mut Bus, word: &'static str) {
        bus.publish("word", 0, |_| Bytes::from_static(word.as_bytes()));
    }

    fn read(mailbox: &Mailbox) -> Vec<(Option<u64>, String)> {
        let mut lane = mailbox.lane.lock();
        std::iter::from_fn(|| lane.pop())
            .map(|frame| (frame.id, String::from_utf8_lossy(&frame.json).into_owned()))
            .collect()
    }

    #[test]
    fn numbers_go_on_behind_the_seeded_ones() {
        let mut bus = Bus::new(5, Limits { subscribers: 1, ..Limits::default() });
        assert_eq!(bus.tip(), 5);
        say(&mut bus, "six");
        assert_eq!(bus.tip(), 6);
    }

    #[test]
    fn without_a_cursor_only_what_comes_next_is_sent() {
        let mut bus = bus(1);
        say(&mut bus, "before");
        let mailbox = bus.subscribe(None, 16, 0).unwrap();
        say(&mut bus, "after");
        assert_eq!(read(&mailbox), [(Some(2), "after".to_owned())]);
    }

    #[test]
    fn all_subscribers_share_the_one_serialised_text() {
        let mut bus = bus(2);
        let (one, two) = (bus.subscribe(None, 16, 0).unwrap(), bus.subscribe(None, 16, 0).unwrap());
        bus.publish("word", 0, |_| Bytes::from(b"shared".to_vec()));
        let (one, two) = (one.lane.lock().pop().unwrap(), two.lane.lock().pop().unwrap());
        assert_eq!(one.json.as_ptr(), two.json.as_ptr());
    }

    #[test]
    fn a_subscriber_over_the_limit_is_refused_until_another_leaves() {
        let mut bus = bus(1);
        let first = bus.subscribe(None, 16, 0).unwrap();
        assert_eq!(bus.subscribe(None, 16, 0).err(), Some(Refused::Full { limit: 1 }));
        drop(first);
        assert!(bus.subscribe(None, 16, 0).is_ok());
    }

    #[test]
    fn a_reader_that_stops_reading_does_not_keep_the_others_from_anything() {
        let mut bus = bus(2);
        let (stalled, lively) = (bus.subscribe(None, 16, 0).unwrap(), bus.subscribe(None, 16, 0).unwrap());
        let mut seen = 0;
        for _ in 0..100 {
            say(&mut bus, "word");
            seen += read(&lively).len();
        }
        assert_eq!(seen, 100);
        assert!(stalled.lane.lock().is_ended());
        assert_eq!(bus.subscriber_count(), 1, "the evicted one no longer counts");
    }

    #[test]
    fn after_the_end_nothing_is_published_and_nobody_comes_in() {
        let mut bus = bus(2);
        let mailbox = bus.subscribe(None, 16, 0).unwrap();
        say(&mut bus, "last");
        bus.end();
        say(&mut bus, "too late");
        assert_eq!(read(&mailbox), [(Some(1), "last".to_owned())]);
        assert!(mailbox.lane.lock().is_ended());
        assert_eq!(bus.subscribe(None, 16, 0).err(), Some(Refused::Ended));
        assert_eq!(bus.recent().events.len(), 1);
    }

    #[test]
    fn an_event_that_no_reader_could_take_is_told_as_a_gap_and_ends_nobody() {
        let mut bus = bus(1);
        let mailbox = bus.subscribe(None, 16, 0).unwrap();
        say(&mut bus, "one");
        bus.publish("word", 0, |_| vec![b'x'; crate::limits::EVENT_BYTES_MAX + 1].into());
        say(&mut bus, "three");
        let read = read(&mailbox);
        let ids: Vec<_> = read.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [Some(1), None, Some(3)]);
        let gap = r#""reason":"ring_evicted","lastDeliveredId":1,"earliestAvailableId":3"#;
        assert!(read[1].1.contains(gap), "{}", read[1].1);
        assert_eq!((bus.recent().forgotten, bus.tip()), (2, 3));
    }
}
