//! What the writer and everybody else know together: how the store is, the newest number, and the connections that read.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::connection;
use super::error::StoreError;
use super::limits::READERS_MAX;

/// Who is told the newest number after a commit that has terminals.
pub(super) type Listener = Arc<dyn Fn(u64) + Send + Sync>;

pub(super) struct Shared {
    pub(super) readers: Readers,
    head: AtomicU64,
    trouble: Mutex<Option<StoreError>>,
    listeners: Mutex<Vec<Listener>>,
}

impl Shared {
    pub(super) fn new(readers: Readers, head: u64) -> Self {
        Self { readers, head: AtomicU64::new(head), trouble: Mutex::default(), listeners: Mutex::default() }
    }

    /// The highest number that a commit has given.
    pub(super) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Raises the newest number and tells everybody.
    pub(super) fn announce(&self, newest: u64) {
        if self.head.fetch_max(newest, Ordering::AcqRel) >= newest {
            return;
        }
        // Not called under the lock: a listener may add another one.
        let listeners = lock(&self.listeners).clone();
        for listener in listeners {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| listener(newest))).is_err() {
                tracing::error!("whoever listens to the request store panicked");
            }
        }
    }

    pub(super) fn listen(&self, listener: Listener) {
        lock(&self.listeners).push(listener);
    }

    /// What is wrong, if anything.
    pub(super) fn trouble(&self) -> Option<StoreError> {
        lock(&self.trouble).clone()
    }

    /// Says what is wrong now; gives what was before.
    pub(super) fn set_trouble(&self, trouble: Option<StoreError>) -> Option<StoreError> {
        std::mem::replace(&mut lock(&self.trouble), trouble)
    }

    pub(super) fn is_corrupt(&self) -> bool {
        matches!(*lock(&self.trouble), Some(StoreError::Corrupt(_)))
    }
}

/// A few connections that read, handed out one at a time.
pub(super) struct Readers {
    path: PathBuf,
    busy_ms: u64,
    state: Mutex<Pool>,
    freed: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    used: usize,
    /// Raised when the disk failed: what was opened before is not used again.
    generation: u64,
}

impl Readers {
    pub(super) fn new(path: PathBuf, busy_ms: u64) -> Self {
        Self { path, busy_ms, state: Mutex::default(), freed: Condvar::new() }
    }

    /// A connection for one look. Waits while all are used.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn take(&self) -> Result<Reader<'_>, StoreError> {
        let mut pool = lock(&self.state);
        while pool.used >= READERS_MAX {
            pool = self.freed.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        pool.used += 1;
        let generation = pool.generation;
        let idle = pool.idle.pop();
        drop(pool);
        // From here on the reader gives its place back when it is dropped, also when the file does not open.
        let mut reader = Reader { readers: self, conn: idle, generation };
        if reader.conn.is_none() {
            reader.conn = Some(connection::reading(&self.path, self.busy_ms)?);
        }
        Ok(reader)
    }

    /// Closes all connections, those in use when they are given back.
    pub(super) fn forget(&self) {
        let mut pool = lock(&self.state);
        pool.generation += 1;
        pool.idle.clear();
    }

    fn give_back(&self, conn: Option<Connection>, generation: u64) {
        let mut pool = lock(&self.state);
        pool.used -= 1;
        if pool.generation == generation {
            pool.idle.extend(conn);
        }
        drop(pool);
        self.freed.notify_one();
    }
}

/// A connection on loan.
pub(super) struct Reader<'r> {
    readers: &'r Readers,
    conn: Option<Connection>,
    generation: u64,
}

impl Reader<'_> {
    /// The connection.
    ///
    /// # Errors
    /// None: a reader that is handed out has one.
    pub(super) fn conn(&self) -> Result<&Connection, StoreError> {
        self.conn.as_ref().ok_or(StoreError::Closed)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.readers.give_back(self.conn.take(), self.generation);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
