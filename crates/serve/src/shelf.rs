//! Archive, unarchive and delete (wire rules, section 6.8): one session from its last client to where its files end up. Its id is fenced
//! meanwhile, its lock is ours while files move, and a host that still holds it is waited for, or ended if it lingers.

mod conflict;
mod files;

use std::sync::Arc;
use std::time::Duration;

use bridge::{CloseError, Session};
use hyper::StatusCode;
use transcript::{LockError, SessionLock};

use crate::desk::{Busy, Fence};
use crate::identity::is_file_id;
use crate::limits::{HOST_GONE_MS, HOST_GONE_POLL_MS};
use crate::options::Durability;
use crate::refusal::Refusal;
use crate::server::this_process;
use crate::sidecar::{Place, Sidecar};
use crate::tasks::blocking;
use crate::workspace::Workspace;
pub(crate) use files::{Done, is_in_conflict};
use files::{Files, ShelfError, full};

/// Why a live session ends that a client closes, puts away or removes, as its last event says (wire rules, section 6.6).
pub(crate) const CLIENT_CLOSE: &str = "client_close";

/// What is to be done with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Its files go to the archive.
    Archive,
    /// They come back, and nothing is loaded.
    Unarchive,
    /// They are removed, wherever they lie.
    Delete,
}

/// Does it, and answers when it is done. A session that is live is closed first, unless it is only to be where it is.
///
/// # Errors
/// As one request about the one session would be refused.
pub(crate) async fn perform(workspace: &Arc<Workspace>, id: &str, task: Task, resolve: bool) -> Result<Done, Refusal> {
    if !is_file_id(id) {
        let message = format!("\"{id}\" is no id that a session can have");
        return Err(Refusal::bad_request("invalid_session_id", message));
    }
    let _fenced = fenced(workspace, id, Busy::Shelving(task))?;
    let session = workspace.bridge.session(id);
    if session.is_some() && task == Task::Unarchive {
        let (reader, session) = (Arc::clone(workspace), id.to_owned());
        let in_conflict = blocking(move || is_in_conflict(&reader.layout, &session)).await;
        let in_conflict = in_conflict.ok_or_else(Refusal::internal)?;
        return if in_conflict { Err(Refusal::session_conflict(id)) } else { Ok(Done::Already) };
    }
    let was_live = session.is_some();
    if let Some(session) = session {
        close(&session).await;
    }
    shelve(workspace, id, (task, resolve), was_live).await
}

/// Removes a session that was made and could not be opened, once its host is gone. One that lives, or that somebody else is about to
/// open or to put away, was found meanwhile and stays.
///
/// # Errors
/// When it stays.
pub(crate) async fn discard(workspace: &Arc<Workspace>, id: &str) -> Result<(), Refusal> {
    let _fenced = fenced(workspace, id, Busy::Shelving(Task::Delete))?;
    if workspace.bridge.session(id).is_some() {
        return Err(Refusal::in_transition(id, "used"));
    }
    shelve(workspace, id, (Task::Delete, false), true).await.map(drop)
}

fn fenced(workspace: &Workspace, id: &str, with: Busy) -> Result<Fence, Refusal> {
    workspace.desk.take(id, with).map_err(|busy| Refusal::in_transition(id, busy.as_str()))
}

/// The way of a session that does not live any more, if it ever did.
async fn shelve(
    workspace: &Arc<Workspace>,
    id: &str,
    (task, resolve): (Task, bool),
    was_live: bool,
) -> Result<Done, Refusal> {
    settle(workspace, id, task)?;
    let (reader, session) = (Arc::clone(workspace), id.to_owned());
    let has_files = blocking(move || has_files(&reader, &session)).await.ok_or_else(Refusal::internal)?;
    if !has_files {
        return Ok(if was_live && task == Task::Delete { Done::Now { resolved: false } } else { Done::NotFound });
    }
    let lock = locked(workspace, id, was_live).await?;
    let (worker, session) = (Arc::clone(workspace), id.to_owned());
    let done = blocking(move || move_files(&worker, &session, task, resolve, lock)).await;
    match done.ok_or_else(Refusal::internal)? {
        Ok(Done::NotFound) if was_live && task == Task::Delete => Ok(Done::Now { resolved: false }),
        Ok(done) => Ok(done),
        Err(error) => Err(failed(id, task, &error)),
    }
}

async fn close(session: &Session) {
    if let Err(CloseError::Closing) = session.close(CLIENT_CLOSE, None).await {
        session.ended().await;
    }
}

