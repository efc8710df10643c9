//! One transaction for all commands that wait.

use rusqlite::Connection;

use super::command::{Command, Turn};
use super::error::StoreError;
use crate::fail_points::{FailPoints, When};

/// A command on its way through the writer.
pub(super) struct Item {
    pub(super) command: Box<dyn Command>,
    /// How it went in the last transaction, and that transaction's number. The commit may have failed.
    pub(super) tried: Option<(u64, Result<(), StoreError>)>,
}

impl Item {
    pub(super) fn new(command: Box<dyn Command>) -> Self {
        Self { command, tried: None }
    }
}

/// Runs all of a batch in one transaction with the number `commit_no` and commits it. A command that fails by itself undoes only itself.
/// Gives the newest number of the stream, when one was given, and whether anything was written.
///
/// # Errors
/// The store's trouble. Nothing of the batch is in the file then, unless the disk failed in the commit: [`stored_commit`] says.
pub(super) fn transact(
    conn: &Connection,
    batch: &mut [Item],
    commit_no: u64,
    fail_points: &FailPoints,
) -> Result<Committed, StoreError> {
    limit(conn, fail_points)?;
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let before = conn.total_changes();
    let mut turn = Turn { conn, fail_points, newest: None };
    for item in batch.iter_mut() {
        let outcome = one(&mut turn, item);
        if let Err(error) = &outcome
            && error.is_trouble()
        {
            return Err(error.clone());
        }
        item.tried = Some((commit_no, outcome));
    }
    let has_written = conn.total_changes() != before;
    let mut wall_ms = 0;
    if has_written {
        let mut statement = conn.prepare_cached("UPDATE meta SET commit_no = ?1 RETURNING last_wall_ms")?;
        wall_ms = statement.query_row([commit_no], |row| row.get(0))?;
    }
    fail_points.reach(When::Before, "commit")?;
    conn.prepare_cached("COMMIT")?.execute([])?;
    fail_points.reach(When::After, "commit")?;
    Ok(Committed { newest: turn.newest, has_written, wall_ms })
}

/// What a commit brought.
pub(super) struct Committed {
    pub(super) newest: Option<u64>,
    pub(super) has_written: bool,
    /// The latest time that the file has seen, in epoch milliseconds; 0 where nothing was written.
    pub(super) wall_ms: u64,
}

fn one(turn: &mut Turn<'_>, item: &mut Item) -> Result<(), StoreError> {
    let conn = turn.conn;
    let newest = turn.newest;
    conn.prepare_cached("SAVEPOINT one")?.execute([])?;
    let outcome = turn.fail_points.reach(When::Before, item.command.step()).and_then(|()| item.command.run(turn));
    if outcome.is_err() {
        turn.newest = newest;
        if conn.is_autocommit() {
            // SQLite rolled everything back by itself, as it does when the disk is full.
            return outcome;
        }
        conn.prepare_cached("ROLLBACK TO one")?.execute([])?;
    }
    conn.prepare_cached("RELEASE one")?.execute([])?;
    outcome
}

/// The number of the last transaction that is in the file, and the newest number of the stream.
///
/// # Errors
/// When it cannot be read.
pub(super) fn stored_commit(conn: &Connection) -> Result<(u64, u64), StoreError> {
    let mut statement = conn.prepare_cached("SELECT commit_no, head_seq FROM meta")?;
    Ok(statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// A test can have SQLite itself run out of room: the file may not grow while the place `limit` fails.
#[cfg(feature = "fail-points")]
fn limit(conn: &Connection, fail_points: &FailPoints) -> Result<(), StoreError> {
    let pages: i64 = match fail_points.reach(When::At, "limit") {
        Ok(()) => i64::from(u32::MAX) - 1,
        Err(_) => conn.query_row("PRAGMA page_count", [], |row| row.get(0))?,
    };
    Ok(conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
}

#[cfg(not(feature = "fail-points"))]
#[inline]
const fn limit(_conn: &Connection, _fail_points: &FailPoints) -> Result<(), StoreError> {
    Ok(())
}
