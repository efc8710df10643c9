//! A lock that a panic elsewhere does not take away from everybody.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. What it guards is valid after every statement, so a panic under it leaves nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
