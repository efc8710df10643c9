//! Appending records.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::slice;

use crate::ledger::Durability;
use crate::open::{self, Opened};
use crate::record::Record;
use crate::sealed::{self, Outcome, Place};
use crate::wire::Line;
use crate::wish::Wish;

/// Why a record was not appended, or not as safely as was asked.
#[derive(Debug)]
pub enum AppendError {
    /// The disk, the quota or the allowed file size is used up. Nothing was written.
    DiskFull,
    /// Only the beginning was written, most likely because the disk is full. Every reader drops it, and the next append
    /// closes it with a newline.
    Short {
        /// How much was written, in bytes.
        written_bytes: usize,
        /// How much there was to write, in bytes.
        line_bytes: usize,
    },
    /// The file, its folder or the file system may not be written to.
    ReadOnly,
    /// There is a folder in the ledger's place.
    IsADirectory,
    /// There is something in the ledger's place that is neither a file nor a folder.
    NotAFile,
    /// The time of a record is not finite; no reader would accept the line. Nothing was written.
    TimeNotFinite,
    /// The ledger has not the length that the caller had seen. Nothing was written.
    Changed {
        /// The length that the caller had seen, in bytes.
        expected_bytes: u64,
        /// The length that was found, in bytes.
        found_bytes: u64,
    },
    /// The records are in the file, but whether they survive a power cut is not known. Only with
    /// [`Durability::Fsync`].
    NotSynced(io::Error),
    /// Anything else the system reports. Nothing is known to have been written.
    Io(io::Error),
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull => f.write_str("no room left for the ledger"),
            Self::Short { written_bytes, line_bytes } => {
                write!(f, "only {written_bytes} of {line_bytes} bytes were written to the ledger")
            }
            Self::ReadOnly => f.write_str("the ledger or its folder may not be written to"),
            Self::IsADirectory => f.write_str("a folder is in the ledger's place"),
            Self::NotAFile => f.write_str("what is in the ledger's place is not a regular file"),
            Self::TimeNotFinite => f.write_str("the time of the record is not a finite number"),
            Self::Changed { expected_bytes, found_bytes } => {
                write!(f, "the ledger has {found_bytes} bytes and not {expected_bytes}: it changed in between")
            }
            Self::NotSynced(error) => write!(f, "the ledger was written but not synced: {error}"),
            Self::Io(error) => write!(f, "cannot append to the ledger: {error}"),
        }
    }
}

impl std::error::Error for AppendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotSynced(error) | Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for AppendError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Self::DiskFull,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            ErrorKind::IsADirectory => Self::IsADirectory,
            _ => Self::Io(error),
        }
    }
}

/// A ledger that is kept open for appending, for many records in a row.
///
/// Others may append in between: it looks at the file's last byte before a write, as a single append does, unless the
/// file still ends where its own last line ended. It
/// follows its file through a rename; when the file was removed, the next append makes a new one in its place.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    durability: Durability,
    file: Option<Kept>,
    /// Whether the file was opened and the folder that names it not synced since.
    has_unsynced_name: bool,
    /// Folders that were made for the file and are not known to be on disk.
    unsynced_folders: Vec<PathBuf>,
    /// The LF of the seal, then the lines: kept, so that its memory is.
    sealed: String,
}

/// The file of an append that went well.
#[derive(Debug)]
struct Kept {
    file: File,
    /// Where the last line ended: while the file is that long, its last byte is known.
    len_bytes: u64,
}

impl Appender {
    pub(crate) fn new(path: PathBuf, durability: Durability) -> Self {
        let (file, unsynced_folders, sealed) = (None, Vec::new(), String::new());
        Self { path, durability, file, has_unsynced_name: false, unsynced_folders, sealed }
    }

    /// Appends one record.
    ///
    /// # Errors
    ///
    /// See [`AppendError`]. The appender stays usable after each of them; after [`AppendError::NotSynced`] a later
    /// success says nothing about the records before it.
    pub fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        self.append_all(slice::from_ref(record))
    }

    /// Appends several records, in this order, in one write call. No records, no IO.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn append_all(&mut self, records: &[Record]) -> Result<(), AppendError> {
        self.write(records, None)
    }

    /// Appends one wish, as safely as a record.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn append_wish(&mut self, wish: &Wish) -> Result<(), AppendError> {
        self.write(slice::from_ref(wish), None)
    }

    /// Appends as [`append_all`](Self::append_all), but only while the file is still `len_bytes` long.
    ///
    /// # Errors
    ///
    /// [`AppendError::Changed`] when the length is another one; otherwise as [`append`](Self::append).
    pub fn append_if_unchanged(&mut self, records: &[Record], len_bytes: u64) -> Result<(), AppendError> {
        self.write(records, Some(len_bytes))
    }

    fn write(&mut self, lines: &[impl Line], expected_bytes: Option<u64>) -> Result<(), AppendError> {
        if lines.is_empty() {
            return Ok(());
        }
        self.encode(lines)?;
        for _ in 0..open::ATTEMPTS_MAX {
            let Kept { file, len_bytes: sealed_at_bytes } = self.open(expected_bytes)?;
            let place = Place { expected_bytes, sealed_at_bytes };
            match sealed::append(&file, self.sealed.as_bytes(), place)? {
                Outcome::Written { len_bytes } => {
                    self.sync(&file)?;
                    self.file = Some(Kept { file, len_bytes });
                    return Ok(());
                }
                Outcome::Removed => {}
            }
        }
        Err(open::comes_and_goes().into())
    }

    fn encode(&mut self, lines: &[impl Line]) -> Result<(), AppendError> {
        self.sealed.clear();
        self.sealed.push('\n');
        for line in lines {
            if !line.is_dated() {
                return Err(AppendError::TimeNotFinite);
            }
            line.push(&mut self.sealed);
            self.sealed.push('\n');
        }
        Ok(())
    }

    /// The file, from the last append or from its path. Taken out: it goes back only after an append that went well.
    fn open(&mut self, expected_bytes: Option<u64>) -> Result<Kept, AppendError> {
        if let Some(kept) = self.file.take() {
            return Ok(kept);
        }
        let opened = match expected_bytes {
            // A file that is missing must not be made only to find that it has not the length.
            Some(expected_bytes) if expected_bytes > 0 => {
                open::existing(&self.path)?.ok_or(AppendError::Changed { expected_bytes, found_bytes: 0 })?
            }
            _ => open::existing_or_new(&self.path)?,
        };
        let Opened { file, made_folders } = opened;
        self.has_unsynced_name = true;
        self.unsynced_folders.extend(made_folders);
        Ok(Kept { file, len_bytes: 0 })
    }

    /// IMPORTANT: whoever opened the file syncs its folder too, also when the file is there for long: another process may
    /// have made it and died, or failed, before it came to that, and a file whose name is lost has lost every record.
    fn sync(&mut self, file: &File) -> Result<(), AppendError> {
        if self.durability == Durability::Process {
            return Ok(());
        }
        file.sync_data().map_err(AppendError::NotSynced)?;
        if self.has_unsynced_name {
            open::sync_folders(&self.path, &self.unsynced_folders).map_err(AppendError::NotSynced)?;
            self.has_unsynced_name = false;
            self.unsynced_folders.clear();
        }
        Ok(())
    }
}
