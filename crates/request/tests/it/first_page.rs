//! SQLite opens no file whose first page, or whose own list of tables, is damaged. Its rows are recovered all the same.

use std::path::Path;

use turnd_request::store::{Entry, OpenError, Registered, recover};
use turnd_request::{Input, State};

use crate::world::{NOON, World, id};

/// Turns bits of a byte over.
fn harm(file: &Path, byte: usize, bits: u8) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[byte] ^= bits;
    std::fs::write(file, bytes).unwrap();
}

/// Three ended requests and an open one; closed in order, or killed, which leaves all of them in the log.
fn stopped(is_closed: bool) -> World {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.complete(name);
    }
    world.submit("open");
    world.consume("reader", 2, None).unwrap();
    if is_closed {
        world.store().close(world.now).unwrap();
        world.store = None;
        return world;
    }
    let log = world.folder().join("requests.db-wal");
    let files = [world.file(), log].map(|path| (std::fs::read(&path).unwrap(), path));
    world.store = None;
    for (bytes, path) in files {
        std::fs::write(path, bytes).unwrap();
    }
    world
}

#[test]
fn scenario_83_a_damage_of_the_first_page_or_of_the_list_of_tables_costs_no_request() {
    // The word by which SQLite knows its files, the size of a page, UTF-8, what the first page is; and texts of the list.
    for (byte, bits, is_closed) in
        [(3, 4, true), (16, 4, true), (59, 2, true), (100, 4, true), (100, 4, false), (28 * 4096 + 3000, 4, true)]
    {
        let mut world = stopped(is_closed);
        harm(&world.file(), byte, bits);
        match world.try_open() {
            Err(OpenError::Corrupt { .. }) => {}
            // The log has the first page, whole.
            told => assert!(!is_closed && told.is_ok(), "{byte}: {told:?}"),
        }
        world.store = None;
        let rescue = recover(&world.folder(), 0, world.now).unwrap();
        assert_eq!((rescue.after, rescue.kept, rescue.reduced, rescue.ended), (3, 3, 0, 1), "{byte}: {rescue:?}");
        assert_eq!((rescue.is_damaged, rescue.is_unreadable, rescue.is_number_known), (false, false, true), "{byte}");
        assert_eq!(world.open(), []);
        for name in ["a", "b", "c"] {
            assert_eq!(world.get(name).final_message, Some(format!("answer of {name}")), "{byte}");
            assert!(matches!(world.register(name).unwrap(), Registered::Known(_)), "{byte}");
        }
        assert_eq!(world.get("open").state, State::Indeterminate, "{byte}");
        assert_eq!(world.store().consumers().unwrap()[0].acked_seq, 2, "{byte}");
        assert_eq!(world.complete("next").seq, 5, "{byte}");
        world.assert_sound();
    }
}

#[test]
fn scenario_83_where_the_first_page_and_some_rows_are_damaged_what_is_left_is_kept_and_the_loss_is_said() {
    let mut world = World::new();
    for number in 0..200 {
        world.complete(&format!("r{number}"));
    }
    world.store().close(world.now).unwrap();
    world.store = None;
    let mut bytes = std::fs::read(world.file()).unwrap();
    bytes[..4096].fill(0);
    // A leaf of the table of requests: the page that has this answer, and not as an event.
    let answer = b"answer of r20";
    let page = bytes.chunks(4096).position(|page| {
        let has = |word: &[u8]| page.windows(word.len()).any(|window| window == word);
        has(answer) && !has(b"final_message")
    });
    let page = page.unwrap();
    bytes[page * 4096..][..4096].fill(0);
    std::fs::write(world.file(), bytes).unwrap();
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert!(rescue.is_damaged && !rescue.is_unreadable, "{rescue:?}");
    assert!(rescue.kept > 100 && rescue.reduced > 0 && rescue.kept + rescue.reduced < 200, "{rescue:?}");
    world.open();
    assert_eq!(world.get("r199").final_message.as_deref(), Some("answer of r199"));
    assert!(matches!(world.store().get(&id("r0")).unwrap(), Some(Entry::Tombstone(_))));
    world.assert_sound();
}

#[test]
fn a_first_page_that_is_gone_costs_nothing_of_a_store_that_is_put_aside_already() {
    let mut world = stopped(true);
    let mut bytes = std::fs::read(world.file()).unwrap();
    bytes[..4096].fill(0);
    std::fs::write(world.file(), bytes).unwrap();
    for _ in 0..2 {
        assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })));
    }
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert_eq!((rescue.kept, rescue.ended, rescue.is_damaged), (3, 1, false), "{rescue:?}");
    world.now = NOON + 1;
    world.open();
    world.new_request("another");
    world.apply("another", Input::Cancel).unwrap();
    world.assert_sound();
}
