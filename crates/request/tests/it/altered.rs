//! What somebody altered in a file so that SQLite, the numbers and the chain still agree: `verify` says it all the same.

use rusqlite::Connection;
use turnd_request::store::{OpenError, Retention, recover, reset, verify};

use crate::world::World;

/// A store of four ended requests, of which the first two are pruned, closed.
fn pruned() -> World {
    let mut world = World::new();
    for number in 0..4 {
        world.complete(&format!("r{number}"));
    }
    let retention = Retention { kept_ms: 0, kept_requests: 2, bytes_max: u64::MAX, tombstone_ms: u64::MAX };
    assert_eq!(world.store().prune(retention, world.now + 1).unwrap().requests, 2);
    world.assert_sound();
    world.store.take().unwrap().close(world.now).unwrap();
    world
}

fn violations(world: &World) -> Vec<String> {
    verify(&world.folder()).unwrap().violations
}

fn alter(world: &World, sql: &str) {
    let conn = Connection::open(world.file()).unwrap();
    conn.pragma_update(None, "foreign_keys", false).unwrap();
    conn.execute_batch(sql).unwrap();
}

#[test]
fn a_head_that_was_set_back_is_found_although_the_commits_are_all_there() {
    let mut world = pruned();
    alter(
        &world,
        "DELETE FROM terminal_event WHERE seq = 4; DELETE FROM request WHERE terminal_seq = 4; \
         UPDATE meta SET head_seq = 3, head_chain = (SELECT chain FROM terminal_event WHERE seq = 3)",
    );
    let found = violations(&world);
    assert!(matches!(&found[..], [one] if one.contains("number 4 was given")), "{found:?}");
    assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })), "the number would be given twice");
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert!(rescue.after >= 4 && rescue.is_damaged, "{rescue:?}");
}

#[test]
fn numbers_that_are_neither_there_nor_pruned_are_found() {
    let world = pruned();
    alter(
        &world,
        "UPDATE meta SET pruned_through = 3, pruned_chain = (SELECT chain FROM terminal_event WHERE seq = 3); \
         DELETE FROM terminal_event WHERE seq = 3; DELETE FROM request WHERE terminal_seq = 3",
    );
    let found = violations(&world);
    assert!(matches!(&found[..], [one] if one.contains("pruned through 3")), "{found:?}");
    // Where tombstones have been forgotten it may be one of them.
    alter(&world, "UPDATE meta SET tombstone_floor = 7");
    assert_eq!(violations(&world), Vec::<String>::new());
}

#[test]
fn what_pruning_and_rescues_leave_is_sound() {
    for (keeps, above) in [(true, 0), (true, 40), (false, 0), (false, 40)] {
        let mut world = pruned();
        let rescue = if keeps { recover } else { reset };
        rescue(&world.folder(), above, world.now).unwrap();
        assert_eq!(violations(&world), Vec::<String>::new(), "{keeps} {above}");
        world.open();
        world.complete("next");
        let retention = Retention { kept_ms: 0, kept_requests: 0, bytes_max: u64::MAX, tombstone_ms: u64::MAX };
        world.store().prune(retention, world.now + 1).unwrap();
        world.assert_sound();
        world.store().prune(Retention { tombstone_ms: 0, ..retention }, world.now + 2).unwrap();
        world.assert_sound();
    }
}

#[test]
fn a_table_or_an_index_that_is_missing_is_found_and_a_trigger_too() {
    for (sql, word, opens) in [
        ("DROP TABLE late_evidence", "table late_evidence", false),
        ("DROP TABLE webhook_letter", "table webhook_letter", false),
        ("DROP TABLE tombstone", "table tombstone", false),
        ("DROP INDEX request_open", "index request_open", true),
        ("CREATE TRIGGER t AFTER INSERT ON request BEGIN DELETE FROM tombstone; END", "trigger t", false),
        ("CREATE INDEX mine ON request (owner)", "", true),
    ] {
        let mut world = pruned();
        alter(&world, sql);
        let found = violations(&world);
        assert_eq!(found.iter().any(|found| found.contains(word)), !word.is_empty(), "{sql}: {found:?}");
        let told = world.try_open();
        assert_eq!(told.is_ok(), opens, "{sql}: {told:?}");
        assert!(opens || matches!(told, Err(OpenError::Corrupt { .. })), "{sql}");
    }
}

#[test]
fn where_nothing_beside_the_file_says_how_far_it_got_that_is_said_and_it_is_a_store_all_the_same() {
    let mut world = pruned();
    assert_eq!(verify(&world.folder()).unwrap().notes, Vec::<String>::new());
    std::fs::remove_file(world.folder().join("requests.watermark")).unwrap();
    let report = verify(&world.folder()).unwrap();
    assert!(report.violations.is_empty() && report.notes.len() == 1, "{report:?}");
    world.open();
    assert_eq!(world.complete("next").seq, 5);
    assert_eq!(world.store().verify(false).unwrap().notes, Vec::<String>::new(), "from here on it is noted again");
}
