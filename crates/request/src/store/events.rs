//! Reading the stream: a page at a time, from a place that is checked against its history (return requests, section 2.12).

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::error::StoreError;
use super::limits::{PAGE_BYTES_MAX, PAGE_EVENTS_MAX, SCAN_EVENTS_MAX};
use super::meta::Meta;
use super::{chain, row};
use crate::event::link;
use crate::{Cursor, Extent, Hash, NotThere, Position, RequestId, State, TerminalEvent};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// From where.
    pub after: Position,
    /// Events, at most; [`PAGE_EVENTS_MAX`] bounds it.
    pub limit: usize,
    /// Bytes of bodies after which no further event is put in; at least one is. [`PAGE_BYTES_MAX`] bounds it.
    pub bytes: usize,
    /// Which events.
    pub filter: Filter,
}

impl Page {
    /// As much as a page holds, of everything.
    #[must_use]
    pub fn after(after: Position) -> Self {
        Self { after, limit: PAGE_EVENTS_MAX, bytes: PAGE_BYTES_MAX, filter: Filter::default() }
    }
}

/// Which events are wanted. What is left open is not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Whose.
    pub owner: Option<String>,
    /// Of which session.
    pub session_id: Option<String>,
    /// Which end.
    pub state: Option<State>,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// The events, rising by number; with a filter not by one.
    pub events: Vec<TerminalEvent>,
    /// The number to go on behind: it passes the events that the filter left out, too.
    pub next_after: u64,
    /// The same as a place.
    pub next_cursor: Cursor,
    /// The oldest number that is kept; one above the head when none is.
    pub oldest: u64,
    /// The highest number there is.
    pub head: u64,
}

/// Why there is no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The stream does not go on from there.
    #[error(transparent)]
    NotThere(#[from] NotThere),
    /// The store cannot say.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for PageError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Reads a page. It leads on, or is at the head.
///
/// # Errors
/// See [`PageError`].
pub(super) fn page(conn: &Connection, page: &Page) -> Result<Events, PageError> {
    // One look: what was pruned or added meanwhile is not half in it.
    let look = conn.unchecked_transaction()?;
    let meta = Meta::read(&look)?;
    let (after, mut chain) = begin(&look, &meta, &page.after)?;
    let mut statement = look.prepare_cached(
        "SELECT event.seq, event.request_id, event.at, event.payload, event.chain, \
            request.owner, request.session_id, request.state \
         FROM terminal_event AS event JOIN request ON request.request_id = event.request_id \
         WHERE event.seq > ?1 ORDER BY event.seq LIMIT ?2",
    )?;
    let mut rows = statement.query((after, SCAN_EVENTS_MAX))?;
    let (limit, bytes_max) = (page.limit.clamp(1, PAGE_EVENTS_MAX), page.bytes.min(PAGE_BYTES_MAX));
    let mut events = Vec::new();
    let (mut bytes, mut next_after) = (0, after);
    while let Some(row) = rows.next()? {
        let here: Hash = row.get("chain")?;
        let seq: u64 = row.get("seq")?;
        if seq != next_after + 1 {
            break;
        }
        if page.filter.takes(row)? {
            let event = read(row)?;
            if link(&chain, &event.payload) != here {
                break;
            }
            if !events.is_empty() && (events.len() == limit || bytes + event.payload.len() > bytes_max) {
                break;
            }
            bytes += event.payload.len();
            events.push(event);
        }
        (next_after, chain) = (seq, here);
    }
    // Numbers have no holes: what lies below the head and is not found, or is not what was written, is hidden by a damage. Nobody is told
    // that there is nothing, and a reader that comes back at once would do so for ever.
    if next_after == after && after < meta.head_seq {
        return Err(StoreError::Corrupt(format!("the event {} is missing or is another one", after + 1)).into());
    }
    let next_cursor = meta.cursor(next_after, &chain);
    Ok(Events { events, next_after, next_cursor, oldest: meta.pruned_through + 1, head: meta.head_seq })
}

/// The number to begin behind, and the chain value there.
fn begin(conn: &Connection, meta: &Meta, after: &Position) -> Result<(u64, Hash), PageError> {
    let extent = Extent { stream_id: meta.stream_id.clone(), head: meta.head_seq, pruned_through: meta.pruned_through };
    let seq = after.seq();
    let chain: Option<Hash> = if seq == meta.pruned_through {
        Some(meta.pruned_chain)
    } else {
        let mut statement = conn.prepare_cached("SELECT chain FROM terminal_event WHERE seq = ?1")?;
        statement.query_row([seq], |row| row.get(0)).optional()?
    };
    let seq = after.resume(&extent, |_| chain)?;
    let chain = chain.ok_or_else(|| StoreError::Corrupt(format!("the event {seq} is missing")))?;
    Ok((seq, chain))
}

impl Filter {
    fn takes(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let wanted = [
            ("owner", self.owner.as_deref()),
            ("session_id", self.session_id.as_deref()),
            ("state", self.state.map(State::as_str)),
        ];
        for (column, wanted) in wanted {
            if wanted.is_some() && row.get_ref(column)?.as_str_or_null()? != wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Reads the event that a row stands on.
///
/// # Errors
/// When a column is of another kind.
pub(super) fn read(row: &Row<'_>) -> Result<TerminalEvent, StoreError> {
    Ok(TerminalEvent {
        seq: row.get("seq")?,
        request_id: row::word(row, "request_id", |text| RequestId::parse(text).ok())?,
        at_ms: row.get("at")?,
        payload: row.get("payload")?,
        chain: row.get("chain")?,
    })
}

/// The event of a request, when it has ended. It is what was written, and its row agrees. To be asked within one look.
///
/// # Errors
/// See [`StoreError`]; it is corrupt where a bit has fallen over in either.
pub(super) fn of_request(conn: &Connection, request_id: &RequestId) -> Result<Option<TerminalEvent>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT * FROM terminal_event WHERE request_id = ?1")?;
    let Some(event) = statement.query_row([request_id.as_str()], |row| Ok(read(row))).optional()? else {
        return Ok(None);
    };
    let event = event?;
    match chain::wrong_with(conn, &event)? {
        Some(what) => Err(StoreError::Corrupt(what)),
        None => Ok(Some(event)),
    }
}
