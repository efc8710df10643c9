//! A disk that takes nothing more, at the start and in a rescue: nothing is moved, nothing is called lost, and the cause is named.
//! `/dev/full` is such a disk.

use std::os::unix::fs::symlink;

use rusqlite::Connection;
use turnd_request::store::{OpenError, StoreError, recover, reset, verify};

use crate::world::World;

/// A store of two ended requests, closed.
fn closed() -> World {
    let mut world = World::new();
    world.complete("r0");
    world.complete("r1");
    world.store.take().unwrap().close(world.now).unwrap();
    world
}

/// The names in the folder that say what became of the store.
fn names(world: &World) -> Vec<String> {
    let names = std::fs::read_dir(world.folder()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
    names.sort();
    names
}

#[test]
fn a_rescue_that_cannot_make_the_new_file_moves_nothing_and_the_store_is_as_sound_as_before() {
    for rescue in [recover, reset] {
        for obstacle in ["requests.db.new", "requests.watermark.new", "rescue"] {
            let mut world = closed();
            let before = std::fs::read(world.file()).unwrap();
            let path = world.folder().join(obstacle);
            // What no program can make here: a folder where a file is to be, or the other way round.
            if obstacle == "rescue" {
                std::fs::write(&path, "").unwrap();
            } else {
                std::fs::create_dir(&path).unwrap();
            }
            let told = rescue(&world.folder(), 0, world.now);
            assert!(matches!(told, Err(OpenError::Store(StoreError::Io(_)))), "{obstacle}: {told:?}");
            assert_eq!(std::fs::read(world.file()).unwrap(), before, "{obstacle}");
            let mut left = vec![obstacle, "requests.db", "requests.lock", "requests.watermark"];
            left.sort_unstable();
            assert_eq!(names(&world), left);
            assert!(verify(&world.folder()).unwrap().violations.is_empty());
            world.open();
            assert_eq!(world.events().len(), 2, "{obstacle}");
        }
    }
}

#[test]
fn what_cannot_be_read_for_want_of_room_is_not_called_lost() {
    for rescue in [recover, reset] {
        let world = closed();
        Connection::open(world.file()).unwrap().execute_batch("DELETE FROM meta").unwrap();
        let before = std::fs::read(world.file()).unwrap();
        symlink("/dev/full", world.folder().join("room")).unwrap();
        let told = rescue(&world.folder(), 0, world.now);
        assert!(matches!(told, Err(OpenError::Store(StoreError::Full))), "{told:?}");
        assert_eq!(std::fs::read(world.file()).unwrap(), before);
        assert_eq!(names(&world), ["requests.db", "requests.lock", "requests.watermark"]);
        let rescue = rescue(&world.folder(), 0, world.now).unwrap();
        assert!(rescue.is_damaged && rescue.is_number_known && !rescue.is_unreadable, "with room: {rescue:?}");
    }
}

#[test]
fn an_error_of_the_disk_at_the_start_is_said_to_be_a_full_disk_where_it_takes_nothing_more() {
    let mut world = closed();
    world.fail_points.set("open=io*2");
    assert!(matches!(world.try_open(), Err(OpenError::Store(StoreError::Io(_)))));
    symlink("/dev/full", world.folder().join("room")).unwrap();
    assert!(matches!(world.try_open(), Err(OpenError::Store(StoreError::Full))));
    world.open();
    assert_eq!(names(&world), ["requests.db", "requests.lock", "requests.watermark"]);
}
