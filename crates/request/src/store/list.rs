//! Reading requests: one, or a page of them.

use rusqlite::{Connection, ToSql};

use super::error::StoreError;
use super::limits::LIST_MAX;
use super::register::{Tombstone, tombstone};
use super::row;
use crate::{Request, RequestId, State};

/// What is known under an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The whole of it.
    Request(Box<Request>),
    /// What pruning has left.
    Tombstone(Tombstone),
}

/// What is listed, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// Whose; none is everybody's.
    pub owner: Option<String>,
    /// Of which session.
    pub session_id: Option<String>,
    /// In which state.
    pub state: Option<State>,
    /// Only those that have not ended.
    pub is_open: bool,
    /// The mark that the page before gave.
    pub before: Option<u64>,
    /// Requests, at most; [`LIST_MAX`] bounds it.
    pub limit: usize,
}

/// A page of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The newest first.
    pub requests: Vec<Request>,
    /// The mark of the next page; none when this is the last one.
    pub before: Option<u64>,
}

/// What is known under an id.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn get(conn: &Connection, request_id: &RequestId) -> Result<Option<Entry>, StoreError> {
    // One look: pruning turns the one into the other.
    let look = conn.unchecked_transaction()?;
    if let Some(request) = row::find(&look, request_id.as_str())? {
        return Ok(Some(Entry::Request(Box::new(request))));
    }
    Ok(tombstone(&look, request_id.as_str())?.map(Entry::Tombstone))
}

/// A page.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn list(conn: &Connection, list: &List) -> Result<Listed, StoreError> {
    let limit = list.limit.clamp(1, LIST_MAX);
    let state = list.state.map(State::as_str);
    let mut wanted = vec!["1"];
    let mut params: Vec<(&str, &dyn ToSql)> = Vec::new();
    if let Some(owner) = &list.owner {
        wanted.push("owner = :owner");
        params.push((":owner", owner));
    }
    if let Some(session_id) = &list.session_id {
        wanted.push("session_id = :session_id");
        params.push((":session_id", session_id));
    }
    if let Some(state) = &state {
        wanted.push("state = :state");
        params.push((":state", state));
    }
    if list.is_open || list.state.is_some_and(|state| !state.is_terminal()) {
        wanted.push("terminal_seq IS NULL");
    }
    if let Some(before) = &list.before {
        wanted.push("rowid < :before");
        params.push((":before", before));
    }
    let more = limit + 1;
    params.push((":limit", &more));
    let rest = format!("WHERE {} ORDER BY rowid DESC LIMIT :limit", wanted.join(" AND "));
    let mut statement = conn.prepare_cached(&row::select(&rest).replacen("SELECT ", "SELECT rowid AS mark, ", 1))?;
    let mut rows = statement.query(&*params)?;
    let mut requests = Vec::new();
    let (mut mark, mut before) = (None, None);
    while let Some(row) = rows.next()? {
        if requests.len() == limit {
            before = mark;
            break;
        }
        requests.push(row::read(row)?);
        mark = Some(row.get("mark")?);
    }
    Ok(Listed { requests, before })
}

/// Every request that has not ended, oldest first.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn open(conn: &Connection) -> Result<Vec<Request>, StoreError> {
    let mut statement = conn.prepare(&row::select("WHERE terminal_seq IS NULL ORDER BY created_at, rowid"))?;
    let mut rows = statement.query([])?;
    let mut requests = Vec::new();
    while let Some(row) = rows.next()? {
        requests.push(row::read(row)?);
    }
    Ok(requests)
}
