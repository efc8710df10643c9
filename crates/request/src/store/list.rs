//! Reading requests: one, or a page of them.

use rusqlite::{Connection, ToSql};

use super::error::StoreError;
use super::limits::{LIST_MAX, SCAN_REQUESTS_MAX};
use super::register::{Tombstone, floor, is_expired, tombstone};
use super::row;
use crate::{Request, RequestId, State};

/// What is known under an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The whole of it.
    Request(Box<Request>),
    /// What pruning has left.
    Tombstone(Tombstone),
    /// Nothing, and the id is older than what is remembered: whether it was used is not known any more.
    Expired,
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
    entry(&*conn.unchecked_transaction()?, request_id)
}

/// The same within a look: pruning turns the one into the other.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn entry(look: &Connection, request_id: &RequestId) -> Result<Option<Entry>, StoreError> {
    if let Some(request) = row::find(look, request_id.as_str())? {
        return Ok(Some(Entry::Request(Box::new(request))));
    }
    if let Some(tombstone) = tombstone(look, request_id.as_str())? {
        return Ok(Some(Entry::Tombstone(tombstone)));
    }
    Ok(is_expired(request_id, floor(look)?).then_some(Entry::Expired))
}

/// A page. What is asked of one state alone, and has ended, is looked for among so many requests at a time: a page may have less than its
/// limit, also nothing, and a next one all the same.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn list(conn: &Connection, list: &List) -> Result<Listed, StoreError> {
    let limit = list.limit.clamp(1, LIST_MAX);
    let more = limit + 1;
    let state = list.state.map(State::as_str);
    let above = above(conn, list)?;
    let mut params: Vec<(&str, &dyn ToSql)> = vec![(":limit", &more)];
    let mut wanted = Vec::new();
    let asked: [(&str, &'static str, Option<&dyn ToSql>); 4] = [
        (":owner", "owner = :owner", list.owner.as_ref().map(|owner| owner as &dyn ToSql)),
        (":session_id", "session_id = :session_id", list.session_id.as_ref().map(|session| session as &dyn ToSql)),
        (":before", "rowid < :before", list.before.as_ref().map(|before| before as &dyn ToSql)),
        (":above", "rowid > :above", above.as_ref().map(|above| above as &dyn ToSql)),
    ];
    for (name, condition, value) in asked {
        if let Some(value) = value {
            wanted.push(condition);
            params.push((name, value));
        }
    }
    let is_open = list.is_open || list.state.is_some_and(|state| !state.is_terminal());
    if is_open {
        wanted.push("terminal_seq IS NULL");
    }
    if let Some(state) = &state {
        wanted.push("state = :state");
        params.push((":state", state));
    }
    let all = if wanted.is_empty() { "1".to_owned() } else { wanted.join(" AND ") };
    let rest = match (&list.session_id, state) {
        (Some(_), None) => format!("WHERE rowid IN ({}) ORDER BY rowid DESC LIMIT :limit", by_states(&all, is_open)),
        _ => format!("WHERE {all} ORDER BY rowid DESC LIMIT :limit"),
    };
    let mut statement = conn.prepare_cached(&row::select(&rest).replacen("SELECT ", "SELECT rowid AS mark, ", 1))?;
    let mut rows = statement.query(&*params)?;
    let mut requests = Vec::new();
    // Where nothing more is found the page goes on behind what was looked through.
    let (mut mark, mut before) = (None, above.filter(|above| *above > 0).map(|above| above + 1));
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

/// The newest of a session are looked up state by state, as their index has them: all of a session's, sorted, would be as many as there are.
fn by_states(wanted: &str, is_open: bool) -> String {
    let states = State::ALL.iter().filter(|state| !is_open || !state.is_terminal());
    let newest: Vec<_> = states
        .map(|state| {
            let word = state.as_str();
            format!(
                "SELECT * FROM (SELECT rowid AS newest FROM request WHERE state = '{word}' AND {wanted} \
                 ORDER BY rowid DESC LIMIT :limit)"
            )
        })
        .collect();
    format!("SELECT newest FROM ({}) ORDER BY newest DESC LIMIT :limit", newest.join(" UNION ALL "))
}

/// The mark above which a page looks, where nothing but a state that has ended is asked for: no index has those.
fn above(conn: &Connection, list: &List) -> Result<Option<u64>, StoreError> {
    if list.session_id.is_some() || list.is_open || list.state.is_none_or(|state| !state.is_terminal()) {
        return Ok(None);
    }
    let (lowest, highest): (Option<u64>, Option<u64>) = conn
        .prepare_cached("SELECT (SELECT min(rowid) FROM request), (SELECT max(rowid) FROM request)")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(lowest), Some(highest)) = (lowest, highest) else { return Ok(None) };
    let from = list.before.unwrap_or(highest + 1).min(highest + 1);
    let above = from.saturating_sub(SCAN_REQUESTS_MAX + 1);
    Ok((above >= lowest).then_some(above))
}

/// Of the newest ends, so many at most, those since then; the newest first. Their numbers have an index.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn ended_since(conn: &Connection, at_ms: u64, most: u32) -> Result<Vec<Request>, StoreError> {
    let newest = "WHERE terminal_seq > (SELECT head_seq FROM meta) - ?1 AND ended_at >= ?2 ORDER BY terminal_seq DESC";
    let mut statement = conn.prepare_cached(&row::select(newest))?;
    let mut rows = statement.query((most, at_ms))?;
    let mut requests = Vec::new();
    while let Some(row) = rows.next()? {
        requests.push(row::read(row)?);
    }
    Ok(requests)
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
