//! Which sessions run a command of a user right now: one each.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use crate::sync::lock;

/// The sessions with a running command.
#[derive(Default)]
pub(crate) struct Shells {
    sessions: Arc<Mutex<HashSet<String>>>,
}

/// The place of a session's one command, free again when this is dropped.
pub(crate) struct Running {
    sessions: Arc<Mutex<HashSet<String>>>,
    session: String,
}

impl Shells {
    /// Takes the place of a session's command; none when it is taken.
    pub(crate) fn begin(&self, session: &str) -> Option<Running> {
        let is_free = lock(&self.sessions).insert(session.to_owned());
        is_free.then(|| Running { sessions: Arc::clone(&self.sessions), session: session.to_owned() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.sessions).remove(&self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_one_place() {
        let shells = Shells::default();
        let first = shells.begin("a");
        assert!(first.is_some() && shells.begin("a").is_none() && shells.begin("b").is_some());
        drop(first);
        assert!(shells.begin("a").is_some());
    }
}
