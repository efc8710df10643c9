//! What a dead host left behind, and its end.

use std::io;
use std::path::Path;

use thiserror::Error;
use tokio::time::{Instant, sleep};
use transcript::{LockError, Owner, SessionLock};

use crate::clock::now_ms;
use crate::limits::{LEFTOVERS_WAIT, TREE_POLL};
use crate::tree::{self, Tree};

/// A process that an earlier host left does not end.
#[derive(Debug, Error)]
#[error("process {pid} of an earlier host of this session does not end")]
pub(crate) struct Stubborn {
    pid: i32,
}

/// Ends what a host left behind that was killed: every process that carries the mark of this transcript's session.
/// Nothing is touched when the session has a host, which has done the same at its start.
///
/// # Errors
///
/// When the session cannot be locked, and when something does not end.
pub async fn sweep(transcript: &Path) -> io::Result<()> {
    let transcript = std::path::absolute(transcript)?;
    let _held_meanwhile = match lock(&transcript) {
        Ok(lock) => lock,
        Err(LockError::Held { .. }) => return Ok(()),
        Err(error @ LockError::Io { .. }) => return Err(io::Error::other(error)),
    };
    end_leftovers(&Tree::of_session(transcript.as_os_str())).await.map_err(io::Error::other)
}

/// Takes the session's lock for this process, or says who has it.
pub(crate) fn lock(transcript: &Path) -> Result<SessionLock, LockError> {
    let me = Owner { pid: std::process::id(), started_at: now_ms(), start_ticks: tree::my_start_ticks() };
    SessionLock::acquire(&transcript.with_extension("lock"), &me)
}

/// Ends everything of `tree`, which is the session's whose lock is held.
pub(crate) async fn end_leftovers(tree: &Tree) -> Result<(), Stubborn> {
    let until = Instant::now() + LEFTOVERS_WAIT;
    loop {
        let leftovers = tree.members();
        let Some(first) = leftovers.first() else { return Ok(()) };
        if Instant::now() >= until {
            return Err(Stubborn { pid: first.pid });
        }
        tracing::warn!(
            count = leftovers.len(),
            "an earlier host of this session left processes behind; they are ended"
        );
        tree.kill(&leftovers);
        tree::reap();
        sleep(TREE_POLL).await;
    }
}
