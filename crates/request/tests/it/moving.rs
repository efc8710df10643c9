//! A store that is recovered, reset, exported, or of another version: returns 2.15 and 2.16.

use turnd_request::store::{Entry, OpenError, Page, Registered, StoreError, export, recover, reset, verify};
use turnd_request::{NotThere, Position, Registration, State};

use crate::world::{World, asked, id, incarnation};

#[test]
fn scenario_86_a_newer_file_is_refused_and_stays_as_it_is_byte_for_byte() {
    let mut world = World::new();
    world.complete("x");
    world.store = None;
    let newer = rusqlite::Connection::open(world.file()).unwrap();
    newer.execute_batch("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(newer);
    let before = std::fs::read(world.file()).unwrap();
    assert!(matches!(world.try_open(), Err(OpenError::Newer { found: 99, known: 2 })));
    assert_eq!(std::fs::read(world.file()).unwrap(), before);
    let names: Vec<_> = std::fs::read_dir(world.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "the file, its lock and how far it got: {names:?}");
}

#[test]
fn scenario_86_a_newer_version_that_is_only_in_the_log_is_refused_just_so() {
    let world = World::new();
    world.complete("x");
    let writer = rusqlite::Connection::open(world.file()).unwrap();
    writer.execute_batch("PRAGMA user_version = 99").unwrap();
    let mut copy = World::closed();
    std::fs::create_dir_all(copy.folder()).unwrap();
    for name in ["requests.db", "requests.db-wal"] {
        std::fs::copy(world.folder().join(name), copy.folder().join(name)).unwrap();
    }
    let read =
        |copy: &World| ["requests.db", "requests.db-wal"].map(|name| std::fs::read(copy.folder().join(name)).unwrap());
    let before = read(&copy);
    assert!(matches!(copy.try_open(), Err(OpenError::Newer { found: 99, known: 2 })));
    assert!(read(&copy) == before);
}

#[test]
fn an_export_goes_on_elsewhere_and_closes_its_source() {
    let mut world = World::new();
    world.complete("x");
    world.submit("y");
    let target = world.scratch.path().join("moved.db");
    assert!(matches!(export(&world.folder(), &target, world.now), Err(OpenError::Locked)));
    let stream_id = world.store().head().unwrap().stream_id;
    world.store = None;
    export(&world.folder(), &target, world.now).unwrap();
    assert_eq!(crate::world::mode(&target), 0o600);
    assert!(matches!(world.try_open(), Err(OpenError::Exported)));
    let mut moved = World::closed();
    std::fs::create_dir_all(moved.folder()).unwrap();
    std::fs::copy(&target, moved.file()).unwrap();
    assert_eq!(moved.open().len(), 1);
    assert_eq!(moved.store().head().unwrap().stream_id, stream_id);
    assert_eq!(moved.complete("z").seq, 2);
    moved.assert_sound();
    assert!(export(&world.folder(), &target, world.now).is_err(), "what is there is not overwritten");
    let again = world.scratch.path().join("again.db");
    export(&world.folder(), &again, world.now).unwrap();
    let report = verify(&world.folder()).unwrap();
    assert_eq!((report.violations.len(), report.is_exported), (0, true));
    // An export that was cut off behind the close of its source is done again, and its copy is as open as the first one.
    let mut moved = World::closed();
    std::fs::create_dir_all(moved.folder()).unwrap();
    std::fs::rename(&again, moved.file()).unwrap();
    assert_eq!(moved.open().len(), 1);
}

/// A world with five ended requests and three that are open, closed.
fn eight() -> World {
    let mut world = World::new();
    world.note(incarnation("i")).unwrap();
    for number in 0..5 {
        world.complete(&format!("r{number}"));
    }
    world.ask(Registration { incarnation_id: Some("i".into()), ..asked("a") }).unwrap();
    world.submit("b");
    world.submit("c");
    world.consume("reader", 3, None).unwrap();
    world.store = None;
    world
}

#[test]
fn a_recovered_store_keeps_what_it_can_under_a_new_stream_and_ends_what_was_open() {
    let mut world = eight();
    let conn = rusqlite::Connection::open(world.file()).unwrap();
    let before: String = conn.query_row("SELECT stream_id FROM meta", [], |row| row.get(0)).unwrap();
    drop(conn);
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert_eq!((rescue.kept, rescue.reduced, rescue.ended, rescue.is_damaged), (5, 0, 3, false));
    assert_eq!((rescue.after, rescue.head), (5, 8));
    assert!(rescue.files.join("requests.db").exists());
    assert_eq!(world.open(), []);
    world.assert_sound();
    let head = world.store().head().unwrap();
    assert_eq!(head.stream_id, rescue.stream_id);
    assert_ne!(head.stream_id, before);
    assert_eq!(world.get("r3").terminal_seq, Some(4));
    let ended = world.get("b");
    assert_eq!((ended.state, ended.code.unwrap().as_str()), (State::Indeterminate, "store_recovered"));
    assert!(matches!(world.register("r1").unwrap(), Registered::Known(_)), "nothing is sent again");
    assert_eq!(world.store().daemon_epoch(), 2);
    assert_eq!(world.store().consumers().unwrap()[0].acked_seq, 3);
}

#[test]
fn whoever_read_the_stream_before_a_recovery_is_told_that_it_is_another_one() {
    let mut world = World::new();
    let event = world.complete("x");
    let body: serde_json::Value = serde_json::from_str(&event.payload).unwrap();
    let place = Position::parse(body["cursor"].as_str().unwrap()).unwrap();
    world.store = None;
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    world.open();
    let told = world.store().events(&Page::after(place));
    assert_eq!(told, Err(NotThere::Changed { stream_id: rescue.stream_id }.into()));
}

#[test]
fn a_recovery_goes_on_above_the_highest_number_that_anybody_has_seen() {
    let mut world = eight();
    let rescue = recover(&world.folder(), 40, world.now).unwrap();
    assert_eq!((rescue.after, rescue.head, rescue.kept, rescue.reduced), (40, 43, 0, 5));
    world.open();
    assert!(matches!(world.store().get(&id("r1")).unwrap(), Some(Entry::Tombstone(_))));
    assert_eq!(world.complete("next").seq, 44);
    world.assert_sound();
}

#[test]
fn what_lies_below_a_lost_event_is_a_tombstone_after_a_recovery() {
    let mut world = eight();
    let conn = rusqlite::Connection::open(world.file()).unwrap();
    conn.execute_batch(
        "PRAGMA foreign_keys = 0; DELETE FROM terminal_event WHERE seq = 3; DELETE FROM request WHERE terminal_seq = 3",
    )
    .unwrap();
    drop(conn);
    assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })));
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert_eq!((rescue.kept, rescue.reduced, rescue.ended, rescue.is_damaged), (2, 2, 3, true), "an id is lost");
    world.open();
    world.assert_sound();
    let head = world.store().head().unwrap();
    assert_eq!((head.pruned_through, head.head), (3, 8));
    assert!(matches!(world.register("r0").unwrap(), Registered::Tombstone(_)));
}

