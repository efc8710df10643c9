//! A damage that hides a row is never taken for one that there is not: of a store that is known to be corrupt nothing is said to be missing,
//! and the stream has no holes.

use rusqlite::Connection;
use turnd_request::Position;
use turnd_request::store::{Entry, List, Page, PageError, StoreError};

use crate::world::{World, id};

/// A store that was found to be corrupt while it was open, with a request that has ended and one that has not.
fn corrupt() -> World {
    let world = World::new();
    world.complete("ended");
    world.submit("running");
    world.fail_points.set("before:commit=corrupt");
    assert!(matches!(world.register("new"), Err(StoreError::Corrupt(_))));
    world.fail_points.set("");
    world
}

fn is_corrupt<T>(told: Result<T, StoreError>) -> bool {
    matches!(told, Err(StoreError::Corrupt(_)))
}

#[test]
fn of_a_store_that_is_known_to_be_corrupt_nothing_is_said_not_to_be_there_and_what_is_there_is_shown() {
    let world = corrupt();
    assert!(is_corrupt(world.store().get(&id("unheard-of"))));
    assert!(is_corrupt(world.store().event_of(&id("running"))));
    assert!(is_corrupt(world.store().list(&List { limit: 10, ..List::default() })));
    for name in ["ended", "running"] {
        assert!(matches!(world.store().get(&id(name)), Ok(Some(Entry::Request(_)))), "{name}");
    }
    assert_eq!(world.store().event_of(&id("ended")).unwrap().unwrap().seq, 1);
    assert_eq!(world.store().events(&Page::after(Position::Number(0))).unwrap().next_after, 1);
}

#[test]
fn a_sound_store_says_that_there_is_none() {
    let world = World::new();
    assert_eq!(world.store().get(&id("unheard-of")).unwrap(), None);
    assert_eq!(world.store().list(&List { limit: 10, ..List::default() }).unwrap().requests, []);
    assert_eq!(world.store().events(&Page::after(Position::Number(0))).unwrap().events, []);
}

#[test]
fn a_page_ends_before_an_event_that_is_hidden_and_behind_that_place_there_is_none_at_all() {
    for harm in ["DELETE FROM terminal_event WHERE seq = 3", "DELETE FROM request WHERE request_id = 'r3'"] {
        let world = World::new();
        for number in 1..=4 {
            world.complete(&format!("r{number}"));
        }
        let other = Connection::open(world.file()).unwrap();
        other.pragma_update(None, "foreign_keys", false).unwrap();
        assert_eq!(other.execute(harm, []).unwrap(), 1);
        let page = |after| world.store().events(&Page::after(Position::Number(after)));
        let first = page(0).unwrap();
        let numbers: Vec<u64> = first.events.iter().map(|event| event.seq).collect();
        assert_eq!((numbers, first.next_after, first.head), (vec![1, 2], 2, 4), "{harm}");
        let told = page(2);
        assert!(matches!(&told, Err(PageError::Store(StoreError::Corrupt(_)))), "{harm}: {told:?}");
    }
}

#[test]
fn a_page_that_its_filter_leaves_empty_leads_on_all_the_same() {
    let world = World::new();
    for number in 1..=4 {
        world.complete(&format!("r{number}"));
    }
    let mut page = Page::after(Position::Number(0));
    page.filter.session_id = Some("another".into());
    let told = world.store().events(&page).unwrap();
    assert_eq!((told.events.len(), told.next_after, told.head), (0, 4, 4));
}
