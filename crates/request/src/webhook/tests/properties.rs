//! What holds whatever happens, in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{World, answered};
use crate::webhook::limits::{RETRY_AFTER_MAX_MS, TRIES_MAX, TRYING_MAX_MS};
use crate::webhook::{Effect, Fault, Input, Standing, Ticket};

#[derive(Clone, Debug)]
enum Move {
    Commit(u64),
    Prune(u64),
    Due,
    Answer {
        status: u16,
        retry_after_ms: Option<u64>,
    },
    Fail,
    /// An answer that comes twice, or after the daemon was started anew.
    Stale,
    Restart,
    Redeliver(u64),
    Resume,
    Pass(u64),
}

fn moves() -> impl Strategy<Value = Vec<(Move, u32)>> {
    let status = prop_oneof![4 => Just(200_u16), 1 => Just(410), 1 => Just(429), 1 => Just(503), 2 => 100..=599_u16];
    let one = prop_oneof![
        2 => (1..4_u64).prop_map(Move::Commit),
        1 => (0..4_u64).prop_map(Move::Prune),
        8 => Just(Move::Due),
        6 => (status, proptest::option::of(0..10_000_000_u64))
            .prop_map(|(status, retry_after_ms)| Move::Answer { status, retry_after_ms }),
        1 => Just(Move::Fail),
        1 => Just(Move::Stale),
        1 => Just(Move::Restart),
        1 => (0..20_u64).prop_map(Move::Redeliver),
        1 => Just(Move::Resume),
        3 => (0..2_000_000_u64).prop_map(Move::Pass),
    ];
    proptest::collection::vec((one, any::<u32>()), 0..120)
}

/// What the world outside sees of an endpoint.
#[derive(Default)]
struct Seen {
    on_its_way: Option<Ticket>,
    last: Option<Ticket>,
    /// In their turn, in the order in which they went out, each as often as it did.
    sent: Vec<u64>,
    delivered: BTreeSet<u64>,
    letters: BTreeSet<u64>,
    gaps: BTreeSet<u64>,
    tries: BTreeMap<u64, u32>,
}

impl Seen {
    fn see(&mut self, before: Standing, world: &World, effects: &[Effect]) {
        for effect in effects {
            match *effect {
                Effect::Send { ticket, number } => {
                    assert_eq!(self.on_its_way, None, "two at once");
                    self.on_its_way = Some(ticket);
                    self.last = Some(ticket);
                    let seq = ticket.sending.seq;
                    assert!(seq <= world.extent.head);
                    if !ticket.sending.is_again {
                        let known = |before| self.delivered.contains(&before) || self.letters.contains(&before);
                        assert!((1..seq).all(|before| known(before) || self.gaps.contains(&before)), "{seq} overtakes");
                        self.sent.push(seq);
                        let tries = self.tries.entry(seq).or_default();
                        *tries = number;
                        assert!(number <= TRIES_MAX);
                    }
                }
                Effect::MoveOn { .. } | Effect::Redelivered { .. } => {}
                Effect::DeadLetter { seq, .. } => {
                    self.letters.insert(seq);
                }
                Effect::Gap { from, through } => {
                    assert_eq!(through, world.extent.pruned_through);
                    self.gaps.extend(from..=through);
                }
                // What is gone by now, which may be more than what was told before, is told to whoever resumes.
                Effect::GoOn { behind } => {
                    if let Standing::Gap { from, .. } = before {
                        self.gaps.extend(from..=behind);
                    }
                }
                Effect::Retry { .. } | Effect::PutBack | Effect::Disable { .. } | Effect::Want { .. } => {}
                Effect::Sleep { .. } | Effect::Deny(_) => {}
            }
        }
        assert_eq!(self.on_its_way.map(|ticket| ticket.sending), world.endpoint.sending);
    }

