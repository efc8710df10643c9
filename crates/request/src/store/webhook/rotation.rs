//! Secrets of an endpoint that change while it is served.

use rusqlite::Connection;

use super::row;
use crate::store::Store;
use crate::store::command::{Job, Turn};
use crate::store::error::StoreError;
use crate::webhook::{Endpoint, EndpointName, Rotation, RotationDenied};

/// What came of a rotation.
pub type Rotated = Result<Box<Endpoint>, RotationDenied>;

impl Store {
    /// Changes an endpoint's secrets; what is on its way stays so, and the next try is signed as it is then. Refused while the store is in
    /// trouble.
    pub fn rotate_endpoint(
        &self,
        name: EndpointName,
        owner: String,
        rotation: Rotation,
        at_ms: u64,
        reply: impl FnOnce(Result<Rotated, StoreError>) + Send + 'static,
    ) {
        let work = move |turn: &mut Turn<'_>| rotate(turn.conn, (&name, &owner), &rotation, at_ms);
        self.queue.put(Box::new(Job::refusable("webhook_rotate", work, reply)));
    }
}

fn rotate(
    conn: &Connection,
    (name, owner): (&EndpointName, &str),
    rotation: &Rotation,
    at_ms: u64,
) -> Result<Rotated, StoreError> {
    let mut endpoint = row::find(conn, name)?.ok_or(StoreError::Unknown)?;
    if endpoint.owner != owner {
        return Err(StoreError::ForeignOwner);
    }
    if let Err(denied) = endpoint.rotate(rotation.clone()) {
        return Ok(Err(denied));
    }
    endpoint.updated_at = at_ms;
    row::save(conn, &endpoint)?;
    Ok(Ok(Box::new(endpoint)))
}
