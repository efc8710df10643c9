//! A file of an older version is brought forward, whole or not at all.

use super::*;
use crate::store::place::TRIO;

/// What a second and a third version might have done.
const STEPS: [Step; 2] = [
    "ALTER TABLE consumer ADD COLUMN note TEXT; UPDATE meta SET last_wall_ms = last_wall_ms + 1",
    "CREATE TABLE extra (x INTEGER) STRICT",
];

fn place(scratch: &tempfile::TempDir) -> Place {
    let place = Place::new(&scratch.path().join("requests"));
    place.make().unwrap();
    let draft = draft(&place, &Beginning::fresh(5)).unwrap();
    draft.pragma_update(None, "user_version", 1).unwrap();
    finish(&place, draft).unwrap();
    publish(&place).unwrap();
    place
}

fn open(place: &Place) -> Connection {
    connection::writing(&place.file(), 100).unwrap()
}

fn wall(conn: &Connection) -> u64 {
    conn.query_row("SELECT last_wall_ms FROM meta", [], |row| row.get(0)).unwrap()
}

#[test]
fn scenario_85_an_older_file_is_brought_forward_step_by_step_and_a_copy_of_it_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let place = place(&scratch);
    let conn = open(&place);
    migrate(&conn, &place, &STEPS, 7, &FailPoints::default()).unwrap();
    assert_eq!((version(&conn).unwrap(), wall(&conn)), (3, 6));
    conn.execute("INSERT INTO extra VALUES (1)", []).unwrap();
    assert_eq!(header(&place.file()).unwrap(), Header::Version(3), "also for who looks without the log");
    let copy = connection::reading(&place.copy(1, 7), 100).unwrap();
    assert_eq!((version(&copy).unwrap(), wall(&copy)), (1, 5));
    migrate(&conn, &place, &STEPS, 8, &FailPoints::default()).unwrap();
    assert!(!place.copy(3, 8).exists(), "there was nothing to do");
}

#[test]
fn scenario_40_cut_off_at_any_step_it_is_of_one_version_or_the_next_and_goes_on_from_there() {
    for (plan, reached) in
        [("before:migrate=io@1", 1), ("after:migrate=io@1", 2), ("before:migrate=io@2", 2), ("after:migrate=io@2", 3)]
    {
        let scratch = tempfile::tempdir().unwrap();
        let place = place(&scratch);
        let conn = open(&place);
        assert!(migrate(&conn, &place, &STEPS, 7, &FailPoints::parse(plan)).is_err(), "{plan}");
        drop(conn);
        let conn = open(&place);
        assert_eq!(version(&conn).unwrap(), reached, "{plan}");
        assert_eq!(version(&connection::reading(&place.copy(1, 7), 100).unwrap()).unwrap(), 1, "{plan}");
        migrate(&conn, &place, &STEPS, 8, &FailPoints::default()).unwrap();
        assert_eq!((version(&conn).unwrap(), wall(&conn)), (3, 6), "{plan}: no step is done twice");
    }
}

#[test]
fn a_step_that_fails_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let place = place(&scratch);
    let conn = open(&place);
    let steps = ["UPDATE meta SET last_wall_ms = 99; NOT SQL"];
    assert!(migrate(&conn, &place, &steps, 7, &FailPoints::default()).is_err());
    assert_eq!((version(&conn).unwrap(), wall(&conn)), (1, 5));
}

#[test]
fn a_migration_that_has_to_wait_leaves_no_copy_of_each_try() {
    let scratch = tempfile::tempdir().unwrap();
    let place = place(&scratch);
    let conn = open(&place);
    let names = || {
        let names = std::fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| !TRIO.iter().any(|own| name == own)).collect::<Vec<_>>()
    };
    for plan in ["copied=full", "before:migrate=full@1"] {
        let refused = migrate(&conn, &place, &STEPS, 7, &FailPoints::parse(plan));
        assert_eq!((refused, names()), (Err(StoreError::Full), vec![]), "{plan}");
    }
    let other = open(&place);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = migrate(&conn, &place, &STEPS, 7, &FailPoints::default());
    assert_eq!((refused, names()), (Err(StoreError::Busy), vec![]));
    other.execute_batch("ROLLBACK").unwrap();
    let refused = migrate(&conn, &place, &STEPS, 7, &FailPoints::parse("before:migrate=full@2"));
    assert_eq!(refused, Err(StoreError::Full));
    assert!(place.copy(1, 7).exists(), "what a step has changed has its copy");
}

#[test]
fn a_version_that_never_was_is_no_store() {
    let scratch = tempfile::tempdir().unwrap();
    let place = place(&scratch);
    let conn = open(&place);
    conn.pragma_update(None, "user_version", 0).unwrap();
    assert!(matches!(migrate(&conn, &place, &STEPS, 7, &FailPoints::default()), Err(StoreError::Corrupt(_))));
}

#[test]
fn the_settings_are_those_that_the_promise_needs() {
    let scratch = tempfile::tempdir().unwrap();
    let place = place(&scratch);
    let conn = open(&place);
    let text = |name: &str| conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, String>(0)).unwrap();
    let number = |name: &str| conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(text("journal_mode"), "wal");
    let numbers = ["synchronous", "foreign_keys", "trusted_schema", "cell_size_check", "mmap_size", "auto_vacuum"];
    assert_eq!(numbers.map(number), [2, 1, 0, 1, 0, 2]);
    assert_eq!((number("journal_size_limit"), number("busy_timeout")), (64 * 1024 * 1024, 100));
    assert_eq!(number("application_id"), i64::from(APPLICATION_ID));
    let loose: i64 = conn
        .query_row(
            "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite%'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(loose, 0, "every table is strict");
    assert!(rusqlite::version_number() >= connection::SQLITE_VERSION_MIN);
}
