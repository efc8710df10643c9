//! What can be read of a store that is not sound.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row};

use super::connection;
use super::doubt::{self, Doubt};
use super::error::StoreError;
use super::layout::Layout;
use super::mend::mend;
use super::meta::Meta;
use super::open::{OpenError, is_known};
use super::place::{Place, create, create_folder};
use super::register::{Tombstone, read_tombstone};
use super::schema::io;
use super::watermark::Levels;
use super::{consumer, incarnation, late, limits, room, row, schema, verify, webhook};
use crate::webhook::{Endpoint, Letter};
use crate::{Request, Stage};

/// All that can be read of a store.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) requests: BTreeMap<i64, Request>,
    /// Ended ones of which nobody can say whether they ended as their rows say.
    pub(super) doubted: Vec<Request>,
    pub(super) tombstones: BTreeMap<i64, Tombstone>,
    pub(super) incarnations: BTreeMap<i64, crate::Incarnation>,
    pub(super) consumers: BTreeMap<i64, consumer::Consumer>,
    pub(super) endpoints: Vec<(Endpoint, Vec<Letter>)>,
    pub(super) stages: BTreeMap<String, Stage>,
    /// The highest number that anything speaks of.
    pub(super) highest: u64,
    /// Whether no number above that was given.
    pub(super) is_highest_known: bool,
    pub(super) pruned_through: u64,
    pub(super) tombstone_floor: u64,
    /// The latest time that anything speaks of, in epoch milliseconds.
    pub(super) wall_ms: u64,
    pub(super) epoch: u64,
    /// Something could not be read, or is missing.
    pub(super) is_damaged: bool,
}

/// Reads from a copy, so that the files stay what they are.
///
/// # Errors
/// When the copy cannot be made, or there is no room to look at it: what is not read then is not lost. When the log says that the store is
/// of a version that this program does not know.
pub(super) fn read(place: &Place, files: &Path) -> Result<Found, OpenError> {
    let copy = place.folder().join("rescue");
    let _ = std::fs::remove_dir_all(&copy);
    let found = read_copy(place, files, &copy);
    // While the copy is still there: it may be what took the room.
    let is_short = found.as_ref().is_ok_and(|found| found.is_damaged) && !room::is_there(place);
    let _ = std::fs::remove_dir_all(&copy);
    if is_short { Err(StoreError::Full.into()) } else { found }
}

fn read_copy(place: &Place, files: &Path, copy: &Path) -> Result<Found, OpenError> {
    let noted = Levels::read(&place.watermark());
    let (mut found, is_as_made) = as_it_is(copy_files(files, copy)?, &noted);
    // The first reading may have changed the copy.
    if (found.is_damaged || !is_as_made) && copy_files(files, copy)?.is_some() {
        let (file, is_mended) = mend(copy)?;
        match is_mended.then(|| as_mended(&file, &noted)) {
            // Where the list of tables is sound the damage is elsewhere, and what was read is all that there is.
            Some(mended) if !is_as_made || !mended.is_damaged => found = mended,
            Some(_) => {}
            // A list that is another one may lead to other rows than all.
            None if !is_as_made => {
                let conn = connection::writing(&file, limits::BUSY_MS);
                found.is_damaged |= !conn.is_ok_and(|conn| is_whole(&conn, &noted));
            }
            None => {}
        }
    }
    found.wall_ms = found.wall_ms.max(noted.wall_ms());
    if !found.is_highest_known
        && let Some(bound) = noted.bound()
    {
        found.highest = found.highest.max(bound);
        found.is_highest_known = true;
    }
    Ok(found)
}

/// What a copy says as it is, and whether its list of tables is one that this program made.
fn as_it_is(file: Option<PathBuf>, noted: &Levels) -> (Found, bool) {
    let mut found = Found { epoch: noted.daemon_epoch(), ..Found::default() };
    let mut is_as_made = false;
    match file.map(|file| connection::writing(&file, limits::BUSY_MS)) {
        Some(Ok(conn)) => {
            let version = schema::version(&conn).ok().filter(|version| is_known(*version).is_ok());
            let known = version.and_then(|version| Layout::known(version).ok());
            match Layout::of(&conn) {
                Ok(layout) => {
                    is_as_made = known.is_some_and(|known| known.contains(&layout));
                    read_all(&conn, noted, &mut found);
                }
                // Where a name is no text the library could not even be asked for it.
                Err(_) => found.is_damaged = true,
            }
        }
        Some(Err(error)) => {
            tracing::error!(%error, "the request store cannot be opened");
            found.is_damaged = true;
        }
        None => found.is_damaged = true,
    }
    (found, is_as_made)
}

/// What a mended copy says. It is all of the store if everything holds in it that must.
fn as_mended(file: &Path, noted: &Levels) -> Found {
    tracing::warn!(
        "the first page of the request store or its list of tables is damaged; its rows are read without them"
    );
    let mut found = Found { epoch: noted.daemon_epoch(), ..Found::default() };
    match connection::writing(file, limits::BUSY_MS) {
        Ok(conn) => {
            read_all(&conn, noted, &mut found);
            found.is_damaged |= !is_whole(&conn, noted);
        }
        Err(error) => {
            tracing::error!(%error, "the mended copy of the request store cannot be opened");
            found.is_damaged = true;
        }
    }
    found
}

