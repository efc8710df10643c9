//! Endpoints in the store. The machine runs in the writer's transaction, as it does for requests: what it decides is on disk when the
//! caller hears of it, and whoever changes an endpoint at the same time comes before or behind it.

mod letters;
mod rotation;
mod row;

pub use rotation::Rotated;
use rusqlite::Connection;

use super::Store;
use super::command::{Job, Turn};
use super::error::StoreError;
use super::meta::Meta;
use crate::webhook::limits::ENDPOINTS_MAX;
use crate::webhook::{
    Effect, Endpoint, EndpointName, Extent, Input, Letter, Moment, Secret, Standing, Trying, step as decide,
};

/// What stands before an endpoint's name where it is a consumer's. No consumer that a client names begins with it.
pub const PREFIX: &str = "webhook:";

/// What somebody says of an endpoint.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its name.
    pub name: EndpointName,
    /// Whose it is.
    pub owner: String,
    /// Where events are posted to.
    pub url: String,
    /// What signs them, and alone; none leaves it as it is.
    pub secret: Option<Secret>,
    /// What signs them when the endpoint is new and there is no other secret.
    pub spare: Secret,
    /// The number behind which it begins; none is the head, for a new one. One that is known is moved forward by it, never back.
    pub after: Option<u64>,
}

/// What it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It is on record.
    Done {
        /// As it is now.
        endpoint: Box<Endpoint>,
        /// Whether there was none of that name.
        is_new: bool,
        /// Whether the spare secret is its secret.
        is_secret_made: bool,
    },
    /// There are [`ENDPOINTS_MAX`] already.
    TooMany,
    /// What is behind the number was pruned.
    TooOld {
        /// The oldest number that is kept.
        oldest: u64,
        /// The highest number there is.
        head: u64,
    },
}

/// What an input came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stepped {
    /// The endpoint as it is now.
    pub endpoint: Endpoint,
    /// What its machine decided.
    pub effects: Vec<Effect>,
}

impl Store {
    /// Names an endpoint, or changes one. Refused while the store is in trouble.
    pub fn put_endpoint(&self, asked: Asked, at_ms: u64, reply: impl FnOnce(Result<Put, StoreError>) + Send + 'static) {
        let work = move |turn: &mut Turn<'_>| put(turn.conn, &asked, at_ms);
        self.queue.put(Box::new(Job::refusable("webhook_put", work, reply)));
    }

    /// Lets something happen to an endpoint; what its machine decides is durable when the reply comes. Refused while the store is in
    /// trouble: what was not noted is sent again.
    pub fn step_endpoint(
        &self,
        name: EndpointName,
        input: Input,
        now: Moment,
        reply: impl FnOnce(Result<Stepped, StoreError>) + Send + 'static,
    ) {
        let work = move |turn: &mut Turn<'_>| step(turn.conn, &name, &input, now);
        self.queue.put(Box::new(Job::refusable(step_of(&input), work, reply)));
    }

    /// Forgets an endpoint and its letters. Whether there was one. Refused while the store is in trouble.
    pub fn remove_endpoint(
        &self,
        name: EndpointName,
        owner: String,
        reply: impl FnOnce(Result<bool, StoreError>) + Send + 'static,
    ) {
        let work = move |turn: &mut Turn<'_>| remove(turn.conn, &name, &owner);
        self.queue.put(Box::new(Job::refusable("webhook_remove", work, reply)));
    }

    /// All endpoints by their names, each with the number of its dead letters.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn endpoints(&self) -> Result<Vec<(Endpoint, u64)>, StoreError> {
        self.read(|conn| {
            let look = conn.unchecked_transaction()?;
            let endpoints = row::all(&look)?;
            endpoints.into_iter().map(|endpoint| Ok((letters::count(&look, &endpoint)?, endpoint))).map(swap).collect()
        })
    }

    /// The endpoint with a name and its letters, by number.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn endpoint(&self, name: &EndpointName) -> Result<Option<(Endpoint, Vec<Letter>)>, StoreError> {
        self.read(|conn| {
            let look = conn.unchecked_transaction()?;
            let Some(endpoint) = row::find(&look, name)? else { return Ok(None) };
            let letters = letters::all(&look, &endpoint)?;
            Ok(Some((endpoint, letters)))
        })
    }
}

fn swap<T>(pair: Result<(T, Endpoint), StoreError>) -> Result<(Endpoint, T), StoreError> {
    pair.map(|(of_it, endpoint)| (endpoint, of_it))
}

/// The step that an input is, for the fail points.
const fn step_of(input: &Input) -> &'static str {
    match input {
        Input::Started => "webhook_started",
        Input::Due => "webhook_due",
        Input::Answered { .. } | Input::Failed { .. } => "webhook_answer",
        Input::Redeliver { .. } | Input::Resumed => "webhook_demand",
    }
}

