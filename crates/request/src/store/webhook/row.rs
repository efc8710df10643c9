//! An endpoint as columns and back.

use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use super::PREFIX;
use crate::store::error::StoreError;
use crate::store::row::word;
use crate::webhook::{Endpoint, EndpointName, Fault, Secret, Sending, Standing, Trying};

/// The name of the consumer that an endpoint is.
pub(super) fn consumer(name: &EndpointName) -> String {
    format!("{PREFIX}{name}")
}

/// How many there are.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn count(conn: &Connection) -> Result<u64, StoreError> {
    Ok(conn.prepare_cached("SELECT count(*) FROM webhook")?.query_row([], |row| row.get(0))?)
}

/// The one with a name.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn find(conn: &Connection, name: &EndpointName) -> Result<Option<Endpoint>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT * FROM webhook JOIN consumer ON consumer.name = webhook.consumer WHERE webhook.consumer = ?1",
    )?;
    let found = statement.query_row([consumer(name)], |row| Ok(read(row))).optional()?.transpose()?;
    found.map(|endpoint| with_demands(conn, endpoint)).transpose()
}

/// All, by name.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn all(conn: &Connection) -> Result<Vec<Endpoint>, StoreError> {
    let mut statement =
        conn.prepare_cached("SELECT * FROM webhook JOIN consumer ON consumer.name = webhook.consumer ORDER BY name")?;
    let rows = statement.query_map([], |row| Ok(read(row)))?;
    let endpoints = rows.map(|row| row?).collect::<Result<Vec<_>, StoreError>>()?;
    endpoints.into_iter().map(|endpoint| with_demands(conn, endpoint)).collect()
}

fn with_demands(conn: &Connection, endpoint: Endpoint) -> Result<Endpoint, StoreError> {
    let mut statement = conn
        .prepare_cached("SELECT seq FROM webhook_letter WHERE consumer = ?1 AND wanted IS NOT NULL ORDER BY wanted")?;
    let rows = statement.query_map([consumer(&endpoint.name)], |row| row.get(0))?;
    let wanted = rows.collect::<rusqlite::Result<_>>()?;
    Ok(Endpoint { wanted, ..endpoint })
}

fn read(row: &Row<'_>) -> Result<Endpoint, StoreError> {
    let secret = secret("secret", row.get("secret")?)?;
    let sending = row.get::<_, Option<u64>>("sending_seq")?.zip(row.get("sending_again")?);
    Ok(Endpoint {
        name: word(row, "name", |name| EndpointName::parse(name.strip_prefix(PREFIX)?).ok())?,
        owner: row.get("owner")?,
        url: row.get("url")?,
        secret,
        former_secret: former_secret(row)?,
        generation: row.get("generation")?,
        acked: row.get("acked_seq")?,
        standing: standing(row)?,
        trying: Trying {
            tries: row.get("tries")?,
            first_at: row.get("first_at")?,
            next_at: row.get("next_at")?,
            fault: fault(row)?,
        },
        sending: sending.map(|(seq, is_again)| Sending { seq, is_again }),
        wanted: Vec::new(),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

fn secret(column: &'static str, bytes: Vec<u8>) -> Result<Secret, StoreError> {
    Secret::new(bytes).map_err(|error| StoreError::Unreadable { column, value: error.to_string() })
}

/// The secret that signs too. A file of version 1, which only a recovery reads as it is, has no such column.
fn former_secret(row: &Row<'_>) -> Result<Option<Secret>, StoreError> {
    match row.get::<_, Option<Vec<u8>>>("former_secret") {
        Ok(bytes) => bytes.map(|bytes| secret("former_secret", bytes)).transpose(),
        Err(rusqlite::Error::InvalidColumnName(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn standing(row: &Row<'_>) -> Result<Standing, StoreError> {
    let gap = row.get::<_, Option<u64>>("gap_from")?.zip(row.get("gap_through")?);
    word(row, "standing", |word| match (word, gap) {
        ("active", None) => Some(Standing::Active),
        ("disabled", None) => Some(Standing::Disabled),
        ("gap", Some((from, through))) => Some(Standing::Gap { from, through }),
        _ => None,
    })
}

/// What became of a try, where one failed.
///
/// # Errors
/// When it is of a newer program.
pub(super) fn fault(row: &Row<'_>) -> Result<Option<Fault>, StoreError> {
    let status = row.get("status")?;
    crate::store::row::maybe_word(row, "fault", |word| Fault::parse(word, status))
}

/// Writes all of an endpoint but its letters.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn save(conn: &Connection, endpoint: &Endpoint) -> Result<(), StoreError> {
    let consumer = consumer(&endpoint.name);
    let is_protected = !matches!(endpoint.standing, Standing::Gap { .. });
    conn.prepare_cached(
        "INSERT INTO consumer (name, owner, acked_seq, protect, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, acked_seq = excluded.acked_seq, \
            protect = excluded.protect, updated_at = excluded.updated_at",
    )?
    .execute((
        &consumer,
        &endpoint.owner,
        endpoint.acked,
        is_protected,
        endpoint.created_at,
        endpoint.updated_at,
    ))?;
    let (standing, gap) = match endpoint.standing {
        Standing::Active => ("active", None),
        Standing::Disabled => ("disabled", None),
        Standing::Gap { from, through } => ("gap", Some((from, through))),
    };
    let trying = &endpoint.trying;
    conn.prepare_cached(
        "INSERT INTO webhook (consumer, url, secret, former_secret, generation, standing, gap_from, gap_through, tries, \
            first_at, next_at, fault, status, sending_seq, sending_again) \
         VALUES (:consumer, :url, :secret, :former_secret, :generation, :standing, :gap_from, :gap_through, :tries, \
            :first_at, :next_at, :fault, :status, :sending_seq, :sending_again) \
         ON CONFLICT (consumer) DO UPDATE SET url = excluded.url, secret = excluded.secret, \
            former_secret = excluded.former_secret, \
            generation = excluded.generation, standing = excluded.standing, gap_from = excluded.gap_from, \
            gap_through = excluded.gap_through, tries = excluded.tries, first_at = excluded.first_at, \
            next_at = excluded.next_at, fault = excluded.fault, status = excluded.status, \
            sending_seq = excluded.sending_seq, sending_again = excluded.sending_again",
    )?
    .execute(named_params! {
        ":consumer": consumer,
        ":url": endpoint.url,
        ":secret": endpoint.secret.as_bytes(),
        ":former_secret": endpoint.former_secret.as_ref().map(Secret::as_bytes),
        ":generation": endpoint.generation,
        ":standing": standing,
        ":gap_from": gap.map(|(from, _)| from),
        ":gap_through": gap.map(|(_, through)| through),
        ":tries": trying.tries,
        ":first_at": trying.first_at,
        ":next_at": trying.next_at,
        ":fault": trying.fault.map(Fault::as_str),
        ":status": trying.fault.and_then(Fault::status),
        ":sending_seq": endpoint.sending.map(|sending| sending.seq),
        ":sending_again": endpoint.sending.map(|sending| sending.is_again),
    })?;
    Ok(())
}

/// Forgets an endpoint, its letters and its consumer.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn remove(conn: &Connection, endpoint: &Endpoint) -> Result<(), StoreError> {
    let consumer = consumer(&endpoint.name);
    conn.prepare_cached("DELETE FROM webhook WHERE consumer = ?1")?.execute([&consumer])?;
    conn.prepare_cached("DELETE FROM consumer WHERE name = ?1")?.execute([&consumer])?;
    Ok(())
}
