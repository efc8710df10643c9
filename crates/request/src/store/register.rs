//! A caller's id, looked up and taken in one transaction: of fifty at once one is new (return requests, section 2.9).

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::error::StoreError;
use super::limits::CLOCK_AHEAD_MS;
use super::row;
use crate::{Code, Hash, Registration, Request, RequestId, State};

/// What a registration came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    /// The row is there and durable.
    New(Box<Request>),
    /// The same was asked before: this is how it stands.
    Known(Box<Request>),
    /// The same was asked before; what is left of it.
    Tombstone(Tombstone),
    /// The id was used for other input.
    Mismatch,
    /// The id was hashed by an older recipe: whoever asks has to hash again and ask again.
    OtherRecipe {
        /// The recipe.
        hash_version: u32,
    },
    /// The id is older than what is remembered. Whether it was used is not known any more.
    Expired,
    /// The id says that it was made later than [`CLOCK_AHEAD_MS`] from now. It was never taken, and is not: what an id that is taken tells of
    /// its age is below the floor of every later rescue.
    Ahead,
    /// The id is somebody else's, of whom nothing is said.
    ForeignOwner,
}

/// What remains of a request after pruning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The id.
    pub request_id: RequestId,
    /// Whose it was.
    pub owner: String,
    /// What was asked.
    pub input_hash: Hash,
    /// The recipe of that hash.
    pub hash_version: u32,
    /// How it ended.
    pub state: State,
    /// Why.
    pub code: Option<Code>,
    /// The number of its event.
    pub terminal_seq: u64,
    /// When, in epoch milliseconds.
    pub ended_at: u64,
}

/// Registers, in the open transaction.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn register(conn: &Connection, asked: &Registration) -> Result<Registered, StoreError> {
    let known = row::find(conn, asked.request_id.as_str())?;
    if let Some(request) = known {
        let stored = &request.registration;
        let same = Same { owner: &stored.owner, input_hash: stored.input_hash, hash_version: stored.hash_version };
        return Ok(same.judge(asked).unwrap_or_else(|| Registered::Known(Box::new(request))));
    }
    if let Some(tombstone) = tombstone(conn, asked.request_id.as_str())? {
        let (input_hash, hash_version) = (tombstone.input_hash, tombstone.hash_version);
        let same = Same { owner: &tombstone.owner, input_hash, hash_version };
        return Ok(same.judge(asked).unwrap_or(Registered::Tombstone(tombstone)));
    }
    let floor = floor(conn)?;
    if is_expired(&asked.request_id, floor) {
        return Ok(Registered::Expired);
    }
    let youngest = floor.max(asked.created_at.saturating_add(CLOCK_AHEAD_MS));
    if asked.request_id.born_ms().is_some_and(|born| born > youngest) {
        return Ok(Registered::Ahead);
    }
    let request = Request::new(asked.clone());
    row::insert(conn, &request).map_err(|error| unknown_incarnation(conn, asked, error))?;
    // A rescue that loses the row still knows when ids were taken.
    conn.prepare_cached("UPDATE meta SET last_wall_ms = max(last_wall_ms, ?1)")?.execute([asked.created_at])?;
    Ok(Registered::New(Box::new(request)))
}

/// The time, in epoch milliseconds, before which ids may be forgotten.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn floor(conn: &Connection) -> Result<u64, StoreError> {
    Ok(conn.prepare_cached("SELECT tombstone_floor FROM meta")?.query_row([], |row| row.get(0))?)
}

/// Whether an id that is not on record may be a forgotten one.
pub(super) fn is_expired(request_id: &RequestId, floor: u64) -> bool {
    request_id.born_ms().is_some_and(|born| born < floor)
}

/// Removes a row that nobody was told of.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn unregister(conn: &Connection, request_id: &RequestId, prompt_id: &str) -> Result<(), StoreError> {
    conn.prepare_cached("DELETE FROM request WHERE request_id = ?1 AND prompt_id = ?2 AND terminal_seq IS NULL")?
        .execute((request_id.as_str(), prompt_id))?;
    Ok(())
}

/// What is stored of an id, as far as it decides whether the same is asked again.
struct Same<'s> {
    owner: &'s str,
    input_hash: Hash,
    hash_version: u32,
}

impl Same<'_> {
    /// Why it is not the same; none when it is.
    fn judge(&self, asked: &Registration) -> Option<Registered> {
        if self.owner != asked.owner {
            return Some(Registered::ForeignOwner);
        }
        if self.hash_version != asked.hash_version {
            return Some(Registered::OtherRecipe { hash_version: self.hash_version });
        }
        (self.input_hash != asked.input_hash).then_some(Registered::Mismatch)
    }
}

fn unknown_incarnation(conn: &Connection, asked: &Registration, error: StoreError) -> StoreError {
    if !matches!(error, StoreError::Refused(_)) {
        return error;
    }
    let is_known = asked.incarnation_id.as_ref().is_none_or(|id| {
        let known = conn.query_row("SELECT 1 FROM incarnation WHERE incarnation_id = ?1", [id], |_| Ok(()));
        known.is_ok()
    });
    if is_known { error } else { StoreError::UnknownIncarnation }
}

/// The tombstone with an id.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn tombstone(conn: &Connection, request_id: &str) -> Result<Option<Tombstone>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT * FROM tombstone WHERE request_id = ?1")?;
    statement.query_row([request_id], |row| Ok(read_tombstone(row))).optional()?.transpose()
}

/// Reads a whole row of the table.
///
/// # Errors
/// When a word in it is not known.
pub(super) fn read_tombstone(row: &Row<'_>) -> Result<Tombstone, StoreError> {
    Ok(Tombstone {
        request_id: row::word(row, "request_id", |text| RequestId::parse(text).ok())?,
        owner: row.get("owner")?,
        input_hash: row.get("input_hash")?,
        hash_version: row.get("hash_version")?,
        state: row::word(row, "state", State::parse)?,
        code: row::maybe_word(row, "code", Code::parse)?,
        terminal_seq: row.get("terminal_seq")?,
        ended_at: row.get("ended_at")?,
    })
}
