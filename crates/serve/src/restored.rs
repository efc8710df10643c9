//! What a restore found, kept for callers that attach to the same session later.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use attribution::Unresolved;

use crate::sync::lock;

/// What the restore of a session found besides its history.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Why there is no history, when the transcript could not be read.
    pub(crate) error: Option<String>,
    /// The prompts of earlier lives that stay open, and why; behind a resume all that are open, since nobody has judged them.
    pub(crate) unresolved: Vec<Unresolved>,
}

/// The same of all sessions that were brought back and still live.
#[derive(Default)]
pub(crate) struct Restored {
    sessions: Mutex<HashMap<String, Arc<Found>>>,
}

impl Restored {
    /// Keeps what a restore found.
    pub(crate) fn keep(&self, session: &str, found: Arc<Found>) {
        lock(&self.sessions).insert(session.to_owned(), found);
    }

    /// What the restore of this session found; none when it was created here.
    pub(crate) fn get(&self, session: &str) -> Option<Arc<Found>> {
        lock(&self.sessions).get(session).cloned()
    }

    /// Forgets sessions that are not live any more.
    pub(crate) fn retain(&self, live: impl Fn(&str) -> bool) {
        lock(&self.sessions).retain(|session, _| live(session));
    }
}
