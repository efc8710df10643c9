//! What a load gave, kept for callers that attach to the same session later: one bounded replay and the agent's state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::history::History;
use crate::sync::lock;

/// The replays of the sessions that were loaded and still live.
#[derive(Default)]
pub(crate) struct Restored {
    sessions: Mutex<HashMap<String, Arc<History>>>,
}

impl Restored {
    /// Keeps what a load gave.
    pub(crate) fn keep(&self, session: &str, history: Arc<History>) {
        lock(&self.sessions).insert(session.to_owned(), history);
    }

    /// What the load of this session gave; none when it was created here or resumed.
    pub(crate) fn get(&self, session: &str) -> Option<Arc<History>> {
        lock(&self.sessions).get(session).cloned()
    }

    /// Forgets sessions that are not live any more.
    pub(crate) fn retain(&self, live: impl Fn(&str) -> bool) {
        lock(&self.sessions).retain(|session, _| live(session));
    }
}
