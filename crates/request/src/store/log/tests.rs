//! What is brought in from a log is what SQLite brings in.

use super::*;
use crate::store::connection;

#[test]
fn of_a_log_that_is_cut_or_harmed_anywhere_the_file_becomes_what_sqlite_makes_of_it() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    let conn = rusqlite::Connection::open(path("a.db")).unwrap();
    conn.execute_batch(
        "PRAGMA journal_mode = wal; CREATE TABLE t (x); INSERT INTO t VALUES (1); PRAGMA wal_checkpoint",
    )
    .unwrap();
    // A second round of the log over a longer first one, with a commit of many pages and one that gives pages back.
    for _ in 0..4 {
        conn.execute("INSERT INTO t VALUES (randomblob(30000))", []).unwrap();
    }
    conn.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    let file = std::fs::read(path("a.db")).unwrap();
    conn.execute_batch("INSERT INTO t VALUES (2); DELETE FROM t WHERE length(x) > 9; VACUUM; INSERT INTO t VALUES (3)")
        .unwrap();
    assert_eq!(std::fs::read(path("a.db")).unwrap(), file, "all of it is in the log only");
    let log = std::fs::read(path("a.db-wal")).unwrap();
    let frame = FRAME_HEAD_BYTES + PAGE_BYTES;
    assert!(log.len() > HEAD_BYTES + 25 * frame, "the first round is longer");

    let cuts = (0..log.len()).step_by(frame / 3).map(|length| log[..length].to_vec());
    let harms = (0..log.len()).step_by(frame / 2 + 7).map(|at| {
        let mut harmed = log.clone();
        harmed[at] ^= 4;
        harmed
    });
    let mut lengths = std::collections::BTreeSet::new();
    for (number, log) in cuts.chain(harms).chain([log.clone()]).enumerate() {
        for name in ["b.db", "c.db"] {
            std::fs::write(path(name), &file).unwrap();
            std::fs::write(path(&format!("{name}-wal")), &log).unwrap();
        }
        let _ = std::fs::remove_file(path("b.db-shm"));
        let by_sqlite = rusqlite::Connection::open(path("b.db")).unwrap();
        connection::checkpoint(&by_sqlite).unwrap();
        drop(by_sqlite);
        let into = File::options().read(true).write(true).open(path("c.db")).unwrap();
        replay(&path("c.db-wal"), &into).unwrap();
        let replayed = std::fs::read(path("c.db")).unwrap();
        assert!(replayed == std::fs::read(path("b.db")).unwrap(), "log {number}");
        lengths.insert(replayed.len());
    }
    assert!(lengths.len() > 1, "some of them bring something");
}

#[test]
fn without_a_log_nothing_changes() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x");
    std::fs::write(&path, "as it was").unwrap();
    replay(&scratch.path().join("none"), &File::options().write(true).open(&path).unwrap()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"as it was");
}
