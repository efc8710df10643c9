//! The session's lock: one writer a transcript.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The lock names a process and says nothing else, but it belongs to one person.
const FILE_MODE: u32 = 0o600;
/// Bytes of an owner's line that are read. Ours has under a hundred; anything longer was not written by us.
const OWNER_BYTES_MAX: u64 = 4_096;

/// Who holds a lock, for the message to whoever comes second. The lock itself is the system's and dies with its holder,
/// so that a stale name never locks anyone out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The process id.
    pub pid: u32,
    /// When the process started, in epoch milliseconds.
    pub started_at: u64,
    /// When the process started, in the system's own count since boot: with the pid it names one process for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
}

/// Why a session could not be locked.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("{} is held by {}", path.display(), named(owner.as_ref()))]
    Held {
        /// The lock.
        path: PathBuf,
        /// Its holder, unless that was just about to write its name.
        owner: Option<Owner>,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}: {cause}", path.display())]
    Io {
        /// The lock.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

/// A held lock. Dropping it, or the death of the process, lets go.
#[derive(Debug)]
pub struct SessionLock {
    file: File,
}

impl SessionLock {
    /// Takes the lock at `path` (`<session id>.lock` beside the transcript) for `owner`, or says who has it. Never
    /// waits.
    pub fn acquire(path: &Path, owner: &Owner) -> Result<Self, LockError> {
        let failed = |cause| LockError::Io { path: path.to_owned(), cause };
        let mut file = open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { path: path.to_owned(), owner: read_owner(&mut file) });
            }
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        write_owner(&mut file, owner).map_err(failed)?;
        Ok(Self { file })
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // The file stays: removing it would let two processes hold "the" lock through two different files. An owner
        // that has let go is not to be named, but a failure to say so harms nobody.
        let _ = self.file.set_len(0);
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)
}

fn read_owner(file: &mut File) -> Option<Owner> {
    let mut line = Vec::new();
    file.take(OWNER_BYTES_MAX).read_to_end(&mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

fn write_owner(file: &mut File, owner: &Owner) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    let mut line = serde_json::to_vec(owner)?;
    line.push(b'\n');
    file.write_all(&line)
}

fn named(owner: Option<&Owner>) -> String {
    match owner {
        Some(owner) => format!("process {} (started at {})", owner.pid, owner.started_at),
        None => "another process".to_owned(),
    }
}
