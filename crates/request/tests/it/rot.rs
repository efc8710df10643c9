//! A bit that falls over in a text while the store is open, or in one that is too old for the look at the start. Neither SQLite nor the
//! numbers notice. What was told stays, and nobody is told another answer than that.

use rusqlite::Connection;
use turnd_request::store::{Page, StoreError};
use turnd_request::{Position, TerminalEvent};

use crate::world::{World, id};

/// Two ended requests on either side of one that will be harmed, `r1`, of number 2.
fn world() -> World {
    let world = World::new();
    (0..3).for_each(|number| drop(world.complete(&format!("r{number}"))));
    world
}

fn alter(world: &World, sql: &str, value: &dyn rusqlite::ToSql) {
    let other = Connection::open(world.file()).unwrap();
    // What falls over keeps no rule.
    other.pragma_update(None, "ignore_check_constraints", true).unwrap();
    other.pragma_update(None, "foreign_keys", false).unwrap();
    assert_eq!(other.execute(sql, [value]).unwrap(), 1, "{sql}");
}

/// The numbers of a page behind a number, or that the store is corrupt.
fn page(world: &World, after: u64) -> Option<Vec<u64>> {
    use turnd_request::store::PageError::Store;
    match world.store().events(&Page::after(Position::Number(after))) {
        Ok(page) => Some(page.events.iter().map(|event| event.seq).collect()),
        Err(Store(StoreError::Corrupt(_))) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Whether the receipt of a request and its event are still told.
fn is_told(world: &World, name: &str) -> bool {
    let looked = world.store().look(&id(name)).map(|looked| looked.event);
    let event = world.store().event_of(&id(name));
    assert_eq!(looked, event);
    match event {
        Ok(event) => event.is_some(),
        Err(StoreError::Corrupt(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

fn event(world: &World, name: &str) -> TerminalEvent {
    world.store().event_of(&id(name)).unwrap().unwrap()
}

#[test]
fn scenario_83_an_event_of_which_any_bit_fell_over_is_told_by_no_receipt_and_no_page() {
    let world = world();
    let written = event(&world, "r1");
    // The cursor at its end is not in the chain: it names the chain.
    let covered = written.payload.rfind(",\"cursor\":").unwrap();
    for at in 0..covered {
        let mut payload = written.payload.clone().into_bytes();
        payload[at] ^= 1;
        let payload = String::from_utf8(payload).unwrap();
        alter(&world, "UPDATE terminal_event SET payload = ?1 WHERE seq = 2", &payload);
        assert!(!is_told(&world, "r1"), "{payload}");
        assert_eq!((page(&world, 0), page(&world, 1), page(&world, 2)), (Some(vec![1]), None, Some(vec![3])));
    }
    alter(&world, "UPDATE terminal_event SET payload = ?1 WHERE seq = 2", &written.payload);
    assert_eq!(page(&world, 0), Some(vec![1, 2, 3]));
    assert_eq!(event(&world, "r1"), written);
}

#[test]
fn scenario_83_an_event_whose_place_in_the_chain_fell_over_is_not_told_and_nor_is_the_one_behind_it() {
    let world = world();
    let mut chain = event(&world, "r1").chain;
    chain.0[31] ^= 1;
    alter(&world, "UPDATE terminal_event SET chain = ?1 WHERE seq = 2", &chain);
    assert_eq!(["r0", "r1", "r2"].map(|name| is_told(&world, name)), [true, false, false]);
    assert_eq!((page(&world, 0), page(&world, 1), page(&world, 2)), (Some(vec![1]), None, None));
}

#[test]
fn scenario_83_a_row_that_disagrees_with_its_event_is_told_by_no_receipt_while_the_stream_goes_on() {
    for (column, value) in [
        ("final_message", "answer of r7"),
        ("prompt_id", "another"),
        ("session_id", "another"),
        ("state", "aborted"),
        ("input_written", "no"),
        ("code", "daemon_lost"),
        ("evidence", "transcript_exact"),
    ] {
        let world = world();
        alter(&world, &format!("UPDATE request SET {column} = ?1 WHERE request_id = 'r1'"), &value);
        assert_eq!(["r0", "r1", "r2"].map(|name| is_told(&world, name)), [true, false, true], "{column}");
        assert_eq!(page(&world, 0), Some(vec![1, 2, 3]), "{column}");
    }
}

#[test]
fn an_ended_request_without_its_event_has_no_receipt() {
    let world = world();
    alter(&world, "DELETE FROM terminal_event WHERE seq = ?1", &2);
    assert!(matches!(world.store().look(&id("r1")), Err(StoreError::Corrupt(_))));
}