/// What the disk has refused so far of a session's ledger would be written where the session is no more.
fn settle(workspace: &Workspace, id: &str, task: Task) -> Result<(), Refusal> {
    if task == Task::Delete {
        workspace.sink.forget(id);
    } else if !workspace.sink.is_settled(id) {
        let message = "What became of the session's prompts cannot be recorded; it stays where it is";
        let refusal = Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "ledger_unwritable", message);
        return Err(refusal.with("sessionId", id).retry_later());
    }
    Ok(())
}

/// Whether there is anything to move or to remove: for an id that never was, not even a lock is made.
fn has_files(workspace: &Workspace, id: &str) -> bool {
    let layout = &workspace.layout;
    let beside = |place| Sidecar::ALL.into_iter().any(|sidecar| layout.sidecar(place, sidecar, id).exists());
    layout.has_left(id) || layout.session_lock(id).exists() || Place::ALL.into_iter().any(beside)
}

/// The session's lock. The host of a session that was just closed ends by itself and is waited for; any other one that holds it lingers
/// over a turn of a daemon that died, and is ended if it is provably such a host.
///
/// # Errors
/// 409 `session_writer_conflict` with the holder, 507 when the store does not take the lock.
async fn locked(workspace: &Workspace, id: &str, was_live: bool) -> Result<SessionLock, Refusal> {
    let mut looks_left = HOST_GONE_MS / HOST_GONE_POLL_MS;
    let mut dismissed = None;
    loop {
        let path = workspace.layout.session_lock(id);
        let lock =
            blocking(move || SessionLock::acquire(&path, &this_process())).await.ok_or_else(Refusal::internal)?;
        let owner = match lock {
            Ok(lock) => return Ok(lock),
            Err(LockError::Held { owner, .. }) => owner,
            Err(error @ LockError::Io { .. }) => return Err(unlockable(id, &error)),
        };
        match owner {
            // Who holds a lock without a name has just taken it, or is about to let go.
            owner if looks_left > 0 && (was_live || owner.is_none()) => {
                looks_left -= 1;
                tokio::time::sleep(Duration::from_millis(HOST_GONE_POLL_MS)).await;
            }
            Some(owner) if dismissed.as_ref() != Some(&owner) => {
                workspace.hosts.dismiss(&workspace.layout.transcript(id), &owner).await;
                dismissed = Some(owner);
            }
            owner => return Err(Refusal::session_written(id, owner.as_ref())),
        }
    }
}

fn unlockable(id: &str, error: &LockError) -> Refusal {
    tracing::warn!(session = id, %error, "a session cannot be locked");
    let message = "The session's files cannot be moved because its store cannot be written";
    Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "transcript_unwritable", message).with("sessionId", id)
}

/// Ends the host that lingers over a session that is not live, for a caller that wants it closed.
///
/// # Errors
/// 404 when nobody holds the session, 409 `session_writer_conflict` when somebody else does.
pub(crate) async fn close_lingering(workspace: &Workspace, id: &str) -> Result<(), Refusal> {
    let absent = || Refusal::session_not_found(id);
    if !is_file_id(id) {
        return Err(absent());
    }
    let _fenced = fenced(workspace, id, Busy::Closing)?;
    let path = workspace.layout.session_lock(id);
    let probed = blocking(move || SessionLock::probe(&path)).await.ok_or_else(Refusal::internal)?;
    if !matches!(probed, Err(LockError::Held { .. })) {
        return Err(absent());
    }
    locked(workspace, id, false).await.map(drop)
}

/// The files' own way, under the lock, which goes with them. Blocks.
fn move_files(
    workspace: &Workspace,
    id: &str,
    task: Task,
    resolve: bool,
    lock: SessionLock,
) -> Result<Done, ShelfError> {
    let files = Files {
        layout: &workspace.layout,
        workspace: &workspace.folder,
        session: id,
        is_synced: workspace.options.durability == Durability::Fsync,
        pace: &|| Ok(()),
    };
    let done = match task {
        Task::Archive => files.archive(resolve),
        Task::Unarchive => files.unarchive(resolve),
        Task::Delete => files.delete(&|| workspace.chosen.release(id)),
    };
    let path = workspace.layout.session_lock(id);
    if let Err(error) = lock.retire(&path) {
        tracing::warn!(session = id, path = %full(&path), %error, "a lock that nobody holds stays");
    }
    done
}

fn failed(id: &str, task: Task, error: &ShelfError) -> Refusal {
    match error {
        ShelfError::Conflict => Refusal::session_conflict(id),
        ShelfError::Failed { path, cause } => {
            tracing::error!(session = id, ?task, path = %full(path), error = %cause, "a transcript stays where it is");
            let message = format!("The session's transcript cannot be moved or removed: {cause}");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "transcript_unmovable", message).with("sessionId", id)
        }
    }
}
