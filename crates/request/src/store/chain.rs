//! The events one behind the other: the chain recomputes, and what an event says of its request is what the row says.

use rusqlite::{Connection, OptionalExtension as _, Row};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::error::StoreError;
use super::limits::VIOLATIONS_MAX;
use super::meta::Meta;
use super::row;
use super::verify::Depth;
use crate::event::link;
use crate::{Hash, Request, TerminalEvent};

/// The version of the bodies that this program writes, and so can compare.
pub(super) const BODY_VERSION: u64 = 1;

/// Follows it from behind a number to the head. Gives a sentence for each thing that does not hold, up to a bound.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn look(conn: &Connection, meta: &Meta, first: u64, depth: Depth) -> Result<Vec<String>, StoreError> {
    let mut violations = Vec::new();
    let mut before: Hash = if first == meta.pruned_through {
        meta.pruned_chain
    } else {
        let chain = conn.query_row("SELECT chain FROM terminal_event WHERE seq = ?1", [first], |row| row.get(0));
        // A number that is missing is another sentence.
        let Some(chain) = chain.optional()? else { return Ok(violations) };
        chain
    };
    let mut statement = conn.prepare(&row::with_event("WHERE event.seq > ?1 ORDER BY event.seq"))?;
    let mut rows = statement.query([first])?;
    while let Some(row) = rows.next()? {
        let seq: u64 = row.get("event_seq")?;
        let here: Hash = row.get("event_chain")?;
        let payload = row.get_ref("event_payload")?.as_str().map_err(rusqlite::Error::from)?;
        if link(&before, payload) != here {
            violations.push(format!("the chain breaks at {seq}"));
            return Ok(violations);
        }
        if violations.len() < VIOLATIONS_MAX {
            violations.extend(row_of(row, meta, seq, &before, payload, depth)?);
        }
        before = here;
    }
    if before != meta.head_chain {
        violations.push("the chain does not end at the head".to_owned());
    }
    Ok(violations)
}

/// What is wrong with one event or with its row, of which SQLite notices nothing.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn wrong_with(conn: &Connection, event: &TerminalEvent) -> Result<Option<String>, StoreError> {
    let (meta, seq) = (Meta::read(conn)?, event.seq);
    let before = before(conn, Some(&meta), seq)?.filter(|before| link(before, &event.payload) == event.chain);
    let Some(before) = before else { return Ok(Some(format!("the chain breaks at {seq}"))) };
    let mut statement = conn.prepare_cached(&row::with_event("WHERE event.seq = ?1"))?;
    let mut rows = statement.query([seq])?;
    match rows.next()? {
        Some(row) => row_of(row, &meta, seq, &before, &event.payload, Depth::Start),
        None => Ok(None),
    }
}

/// The chain before a number, where that is known.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn before(conn: &Connection, meta: Option<&Meta>, seq: u64) -> Result<Option<Hash>, StoreError> {
    if let Some(meta) = meta
        && meta.pruned_through + 1 == seq
    {
        return Ok(Some(meta.pruned_chain));
    }
    let mut statement = conn.prepare_cached("SELECT chain FROM terminal_event WHERE seq = ?1")?;
    let before = seq.checked_sub(1).map(|before| statement.query_row([before], |row| row.get(0)).optional());
    Ok(before.transpose()?.flatten())
}

/// What is wrong with the row of an event.
fn row_of(
    row: &Row<'_>,
    meta: &Meta,
    seq: u64,
    before: &Hash,
    payload: &str,
    depth: Depth,
) -> Result<Option<String>, StoreError> {
    if row.get_ref("request_id")?.as_str_or_null().map_err(rusqlite::Error::from)?.is_none() {
        // That it is missing is counted elsewhere.
        return Ok(None);
    }
    let request = match row::read(row) {
        Ok(request) => request,
        // A word of a later program is no damage; but nobody can say then whether the row is right.
        Err(StoreError::Unreadable { column, .. }) if depth == Depth::Start => {
            tracing::warn!(seq, column, "a request cannot be understood");
            return Ok(None);
        }
        Err(StoreError::Unreadable { column, value }) => {
            return Ok(Some(format!("the row of {seq} cannot be understood: {column} is {value:?}")));
        }
        Err(error) => return Err(error),
    };
    let event = TerminalEvent::new(&request, &meta.stream_id, seq, before, 0);
    if event.payload != payload
        && let Some(member) = difference(&event.payload, payload)
    {
        return Ok(Some(format!("the row of {seq} and its event disagree about {member}")));
    }
    if depth == Depth::Whole && !has_its_hash(&request) {
        return Ok(Some(format!("the final message of {seq} is not the one that was hashed")));
    }
    Ok(None)
}

/// The first member in which two bodies differ. Those that another program wrote are not compared.
fn difference(expected: &str, found: &str) -> Option<String> {
    let (Ok(Value::Object(expected)), Ok(Value::Object(found))) =
        (serde_json::from_str(expected), serde_json::from_str(found))
    else {
        return Some("its body".to_owned());
    };
    if found.get("v").and_then(Value::as_u64) != Some(BODY_VERSION) {
        return None;
    }
    let names = || expected.keys().chain(found.keys());
    let differs = |name: &&String| expected.get(*name) != found.get(*name);
    // The cursor has some of the chain in it, which differs with any other member.
    names().filter(|name| *name != "cursor").find(differs).or_else(|| names().find(differs)).cloned()
}

/// Whether a final message is the one that was hashed, as far as the whole of it is there.
pub(super) fn has_its_hash(request: &Request) -> bool {
    let (Some(text), Some(sha256)) = (&request.final_message, &request.final_sha256) else { return true };
    request.final_truncated || Hash(Sha256::digest(text).into()) == *sha256
}
