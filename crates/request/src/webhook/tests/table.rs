//! What follows from what, case by case.

use super::{NOON, World, again, answered, in_turn};
use crate::webhook::limits::{RETRY_AFTER_MAX_MS, TRIES_MAX, TRYING_MAX_MS, WANTED_MAX};
use crate::webhook::{Denial, Effect, Fault, Input, Standing, Ticket, Trying};

const IDLE: &[Effect] = &[Effect::Sleep { until_ms: None }];

fn send(ticket: Ticket, number: u32) -> Vec<Effect> {
    vec![Effect::Send { ticket, number }]
}

fn retry(pause_ms: u64, fault: Fault) -> Vec<Effect> {
    vec![Effect::Retry { next_at_ms: Some(NOON + pause_ms), fault }]
}

/// A world in which the first of two events is on its way for the first time.
fn on_its_way() -> World {
    let mut world = World::of(2);
    assert_eq!(world.due(), send(in_turn(1), 1));
    world
}

#[test]
fn events_go_out_one_behind_the_other() {
    let mut world = on_its_way();
    assert_eq!(world.due(), IDLE, "one is on its way");
    assert_eq!(world.step(answered(in_turn(1), 200)), [Effect::MoveOn { seq: 1 }]);
    assert_eq!(world.due(), send(in_turn(2), 1));
    assert_eq!(world.step(answered(in_turn(2), 204)), [Effect::MoveOn { seq: 2 }]);
    assert_eq!(world.due(), IDLE);
    assert_eq!(world.endpoint.acked, 2);
}

#[test]
fn what_an_answer_means_for_the_next_try() {
    let half = 500;
    for (status, retry_after_ms, expected) in [
        (200, None, vec![Effect::MoveOn { seq: 1 }]),
        (299, None, vec![Effect::MoveOn { seq: 1 }]),
        (410, None, vec![Effect::Disable { fault: Fault::Answered(410) }]),
        (500, None, retry(half, Fault::Answered(500))),
        (404, None, retry(half, Fault::Answered(404))),
        (301, None, retry(half, Fault::Answered(301))),
        (308, Some(9_000), retry(half, Fault::Answered(308))),
        (100, None, retry(half, Fault::Answered(100))),
        (429, None, retry(half, Fault::Answered(429))),
        (429, Some(9_000), retry(9_000, Fault::Answered(429))),
        (503, Some(9_000), retry(9_000, Fault::Answered(503))),
        (503, Some(100), retry(half, Fault::Answered(503))),
        (503, Some(u64::MAX), retry(RETRY_AFTER_MAX_MS, Fault::Answered(503))),
        (500, Some(9_000), retry(half, Fault::Answered(500))),
    ] {
        let input = Input::Answered { ticket: in_turn(1), status, retry_after_ms };
        assert_eq!(on_its_way().step(input), expected, "{status} {retry_after_ms:?}");
    }
    for fault in [Fault::Timeout, Fault::Unreachable, Fault::Tls, Fault::Torn] {
        assert_eq!(on_its_way().step(Input::Failed { ticket: in_turn(1), fault }), retry(half, fault));
    }
}

#[test]
fn the_same_event_is_tried_again_when_its_pause_is_over_and_not_before() {
    let mut world = on_its_way();
    world.step(answered(in_turn(1), 500));
    assert_eq!(world.due(), [Effect::Sleep { until_ms: Some(NOON + 500) }]);
    world.now.at_ms += 499;
    assert_eq!(world.due(), [Effect::Sleep { until_ms: Some(NOON + 500) }]);
    world.now.at_ms += 1;
    assert_eq!(world.due(), send(in_turn(1), 2));
}

#[test]
fn a_clock_that_was_put_back_does_not_make_a_pause_of_days() {
    let mut world = on_its_way();
    world.step(answered(in_turn(1), 500));
    world.now.at_ms -= 24 * 60 * 60 * 1_000;
    assert_eq!(world.due(), send(in_turn(1), 2));
}

