//! A ledger by its path.

use std::path::{Path, PathBuf};
use std::slice;

use crate::append::{AppendError, Appender};
use crate::read::{self, ReadError, Reading};
use crate::record::Record;
use crate::wish::Wish;

/// Which failure an append that was answered with `Ok` survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The death of this process, by any signal: the bytes are with the operating system.
    #[default]
    Process,
    /// The death of the machine as well: the file was synced and, once for each opening, the folder that names it.
    Fsync,
}

/// The ledger of one session: a path and a promise. Holds nothing open; every call stands alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    path: PathBuf,
    durability: Durability,
}

impl Ledger {
    /// The ledger at `path`. Does no IO; the file and its folder are made by the first append.
    pub fn new(path: impl Into<PathBuf>, durability: Durability) -> Self {
        Self { path: path.into(), durability }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An appender that keeps the file open, for many records in a row. Does no IO until its first append.
    pub fn appender(&self) -> Appender {
        Appender::new(self.path.clone(), self.durability)
    }

    /// Appends one record: opens, seals a torn tail, writes, closes.
    ///
    /// # Errors
    ///
    /// See [`AppendError`]; the crate page says what the file holds after each.
    pub fn append(&self, record: &Record) -> Result<(), AppendError> {
        self.append_all(slice::from_ref(record))
    }

    /// Appends several records, in this order, in one write call. No records, no IO.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn append_all(&self, records: &[Record]) -> Result<(), AppendError> {
        self.appender().append_all(records)
    }

    /// Appends one wish, as safely as a record.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn append_wish(&self, wish: &Wish) -> Result<(), AppendError> {
        self.appender().append_wish(wish)
    }

    /// Appends as [`append_all`](Self::append_all), but only while the file is still `len_bytes` long, which a
    /// [`Reading`] says of itself. The look and the write happen under the ledger's lock, so that a verdict drawn from a
    /// reading cannot land behind a record that the reading had not seen (evidence rules, section 4, row 15).
    ///
    /// # Errors
    ///
    /// [`AppendError::Changed`] when the length is another one; otherwise as [`append`](Self::append).
    pub fn append_if_unchanged(&self, records: &[Record], len_bytes: u64) -> Result<(), AppendError> {
        self.appender().append_if_unchanged(records, len_bytes)
    }

    /// Reads all of it. A missing file is an empty ledger.
    ///
    /// # Errors
    ///
    /// When the file exists and cannot be read.
    pub fn read(&self) -> Result<Reading, ReadError> {
        read::whole(&self.path)
    }

    /// Reads its last `window_bytes`. When the file is longer, the first line of the window is left out, cut or not.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_tail(&self, window_bytes: u64) -> Result<Reading, ReadError> {
        read::tail(&self.path, window_bytes)
    }

    /// How long the file is, in bytes; 0 when it is missing. Another length than that of a [`Reading`] means that
    /// somebody appended in between.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn len_bytes(&self) -> Result<u64, ReadError> {
        read::len_bytes(&self.path)
    }
}
