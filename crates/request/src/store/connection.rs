//! How a connection to the file is opened, and what it is told before anything else.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::limits::{JOURNAL_BYTES_MAX, STATEMENTS_KEPT, WRITER_CACHE_KIB};

/// `turnd` and a version of the kind of file, as SQLite's header keeps it.
pub(super) const APPLICATION_ID: i32 = 0x7475_726e;
/// The first SQLite without the race that can corrupt a file in WAL mode when two connections write or checkpoint at once.
pub(super) const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// Opens the file for writing. It must be there.
pub(super) fn writing(path: &Path, busy_ms: u64) -> rusqlite::Result<Connection> {
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy_ms)?;
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "full")?;
    // Only known on macOS, where a plain flush stops at the drive's cache.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    conn.pragma_update_and_check(None, "journal_size_limit", JOURNAL_BYTES_MAX, |_| Ok(()))?;
    conn.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    Ok(conn)
}

/// Opens the file for reading only.
pub(super) fn reading(path: &Path, busy_ms: u64) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, busy_ms)
}

/// Opens the file to look whether it may be used: closing this connection leaves every file as it is.
pub(super) fn looking(path: &Path, busy_ms: u64) -> rusqlite::Result<Connection> {
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy_ms)?;
    leave_log(&conn)?;
    Ok(conn)
}

/// Closing the connection will not bring the log into the file.
pub(super) fn leave_log(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

fn open(path: &Path, flags: OpenFlags, busy_ms: u64) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_millis(busy_ms))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(()))?;
    Ok(conn)
}

/// Brings all that is in the log into the file, flushed. An error of the disk may have dropped pages that the system still shows: what
/// was written anew from here on is really there.
pub(super) fn checkpoint(conn: &Connection) -> rusqlite::Result<bool> {
    let was_busy: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(was_busy == 0)
}
