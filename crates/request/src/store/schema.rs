//! The shape of the file: made once, and brought forward by steps.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::connection::{self, APPLICATION_ID};
use super::error::StoreError;
use super::place::{Place, create, flush_folder};
use super::room;
use crate::Hash;
use crate::event::genesis;
use crate::fail_points::{FailPoints, When};

/// The version that this program writes. A new file takes all steps, too, so that it has the shape of one that was brought forward.
pub(super) const VERSION: i32 = 2;

const SCHEMA: &str = include_str!("schema.sql");

/// One step forward: what makes a file of the version at its place, counted from 1, one of the next.
pub(super) type Step = &'static str;

/// All steps. A step that is here is never changed: files were made by it.
pub(super) const STEPS: [Step; (VERSION - 1) as usize] = [include_str!("schema/second_secret.sql")];

/// Where a new stream begins.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    pub(super) stream_id: String,
    /// The number after which it goes on; 0 for a first one.
    pub(super) after: u64,
    /// The daemon's last life that is known.
    pub(super) daemon_epoch: u64,
    pub(super) now_ms: u64,
}

impl Beginning {
    /// A stream that nobody has heard of.
    pub(super) fn fresh(now_ms: u64) -> Self {
        Self { stream_id: uuid::Uuid::new_v4().to_string(), after: 0, daemon_epoch: 0, now_ms }
    }
}

/// Makes an empty store under the name of a draft. It is no store before it is moved to its place.
///
/// # Errors
/// When the disk does not take it.
pub(super) fn draft(place: &Place, beginning: &Beginning) -> Result<Connection, StoreError> {
    let path = place.draft();
    remove_draft(place);
    drop(create(&path).map_err(io)?);
    let conn = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.pragma_update(None, "auto_vacuum", "incremental")?;
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    conn.pragma_update(None, "synchronous", "full")?;
    let made = conn.unchecked_transaction()?;
    self::made(&made, VERSION)?;
    let chain: Hash = genesis(&beginning.stream_id);
    made.execute(
        "INSERT INTO meta (only, stream_id, created_at, daemon_epoch, head_seq, head_chain, pruned_through, pruned_chain, \
            tombstone_floor, clean_shutdown, last_wall_ms, commit_no, closed_at) \
         VALUES (1, ?1, ?2, ?3, ?4, ?5, ?4, ?5, 0, 1, ?2, 0, NULL)",
        (&beginning.stream_id, beginning.now_ms, beginning.daemon_epoch, beginning.after, chain),
    )?;
    made.pragma_update(None, "user_version", VERSION)?;
    made.commit()?;
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    Ok(conn)
}

/// Removes what is left of a draft.
pub(super) fn remove_draft(place: &Place) {
    for name in ["", "-wal", "-shm", "-journal"] {
        let mut left = place.draft().into_os_string();
        left.push(name);
        let _ = std::fs::remove_file(left);
    }
}

/// Makes everything that a file of a version has, in one that has nothing.
///
/// # Errors
/// When the disk does not take it.
pub(super) fn made(conn: &Connection, version: i32) -> rusqlite::Result<()> {
    conn.execute_batch(SCHEMA)?;
    STEPS.iter().zip(1..version).try_for_each(|(step, _)| conn.execute_batch(step))
}

/// Finishes a draft: it is one whole file then, and on the disk.
///
/// # Errors
/// When the disk does not take it.
pub(super) fn finish(place: &Place, draft: Connection) -> Result<(), StoreError> {
    connection::checkpoint(&draft)?;
    draft.close().map_err(|(_, error)| error)?;
    File::open(place.draft()).and_then(|file| file.sync_all()).map_err(io)
}

/// Puts a finished draft in its place: from here on there is a store.
///
/// # Errors
/// When the disk does not take it.
pub(super) fn publish(place: &Place) -> Result<(), StoreError> {
    std::fs::rename(place.draft(), place.file()).map_err(io)?;
    flush_folder(place.folder()).map_err(io)
}

/// What the first bytes of a file say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// A store of a version.
    Version(i32),
    /// Too short, or not SQLite's.
    Torn,
    /// Another program's.
    Foreign,
}

