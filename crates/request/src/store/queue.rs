//! What waits for the writer.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::command::{Command, Keep};
use super::error::StoreError;
use super::limits::{BATCH_COMMANDS_MAX, WAITING_COMMANDS_MAX};

/// The commands that wait, first in first out. What may be refused is bounded by a limit; what must not be lost is bounded by the
/// requests that are open, of which each has a handful of facts.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Default)]
struct Waiting {
    commands: VecDeque<Box<dyn Command>>,
    is_closed: bool,
}

/// What the writer is given.
pub(super) enum Taken {
    /// Commands, in order. None, when the time to wait was over first.
    Batch(Vec<Box<dyn Command>>),
    /// No more will come.
    Closed,
}

impl Queue {
    /// Puts a command at the end, or answers it at once when there is no place for it.
    pub(super) fn put(&self, command: Box<dyn Command>) {
        let mut waiting = self.lock();
        let is_full = command.keep() == Keep::Refusable && waiting.commands.len() >= WAITING_COMMANDS_MAX;
        if waiting.is_closed || is_full {
            let error = if waiting.is_closed { StoreError::Closed } else { StoreError::Busy };
            drop(waiting);
            command.answer(Err(error));
            return;
        }
        waiting.commands.push_back(command);
        drop(waiting);
        self.filled.notify_one();
    }

    /// Takes what waits, at most a batch. Waits for the first one, `at_most` as long as this.
    pub(super) fn take(&self, at_most: Option<Duration>) -> Taken {
        let mut waiting = self.lock();
        while waiting.commands.is_empty() && !waiting.is_closed {
            let Some(at_most) = at_most else {
                waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (still, timed_out) = self.filled.wait_timeout(waiting, at_most).unwrap_or_else(PoisonError::into_inner);
            waiting = still;
            if timed_out.timed_out() {
                break;
            }
        }
        if waiting.commands.is_empty() && waiting.is_closed {
            return Taken::Closed;
        }
        let many = waiting.commands.len().min(BATCH_COMMANDS_MAX);
        Taken::Batch(waiting.commands.drain(..many).collect())
    }

    /// Lets nothing more in. What waits is still done.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
