//! kill -9 while a file of an older version is brought forward, by the steps that there really are, in a process of its own.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use turnd_request::fail_points::FailPoints;
use turnd_request::store::{Store, verify};

use crate::child::{self, LOOSE};
use crate::versions::{NEWEST, assert_known, kept, of_version};
use crate::world::{NOON, World, assert_closed_to_others};

const TEST: &str = "migrating::the_part_of_a_child";

/// What a table holds, row by row.
type Rows = Vec<String>;

/// Not a test of its own: what a child runs. In the first process it has no part and nothing to do.
#[test]
fn the_part_of_a_child() {
    let Some(folder) = child::part() else { return };
    let mut world = World::closed();
    world.fail_points = Arc::new(FailPoints::from_env());
    let _ = Store::open(&PathBuf::from(folder), world.options(), NOON);
}

/// The files of a folder that are called as a copy of a version is.
fn copies(world: &World, version: u32) -> Vec<PathBuf> {
    let beginning = format!("requests.v{version}.");
    let paths = std::fs::read_dir(world.folder()).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&beginning)).collect()
}

/// All that a file holds, its version first, as it is read with nothing but that file, of which no byte is changed.
fn content(file: &Path) -> Vec<(String, Rows)> {
    let alone = tempfile::tempdir().unwrap();
    let file = {
        let copy = alone.path().join("alone.db");
        std::fs::copy(file, &copy).unwrap();
        copy
    };
    let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    let rows = |query: &str| -> Rows {
        let mut statement = conn.prepare(query).unwrap();
        let columns = statement.column_count();
        let read = statement.query_map([], |row| {
            let values = (0..columns).map(|column| row.get_ref(column).map(|value| format!("{value:?}")));
            values.collect::<Result<Vec<_>, _>>().map(|values| values.join(" "))
        });
        read.unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(rows("PRAGMA integrity_check"), [r#"Text([111, 107])"#]);
    let tables = conn
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .unwrap()
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap()
        .map(Result::unwrap)
        .collect::<Vec<_>>();
    let mut content = vec![("version".to_owned(), rows("PRAGMA user_version"))];
    content.extend(tables.into_iter().map(|table| {
        let sorted = rows(&format!("SELECT * FROM {table} ORDER BY 1"));
        (table, sorted)
    }));
    content
}

/// The version of a store with its log, of which no byte is changed.
fn version(world: &World) -> u32 {
    let alone = tempfile::tempdir().unwrap();
    for name in ["requests.db", "requests.db-wal"] {
        let path = world.folder().join(name);
        if path.exists() {
            std::fs::copy(path, alone.path().join(name)).unwrap();
        }
    }
    let conn = Connection::open(alone.path().join("requests.db")).unwrap();
    conn.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Looks at a store of a version whose migration was killed, and lets the next open go on.
fn goes_on(mut world: World, from: u32, is_of: u32, copies_left: usize, case: &str) {
    assert_eq!(version(&world), is_of, "{case}");
    assert_eq!(verify(&world.folder()).unwrap().violations, Vec::<String>::new(), "{case}");
    assert_eq!(copies(&world, from).len(), copies_left, "{case}");
    let as_it_was = content(&kept(from));
    for copy in copies(&world, from) {
        assert_eq!(content(&copy), as_it_was, "{case}: {}", copy.display());
    }
    assert_closed_to_others(&world.folder());
    // A copy is called after the time, and the next one takes nobody's place.
    world.now += 1;
    let waiting = world.open();
    assert_known(&world, &waiting, from);
    world.store().close(world.now).unwrap();
    assert_eq!(version(&world), NEWEST, "{case}");
    let made = usize::from(is_of == from);
    let all = copies(&world, from);
    assert_eq!(all.len(), copies_left + made, "{case}");
    for copy in all {
        assert_eq!(content(&copy), as_it_was, "{case}: {}", copy.display());
    }
    let left = std::fs::read_dir(world.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let unfinished: Vec<_> = left.filter(|name| name.to_string_lossy().contains(".new")).collect();
    assert!(unfinished.is_empty(), "{case}: {unfinished:?}");
}

fn killed(from: u32, plan: &str) -> World {
    let world = of_version(from);
    let status = child::run(TEST, &world.folder().display().to_string(), plan, LOOSE);
    assert_eq!(status.signal(), Some(9), "{plan}: {status}");
    world
}

#[test]
fn scenario_40_killed_at_each_step_of_each_migration_it_is_old_or_new_with_its_copy_and_the_next_open_goes_on() {
    for from in 1..NEWEST {
        for (plan, copies_left) in [("before:copy=kill", 0), ("copied=kill", 0), ("after:copy=kill", 1)] {
            goes_on(killed(from, plan), from, from, copies_left, plan);
        }
        for step in 1..=NEWEST - from {
            for (when, is_of) in [("before", from + step - 1), ("after", from + step)] {
                let plan = format!("{when}:migrate=kill@{step}");
                goes_on(killed(from, &plan), from, is_of, 1, &plan);
            }
        }
        goes_on(killed(from, "migrated=kill"), from, NEWEST, 1, "migrated");
    }
}

#[test]
fn scenario_40_dead_at_any_page_of_the_copy_there_is_no_half_of_one_and_the_store_is_as_it_was() {
    for from in 1..NEWEST {
        let mut lengths = std::collections::BTreeSet::new();
        let bytes = std::fs::metadata(kept(from)).unwrap().len();
        // Page by page, in blocks of 512 bytes, as a shell counts them: the process dies of the first write beyond.
        for blocks in (0..bytes / 512).step_by(8) {
            let world = of_version(from);
            let set = format!("{LOOSE}; ulimit -c 0; ulimit -f {blocks}");
            let status = child::run(TEST, &world.folder().display().to_string(), "", &set);
            assert!(status.signal().is_some(), "{blocks} blocks: {status}");
            let unfinished = world.folder().join("requests.copy.new");
            lengths.extend(std::fs::metadata(unfinished).map(|file| file.len()));
            goes_on(world, from, from, 0, &format!("{blocks} blocks"));
        }
        assert!(lengths.len() > 10, "the copy was cut at so few places: {lengths:?}");
    }
}
