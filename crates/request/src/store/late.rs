//! What came after an end. It changes nothing and is no event.

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::error::StoreError;
use super::row;
use crate::limits::LATE_MAX;
use crate::{Late, LateKind, RequestId, Stage};

/// A piece of late evidence, and when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateEvidence {
    /// When, in epoch milliseconds.
    pub at_ms: u64,
    /// What.
    pub late: Late,
}

/// Keeps a piece, unless there are enough.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn note(conn: &Connection, request_id: &RequestId, late: &Late, at_ms: u64) -> Result<(), StoreError> {
    conn.prepare_cached(
        "INSERT INTO late_evidence (request_id, at, kind, payload) SELECT ?1, ?2, ?3, ?4 \
         WHERE (SELECT count(*) FROM late_evidence WHERE request_id = ?1) < ?5",
    )?
    .execute((request_id.as_str(), at_ms, late.kind.as_str(), &late.payload, LATE_MAX))?;
    Ok(())
}

/// All pieces of a request, oldest first.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn read(conn: &Connection, request_id: &RequestId) -> Result<Vec<LateEvidence>, StoreError> {
    let mut statement =
        conn.prepare_cached("SELECT at, kind, payload FROM late_evidence WHERE request_id = ?1 ORDER BY id")?;
    let mut rows = statement.query([request_id.as_str()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let late = Late { kind: row::word(row, "kind", LateKind::parse)?, payload: row.get("payload")? };
        found.push(LateEvidence { at_ms: row.get("at")?, late });
    }
    Ok(found)
}

/// Reads a whole row of the table of staged outcomes: whose it is, and the outcome.
///
/// # Errors
/// When it is none.
pub(super) fn read_stage(row: &Row<'_>) -> Result<(String, Stage), StoreError> {
    let text: String = row.get("outcome")?;
    match serde_json::from_str(&text) {
        Ok(stage) => Ok((row.get("request_id")?, stage)),
        Err(_) => Err(StoreError::Unreadable { column: "outcome", value: text }),
    }
}

/// The outcome that was staged and not made an end yet.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn staged(conn: &Connection, request_id: &RequestId) -> Result<Option<Stage>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT * FROM outcome_stage WHERE request_id = ?1")?;
    let found = statement.query_row([request_id.as_str()], |row| Ok(read_stage(row))).optional()?.transpose()?;
    Ok(found.map(|(_, stage)| stage))
}
