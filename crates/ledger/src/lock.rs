//! The advisory lock that holds between looking at a ledger's last byte and writing behind it.

use std::fs::{File, TryLockError};
use std::thread;
use std::time::Duration;

/// How often a held lock is tried again at once. Whoever holds it needs a few microseconds.
const EAGER_ATTEMPTS: u32 = 200;

/// How often it is tried after that, at [`PATIENT_PAUSE`]: about a second. A holder that is still there was stopped in
/// the middle, and a prompt must not wait for that.
const PATIENT_ATTEMPTS: u32 = 1_000;

/// The pause before each patient attempt.
const PATIENT_PAUSE: Duration = Duration::from_millis(1);

/// The lock on a file, given back when dropped. It also dies with its process and with the closing of the file.
pub(crate) struct Held<'a> {
    file: &'a File,
}

/// Takes the exclusive lock on `file`.
///
/// `None` when the file system has no locks or somebody keeps it for too long. Going on without it is right: every line
/// is still one appending write, and only another writer's short write in that very moment could tear the tail unseen.
pub(crate) fn hold(file: &File) -> Option<Held<'_>> {
    for attempt in 0..EAGER_ATTEMPTS + PATIENT_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Some(Held { file }),
            Err(TryLockError::Error(_)) => return None,
            Err(TryLockError::WouldBlock) if attempt < EAGER_ATTEMPTS => thread::yield_now(),
            Err(TryLockError::WouldBlock) => thread::sleep(PATIENT_PAUSE),
        }
    }
    None
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // A lock that cannot be given back goes with the file.
        let _ = self.file.unlock();
    }
}