/// Reads the header without SQLite, which would make files beside it.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn header(path: &Path) -> std::io::Result<Header> {
    let mut bytes = Vec::with_capacity(100);
    File::open(path)?.take(100).read_to_end(&mut bytes)?;
    if bytes.len() < 100 || !bytes.starts_with(b"SQLite format 3\0") {
        return Ok(Header::Torn);
    }
    let number = |at: usize| i32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Ok(if number(68) == APPLICATION_ID { Header::Version(number(60)) } else { Header::Foreign })
}

/// The version of an open file.
///
/// # Errors
/// When it cannot be read.
pub(super) fn version(conn: &Connection) -> rusqlite::Result<i32> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings a file of an older version forward, step by step, each one transaction. A copy of it as it was is made first.
///
/// # Errors
/// When the disk does not take it. The file is of the old version or of one on the way then, and whole.
pub(super) fn migrate(
    conn: &Connection,
    place: &Place,
    steps: &[Step],
    now_ms: u64,
    fail_points: &FailPoints,
) -> Result<(), StoreError> {
    let found = version(conn)?;
    let Some(left) = usize::try_from(found - 1).ok().and_then(|done| steps.get(done..)) else {
        return Err(StoreError::Corrupt(format!("there never was a version {found}")));
    };
    if left.is_empty() {
        return Ok(());
    }
    let kept = place.copy(found, now_ms);
    keep(conn, place, &kept, fail_points)?;
    forward(conn, left, found, fail_points).inspect_err(|error| {
        // Tried again until it can be done, each time with a copy of its own: those of a file that is as it was would fill the disk.
        if matches!(error, StoreError::Busy | StoreError::Full) && version(conn).is_ok_and(|version| version == found) {
            let _ = std::fs::remove_file(&kept);
        }
    })?;
    // The header of the file itself says the version from here on, also to who looks without its log.
    connection::checkpoint(conn)?;
    fail_points.reach(When::At, "migrated")
}

/// Takes the steps from a version.
fn forward(conn: &Connection, steps: &[Step], from: i32, fail_points: &FailPoints) -> Result<(), StoreError> {
    for (step, to) in steps.iter().zip(from + 1..) {
        let forward = conn.unchecked_transaction()?;
        forward.execute_batch(step)?;
        forward.pragma_update(None, "user_version", to)?;
        fail_points.reach(When::Before, "migrate")?;
        forward.commit()?;
        fail_points.reach(When::After, "migrate")?;
        tracing::info!(from = to - 1, to, "the request store was brought forward");
    }
    Ok(())
}

/// Keeps the file as it is under another name, which stands for a whole copy: what is cut off on the way to it has a name that the next
/// try takes again, so that a full disk is not filled by halves of copies.
fn keep(conn: &Connection, place: &Place, to: &Path, fail_points: &FailPoints) -> Result<(), StoreError> {
    let draft = place.copy_draft();
    fail_points.reach(When::Before, "copy")?;
    let kept = copy(conn, &draft, place)
        .and_then(|()| fail_points.reach(When::At, "copied"))
        .and_then(|()| std::fs::rename(&draft, to).map_err(io));
    if let Err(error) = kept {
        let _ = std::fs::remove_file(&draft);
        return Err(error);
    }
    flush_folder(place.folder()).map_err(io)?;
    fail_points.reach(When::After, "copy")
}

/// A whole copy of the store in one file, flushed.
///
/// # Errors
/// When the disk does not take it.
pub(super) fn copy(conn: &Connection, to: &Path, place: &Place) -> Result<(), StoreError> {
    // Made before SQLite writes to it, so that it is never readable by others.
    let _ = std::fs::remove_file(to);
    let file = create(to).map_err(io)?;
    conn.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    file.sync_all().map_err(io)?;
    flush_folder(to.parent().unwrap_or_else(|| place.folder())).map_err(io)
}

/// An error of a file beside the database.
pub(super) fn io(error: std::io::Error) -> StoreError {
    if room::is_full(&error) { StoreError::Full } else { StoreError::Io(error.to_string()) }
}

#[cfg(test)]
mod tests;