fn put(conn: &Connection, asked: &Asked, at_ms: u64) -> Result<Put, StoreError> {
    let meta = Meta::read(conn)?;
    let (head, oldest) = (meta.head_seq, meta.pruned_through + 1);
    if let Some(after) = asked.after.filter(|after| *after > head) {
        return Err(StoreError::Ahead { asked: after, head });
    }
    // Above every one that a commit before this one has given.
    let generation = meta.commit_no + 1;
    let known = row::find(conn, &asked.name)?;
    let is_new = known.is_none();
    let (mut endpoint, is_secret_made) = match known {
        Some(known) if known.owner != asked.owner => return Err(StoreError::ForeignOwner),
        Some(known) => (changed(known, asked, generation), false),
        None if row::count(conn)? >= ENDPOINTS_MAX as u64 => return Ok(Put::TooMany),
        None => (new(asked, head, generation, at_ms), asked.secret.is_none()),
    };
    if is_new && endpoint.acked < meta.pruned_through {
        return Ok(Put::TooOld { oldest, head });
    }
    if let Some(after) = asked.after.filter(|after| *after > endpoint.acked) {
        endpoint.acked = after;
        endpoint.trying = Trying::default();
        endpoint.sending = endpoint.sending.filter(|sending| sending.is_again);
        if matches!(endpoint.standing, Standing::Gap { .. }) && after >= meta.pruned_through {
            endpoint.standing = Standing::Active;
        }
    }
    endpoint.updated_at = at_ms;
    row::save(conn, &endpoint)?;
    Ok(Put::Done { endpoint: Box::new(endpoint), is_new, is_secret_made })
}

fn new(asked: &Asked, head: u64, generation: u64, at_ms: u64) -> Endpoint {
    Endpoint {
        name: asked.name.clone(),
        owner: asked.owner.clone(),
        url: asked.url.clone(),
        secret: asked.secret.clone().unwrap_or_else(|| asked.spare.clone()),
        former_secret: None,
        generation,
        acked: asked.after.unwrap_or(head),
        standing: Standing::Active,
        trying: Trying::default(),
        sending: None,
        wanted: Vec::new(),
        created_at: at_ms,
        updated_at: at_ms,
    }
}

/// Another URL or secret is another receiver: what the one before it said, that it wants no more included, is not about this one.
fn changed(known: Endpoint, asked: &Asked, generation: u64) -> Endpoint {
    let secret = asked.secret.clone().unwrap_or_else(|| known.secret.clone());
    let former_secret = known.former_secret.clone().filter(|_| asked.secret.is_none());
    if known.url == asked.url && known.secret == secret {
        return Endpoint { former_secret, ..known };
    }
    Endpoint {
        url: asked.url.clone(),
        secret,
        former_secret,
        generation: generation.max(known.generation + 1),
        standing: if known.standing == Standing::Disabled { Standing::Active } else { known.standing },
        trying: Trying::default(),
        sending: None,
        ..known
    }
}

fn step(conn: &Connection, name: &EndpointName, input: &Input, now: Moment) -> Result<Stepped, StoreError> {
    let before = row::find(conn, name)?.ok_or(StoreError::Unknown)?;
    let meta = Meta::read(conn)?;
    let extent = Extent { head: meta.head_seq, pruned_through: meta.pruned_through };
    let effects = decide(&before, input, extent, now);
    let mut endpoint = before.clone();
    for effect in &effects {
        endpoint.apply(effect, now.at_ms);
        letters::note(conn, &endpoint, effect, now.at_ms)?;
    }
    if endpoint != before {
        row::save(conn, &endpoint)?;
    }
    Ok(Stepped { endpoint, effects })
}

fn remove(conn: &Connection, name: &EndpointName, owner: &str) -> Result<bool, StoreError> {
    let Some(known) = row::find(conn, name)? else { return Ok(false) };
    if known.owner != owner {
        return Err(StoreError::ForeignOwner);
    }
    row::remove(conn, &known)?;
    Ok(true)
}

/// All endpoints that can be read of a damaged file, with their letters.
///
/// # Errors
/// When one cannot.
pub(super) fn salvage(conn: &Connection) -> Result<Vec<(Endpoint, Vec<Letter>)>, StoreError> {
    row::all(conn)?.into_iter().map(|endpoint| Ok((letters::all(conn, &endpoint)?, endpoint))).map(swap).collect()
}

/// Puts an endpoint of another store into this one. It goes on behind the number that it had; of what is not there any more it is told as
/// of a gap.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn restore(conn: &Connection, endpoint: &Endpoint, letters: &[Letter]) -> Result<(), StoreError> {
    row::save(conn, &Endpoint { sending: None, ..endpoint.clone() })?;
    letters.iter().try_for_each(|letter| letters::put(conn, endpoint, letter))
}
