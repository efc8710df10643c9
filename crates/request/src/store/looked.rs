//! All that is told of one request, from one look: pruning and an end do not come between its parts.

use rusqlite::Connection;

use super::error::StoreError;
use super::list::{self, Entry};
use super::{events, incarnation, late};
use crate::{Incarnation, Late, Request, RequestId, TerminalEvent};

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// What is known under the id.
    pub entry: Option<Entry>,
    /// The agent's process, as far as it is on record.
    pub incarnation: Option<Incarnation>,
    /// The event of a request that has ended; no other one is without it.
    pub event: Option<TerminalEvent>,
    /// What came after its end, the oldest first.
    pub late: Vec<Late>,
}

/// Looks.
///
/// # Errors
/// See [`StoreError`]; it is corrupt where an ended request has no event, or one that is not what was written.
pub(super) fn look(conn: &Connection, request_id: &RequestId) -> Result<Looked, StoreError> {
    let look = conn.unchecked_transaction()?;
    let entry = list::entry(&look, request_id)?;
    let mut looked = Looked { entry, incarnation: None, event: None, late: Vec::new() };
    let Some(Entry::Request(request)) = &looked.entry else { return Ok(looked) };
    looked.incarnation = process(&look, request)?;
    if request.state.is_terminal() {
        let missing = || StoreError::Corrupt(format!("the event of {request_id} is missing"));
        looked.event = Some(events::of_request(&look, request_id)?.ok_or_else(missing)?);
        looked.late = late::read(&look, request_id)?.into_iter().map(|evidence| evidence.late).collect();
    }
    Ok(looked)
}

fn process(conn: &Connection, request: &Request) -> Result<Option<Incarnation>, StoreError> {
    let id = request.registration.incarnation_id.as_deref();
    Ok(id.map(|id| incarnation::find(conn, id)).transpose()?.flatten())
}
