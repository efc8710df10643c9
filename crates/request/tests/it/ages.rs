//! What an id of version 7 says of its age, and what follows from it when a store has lost something: an id that was taken is never free again,
//! however the clocks of its caller and of the daemon went.

use turnd_request::store::limits::CLOCK_AHEAD_MS;
use turnd_request::store::{Entry, Registered, Rescue, recover, reset};
use turnd_request::{Registration, RequestId};

use crate::world::{NOON, World, asked};

const HOUR_MS: u64 = 60 * 60 * 1000;

fn of(born_ms: u64) -> RequestId {
    RequestId::version_7(born_ms, [3; 10])
}

/// What an id of that age comes to when the daemon's clock shows that time.
fn ask(world: &World, born_ms: u64, at_ms: u64) -> Registered {
    let request_id = of(born_ms);
    let prompt_id = format!("prompt-{born_ms}");
    world.ask(Registration { request_id, prompt_id, created_at: at_ms, ..asked("v7") }).unwrap()
}

fn is_new(registered: &Registered) -> bool {
    matches!(registered, Registered::New(_))
}

/// Loses the database, and what is noted beside it if `is_noted` is not, and makes a store anew when the daemon's clock shows that time.
fn lose(world: &mut World, is_noted: bool, now_ms: u64) -> Rescue {
    world.store = None;
    std::fs::write(world.file(), vec![0xa5; 50_000]).unwrap();
    let _ = std::fs::remove_file(world.folder().join("requests.db-wal"));
    if !is_noted {
        let _ = std::fs::remove_file(world.folder().join("requests.watermark"));
    }
    world.now = now_ms;
    let rescue = recover(&world.folder(), 0, now_ms).unwrap();
    world.open();
    rescue
}

#[test]
fn an_id_that_claims_to_be_from_further_ahead_than_clocks_differ_is_not_taken_and_one_within_that_is() {
    let world = World::new();
    assert_eq!(ask(&world, NOON + CLOCK_AHEAD_MS + 1, NOON), Registered::Ahead);
    assert_eq!(world.store().get(&of(NOON + CLOCK_AHEAD_MS + 1)).unwrap(), None, "nothing is stored of it");
    assert!(is_new(&ask(&world, NOON + CLOCK_AHEAD_MS, NOON)));
    assert!(is_new(&ask(&world, NOON + CLOCK_AHEAD_MS + 1, NOON + 1)), "its time has come");
}

#[test]
fn an_id_that_is_on_record_is_known_although_it_is_from_further_ahead_than_the_clock_now_allows() {
    let world = World::new();
    assert!(is_new(&ask(&world, NOON + CLOCK_AHEAD_MS, NOON)));
    assert!(matches!(ask(&world, NOON + CLOCK_AHEAD_MS, NOON - HOUR_MS), Registered::Known(_)));
}

#[test]
fn an_id_of_a_clock_that_is_ahead_is_not_free_again_when_the_store_has_lost_it() {
    for is_noted in [true, false] {
        let mut world = World::new();
        assert!(is_new(&ask(&world, NOON + CLOCK_AHEAD_MS, NOON)));
        lose(&mut world, is_noted, NOON);
        assert_eq!(ask(&world, NOON + CLOCK_AHEAD_MS, NOON), Registered::Expired, "noted: {is_noted}");
        assert_eq!(world.store().get(&of(NOON + CLOCK_AHEAD_MS)).unwrap(), Some(Entry::Expired));
    }
}

#[test]
fn a_daemon_whose_clock_is_set_back_before_a_rescue_frees_no_id_that_it_took_before() {
    let mut world = World::new();
    assert!(is_new(&ask(&world, NOON + HOUR_MS, NOON + HOUR_MS)));
    lose(&mut world, true, NOON);
    assert_eq!(ask(&world, NOON + HOUR_MS, NOON), Registered::Expired);
    assert_eq!(world.store().clock_behind_ms(NOON), HOUR_MS + 1, "the new store knows it, too");
}

#[test]
fn the_time_that_only_the_file_still_knows_counts_as_well() {
    let mut world = World::new();
    assert!(is_new(&ask(&world, NOON + HOUR_MS, NOON + HOUR_MS)));
    world.store = None;
    std::fs::remove_file(world.folder().join("requests.watermark")).unwrap();
    reset(&world.folder(), 0, NOON).unwrap();
    world.open();
    assert_eq!(ask(&world, NOON + HOUR_MS, NOON), Registered::Expired);
}

#[test]
fn what_is_made_behind_a_rescue_is_beyond_its_floor_and_below_that_of_the_next_one_however_soon_that_comes() {
    let mut world = World::new();
    lose(&mut world, true, NOON);
    for (is_noted, now_ms) in [(true, NOON), (true, NOON - HOUR_MS), (true, NOON), (false, NOON + HOUR_MS)] {
        let born_ms = world.store().born_ms(world.now);
        assert!(is_new(&ask(&world, born_ms, world.now)), "{born_ms}");
        assert_eq!(ask(&world, born_ms - 1, world.now), Registered::Expired, "{born_ms}");
        lose(&mut world, is_noted, now_ms);
        assert_eq!(ask(&world, born_ms, now_ms), Registered::Expired, "{born_ms}");
    }
}

#[test]
fn a_store_that_says_it_comes_from_the_end_of_time_is_recovered_all_the_same() {
    let mut world = World::new();
    world.store = None;
    let conn = rusqlite::Connection::open(world.file()).unwrap();
    conn.execute("UPDATE meta SET last_wall_ms = 0x7fffffffffffffff", []).unwrap();
    drop(conn);
    reset(&world.folder(), 0, NOON).unwrap();
    world.open();
    let born_ms = world.store().born_ms(NOON);
    assert!(is_new(&ask(&world, born_ms, NOON)), "{born_ms}");
}

#[test]
fn a_rescue_that_loses_nothing_forgets_nothing() {
    let mut world = World::new();
    world.complete("x");
    world.store = None;
    assert!(!recover(&world.folder(), 0, NOON).unwrap().is_damaged);
    world.open();
    assert!(is_new(&ask(&world, NOON - HOUR_MS, NOON)));
}