#[test]
fn scenario_82_a_damaged_file_is_recovered_as_far_as_it_can_be_read() {
    let mut world = World::new();
    for number in 0..300 {
        world.complete(&format!("r{number}"));
    }
    world.store = None;
    let mut bytes = std::fs::read(world.file()).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 3 * 4096].fill(0xa5);
    std::fs::write(world.file(), bytes).unwrap();
    assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })));
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    // Behind the damage as well as before it.
    assert!(rescue.kept > 100 && rescue.reduced > 50 && rescue.head >= 300, "{rescue:?}");
    world.open();
    world.assert_sound();
    assert_eq!(world.complete("next").seq, rescue.head + 1);
}

#[test]
fn a_reset_store_is_empty_and_its_numbers_go_on() {
    let mut world = eight();
    let rescue = reset(&world.folder(), 0, world.now).unwrap();
    assert_eq!((rescue.after, rescue.head, rescue.kept), (5, 5, 0));
    assert_eq!(world.open(), []);
    assert_eq!(world.store().get(&id("r1")).unwrap(), None);
    assert_eq!(world.complete("next").seq, 6);
    world.assert_sound();
}

#[test]
fn a_store_is_not_rescued_under_a_daemon() {
    let world = World::new();
    assert!(matches!(recover(&world.folder(), 0, world.now), Err(OpenError::Locked)));
    assert!(matches!(reset(&world.folder(), 0, world.now), Err(OpenError::Locked)));
    assert_eq!(world.apply("x", turnd_request::Input::Cancel), Err(StoreError::Unknown));
    assert!(verify(&world.folder()).unwrap().violations.is_empty(), "but it may be looked at");
}
