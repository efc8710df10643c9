//! What is pruned, what is remembered of it, and who holds that back: returns 2.15.

use turnd_request::store::{Entry, Page, Pruned, Registered, Retention};
use turnd_request::{Hash, NotThere, Position, Registration, RequestId, State};

use crate::world::{NOON, World, asked, id, incarnation, wait};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Ten days, or the newest three.
const SHORT: Retention =
    Retention { kept_ms: 10 * DAY_MS, kept_requests: 3, bytes_max: u64::MAX, tombstone_ms: 100 * DAY_MS };

/// A world with ten requests that ended a day apart, beginning at noon.
fn ten_days() -> World {
    let mut world = World::new();
    for day in 0..10 {
        world.complete(&format!("r{day}"));
        world.now += DAY_MS;
    }
    world
}

fn prune(world: &World, days: u64) -> Pruned {
    world.store().prune(SHORT, NOON + days * DAY_MS).unwrap()
}

#[test]
fn what_is_old_and_not_among_the_newest_becomes_a_tombstone() {
    let world = ten_days();
    assert_eq!(prune(&world, 10).requests, 0);
    assert_eq!(prune(&world, 14).requests, 4);
    let head = world.store().head().unwrap();
    assert_eq!((head.oldest, head.head, head.pruned_through), (5, 10, 4));
    assert_eq!(prune(&world, 99).requests, 3, "the newest three stay whatever their age");
    world.assert_sound();
}

#[test]
fn scenario_07_a_pruned_id_is_known_without_its_payload() {
    let world = ten_days();
    prune(&world, 12);
    let Some(Entry::Tombstone(tombstone)) = world.store().get(&id("r1")).unwrap() else { panic!() };
    assert_eq!((tombstone.state, tombstone.terminal_seq, tombstone.ended_at), (State::Completed, 2, NOON + DAY_MS));
    assert_eq!(world.register("r1").unwrap(), Registered::Tombstone(tombstone));
    let other = Registration { input_hash: Hash([9; 32]), ..asked("r1") };
    assert_eq!(world.ask(other).unwrap(), Registered::Mismatch);
    let theirs = Registration { owner: "b".into(), ..asked("r1") };
    assert_eq!(world.ask(theirs).unwrap(), Registered::ForeignOwner);
}

#[test]
fn scenario_08_an_id_older_than_what_is_remembered_is_expired() {
    let world = ten_days();
    prune(&world, 12);
    assert_eq!(prune(&world, 101).tombstones, 1);
    let floor = world.store().head().unwrap().tombstone_floor;
    assert_eq!(floor, NOON + 1);
    let ask = |at_ms| world.ask(Registration { request_id: RequestId::version_7(at_ms, [0; 10]), ..asked("v7") });
    assert_eq!(ask(floor - 1).unwrap(), Registered::Expired);
    assert!(matches!(ask(floor).unwrap(), Registered::New(_)));
    world.assert_sound();
}

#[test]
fn scenario_72_behind_what_was_pruned_there_is_nothing_to_read_and_that_is_said() {
    let world = ten_days();
    let early = Position::parse(&cursor_of(&world, 2)).unwrap();
    let edge = Position::parse(&cursor_of(&world, 4)).unwrap();
    prune(&world, 14);
    let at = |after| world.store().events(&Page::after(after)).map(|page| page.events[0].seq);
    let too_old = NotThere::TooOld { oldest: 5, head: 10 };
    assert_eq!(at(Position::Number(3)), Err(too_old.clone().into()));
    assert_eq!(at(early), Err(too_old.into()));
    assert_eq!(
        (at(edge), at(Position::Number(4))),
        (Ok(5), Ok(5)),
        "whoever has read all that is gone has lost nothing"
    );
}

fn cursor_of(world: &World, seq: usize) -> String {
    let body: serde_json::Value = serde_json::from_str(&world.events()[seq - 1].payload).unwrap();
    body["cursor"].as_str().unwrap().to_owned()
}

#[test]
fn scenario_73_when_everything_is_pruned_numbers_go_on() {
    let mut world = ten_days();
    let all = Retention { kept_requests: 0, ..SHORT };
    assert_eq!(world.store().prune(all, NOON + 50 * DAY_MS).unwrap().requests, 10);
    assert_eq!(world.events(), []);
    world.open();
    assert_eq!(world.complete("next").seq, 11);
    world.assert_sound();
}

#[test]
fn scenario_88_a_protected_consumer_holds_pruning_back_up_to_four_times_as_long() {
    let world = ten_days();
    world.consume("slow", 2, Some(true)).unwrap();
    world.consume("free", 1, None).unwrap();
    assert_eq!(prune(&world, 15), Pruned { requests: 2, ..Pruned::default() });
    let unlimited = Retention { kept_requests: 0, ..SHORT };
    let pruned = world.store().prune(unlimited, NOON + 45 * DAY_MS).unwrap();
    assert_eq!(pruned, Pruned { requests: 3, unprotected: 1, ..Pruned::default() });
    let consumers = world.store().consumers().unwrap();
    assert!(consumers.iter().all(|consumer| !consumer.protect));
    let behind = world.store().events(&Page::after(Position::Number(2)));
    assert_eq!(behind, Err(NotThere::TooOld { oldest: 6, head: 10 }.into()));
}

#[test]
fn a_store_that_is_too_large_lets_the_oldest_go_early() {
    let world = World::new();
    for number in 0..30 {
        world.submit(&format!("r{number}"));
        world.apply(&format!("r{number}"), crate::world::settled(&"long ".repeat(40_000))).unwrap();
    }
    let before = std::fs::metadata(world.file()).unwrap().len();
    let small = Retention { bytes_max: 1024 * 1024, ..SHORT };
    assert_eq!(world.store().prune(small, world.now).unwrap().requests, 30);
    let after = std::fs::metadata(world.file()).unwrap().len();
    assert!(after < before / 4, "the room is given back: {before} to {after}");
    world.assert_sound();
}

#[test]
fn an_open_request_is_never_pruned() {
    let world = ten_days();
    world.new_request("open");
    let all = Retention { kept_requests: 0, kept_ms: 0, bytes_max: 0, tombstone_ms: 0 };
    world.store().prune(all, NOON + 1_000 * DAY_MS).unwrap();
    assert_eq!(world.get("open").state, State::Registered);
    assert_eq!(world.store().get(&id("r1")).unwrap(), None);
}

#[test]
fn a_process_that_is_gone_and_that_no_request_names_is_forgotten() {
    let world = ten_days();
    for name in ["named", "gone", "alive"] {
        world.note(incarnation(name)).unwrap();
    }
    world.ask(Registration { incarnation_id: Some("named".into()), ..asked("x") }).unwrap();
    for name in ["named", "gone"] {
        wait(|reply| world.store().end_incarnation(name.into(), "exit".into(), NOON, reply)).unwrap();
    }
    let open: Vec<String> =
        world.store().open_incarnations().unwrap().into_iter().map(|found| found.incarnation_id).collect();
    assert_eq!(open, ["alive"]);
    assert_eq!(prune(&world, 11).incarnations, 1);
    let known = ["named", "gone", "alive"].map(|name| world.store().incarnation(name).unwrap().is_some());
    assert_eq!(known, [true, false, true]);
}
