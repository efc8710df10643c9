//! Named places in the stream, for consumers that keep none themselves.

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::error::StoreError;
use super::meta::Meta;
use super::webhook;

/// What a consumer says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The consumer's name.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// The number up to which everything is processed. A smaller one than before is ignored, one above the head is refused.
    pub acked: u64,
    /// Whether pruning waits for it; none leaves it as it is, which is not, at first.
    pub protect: Option<bool>,
}

/// A consumer as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// The number up to which it has processed everything.
    pub acked_seq: u64,
    /// Whether pruning waits for it, up to a limit.
    pub protect: bool,
    /// When it was first heard of, in epoch milliseconds.
    pub created_at: u64,
    /// When it was last heard of, in epoch milliseconds.
    pub updated_at: u64,
}

/// Moves a consumer forward, or makes it.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn acknowledge(conn: &Connection, ack: &Acknowledgement, at_ms: u64) -> Result<Consumer, StoreError> {
    let head = Meta::read(conn)?.head_seq;
    if ack.acked > head {
        return Err(StoreError::Ahead { asked: ack.acked, head });
    }
    let known = find(conn, &ack.name)?;
    if ack.name.starts_with(webhook::PREFIX) {
        // An endpoint's: nobody but the daemon says what it has had.
        return Err(StoreError::ForeignOwner);
    }
    if known.as_ref().is_some_and(|known| known.owner != ack.owner) {
        return Err(StoreError::ForeignOwner);
    }
    let before = known.unwrap_or_else(|| Consumer {
        name: ack.name.clone(),
        owner: ack.owner.clone(),
        acked_seq: 0,
        protect: false,
        created_at: at_ms,
        updated_at: at_ms,
    });
    let consumer = Consumer {
        acked_seq: before.acked_seq.max(ack.acked),
        protect: ack.protect.unwrap_or(before.protect),
        updated_at: at_ms,
        ..before
    };
    conn.prepare_cached(
        "INSERT INTO consumer (name, owner, acked_seq, protect, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (name) DO UPDATE SET acked_seq = excluded.acked_seq, protect = excluded.protect, \
            updated_at = excluded.updated_at",
    )?
    .execute((
        &consumer.name,
        &consumer.owner,
        consumer.acked_seq,
        consumer.protect,
        consumer.created_at,
        consumer.updated_at,
    ))?;
    Ok(consumer)
}

/// The consumer with a name.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn find(conn: &Connection, name: &str) -> Result<Option<Consumer>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT * FROM consumer WHERE name = ?1")?;
    Ok(statement.query_row([name], read).optional()?)
}

/// All consumers, by name.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn all(conn: &Connection) -> Result<Vec<Consumer>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT * FROM consumer ORDER BY name")?;
    let rows = statement.query_map([], read)?;
    rows.map(|row| row.map_err(StoreError::from)).collect()
}

/// Reads a whole row.
///
/// # Errors
/// When a column is of another kind.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Consumer> {
    Ok(Consumer {
        name: row.get("name")?,
        owner: row.get("owner")?,
        acked_seq: row.get("acked_seq")?,
        protect: row.get("protect")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}
