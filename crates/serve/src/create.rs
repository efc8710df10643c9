//! New sessions. Concurrent single-scope creates share one; a session whose creator went away before it was told is given up.

use std::sync::Arc;

use bridge::{Kind, Seed, Session};
use tokio::sync::{oneshot, watch};

use crate::desk::{Awaited, Busy, Fence, Shared, outcome};
use crate::identity::fresh_uuid;
use crate::open::{id_conflict, open};
use crate::refusal::Refusal;
use crate::tasks::{blocking, spawn};
use crate::wanted::{Applied, NOT_AS_WANTED, Wanted};
use crate::workspace::{Slot, Workspace};

/// A session and whether it was there before.
pub(crate) struct Created {
    pub(crate) session: Session,
    pub(crate) attached: bool,
    /// Dropped without being disarmed, it gives a session up that nobody knows of.
    pub(crate) unclaimed: Option<Unclaimed>,
    /// What became of the creator's wishes; nothing yet for whoever attaches.
    pub(crate) applied: Applied,
}

/// The default session: attached to when it lives, created otherwise.
///
/// # Errors
/// When it cannot be created.
pub(crate) async fn shared(workspace: &Arc<Workspace>, wanted: Wanted) -> Result<Created, Refusal> {
    enum Step {
        Attach(Session),
        Wait(Awaited<Session>),
        Lead(Awaited<Session>, watch::Sender<Option<Result<Session, Refusal>>>, Slot),
    }
    let step = workspace.desk.shared(|shared| match shared {
        Shared::Creating(running) => Ok(Step::Wait(running.clone())),
        Shared::Live(id) if !workspace.desk.is_closing(id) && workspace.bridge.session(id).is_some() => {
            workspace.bridge.session(id).map(Step::Attach).ok_or_else(Refusal::internal)
        }
        Shared::None | Shared::Live(_) => {
            let slot = workspace.slot()?;
            let (sender, running) = watch::channel(None);
            *shared = Shared::Creating(running.clone());
            Ok(Step::Lead(running, sender, slot))
        }
    })?;
    match step {
        Step::Attach(session) => Ok(attached(session)),
        Step::Wait(running) => Ok(attached(outcome(running).await?)),
        Step::Lead(running, sender, slot) => {
            let leader = Arc::clone(workspace);
            let (tell, applied) = oneshot::channel();
            spawn(async move {
                let created = create(&leader, &fresh_uuid(), slot, &wanted, tell).await;
                leader.desk.shared(|shared| {
                    *shared = match &created {
                        Ok(session) => Shared::Live(session.id().to_owned()),
                        Err(_) => Shared::None,
                    };
                });
                sender.send_replace(Some(created));
            });
            claimed(running, applied).await
        }
    }
}

/// A session of its own, under the caller's id if it has one.
///
/// # Errors
/// 409 for an id that exists, and whatever keeps the session from being created.
pub(crate) async fn thread(workspace: &Arc<Workspace>, id: Option<String>, wanted: Wanted) -> Result<Created, Refusal> {
    let fence = match &id {
        Some(id) => Some(reserve(workspace, id).await?),
        None => None,
    };
    let slot = workspace.slot()?;
    let (sender, running) = watch::channel(None);
    let (leader, id) = (Arc::clone(workspace), id.unwrap_or_else(fresh_uuid));
    let (tell, applied) = oneshot::channel();
    spawn(async move {
        let created = create(&leader, &id, slot, &wanted, tell).await;
        drop(fence);
        sender.send_replace(Some(created));
    });
    claimed(running, applied).await
}

/// Takes a caller's id, which must be new in memory and on disk.
async fn reserve(workspace: &Arc<Workspace>, id: &str) -> Result<Fence, Refusal> {
    let fence = workspace.desk.take(id, Busy::Creating).map_err(|busy| match busy {
        Busy::Restoring { request, .. } => restoring(id, request.action.as_str()),
        Busy::Closing | Busy::Shelving(_) => Refusal::archiving(id),
        Busy::Creating => id_conflict(workspace, id, "live"),
    })?;
    if workspace.bridge.session(id).is_some() {
        return Err(id_conflict(workspace, id, "live"));
    }
    if let Some(other) = workspace.elsewhere(id) {
        return Err(id_conflict(&other, id, "live"));
    }
    // An id is one session's in all workspaces: the paths that name it do not say which one is meant.
    let (session, all) = (id.to_owned(), std::iter::once(Arc::clone(workspace)).chain(workspace.others()));
    let all: Vec<_> = all.collect();
    match blocking(move || all.iter().any(|one| one.layout.has_left(&session))).await {
        Some(false) => Ok(fence),
        Some(true) => Err(id_conflict(workspace, id, "persisted")),
        None => Err(Refusal::internal()),
    }
}

/// A session that is as it is wanted. What became of the wishes that it goes on without is told to `tell`.
async fn create(
    workspace: &Arc<Workspace>,
    id: &str,
    slot: Slot,
    wanted: &Wanted,
    tell: oneshot::Sender<Applied>,
) -> Result<Session, Refusal> {
    let opened = open(workspace, id, Kind::New).await?;
    // From here on it is counted as live; the bridge has the last word on the limit.
    drop(slot);
    let session = opened.activate(0, Seed::default());
    workspace.watch(&session);
    match wanted.apply(workspace, &session, None).await {
        Ok(applied) => {
            // A creator that went away does not want to know.
            let _ = tell.send(applied);
            Ok(session)
        }
        Err(refusal) => {
            // Somebody else may be closing it, which is as good.
            let _ = session.close(NOT_AS_WANTED, None).await;
            Err(refusal)
        }
    }
}

fn attached(session: Session) -> Created {
    Created { session, attached: true, unclaimed: None, applied: Applied::default() }
}

async fn claimed(running: Awaited<Session>, applied: oneshot::Receiver<Applied>) -> Result<Created, Refusal> {
    let unclaimed = Unclaimed { running: Some(running.clone()) };
    let session = outcome(running).await?;
    let applied = applied.await.unwrap_or_default();
    Ok(Created { session, attached: false, unclaimed: Some(unclaimed), applied })
}

fn restoring(id: &str, action: &'static str) -> Refusal {
    let message = format!("Session \"{id}\" is being restored via session/{action}");
    Refusal::conflict("restore_in_progress", message)
        .with("reason", "restore_in_progress")
        .with("retryable", true)
        .with("sessionId", id)
        .with("activeAction", action)
        .with("requestedAction", "create")
        .retry_later()
}

/// Stands for a creator that has not been told about its session yet.
pub(crate) struct Unclaimed {
    running: Option<Awaited<Session>>,
}

impl Unclaimed {
    /// The creator has registered; the session is its own from here on.
    pub(crate) fn claim(mut self) {
        self.running = None;
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        spawn(async move {
            if let Ok(session) = outcome(running).await
                && session.status().client_count == 0
            {
                tracing::info!(session = session.id(), "its creator went away; the session is given up");
                session.kill().await;
            }
        });
    }
}
