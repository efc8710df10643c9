//! What a load found, kept for callers that attach to the same session later.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use attribution::Unresolved;

use crate::sync::lock;

/// What the load of a session found besides its history.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Why there is no history, when the transcript could not be read.
    pub(crate) error: Option<String>,
    /// The prompts of earlier lives that stay open, and why.
    pub(crate) unresolved: Vec<Unresolved>,
}

/// The same of all sessions that were loaded and still live.
#[derive(Default)]
pub(crate) struct Restored {
    sessions: Mutex<HashMap<String, Arc<Found>>>,
}

impl Restored {
    /// Keeps what a load found.
    pub(crate) fn keep(&self, session: &str, found: Arc<Found>) {
        lock(&self.sessions).insert(session.to_owned(), found);
    }

    /// What the load of this session found; none when it was created here or resumed.
    pub(crate) fn get(&self, session: &str) -> Option<Arc<Found>> {
        lock(&self.sessions).get(session).cloned()
    }

    /// Forgets sessions that are not live any more.
    pub(crate) fn retain(&self, live: impl Fn(&str) -> bool) {
        lock(&self.sessions).retain(|session, _| live(session));
    }
}
