//! How a store is opened: who may, what must hold, and what is done with a file of which it does not.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::connection::{self, SQLITE_VERSION_MIN};
use super::error::StoreError;
use super::lines;
use super::meta::Meta;
use super::place::{Place, is_remote};
use super::schema::{self, Beginning, Header, STEPS, VERSION, io};
use super::verify::{Depth, check, look};
use super::watermark::{Levels, Watermark};
use crate::fail_points::{FailPoints, When};

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another daemon has it.
    #[error("another daemon has the request store")]
    Locked,
    /// It lies on another machine's disk, where neither locks nor flushes can be relied on.
    #[error("the request store is on a network file system")]
    Remote,
    /// A newer program made it. Nothing was touched.
    #[error("the request store has version {found}, this program knows {known}")]
    Newer {
        /// The file's version.
        found: i32,
        /// The highest that this program knows.
        known: i32,
    },
    /// It has a version that no program ever wrote. Nothing was touched.
    #[error("the request store has version {found}, which there never was")]
    UnknownVersion {
        /// The file's version.
        found: i32,
    },
    /// What lies there is no request store. Nothing was touched.
    #[error("the file is another program's")]
    Foreign,
    /// What lies there is not what was written. The files were put aside, now or earlier, and no empty store was made in their place:
    /// that is for an operator to decide.
    #[error("the request store is corrupt: {what}; its files are in {}", aside.display())]
    Corrupt {
        /// Where they are.
        aside: PathBuf,
        /// What does not hold.
        what: String,
    },
    /// It was exported and lives elsewhere.
    #[error("the request store was exported and is closed here")]
    Exported,
    /// The SQLite in this program is too old to be trusted with it.
    #[error("SQLite {0} is older than 3.51.3")]
    OldSqlite(&'static str),
    /// Anything else.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Makes the folder if need be and takes its lock.
///
/// # Errors
/// See [`OpenError`].
pub(super) fn enter(place: &Place) -> Result<File, OpenError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(OpenError::OldSqlite(rusqlite::version()));
    }
    place.make().map_err(io)?;
    if is_remote(place.folder()).map_err(io)? {
        return Err(OpenError::Remote);
    }
    place.lock().map_err(io)?.ok_or(OpenError::Locked)
}

/// A checked file of this program's version, and what its row says.
pub(super) struct Opened {
    pub(super) conn: Connection,
    /// As the last life left it; the epoch is this life's already.
    pub(super) meta: Meta,
    pub(super) watermark: Watermark,
}

/// Opens the file, or makes it where there never was one. The lock is held.
///
/// # Errors
/// See [`OpenError`].
pub(super) fn open(
    place: &Place,
    busy_ms: u64,
    now_ms: u64,
    fail_points: &Arc<FailPoints>,
) -> Result<Opened, OpenError> {
    if let Some(aside) = place.aside().map_err(io)?.into_iter().next() {
        place.finish(&aside).map_err(io)?;
        return Err(OpenError::Corrupt { aside, what: "nobody has decided yet".to_owned() });
    }
    fail_points.reach(When::At, "open")?;
    if !place.file().exists() {
        if place.has_traces().map_err(io)? {
            let what = "the file is gone, and what lies beside it says that there was one".to_owned();
            return Err(put_aside(place, what, now_ms)?);
        }
        schema::finish(place, schema::draft(place, &Beginning::fresh(now_ms))?)?;
        schema::publish(place)?;
    }
    believe(place, busy_ms, now_ms)?;
    let mut conn = connection::writing(&place.file(), busy_ms)?;
    if schema::version(&conn)? != VERSION {
        schema::migrate(&conn, place, &STEPS, now_ms, fail_points)?;
        drop(conn);
        // What was not looked at in a file of an older version.
        believe(place, busy_ms, now_ms)?;
        conn = connection::writing(&place.file(), busy_ms)?;
    }
    let mut meta = Meta::read(&conn)?;
    if meta.closed_at.is_some() {
        return Err(OpenError::Exported);
    }
    if let Some(note) = Levels::read(&place.watermark()).silence(&meta) {
        tracing::warn!(%note, "the request store may be an older one than it seems");
    }
    lines::absorb(&conn, place, now_ms)?;
    meta.daemon_epoch += 1;
    meta.commit_no += 1;
    conn.execute(
        "UPDATE meta SET daemon_epoch = ?1, commit_no = ?2, clean_shutdown = 0, last_wall_ms = max(last_wall_ms, ?3)",
        (meta.daemon_epoch, meta.commit_no, now_ms),
    )?;
    let watermark = Watermark::begin(&place.watermark(), &meta)?;
    Ok(Opened { conn, meta, watermark })
}

/// Puts a file aside that is not sound.
///
/// # Errors
/// [`OpenError::Corrupt`] then, and whatever keeps it from being looked at.
fn believe(place: &Place, busy_ms: u64, now_ms: u64) -> Result<(), OpenError> {
    match examine(place, busy_ms)? {
        Some(what) => Err(put_aside(place, what, now_ms)?),
        None => Ok(()),
    }
}

/// Keeps what is not sound where no start takes it for a store, or for none.
fn put_aside(place: &Place, what: String, now_ms: u64) -> Result<OpenError, StoreError> {
    let aside = place.set_aside(now_ms).map_err(io)?;
    tracing::error!(%what, aside = %aside.display(), "the request store is corrupt; its files are put aside");
    Ok(OpenError::Corrupt { aside, what })
}

/// What is wrong with the file, if anything. Changes no byte of it.
///
/// # Errors
/// When it is not ours to judge.
pub(super) fn examine(place: &Place, busy_ms: u64) -> Result<Option<String>, OpenError> {
    if schema::header(&place.file()).map_err(io)? == Header::Torn {
        return Ok(Some("the file has no header".to_owned()));
    }
    let noted = Levels::read(&place.watermark());
    let examined = known(&place.file(), busy_ms).and_then(|conn| {
        let version = schema::version(&conn)?;
        // What must hold of an older version is looked at once it is of this one.
        let violations = match version {
            VERSION => look(&conn, &noted, Depth::Start, false)?.violations,
            _ => check(&conn, Depth::Start)?,
        };
        Ok(violations.into_iter().next())
    });
    match examined {
        Err(OpenError::Store(StoreError::Corrupt(what) | StoreError::Refused(what))) => Ok(Some(what)),
        examined => examined,
    }
}

/// A connection that only looks at a file of a version that this program knows. Of another one no byte is touched, whether its header says
/// so or only its log.
///
/// # Errors
/// When the file is not one of ours, or cannot be read.
pub(super) fn known(file: &Path, busy_ms: u64) -> Result<Connection, OpenError> {
    match schema::header(file).map_err(io)? {
        Header::Foreign => return Err(OpenError::Foreign),
        Header::Torn => return Err(StoreError::Corrupt("the file has no header".to_owned()).into()),
        Header::Version(found) => is_known(found)?,
    }
    let conn = connection::looking(file, busy_ms)?;
    is_known(schema::version(&conn)?)?;
    Ok(conn)
}

/// Whether a file of a version may be looked at.
///
/// # Errors
/// When this program does not know it.
pub(super) const fn is_known(found: i32) -> Result<(), OpenError> {
    match found {
        1..=VERSION => Ok(()),
        found if found > VERSION => Err(OpenError::Newer { found, known: VERSION }),
        found => Err(OpenError::UnknownVersion { found }),
    }
}
