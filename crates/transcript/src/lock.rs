//! The session's lock: one writer a transcript.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::folder;
use crate::regular::open_regular;

/// The lock names a process and says nothing else, but it belongs to one person.
const FILE_MODE: u32 = 0o600;
/// Bytes of an owner's line that are read. Ours has under a hundred; anything longer was not written by us.
const OWNER_BYTES_MAX: u64 = 4_096;
/// How often a lock is tried that somebody only looks at, and how long to wait in between: a look takes microseconds, and
/// no session may fail to start because of one.
const LOOKED_AT_TRIES: u32 = 100;
const LOOKED_AT_WAIT: Duration = Duration::from_millis(1);
/// How often a lock is taken anew that was retired in that moment. Each round that is lost was somebody else's move of the session.
const RETIRED_TRIES: u32 = 100;

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

impl Owner {
    /// Whether both name one process, for certain: a pid alone may have been used anew.
    #[must_use]
    pub fn is_same_process(&self, other: &Self) -> bool {
        self.pid == other.pid && self.start_ticks.is_some() && self.start_ticks == other.start_ticks
    }
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
    /// waits for a holder.
    pub fn acquire(path: &Path, owner: &Owner) -> Result<Self, LockError> {
        Self::acquire_through(path, owner, open)
    }

    fn acquire_through(
        path: &Path,
        owner: &Owner,
        mut open: impl FnMut(&Path) -> io::Result<File>,
    ) -> Result<Self, LockError> {
        let failed = |cause| LockError::Io { path: path.to_owned(), cause };
        for _ in 0..RETIRED_TRIES {
            let mut file = open(path).map_err(failed)?;
            try_lock(&file, || std::thread::sleep(LOOKED_AT_WAIT)).map_err(|error| refusal(path, &mut file, error))?;
            // A holder may have retired the lock between our opening and our locking: what we locked then is nobody's.
            if is_named(&file, path).map_err(failed)? {
                write_owner(&mut file, owner).map_err(failed)?;
                return Ok(Self { file });
            }
        }
        Err(failed(io::Error::other("the lock comes and goes")))
    }

    /// Lets go and removes the file: only a holder may, and whoever has opened the file meanwhile notices. Of a session whose files are
    /// put away or gone this one must not stay.
    ///
    /// # Errors
    /// When the file stays. It is let go of all the same.
    pub fn retire(self, path: &Path) -> io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the lock at `path` is free: an error says who has it, or why nobody can tell. Makes no file and writes
    /// nothing; whoever wants the lock meanwhile gets it.
    pub fn probe(path: &Path) -> Result<(), LockError> {
        let mut file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(cause) => return Err(LockError::Io { path: path.to_owned(), cause }),
        };
        // Shared, so that two that look do not take each other for a holder; closing the file lets go.
        file.try_lock_shared().map_err(|error| refusal(path, &mut file, error))
    }
}

/// Takes the lock unless somebody has it. A shared lock is the look of a probe and over in no time: it is waited out.
fn try_lock(file: &File, wait: impl Fn()) -> Result<(), TryLockError> {
    for _ in 0..LOOKED_AT_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            done => return done,
        }
        file.try_lock_shared()?;
        file.unlock().map_err(TryLockError::Error)?;
        wait();
    }
    file.try_lock()
}

fn refusal(path: &Path, file: &mut File, error: TryLockError) -> LockError {
    let path = path.to_owned();
    match error {
        TryLockError::WouldBlock => LockError::Held { path, owner: read_owner(file) },
        TryLockError::Error(cause) => LockError::Io { path, cause },
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // An owner that has let go is not to be named, but a failure to say so harms nobody.
        let _ = self.file.set_len(0);
    }
}

fn open(path: &Path) -> io::Result<File> {
    folder::make_for(path)?;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)
}

