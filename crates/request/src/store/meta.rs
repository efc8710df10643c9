//! The one row that says which stream this is and how far it got.

use rusqlite::Connection;

use super::error::StoreError;
use crate::{Cursor, Hash};

/// The row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) stream_id: String,
    pub(super) daemon_epoch: u64,
    pub(super) head_seq: u64,
    pub(super) head_chain: Hash,
    pub(super) pruned_through: u64,
    pub(super) pruned_chain: Hash,
    pub(super) tombstone_floor: u64,
    pub(super) clean_shutdown: bool,
    pub(super) last_wall_ms: u64,
    pub(super) commit_no: u64,
    pub(super) closed_at: Option<u64>,
}

impl Meta {
    /// Reads it.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub(super) fn read(conn: &Connection) -> Result<Self, StoreError> {
        let mut statement = conn.prepare_cached("SELECT * FROM meta")?;
        let meta = statement.query_row([], |row| {
            Ok(Self {
                stream_id: row.get("stream_id")?,
                daemon_epoch: row.get("daemon_epoch")?,
                head_seq: row.get("head_seq")?,
                head_chain: row.get("head_chain")?,
                pruned_through: row.get("pruned_through")?,
                pruned_chain: row.get("pruned_chain")?,
                tombstone_floor: row.get("tombstone_floor")?,
                clean_shutdown: row.get("clean_shutdown")?,
                last_wall_ms: row.get("last_wall_ms")?,
                commit_no: row.get("commit_no")?,
                closed_at: row.get("closed_at")?,
            })
        });
        meta.map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => {
                StoreError::Corrupt("the row about the stream is missing".to_owned())
            }
            error => error.into(),
        })
    }

    /// A place in this stream.
    pub(super) fn cursor(&self, seq: u64, chain: &Hash) -> Cursor {
        Cursor::new(&self.stream_id, seq, chain)
    }
}
