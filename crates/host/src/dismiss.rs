//! Ending a host that lingers over a turn whose daemon has died, for a caller that does not want to wait; and having it cancel that turn.
//!
//! A pid alone proves nothing: it may have been used anew. What is signalled is the process that the session's lock names by pid and
//! start, that has this very lock file open, and that was started as a host. It is fixed by a handle before it is looked at.

use std::io;
use std::path::Path;

use rustix::process::Signal;
use tokio::time::{Instant, sleep};
use transcript::{LockError, Owner, SessionLock};

use crate::limits::{DISMISS_WAIT, LOCK_POLL};
use crate::tree;

/// Asks the host that the session's lock of this transcript named when the caller looked to end, and waits until it holds the lock no more.
/// Another holder is left alone: it may be the host of whoever has opened the session since, while the caller may be gone.
///
/// # Errors
///
/// When the lock cannot be looked at, when its holder is not provably a host, and when it does not end.
pub async fn dismiss(transcript: &Path, lingering: &Owner) -> io::Result<()> {
    let lock = std::path::absolute(transcript)?.with_extension("lock");
    let until = Instant::now() + DISMISS_WAIT;
    let mut is_told = false;
    loop {
        match SessionLock::probe(&lock) {
            Err(LockError::Held { owner: Some(owner), .. }) if owner.is_same_process(lingering) => {
                if !is_told {
                    tree::signal_host(&owner, &lock, Signal::TERM)?;
                    tracing::info!(pid = owner.pid, lock = %lock.display(), "a lingering host is told to end");
                    is_told = true;
                }
            }
            Ok(()) | Err(LockError::Held { .. }) => return Ok(()),
            Err(error @ LockError::Io { .. }) => return Err(io::Error::other(error)),
        }
        if Instant::now() >= until {
            return Err(io::Error::other("the holder of the session's lock does not end"));
        }
        sleep(LOCK_POLL).await;
    }
}

/// Has the host that lingers over the session of this transcript cancel its turn; it ends with that turn. Nothing is done when another one
/// holds it, or nobody, and nothing by a host whose daemon is there.
///
/// # Errors
///
/// When the lock cannot be looked at, and when its holder is not provably a host.
pub fn interrupt(transcript: &Path, lingering: &Owner) -> io::Result<()> {
    let lock = std::path::absolute(transcript)?.with_extension("lock");
    match SessionLock::probe(&lock) {
        Err(LockError::Held { owner: Some(owner), .. }) if owner.is_same_process(lingering) => {
            tree::signal_host(&owner, &lock, Signal::USR1)?;
            tracing::info!(pid = owner.pid, lock = %lock.display(), "a lingering host is told to cancel its turn");
            Ok(())
        }
        Ok(()) | Err(LockError::Held { .. }) => Ok(()),
        Err(error @ LockError::Io { .. }) => Err(io::Error::other(error)),
    }
}
