//! What an endpoint did not take, and what is to be sent to it again.

use rusqlite::{Connection, Row};

use super::row::{consumer, fault};
use crate::store::error::StoreError;
use crate::webhook::limits::LETTERS_MAX;
use crate::webhook::{Effect, Endpoint, Fault, Letter};

/// Notes what an effect means for an endpoint's letters.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn note(conn: &Connection, endpoint: &Endpoint, effect: &Effect, at_ms: u64) -> Result<(), StoreError> {
    let consumer = consumer(&endpoint.name);
    match *effect {
        Effect::Want { seq } => {
            conn.prepare_cached(
                "INSERT INTO webhook_letter (consumer, seq, wanted, tries, at) VALUES (?1, ?2, \
                    (SELECT coalesce(max(wanted), 0) + 1 FROM webhook_letter WHERE consumer = ?1), 0, ?3) \
                 ON CONFLICT DO UPDATE SET wanted = excluded.wanted",
            )?
            .execute((consumer, seq, at_ms))?;
        }
        Effect::DeadLetter { seq, is_again, tries, fault } => {
            conn.prepare_cached(
                "INSERT INTO webhook_letter (consumer, seq, wanted, tries, fault, status, at) \
                    VALUES (?1, ?2, NULL, ?3, ?4, ?5, ?6) \
                 ON CONFLICT DO UPDATE SET wanted = iif(?7, NULL, wanted), tries = tries + excluded.tries, \
                    fault = excluded.fault, status = excluded.status, at = excluded.at",
            )?
            .execute((&consumer, seq, tries, fault.as_str(), Fault::status(fault), at_ms, is_again))?;
            conn.prepare_cached(
                "DELETE FROM webhook_letter WHERE consumer = ?1 AND wanted IS NULL AND seq NOT IN \
                    (SELECT seq FROM webhook_letter WHERE consumer = ?1 AND wanted IS NULL \
                     ORDER BY at DESC, seq DESC LIMIT ?2)",
            )?
            .execute((&consumer, LETTERS_MAX))?;
        }
        Effect::Redelivered { seq } => {
            conn.prepare_cached("DELETE FROM webhook_letter WHERE consumer = ?1 AND seq = ?2")?
                .execute((consumer, seq))?;
        }
        // It may have been sent on demand before its turn, and not been taken.
        Effect::MoveOn { seq } => {
            conn.prepare_cached("DELETE FROM webhook_letter WHERE consumer = ?1 AND seq = ?2 AND wanted IS NULL")?
                .execute((consumer, seq))?;
        }
        _ => {}
    }
    Ok(())
}

/// Puts a letter of another store into this one.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn put(conn: &Connection, endpoint: &Endpoint, letter: &Letter) -> Result<(), StoreError> {
    conn.prepare_cached(
        "INSERT INTO webhook_letter (consumer, seq, wanted, tries, fault, status, at) \
            VALUES (?1, ?2, iif(?3, ?2, NULL), ?4, ?5, ?6, ?7)",
    )?
    .execute((
        consumer(&endpoint.name),
        letter.seq,
        letter.is_wanted,
        letter.tries,
        letter.fault.map(Fault::as_str),
        letter.fault.and_then(Fault::status),
        letter.at_ms,
    ))?;
    Ok(())
}

/// How many dead letters an endpoint has.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn count(conn: &Connection, endpoint: &Endpoint) -> Result<u64, StoreError> {
    let mut statement =
        conn.prepare_cached("SELECT count(*) FROM webhook_letter WHERE consumer = ?1 AND fault IS NOT NULL")?;
    Ok(statement.query_row([consumer(&endpoint.name)], |row| row.get(0))?)
}

/// All letters of an endpoint, by number.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn all(conn: &Connection, endpoint: &Endpoint) -> Result<Vec<Letter>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT * FROM webhook_letter WHERE consumer = ?1 ORDER BY seq")?;
    let rows = statement.query_map([consumer(&endpoint.name)], |row| Ok(read(row)))?;
    rows.map(|row| row?).collect()
}

fn read(row: &Row<'_>) -> Result<Letter, StoreError> {
    Ok(Letter {
        seq: row.get("seq")?,
        is_wanted: row.get::<_, Option<u64>>("wanted")?.is_some(),
        tries: row.get("tries")?,
        fault: fault(row)?,
        at_ms: row.get("at")?,
    })
}