    fn play(&mut self, world: &mut World, this: &Move, dice: u32) {
        world.now.dice = dice;
        let input = match *this {
            Move::Commit(many) => {
                world.extent.head += many;
                return;
            }
            Move::Prune(many) => {
                world.extent.pruned_through = (world.extent.pruned_through + many).min(world.extent.head);
                return;
            }
            Move::Pass(ms) => {
                world.now.at_ms += ms;
                return;
            }
            Move::Due => Input::Due,
            Move::Answer { status, retry_after_ms } => {
                let Some(ticket) = self.on_its_way.take() else { return };
                if (200..300).contains(&status) {
                    self.delivered.insert(ticket.sending.seq);
                }
                Input::Answered { ticket, status, retry_after_ms }
            }
            Move::Fail => {
                let Some(ticket) = self.on_its_way.take() else { return };
                Input::Failed { ticket, fault: Fault::Timeout }
            }
            Move::Stale => {
                let stale = self.last.filter(|_| self.on_its_way.is_none());
                let Some(ticket) = stale else { return };
                answered(ticket, 200)
            }
            Move::Restart => {
                self.on_its_way = None;
                Input::Started
            }
            Move::Redeliver(seq) => Input::Redeliver { seq },
            Move::Resume => Input::Resumed,
        };
        let (acked, before) = (world.endpoint.acked, world.endpoint.standing);
        let effects = world.step(input);
        self.see(before, world, &effects);
        assert!(world.endpoint.acked >= acked, "it never goes back");
        if matches!(this, Move::Stale) {
            assert_eq!(effects, []);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Never two at once, in order, and once the receiver is well every event was delivered, is a dead letter, or in a gap that was told.
    #[test]
    fn no_event_is_passed_over_unseen(moves in moves()) {
        let (mut world, mut seen) = (World::of(0), Seen::default());
        for (this, dice) in &moves {
            seen.play(&mut world, this, *dice);
        }
        for _ in 0..400 {
            for this in [Move::Answer { status: 200, retry_after_ms: None }, Move::Pass(RETRY_AFTER_MAX_MS), Move::Due] {
                seen.play(&mut world, &this, 0);
            }
            if world.endpoint.standing != Standing::Active {
                seen.play(&mut world, &Move::Resume, 0);
            }
        }
        prop_assert_eq!(world.endpoint.acked, world.extent.head);
        prop_assert!(world.endpoint.wanted.is_empty());
        prop_assert!(seen.sent.is_sorted(), "{:?}", seen.sent);
        for seq in 1..=world.extent.head {
            let is_seen = seen.delivered.contains(&seq) || seen.letters.contains(&seq) || seen.gaps.contains(&seq);
            prop_assert!(is_seen, "{} was passed over", seq);
        }
    }

    /// However a receiver fails, and however often the daemon is started anew, each event has its end within a bounded number of tries and
    /// a bounded time.
    #[test]
    fn the_tries_of_an_event_are_bounded(
        dice in proptest::collection::vec((any::<u32>(), 0..20_u8), 1..50),
        retry_after_ms in proptest::option::of(0..u64::MAX),
    ) {
        let mut world = World::of(2);
        let (mut tries, begun) = (0, world.now.at_ms);
        let mut dice = dice.iter().cycle();
        while world.endpoint.acked == 0 {
            let &(chance, what) = dice.next().unwrap();
            world.now.dice = chance;
            match world.due()[..] {
                [Effect::Send { ticket, number }] => {
                    tries += 1;
                    prop_assert_eq!(number, tries);
                    world.step(match what {
                        0 => Input::Started,
                        1..=9 => Input::Answered { ticket, status: 503, retry_after_ms },
                        _ => Input::Failed { ticket, fault: Fault::Torn },
                    });
                }
                [Effect::Sleep { until_ms: Some(until_ms) }] => {
                    prop_assert!(until_ms - world.now.at_ms <= RETRY_AFTER_MAX_MS);
                    world.now.at_ms = until_ms;
                }
                [Effect::DeadLetter { .. }] => {}
                ref other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert!(tries <= TRIES_MAX);
        prop_assert!(world.now.at_ms - begun <= TRYING_MAX_MS + RETRY_AFTER_MAX_MS);
    }
}
