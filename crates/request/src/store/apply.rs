//! One input to one request: the machine decides within the transaction, and what it decides is written.

use rusqlite::Connection;

use super::command::Turn;
use super::error::StoreError;
use super::late;
use super::meta::Meta;
use super::row;
use crate::{Effect, Input, Request, RequestId, Stage, TerminalEvent, step};

/// What an input came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The request as it is now; as it was, when it is gone.
    pub request: Request,
    /// The event, when this input ended it. Not when it had ended before.
    pub event: Option<TerminalEvent>,
    /// Whether the row is gone and its id free.
    pub is_removed: bool,
}

/// Applies, in the open transaction.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn apply(
    turn: &mut Turn<'_>,
    request_id: &RequestId,
    input: &Input,
    at_ms: u64,
) -> Result<Applied, StoreError> {
    let conn = turn.conn;
    let mut request = row::find(conn, request_id.as_str())?.ok_or(StoreError::Unknown)?;
    let was = request.clone();
    let effects = step(&request, input, at_ms);
    if effects.contains(&Effect::Remove) {
        remove(conn, &request)?;
        return Ok(Applied { request, event: None, is_removed: true });
    }
    for effect in &effects {
        if let Effect::Late(late) = effect {
            late::note(conn, request_id, late, at_ms)?;
        }
    }
    request.apply(&effects, at_ms);
    if request.rev == was.rev {
        return Ok(Applied { request, event: None, is_removed: false });
    }
    if !request.state.is_terminal() {
        row::update(conn, &request, &was)?;
        return Ok(Applied { request, event: None, is_removed: false });
    }
    let event = end(turn, &mut request, &was, at_ms)?;
    Ok(Applied { request, event: Some(event), is_removed: false })
}

/// The terminal transaction (return requests, section 2.5): the row, the event, the head. All of it or nothing.
fn end(turn: &mut Turn<'_>, request: &mut Request, was: &Request, at_ms: u64) -> Result<TerminalEvent, StoreError> {
    let conn = turn.conn;
    let meta = Meta::read(conn)?;
    let seq = meta.head_seq + 1;
    request.terminal_seq = Some(seq);
    row::update(conn, request, was)?;
    let event = TerminalEvent::new(request, &meta.stream_id, seq, &meta.head_chain, at_ms);
    insert_event(conn, &event)?;
    conn.prepare_cached("UPDATE meta SET head_seq = ?1, head_chain = ?2, last_wall_ms = max(last_wall_ms, ?3)")?
        .execute((seq, event.chain, at_ms))?;
    conn.prepare_cached("DELETE FROM outcome_stage WHERE request_id = ?1")?.execute([request.id().as_str()])?;
    turn.newest = Some(seq);
    Ok(event)
}

/// Puts an event in.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn insert_event(conn: &Connection, event: &TerminalEvent) -> Result<(), StoreError> {
    conn.prepare_cached(
        "INSERT INTO terminal_event (seq, request_id, at, payload, chain) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute((event.seq, event.request_id.as_str(), event.at_ms, &event.payload, event.chain))?;
    Ok(())
}

fn remove(conn: &Connection, request: &Request) -> Result<(), StoreError> {
    conn.prepare_cached("DELETE FROM request WHERE request_id = ?1 AND terminal_seq IS NULL")?
        .execute([request.id().as_str()])?;
    Ok(())
}

/// Keeps an outcome before the ledger has it (return requests, section 2.6, T1). Of a request that has ended nothing is kept here: what
/// comes after the end is late evidence.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn stage(conn: &Connection, request_id: &RequestId, stage: &Stage) -> Result<Request, StoreError> {
    let request = row::find(conn, request_id.as_str())?.ok_or(StoreError::Unknown)?;
    if request.state.is_terminal() {
        return Ok(request);
    }
    let outcome = serde_json::to_string(stage).map_err(|error| StoreError::Refused(error.to_string()))?;
    // The first one stands: an outcome does not change.
    conn.prepare_cached(
        "INSERT INTO outcome_stage (request_id, outcome, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    )?
    .execute((request_id.as_str(), outcome, stage.at_ms))?;
    Ok(request)
}
