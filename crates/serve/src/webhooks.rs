//! Webhooks: the terminal stream, sent by `POST` to endpoints that clients name (return requests, section 2.12).
//!
//! The crate `request` decides and keeps; here is who carries. Each endpoint has a courier, a task of its own: it asks what is to be done,
//! does it, and tells what became of it. No courier waits for another, and nobody waits for a courier. Read in this order: `courier.rs`,
//! `post.rs` (one try), `dial.rs` (a connection), `target.rs` (where to), `shown.rs` (what a client is shown).

mod courier;
pub(crate) mod dial;
mod post;
pub(crate) mod shown;
pub(crate) mod target;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use request::store::{Asked, Put, Rotated, Stepped, Store, StoreError};
use request::webhook::{Endpoint, EndpointName, Input, Letter, Moment, Rotation, Secret};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::clock::now_ms;
use crate::returns::asked;
use crate::sync::lock;
use crate::tasks::{blocking, spawn};
use courier::Courier;
use dial::{Dial, Network};

/// What the couriers of a daemon have of the world outside.
#[derive(Clone)]
pub(crate) struct Outside {
    /// How connections come about.
    pub(crate) dial: Arc<dyn Dial>,
    /// The time, in epoch milliseconds.
    pub(crate) now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// What the daemon calls itself.
    pub(crate) user_agent: String,
}

impl Outside {
    /// The network and the clock on the wall, for a daemon of a version.
    pub(crate) fn network(version: &str) -> Self {
        Self { dial: Arc::new(Network::default()), now_ms: Arc::new(now_ms), user_agent: format!("turnd/{version}") }
    }
}

/// The endpoints of one daemon.
pub(crate) struct Webhooks {
    store: Arc<Store>,
    /// The newest number of the stream.
    head: watch::Receiver<u64>,
    outside: Outside,
    couriers: Mutex<HashMap<EndpointName, Employed>>,
}

/// A courier at work. Dropped, it stops where it is: what it had on its way is sent again.
struct Employed {
    /// Told that something about its endpoint changed.
    poke: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Employed {
    /// Ends it, and waits until it has.
    async fn end(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Employed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Webhooks {
    /// The endpoints of a store, none of which is served yet. `head` follows the newest number of its stream.
    pub(crate) fn new(store: Arc<Store>, head: watch::Receiver<u64>, outside: Outside) -> Self {
        Self { store, head, outside, couriers: Mutex::default() }
    }

    /// Begins to serve every endpoint that is on record. One that cannot be read is served when the daemon begins anew.
    pub(crate) async fn start(&self) {
        match self.all().await {
            Ok(endpoints) => endpoints.into_iter().for_each(|(endpoint, _)| self.employ(endpoint.name, false)),
            Err(error) => tracing::error!(%error, "the endpoints of webhooks cannot be read, and are not served"),
        }
    }

    /// Serves no endpoint any more, and waits until nobody does. What is on its way is sent again in the next life.
    pub(crate) async fn end(&self) {
        let couriers = std::mem::take(&mut *lock(&self.couriers));
        for employed in couriers.into_values() {
            employed.end().await;
        }
    }

    /// Names an endpoint, or changes one.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub(crate) async fn put(&self, said: Asked) -> Result<Put, StoreError> {
        let (name, at_ms) = (said.name.clone(), (self.outside.now_ms)());
        let put = asked(|reply| self.store.put_endpoint(said, at_ms, reply)).await?;
        if let Put::Done { is_new, .. } = put {
            self.employ(name, is_new);
        }
        Ok(put)
    }

    /// Changes an endpoint's secrets. Its courier looks at them anew before each try.
    ///
    /// # Errors
    /// See [`StoreError`]; `Unknown` when there is none of the name.
    pub(crate) async fn rotate(
        &self,
        name: &EndpointName,
        owner: &str,
        rotation: Rotation,
    ) -> Result<Rotated, StoreError> {
        let (name, owner, at_ms) = (name.clone(), owner.to_owned(), (self.outside.now_ms)());
        asked(|reply| self.store.rotate_endpoint(name, owner, rotation, at_ms, reply)).await
    }

    /// Forgets an endpoint. Whether there was one.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub(crate) async fn remove(&self, name: &EndpointName, owner: &str) -> Result<bool, StoreError> {
        let (forgotten, owner) = (name.clone(), owner.to_owned());
        let was_there = asked(|reply| self.store.remove_endpoint(forgotten, owner, reply)).await?;
        // Its courier finds that it has none any more. It is not ended here: the name may be another endpoint's by now.
        if let Some(employed) = lock(&self.couriers).get(name) {
            employed.poke.notify_one();
        }
        Ok(was_there)
    }

    /// Lets an endpoint have an event again, or go on.
    ///
    /// # Errors
    /// See [`StoreError`]; `Unknown` when there is none of the name.
    pub(crate) async fn demand(&self, name: &EndpointName, demand: Input) -> Result<Stepped, StoreError> {
        let now = moment(&self.outside);
        let stepped = asked(|reply| self.store.step_endpoint(name.clone(), demand, now, reply)).await?;
        self.employ(name.clone(), false);
        Ok(stepped)
    }

    /// All endpoints by name, each with the number of its dead letters.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub(crate) async fn all(&self) -> Result<Vec<(Endpoint, u64)>, StoreError> {
        let store = Arc::clone(&self.store);
        blocking(move || store.endpoints()).await.unwrap_or(Err(StoreError::Closed))
    }

    /// One endpoint and its letters.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub(crate) async fn find(&self, name: &EndpointName) -> Result<Option<(Endpoint, Vec<Letter>)>, StoreError> {
        let (store, name) = (Arc::clone(&self.store), name.clone());
        blocking(move || store.endpoint(&name)).await.unwrap_or(Err(StoreError::Closed))
    }

    /// Sees to it that an endpoint has a courier, and tells it to look. A new endpoint has a new one: that of a former endpoint of the name
    /// may just be finding that it has none any more.
    fn employ(&self, name: EndpointName, is_new: bool) {
        let mut couriers = lock(&self.couriers);
        couriers.retain(|_, employed| !employed.task.is_finished());
        if let Some(employed) = couriers.get(&name).filter(|_| !is_new) {
            employed.poke.notify_one();
            return;
        }
        let poke = Arc::new(Notify::new());
        let courier = Courier {
            store: Arc::clone(&self.store),
            head: self.head.clone(),
            outside: self.outside.clone(),
            name: name.clone(),
            poke: Arc::clone(&poke),
        };
        let predecessor = couriers.remove(&name);
        let task = spawn(async move {
            if let Some(predecessor) = predecessor {
                predecessor.end().await;
            }
            courier.serve().await;
        });
        couriers.insert(name, Employed { poke, task });
    }
}

/// Now, and chance.
fn moment(outside: &Outside) -> Moment {
    let [.., a, b, c, d] = Uuid::new_v4().into_bytes();
    Moment { at_ms: (outside.now_ms)(), dice: u32::from_be_bytes([a, b, c, d]) }
}

/// A secret that nobody has seen: 32 bytes of two random ids.
pub(crate) fn fresh_secret() -> Option<Secret> {
    let random = Sha256::new().chain_update(Uuid::new_v4().as_bytes()).chain_update(Uuid::new_v4().as_bytes());
    Secret::new(random.finalize().to_vec()).ok()
}