#[test]
fn after_the_last_try_the_next_event_goes_out() {
    let mut world = on_its_way();
    world.endpoint.trying.tries = TRIES_MAX - 1;
    assert!(matches!(world.step(answered(in_turn(1), 500))[..], [Effect::Retry { .. }]));
    world.now.at_ms += 600_000;
    assert_eq!(world.due(), send(in_turn(1), TRIES_MAX));
    let dead = Effect::DeadLetter { seq: 1, is_again: false, tries: TRIES_MAX, fault: Fault::Answered(500) };
    assert_eq!(world.step(answered(in_turn(1), 500)), [dead]);
    assert_eq!(world.due(), send(in_turn(2), 1));
    assert_eq!(world.endpoint.acked, 1);
}

#[test]
fn a_day_after_the_first_try_there_is_no_further_one() {
    let mut world = on_its_way();
    world.now.at_ms += TRYING_MAX_MS - 1;
    assert!(matches!(world.step(answered(in_turn(1), 500))[..], [Effect::Retry { .. }]));
    let mut world = on_its_way();
    world.now.at_ms += TRYING_MAX_MS;
    let dead = Effect::DeadLetter { seq: 1, is_again: false, tries: 1, fault: Fault::Timeout };
    assert_eq!(world.step(Input::Failed { ticket: in_turn(1), fault: Fault::Timeout }), [dead]);
}

#[test]
fn what_was_on_its_way_when_the_daemon_died_is_sent_again_at_once_and_counts() {
    let mut world = on_its_way();
    assert_eq!(world.step(Input::Started), [Effect::PutBack]);
    assert_eq!(world.due(), send(in_turn(1), 2));
    assert_eq!(World::of(1).step(Input::Started), []);
}

#[test]
fn a_daemon_that_dies_of_each_try_gives_up_in_the_end() {
    let mut world = World::of(2);
    for number in 1..=TRIES_MAX {
        assert_eq!(world.due(), send(in_turn(1), number));
        world.step(Input::Started);
    }
    let dead = Effect::DeadLetter { seq: 1, is_again: false, tries: TRIES_MAX, fault: Fault::CutOff };
    assert_eq!(world.due(), [dead]);
    assert_eq!(world.due(), send(in_turn(2), 1));
}

#[test]
fn an_answer_to_what_is_not_on_its_way_changes_nothing() {
    let mut world = on_its_way();
    let before = world.endpoint.clone();
    let other = Ticket { generation: 6, ..in_turn(1) };
    for stale in [in_turn(2), again(1), other] {
        assert_eq!(world.step(answered(stale, 200)), []);
        assert_eq!(world.step(Input::Failed { ticket: stale, fault: Fault::Torn }), []);
    }
    assert_eq!(world.endpoint, before);
    world.step(answered(in_turn(1), 200));
    assert_eq!(world.step(answered(in_turn(1), 410)), [], "the second answer to one try");
}

#[test]
fn who_wants_no_more_gets_no_more_until_somebody_says_so() {
    let mut world = on_its_way();
    world.step(answered(in_turn(1), 410));
    assert_eq!((world.endpoint.standing, world.endpoint.acked), (Standing::Disabled, 0));
    assert_eq!(world.endpoint.trying.fault, Some(Fault::Answered(410)));
    assert_eq!(world.due(), IDLE);
    assert_eq!(world.step(Input::Redeliver { seq: 1 }), [Effect::Deny(Denial::Disabled)]);
    assert_eq!(world.step(Input::Resumed), [Effect::GoOn { behind: 0 }]);
    assert_eq!(world.due(), send(in_turn(1), 1));
}

#[test]
fn who_is_resumed_is_not_left_waiting() {
    let mut world = on_its_way();
    world.step(answered(in_turn(1), 500));
    world.step(Input::Resumed);
    assert_eq!(world.due(), send(in_turn(1), 1));
}

#[test]
fn a_gap_is_told_and_nothing_goes_out_behind_it_unasked() {
    let mut world = World::of(9);
    world.extent.pruned_through = 4;
    assert_eq!(world.due(), [Effect::Gap { from: 1, through: 4 }]);
    assert_eq!(world.due(), IDLE);
    assert_eq!(world.endpoint.standing, Standing::Gap { from: 1, through: 4 });
    world.extent.pruned_through = 6;
    assert_eq!(world.step(Input::Resumed), [Effect::GoOn { behind: 6 }]);
    assert_eq!(world.due(), send(in_turn(7), 1));
}

