//! Which session ids are in transition. A session is created, restored or closed by one task at a time; everybody else either
//! shares the outcome or is told to come back.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use bridge::Session;
use tokio::sync::watch;

use crate::refusal::Refusal;
use crate::restore::Restoration;
use crate::shelf::Task;
use crate::sync::lock;

/// The outcome of a task that several callers wait for: none while it runs.
pub(crate) type Awaited<T> = watch::Receiver<Option<Result<T, Refusal>>>;

/// What is happening to a session id.
#[derive(Clone)]
pub(crate) enum Busy {
    /// It is being created under an id that its caller chose.
    Creating,
    /// It is being read back from disk.
    Restoring {
        /// What the callers asked for; only identical requests share the work.
        request: RestoreRequest,
        /// What they will get.
        outcome: Awaited<Arc<Restoration>>,
        /// Held by each of them for as long as it waits.
        callers: Arc<()>,
    },
    /// It is being closed.
    Closing,
    /// Its files are being moved or removed.
    Shelving(Task),
}

impl Busy {
    /// Whether nobody waits any more for what is happening, which goes on. To be asked of what [`Desk::busy`] gave.
    pub(crate) fn is_abandoned(&self) -> bool {
        // The desk's own and this one.
        matches!(self, Self::Restoring { callers, .. } if Arc::strong_count(callers) <= 2)
    }

    /// What the session is being, for people.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Creating => "created",
            Self::Restoring { request, .. } => match request.action {
                Action::Load => "loaded",
                Action::Resume => "resumed",
            },
            Self::Closing => "closed",
            Self::Shelving(Task::Archive) => "archived",
            Self::Shelving(Task::Unarchive) => "unarchived",
            Self::Shelving(Task::Delete) => "deleted",
        }
    }
}

/// What a load or a resume asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestoreRequest {
    /// With replay and reconciliation, or without.
    pub(crate) action: Action,
    /// Records the replay is bounded to, of a load that asks for a page.
    pub(crate) records_max: Option<usize>,
    /// All options that change the answer, as they were sent.
    pub(crate) options: Vec<(String, String)>,
}

/// The two ways to restore a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// History, reconciliation, terminals.
    Load,
    /// The agent's memory only.
    Resume,
}

impl Action {
    /// The word of the path.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Resume => "resume",
        }
    }
}

/// The default session, which single-scope creates share.
#[derive(Default)]
pub(crate) enum Shared {
    /// There is none.
    #[default]
    None,
    /// It is being created.
    Creating(Awaited<Session>),
    /// This one, as long as it lives.
    Live(String),
}

/// All transitions of one daemon.
#[derive(Default)]
pub(crate) struct Desk {
    busy: Arc<Mutex<HashMap<String, Busy>>>,
    shared: Mutex<Shared>,
    /// Sessions that close as soon as they are idle.
    leaving: Arc<Mutex<HashSet<String>>>,
}

impl Desk {
    /// Takes on the watch over a session that nobody uses any more; none when somebody watches already.
    pub(crate) fn leave(&self, id: &str) -> Option<Leaving> {
        let fresh = lock(&self.leaving).insert(id.to_owned());
        fresh.then(|| Leaving { id: id.to_owned(), leaving: Arc::clone(&self.leaving) })
    }

    /// What is happening to `id`.
    pub(crate) fn busy(&self, id: &str) -> Option<Busy> {
        lock(&self.busy).get(id).cloned()
    }

    /// Whether `id` is being closed, or its files are on their way.
    pub(crate) fn is_closing(&self, id: &str) -> bool {
        matches!(lock(&self.busy).get(id), Some(Busy::Closing | Busy::Shelving(_)))
    }

    /// Takes `id` for a transition, unless there is one already, which is given back then.
    pub(crate) fn take(&self, id: &str, with: Busy) -> Result<Fence, Busy> {
        let mut busy = lock(&self.busy);
        if let Some(other) = busy.get(id) {
            return Err(other.clone());
        }
        busy.insert(id.to_owned(), with);
        Ok(Fence { id: id.to_owned(), busy: Arc::clone(&self.busy) })
    }

    /// The default session, to be looked at and changed in one step.
    pub(crate) fn shared<T>(&self, step: impl FnOnce(&mut Shared) -> T) -> T {
        step(&mut lock(&self.shared))
    }
}

/// A session id taken for a transition; free again when dropped.
pub(crate) struct Fence {
    id: String,
    busy: Arc<Mutex<HashMap<String, Busy>>>,
}

impl Drop for Fence {
    fn drop(&mut self) {
        lock(&self.busy).remove(&self.id);
    }
}

/// The watch over a session that nobody uses any more; over when dropped.
pub(crate) struct Leaving {
    id: String,
    leaving: Arc<Mutex<HashSet<String>>>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        lock(&self.leaving).remove(&self.id);
    }
}

/// Waits for the outcome of a shared task.
pub(crate) async fn outcome<T: Clone>(mut awaited: Awaited<T>) -> Result<T, Refusal> {
    let settled = awaited.wait_for(Option::is_some).await;
    // A task that went away without a word panicked; its own log line says why.
    settled.ok().and_then(|value| value.clone()).unwrap_or_else(|| Err(Refusal::internal()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_in_one_transition_at_a_time_and_free_afterwards() {
        let desk = Desk::default();
        let fence = desk.take("a", Busy::Closing).ok();
        assert!(fence.is_some());
        assert!(matches!(desk.take("a", Busy::Creating), Err(Busy::Closing)));
        assert!(desk.take("b", Busy::Creating).is_ok());
        assert!(desk.is_closing("a"));
        drop(fence);
        assert!(!desk.is_closing("a"));
        assert!(desk.take("a", Busy::Creating).is_ok());
    }

    #[tokio::test]
    async fn a_task_that_vanished_is_an_internal_error() {
        let (sender, receiver) = watch::channel::<Option<Result<u8, Refusal>>>(None);
        drop(sender);
        assert_eq!(outcome(receiver).await, Err(Refusal::internal()));
    }
}
