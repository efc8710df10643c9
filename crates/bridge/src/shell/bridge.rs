//! All live sessions of a daemon.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::open::{OpenError, OpenSession, Opened, Streams};
use super::session::Session;
use crate::input::Input;
use crate::limits::{Limits, Timeouts};
use crate::{Clock, Mediation, PromptLedger, Witness};

/// What a bridge needs from outside.
#[derive(Clone)]
pub struct Options {
    /// Where admissions and outcomes are recorded.
    pub ledger: Arc<dyn PromptLedger>,
    /// Who keeps a record of witnessed prompts; without one no prompt is witnessed.
    pub witness: Option<Arc<dyn Witness>>,
    /// The time.
    pub clock: Clock,
    /// The bounds that flags change.
    pub limits: Limits,
    /// How long to wait for an agent in matters other than a prompt.
    pub timeouts: Timeouts,
    /// Who decides what agents ask, and until when.
    pub mediation: Mediation,
}

/// The live sessions. Clones are the same bridge. Its sessions need a tokio runtime with time and IO.
#[derive(Clone)]
pub struct Bridge {
    options: Options,
    registry: Arc<Registry>,
}

impl Bridge {
    /// A bridge with no session.
    pub fn new(options: Options) -> Self {
        Self { options, registry: Arc::default() }
    }

    /// Greets the agent at the other end of the streams and opens the session there. What the agent says meanwhile is kept.
    ///
    /// # Errors
    /// See [`OpenError`]; the streams are closed then.
    pub async fn open(&self, open: OpenSession, streams: Streams) -> Result<Opened, OpenError> {
        let seat = Seat::reserve(&self.registry, &open.session_id, self.options.limits.sessions)?;
        Opened::greet(open, streams, &self.options, seat).await
    }

    /// The live session of that id.
    pub fn session(&self, session_id: &str) -> Option<Session> {
        self.registry.places.lock().live.get(session_id).cloned()
    }

    /// All live sessions, in no order.
    pub fn sessions(&self) -> Vec<Session> {
        self.registry.places.lock().live.values().cloned().collect()
    }

    /// The session that a permission request belongs to, decided ones included.
    pub fn session_of_permission(&self, request_id: &str) -> Option<Session> {
        let knows = |session: &Session| session.live.state.lock().machine.knows_permission(request_id);
        // The list is copied first: no session is locked under the lock of the registry.
        self.sessions().into_iter().find(knows)
    }

    /// Ends every prompt as `daemon_shutdown`, tells everybody, and gives what resolves when the agents' streams have ended or the time
    /// for that is over. No session can be opened afterwards. A witnessed prompt that runs may still be answered, for
    /// [`SHUTDOWN_ANSWER_MS`](crate::limits::SHUTDOWN_ANSWER_MS) and [`SHUTDOWN_OBEY_MS`](crate::limits::SHUTDOWN_OBEY_MS); asked for a
    /// second time, that ends at once too.
    pub fn shutdown(&self) -> impl Future<Output = ()> + Send + use<> {
        self.registry.places.lock().stopping = true;
        let sessions = self.sessions();
        for session in &sessions {
            session.live.step(|_| Input::Shutdown);
        }
        async move {
            for session in sessions {
                session.live.ended().await;
            }
        }
    }
}

/// Which sessions live, and which ids are taken.
#[derive(Default)]
pub(super) struct Registry {
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    live: HashMap<String, Session>,
    /// Ids of sessions whose agents have not answered yet.
    opening: HashSet<String>,
    stopping: bool,
}

impl Registry {
    /// A session that is over cannot be found any more, and its id is free.
    pub(super) fn forget(&self, session_id: &str) {
        let forgotten = self.places.lock().live.remove(session_id);
        drop(forgotten);
    }
}

/// A place for a session that is being opened. Dropping it gives the place back.
pub(super) struct Seat {
    pub(super) registry: Arc<Registry>,
    session_id: String,
}

impl Seat {
    fn reserve(registry: &Arc<Registry>, session_id: &str, limit: usize) -> Result<Self, OpenError> {
        let mut places = registry.places.lock();
        if places.stopping {
            return Err(OpenError::ShuttingDown);
        }
        if places.live.contains_key(session_id) || places.opening.contains(session_id) {
            return Err(OpenError::InUse);
        }
        if places.live.len() + places.opening.len() >= limit {
            return Err(OpenError::SessionLimit { limit });
        }
        places.opening.insert(session_id.to_owned());
        Ok(Self { registry: Arc::clone(registry), session_id: session_id.to_owned() })
    }

    /// Makes the session one that can be found. A daemon that began to stop meanwhile stops this one too.
    pub(super) fn take(self, session: &Session) {
        let stopping = {
            let mut places = self.registry.places.lock();
            places.live.insert(self.session_id.clone(), session.clone());
            places.stopping
        };
        if stopping {
            session.live.step(|_| Input::Shutdown);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.registry.places.lock().opening.remove(&self.session_id);
    }
}