/// Whether `path` still names the file.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let here = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((here.dev(), here.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;

    const FIRST: Owner = Owner { pid: 7, started_at: 1_795_977_220_000, start_ticks: Some(42) };
    const SECOND: Owner = Owner { pid: 8, started_at: 9, start_ticks: None };

    fn content(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    /// Takes a lock that is held while its file says this.
    fn refused(content: &str) -> LockError {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.lock");
        let _held = SessionLock::acquire(&path, &FIRST).unwrap();
        std::fs::write(&path, content).unwrap();
        SessionLock::acquire(&path, &SECOND).unwrap_err()
    }

    #[test]
    fn a_lock_names_its_holder_and_then_nobody() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("made/for/it/s.lock");
        let held = SessionLock::acquire(&path, &FIRST).unwrap();
        assert_eq!(content(&path), "{\"pid\":7,\"startedAt\":1795977220000,\"startTicks\":42}\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(held);
        assert_eq!(content(&path), "");
        let _held = SessionLock::acquire(&path, &SECOND).unwrap();
        assert_eq!(content(&path), "{\"pid\":8,\"startedAt\":9}\n");
    }

    #[test]
    fn a_longer_name_that_was_left_behind_leaves_no_rest() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.lock");
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        let _held = SessionLock::acquire(&path, &SECOND).unwrap();
        assert_eq!(content(&path), "{\"pid\":8,\"startedAt\":9}\n");
    }

    #[test]
    fn whoever_comes_second_changes_nothing() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.lock");
        let _held = SessionLock::acquire(&path, &FIRST).unwrap();
        let before = content(&path);
        for _ in 0..3 {
            assert!(matches!(SessionLock::acquire(&path, &SECOND), Err(LockError::Held { .. })));
            assert_eq!(content(&path), before);
        }
    }

    #[test]
    fn a_holder_is_named_if_its_file_names_one() {
        let owner = |content: &str| match refused(content) {
            LockError::Held { owner, .. } => owner,
            failed @ LockError::Io { .. } => panic!("{failed}"),
        };
        assert_eq!(owner("{\"pid\":8,\"startedAt\":9}"), Some(SECOND));
        assert_eq!(owner("{\"startTicks\":null,\"pid\":8,\"startedAt\":9,\"host\":\"new\"}\n"), Some(SECOND));
        let padded = format!("{}{{\"pid\":8,\"startedAt\":9}}", " ".repeat(5_000));
        for nobody in [
            "",
            "\n",
            "{",
            "7",
            "{\"pid\":8}",
            "{\"pid\":-8,\"startedAt\":9}",
            "{\"pid\":\"8\",\"startedAt\":9}",
            &padded,
        ] {
            assert_eq!(owner(nobody), None, "{nobody:.40}");
        }
    }

    #[test]
    fn a_holder_without_a_name_is_another_process() {
        let message = refused("").to_string();
        assert!(message.ends_with("s.lock is held by another process"), "{message}");
    }

    #[test]
    fn what_cannot_be_locked_is_said_with_its_path() {
        let folder = TempDir::new().unwrap();
        let in_the_way = folder.path().join("file");
        std::fs::write(&in_the_way, "").unwrap();
        for path in [folder.path().to_owned(), in_the_way.join("s.lock")] {
            let refused = SessionLock::acquire(&path, &FIRST).unwrap_err();
            assert!(matches!(refused, LockError::Io { .. }), "{refused}");
            assert!(refused.to_string().starts_with(&format!("cannot lock {}: ", path.display())), "{refused}");
        }
    }

    #[test]
    fn a_probe_names_the_holder_and_leaves_no_trace() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.lock");
        SessionLock::probe(&path).unwrap();
        assert!(!path.exists());
        let held = SessionLock::acquire(&path, &FIRST).unwrap();
        let before = content(&path);
        let refused = SessionLock::probe(&path).unwrap_err();
        assert!(matches!(&refused, LockError::Held { owner: Some(owner), .. } if *owner == FIRST), "{refused}");
        assert_eq!(content(&path), before);
        drop(held);
        std::fs::write(&path, &before).unwrap();
        SessionLock::probe(&path).unwrap();
        assert_eq!(content(&path), before, "a name that was left behind holds nothing");
        assert!(matches!(SessionLock::probe(folder.path()), Err(LockError::Io { .. })));
    }

    #[test]
    fn a_lock_that_somebody_looks_at_is_got_when_the_look_is_over() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.lock");
        let (look, taker) = (open(&path).unwrap(), open(&path).unwrap());
        look.try_lock_shared().unwrap();
        SessionLock::probe(&path).unwrap();
        try_lock(&taker, || look.unlock().unwrap()).unwrap();
        let waited = std::cell::Cell::new(0);
        let refused = try_lock(&look, || waited.set(waited.get() + 1));
        assert!(matches!(refused, Err(TryLockError::WouldBlock)));
        assert_eq!(waited.get(), 0, "nobody waits for a holder");
    }

    #[test]
    fn a_lock_that_is_retired_leaves_no_file_and_the_next_one_is_a_lock_again() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.lock");
        SessionLock::acquire(&path, &FIRST).unwrap().retire(&path).unwrap();
        assert!(!path.exists());
        let _held = SessionLock::acquire(&path, &SECOND).unwrap();
        assert!(matches!(SessionLock::acquire(&path, &FIRST), Err(LockError::Held { .. })));
    }

    #[test]
    fn a_lock_that_was_retired_between_its_opening_and_its_locking_is_taken_anew() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.lock");
        for comes_again in [false, true] {
            let mut stale = Some(open(&path).unwrap());
            SessionLock::acquire(&path, &FIRST).unwrap().retire(&path).unwrap();
            if comes_again {
                open(&path).unwrap();
            }
            let held = SessionLock::acquire_through(&path, &SECOND, |path| stale.take().map_or_else(|| open(path), Ok));
            let held = held.unwrap();
            assert_eq!(content(&path), "{\"pid\":8,\"startedAt\":9}\n", "the name stands in the file that others see");
            assert!(matches!(SessionLock::acquire(&path, &FIRST), Err(LockError::Held { .. })));
            drop(held);
        }
    }

    #[test]
    fn many_that_take_and_retire_a_lock_at_once_never_hold_it_together() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.lock");
        let (held, got) = (std::sync::atomic::AtomicU32::new(0), std::sync::atomic::AtomicU32::new(0));
        let order = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let Ok(lock) = SessionLock::acquire(&path, &FIRST) else { continue };
                        assert_eq!(held.fetch_add(1, order), 0);
                        got.fetch_add(1, order);
                        std::thread::yield_now();
                        assert_eq!(held.fetch_sub(1, order), 1);
                        lock.retire(&path).unwrap();
                    }
                });
            }
        });
        assert!(got.load(order) > 0);
    }

    #[test]
    fn two_sessions_have_two_locks() {
        let folder = TempDir::new().unwrap();
        let _one = SessionLock::acquire(&folder.path().join("s1.lock"), &FIRST).unwrap();
        let _two = SessionLock::acquire(&folder.path().join("s2.lock"), &SECOND).unwrap();
    }
}