#[test]
fn an_event_is_sent_again_by_demand_before_the_next_one_and_moves_nothing() {
    let mut world = World::of(9);
    world.endpoint.acked = 5;
    assert_eq!(world.step(Input::Redeliver { seq: 2 }), [Effect::Want { seq: 2 }]);
    assert_eq!(world.step(Input::Redeliver { seq: 8 }), [Effect::Want { seq: 8 }], "also one that it has not had");
    assert_eq!(world.step(Input::Redeliver { seq: 2 }), [], "the same demand");
    assert_eq!(world.due(), send(again(2), 1));
    assert_eq!(world.step(answered(again(2), 200)), [Effect::Redelivered { seq: 2 }]);
    assert_eq!(world.due(), send(again(8), 1));
    let dead = Effect::DeadLetter { seq: 8, is_again: true, tries: 1, fault: Fault::Answered(500) };
    assert_eq!(world.step(answered(again(8), 500)), [dead], "a demand is one try");
    assert_eq!(world.due(), send(in_turn(6), 1));
    assert_eq!((world.endpoint.acked, &world.endpoint.wanted), (5, &Vec::new()));
}

#[test]
fn a_demand_does_not_wait_for_a_pause_nor_for_a_gap_to_be_accepted() {
    let mut world = on_its_way();
    world.step(answered(in_turn(1), 500));
    world.step(Input::Redeliver { seq: 2 });
    assert_eq!(world.due(), send(again(2), 1));
    world.step(answered(again(2), 200));
    assert_eq!(world.due(), [Effect::Sleep { until_ms: Some(NOON + 500) }], "the pause is what it was");
    let mut world = World::of(9);
    world.extent.pruned_through = 4;
    world.due();
    world.step(Input::Redeliver { seq: 7 });
    assert_eq!(world.due(), send(again(7), 1));
}

#[test]
fn a_410_to_a_demand_disables_too() {
    let mut world = World::of(9);
    world.endpoint.acked = 5;
    world.step(Input::Redeliver { seq: 2 });
    world.due();
    let fault = Fault::Answered(410);
    let dead = Effect::DeadLetter { seq: 2, is_again: true, tries: 1, fault };
    assert_eq!(world.step(answered(again(2), 410)), [dead, Effect::Disable { fault }]);
    assert_eq!((world.endpoint.sending, world.endpoint.standing), (None, Standing::Disabled));
}

#[test]
fn a_demand_that_was_cut_off_is_still_one() {
    let mut world = World::of(9);
    world.step(Input::Redeliver { seq: 2 });
    world.due();
    world.step(Input::Started);
    assert_eq!(world.due(), send(again(2), 1));
}

#[test]
fn demands_are_bounded_and_only_for_what_is_kept() {
    let mut world = World::of(500);
    world.extent.pruned_through = 10;
    assert_eq!(world.step(Input::Redeliver { seq: 10 }), [Effect::Deny(Denial::Pruned)]);
    assert_eq!(world.step(Input::Redeliver { seq: 0 }), [Effect::Deny(Denial::Pruned)]);
    assert_eq!(world.step(Input::Redeliver { seq: 501 }), [Effect::Deny(Denial::Ahead)]);
    for seq in 11..11 + WANTED_MAX as u64 {
        assert_eq!(world.step(Input::Redeliver { seq }), [Effect::Want { seq }]);
    }
    assert_eq!(world.step(Input::Redeliver { seq: 400 }), [Effect::Deny(Denial::TooMany)]);
}

#[test]
fn what_was_tried_is_forgotten_with_its_event() {
    let mut world = on_its_way();
    world.step(answered(in_turn(1), 500));
    assert_ne!(world.endpoint.trying, Trying::default());
    world.now.at_ms += 1_000;
    world.due();
    world.step(answered(in_turn(1), 200));
    assert_eq!(world.endpoint.trying, Trying::default());
}
