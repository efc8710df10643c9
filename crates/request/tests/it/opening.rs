//! Who may open a store, and what is done with a file that is not sound.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use turnd_request::store::{OpenError, Store};

use crate::world::{World, mode};

#[test]
fn scenario_87_a_second_daemon_is_refused_by_the_lock() {
    let mut world = World::new();
    let refused = Store::open(&world.folder(), world.options(), world.now);
    assert!(matches!(refused, Err(OpenError::Locked)));
    world.new_request("x");
    world.store = None;
    assert_eq!(world.open().len(), 1);
}

#[test]
fn scenario_89_only_the_owner_reads_it_whatever_was_there_before() {
    let mut world = World::closed();
    std::fs::create_dir_all(world.folder()).unwrap();
    std::fs::set_permissions(world.folder(), Permissions::from_mode(0o777)).unwrap();
    world.open();
    world.complete("x");
    assert_eq!(mode(&world.folder()), 0o700);
    for entry in std::fs::read_dir(world.folder()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn each_life_has_the_next_epoch_and_knows_whether_the_last_one_closed() {
    let mut world = World::new();
    assert_eq!((world.store().daemon_epoch(), world.store().was_clean()), (1, true));
    world.open();
    assert_eq!((world.store().daemon_epoch(), world.store().was_clean()), (2, false));
    world.store().close(world.now).unwrap();
    world.now -= 1_000;
    world.open();
    assert_eq!((world.store().daemon_epoch(), world.store().was_clean()), (3, true));
    assert_eq!(world.store().clock_behind_ms(world.now), 1_000);
}

#[test]
fn another_programs_file_is_left_alone() {
    let mut world = World::closed();
    std::fs::create_dir_all(world.folder()).unwrap();
    let other = rusqlite::Connection::open(world.file()).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(other);
    let before = std::fs::read(world.file()).unwrap();
    assert!(matches!(world.try_open(), Err(OpenError::Foreign)));
    assert_eq!(std::fs::read(world.file()).unwrap(), before);
}

#[test]
fn a_start_that_was_cut_off_while_the_store_was_made_leaves_none() {
    let mut world = World::closed();
    std::fs::create_dir_all(world.folder()).unwrap();
    // Some of its tables are in it already.
    let draft = world.folder().join("requests.db.new");
    rusqlite::Connection::open(&draft).unwrap().execute_batch("CREATE TABLE meta (only INTEGER)").unwrap();
    std::fs::write(world.folder().join("requests.db.new-journal"), "torn").unwrap();
    world.open();
    world.complete("x");
    world.assert_sound();
    assert!(!draft.exists());
}