/// Whether everything holds of the rows of a copy that must.
fn is_whole(conn: &Connection, noted: &Levels) -> bool {
    let Ok(violations) = verify::rows(conn, noted) else { return false };
    for violation in &violations {
        tracing::warn!(%violation, "the rows of the request store do not hold");
    }
    violations.is_empty()
}

/// None when the disk does not give the files: that is a damage, and what else goes wrong is not.
fn copy_files(files: &Path, copy: &Path) -> Result<Option<PathBuf>, StoreError> {
    create_folder(copy).map_err(io)?;
    // One that is gone may be in its log, which is not looked at without a file.
    create(&copy.join(super::place::TRIO[0])).and_then(|file| file.set_len(0)).map_err(io)?;
    for name in super::place::TRIO {
        // The index is made anew from the log.
        if !name.ends_with("-shm") && files.join(name).exists() {
            drop(create(&copy.join(name)).map_err(io)?);
            match std::fs::copy(files.join(name), copy.join(name)) {
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    tracing::error!(%error, name, "the disk does not give a file of the request store");
                    return Ok(None);
                }
                copied => copied.map(drop).map_err(io)?,
            }
        }
    }
    Ok(Some(copy.join(super::place::TRIO[0])))
}

fn read_all(conn: &Connection, noted: &Levels, found: &mut Found) {
    let meta = Meta::read(conn).ok();
    match &meta {
        Some(meta) => {
            // A file that has forgotten its newest commits has forgotten their numbers, too.
            found.is_highest_known = noted.missing(meta).is_none();
            found.is_damaged = !found.is_highest_known;
            found.highest = meta.head_seq;
            found.pruned_through = meta.pruned_through;
            found.tombstone_floor = meta.tombstone_floor;
            found.wall_ms = found.wall_ms.max(meta.last_wall_ms);
            found.epoch = found.epoch.max(meta.daemon_epoch);
        }
        None => found.is_damaged = true,
    }
    let damaged = &mut found.is_damaged;
    found.requests = salvage(conn, "request", damaged, row::read);
    found.tombstones = salvage(conn, "tombstone", damaged, read_tombstone);
    found.incarnations = salvage(conn, "incarnation", damaged, |row| Ok(incarnation::read(row)?));
    found.consumers = salvage(conn, "consumer", damaged, |row| Ok(consumer::read(row)?));
    found.endpoints = webhook::salvage(conn).unwrap_or_else(|_| {
        *damaged = true;
        Vec::new()
    });
    let doubt = Doubt::of(conn, meta.as_ref(), &found.requests);
    let verdicts = salvage(conn, "terminal_event", damaged, |row| doubt.verdict(row));
    let seqs: Vec<_> = verdicts.values().map(|verdict| verdict.seq).collect();
    for (request, stage) in salvage(conn, "outcome_stage", damaged, late::read_stage).into_values() {
        found.stages.insert(request, stage);
    }
    found.doubted = doubt::settle(&mut found.requests, verdicts.into_values());
    *damaged |= !found.doubted.is_empty();
    let ended = found.requests.values().chain(&found.doubted).filter_map(|request| request.terminal_seq);
    let rows = ended.filter(|seq| *seq > found.pruned_through).count() as u64;
    // Of a number of which no row is left the id is lost, too, though nothing that is there is damaged.
    *damaged |= meta.as_ref().is_some_and(|meta| rows < meta.head_seq.saturating_sub(meta.pruned_through));
    let numbers = found.requests.values().chain(&found.doubted).filter_map(|request| request.terminal_seq);
    let numbers = numbers.chain(found.tombstones.values().map(|tombstone| tombstone.terminal_seq));
    let numbers = numbers.chain(found.consumers.values().map(|consumer| consumer.acked_seq));
    found.highest = numbers.chain(seqs).fold(found.highest, u64::max);
}

/// Reads a table from both ends, so that one damaged place costs what lies in it.
fn salvage<T>(
    conn: &Connection,
    table: &str,
    is_damaged: &mut bool,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> BTreeMap<i64, T> {
    let mut found = BTreeMap::new();
    for order in ["ASC", "DESC"] {
        let Ok(mut statement) = conn.prepare(&format!("SELECT rowid AS place, * FROM {table} ORDER BY rowid {order}"))
        else {
            *is_damaged = true;
            return found;
        };
        let Ok(mut rows) = statement.query([]) else { continue };
        loop {
            match rows.next() {
                Ok(None) => return found,
                Ok(Some(row)) => {
                    match row.get("place").map_err(StoreError::from).and_then(|place| Ok((place, read(row)?))) {
                        Ok((place, value)) => {
                            if found.insert(place, value).is_some() && order == "DESC" {
                                return found;
                            }
                        }
                        Err(_) => *is_damaged = true,
                    }
                }
                Err(_) => {
                    *is_damaged = true;
                    break;
                }
            }
        }
    }
    found
}

impl Found {
    /// Whether there is nothing at all.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
            && self.doubted.is_empty()
            && self.tombstones.is_empty()
            && self.incarnations.is_empty()
            && self.consumers.is_empty()
            && self.stages.is_empty()
    }
}

#[cfg(test)]
mod tests;
