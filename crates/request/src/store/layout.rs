//! Where everything begins in a file: SQLite's own list of tables and indexes, which is on the first page and below it.
//!
//! This program makes a file always in the same order, and nothing of it is ever removed, so that every file of a version has the same list;
//! one that was copied whole (an export) has its indexes behind its tables. Giving pages back moves no page at which anything begins.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rusqlite::Connection;

use super::log::offset;
use super::schema::made;

/// Bytes of a page: what SQLite takes where nobody says otherwise, and nobody ever did.
pub(super) const PAGE_BYTES: usize = 4096;
/// The page that says of the next ones what each is, as every file has it that can give pages back, and the bytes that it has for each.
const KINDS_PAGE: u32 = 2;
const KIND_BYTES: u64 = 5;
/// The kind of a page at which a table or index begins; the other kinds have the numbers up to this one.
const KIND_BEGINS: u8 = 1;
const KIND_LAST: u8 = 5;

/// A list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout(BTreeSet<Thing>);

/// A table or an index.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thing {
    /// The page where it begins.
    root: u32,
    kind: String,
    name: String,
    table: String,
    /// None for an index that a table brings with it.
    sql: Option<String>,
}

impl Layout {
    /// What an open file says itself.
    ///
    /// # Errors
    /// When that cannot be read.
    pub(super) fn of(conn: &Connection) -> rusqlite::Result<Self> {
        let mut statement = conn.prepare("SELECT rootpage, type, name, tbl_name, sql FROM sqlite_schema")?;
        let things = statement.query_map([], |row| {
            let (root, kind, name) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Thing { root, kind, name, table: row.get(3)?, sql: row.get(4)? })
        })?;
        things.collect::<rusqlite::Result<_>>().map(Self)
    }

    /// Those that a file of a version can have: as it is made, and as it is copied.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn known(version: i32) -> rusqlite::Result<[Self; 2]> {
        let model = Connection::open_in_memory()?;
        model.pragma_update(None, "auto_vacuum", "incremental")?;
        made(&model, version)?;
        let fresh = Self::of(&model)?;
        model.execute_batch("VACUUM")?;
        Ok([fresh, Self::of(&model)?])
    }

    /// Whether the pages of a file, whose own list is not asked, are what they are if this is its list: nothing speaks against it, and more
    /// than half of them for it.
    ///
    /// # Errors
    /// When the disk does not give them.
    pub(super) fn fits(&self, file: &File) -> io::Result<bool> {
        let mut agreeing = 0;
        for thing in &self.0 {
            let kinds_at = offset(KINDS_PAGE) + u64::from(thing.root.saturating_sub(KINDS_PAGE + 1)) * KIND_BYTES;
            if byte(file, kinds_at)?.is_some_and(|kind| (KIND_BEGINS + 1..=KIND_LAST).contains(&kind)) {
                return Ok(false);
            }
            // An inner page or a leaf.
            let is_table = match byte(file, offset(thing.root))? {
                Some(0x05 | 0x0d) => true,
                Some(0x02 | 0x0a) => false,
                _ => continue,
            };
            if is_table != (thing.kind == "table") {
                return Ok(false);
            }
            agreeing += 1;
        }
        Ok(agreeing * 2 > self.0.len())
    }

    /// The last page at which anything begins.
    pub(super) fn last_root(&self) -> u32 {
        self.0.last().map_or(1, |thing| thing.root)
    }

    /// Makes this the list of a file that has none.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(super) fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        conn.pragma_update(None, "writable_schema", true)?;
        let write = conn.unchecked_transaction()?;
        for Thing { root, kind, name, table, sql } in &self.0 {
            write.execute(
                "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (?1, ?2, ?3, ?4, ?5)",
                (kind, name, table, root, sql),
            )?;
        }
        write.commit()
    }

    /// The names of its tables.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|thing| thing.kind == "table").map(|thing| &*thing.name)
    }
}

/// None behind the end.
fn byte(file: &File, at: u64) -> io::Result<Option<u8>> {
    let mut byte = [0];
    Ok((file.read_at(&mut byte, at)? == 1).then_some(byte[0]))
}

#[cfg(test)]
mod tests;
