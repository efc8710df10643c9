//! Appending records. One writer a transcript, held by whoever holds the session's lock.

mod rewind;
mod title;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use uuid::Uuid;

use crate::body::{Body, Line};
use crate::folder;
use crate::pieces::each_piece;
use crate::tail::leaf_uuid;
pub use rewind::{REWIND_SUBTYPE, Rewind, RewindError};
use title::Title;

/// Readable and writable by the owner alone: a transcript holds what people said.
const FILE_MODE: u32 = 0o600;

/// Who writes, as every record repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The session's id.
    pub session_id: String,
    /// The absolute path of the workspace.
    pub cwd: String,
    /// The version of the program that writes.
    pub version: String,
}

/// How far an append must have got before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Handed to the system: survives the death of the process.
    #[default]
    Process,
    /// Flushed to the disk: survives the loss of power.
    Fsync,
}

/// Why a transcript could not be opened for writing.
#[derive(Debug, Error)]
#[error("cannot read the end of {}: {cause}", path.display())]
pub struct OpenError {
    /// The transcript.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub cause: io::Error,
}

/// Why records could not be appended.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The time is outside of what a timestamp can say.
    #[error("{at_ms} is no time in epoch milliseconds")]
    Time {
        /// The time given.
        at_ms: u64,
    },
    /// A part or a payload cannot be written as JSON.
    #[error("the record is not JSON: {0}")]
    Compose(#[from] serde_json::Error),
    /// The system refused, or wrote only a part.
    #[error("cannot append to {}: {cause}", path.display())]
    Write {
        /// The transcript.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

/// Appends to one transcript. Nothing is created before the first record.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    identity: Identity,
    durability: Durability,
    /// The last record that a next one may name as its parent.
    parent: Option<String>,
    file: Option<File>,
    keeps_title: bool,
    /// The session's name, where it is kept in sight.
    title: Option<Title>,
}

impl Writer {
    /// Opens a transcript that may not exist yet. What is already there decides the parent of the next record: the last
    /// record on the branch, found from the end, also behind torn lines (wire, section 16.4).
    pub fn open(path: impl Into<PathBuf>, identity: Identity, durability: Durability) -> Result<Self, OpenError> {
        let path = path.into();
        let parent = leaf_uuid(&path).map_err(|cause| OpenError { path: path.clone(), cause })?;
        Ok(Self { path, identity, durability, parent, file: None, keeps_title: false, title: None })
    }

    /// A writer whose next record hangs on `parent`, whatever the file ends with.
    pub(crate) fn behind(path: &Path, identity: Identity, durability: Durability, parent: Option<String>) -> Self {
        Self { path: path.to_owned(), identity, durability, parent, file: None, keeps_title: false, title: None }
    }

    /// The transcript.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The uuid that the next record will name as its parent.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// Appends one record at the given epoch milliseconds and returns its uuid. The line is one write; a torn tail is
    /// sealed first. After an error nothing is assumed about the file, and the next append seals it again.
    pub fn append(&mut self, at_ms: u64, body: &Body) -> Result<String, AppendError> {
        let mut uuids = self.append_each(&[(at_ms, body)])?;
        Ok(uuids.pop().unwrap_or_default())
    }

    /// Appends several records in one write, each the child of the one before, and returns their uuids in order. Either
    /// all of them were handed to the system or the call fails.
    pub fn append_all(&mut self, records: &[(u64, Body)]) -> Result<Vec<String>, AppendError> {
        let records: Vec<_> = records.iter().map(|(at_ms, body)| (*at_ms, body)).collect();
        self.append_each(&records)
    }

    fn append_each(&mut self, records: &[(u64, &Body)]) -> Result<Vec<String>, AppendError> {
        let mut lines = Vec::new();
        let mut uuids = Vec::with_capacity(records.len());
        let mut parent = self.parent.clone();
        let length = if self.keeps_title { self.length() } else { 0 };
        let mut title = self.title.clone();
        for (at_ms, body) in records {
            let uuid = Uuid::new_v4().to_string();
            let start = lines.len() as u64;
            each_piece(body, |piece| self.compose(&mut lines, &uuid, parent.as_deref(), *at_ms, piece))?;
            if body.is_on_branch() {
                parent = Some(uuid.clone());
            }
            uuids.push(uuid);
            if self.keeps_title {
                title = title::given(body, length + start, length + lines.len() as u64).or(title);
            }
        }
        if let Some(body) = Self::title_behind(title.as_ref(), length, lines.len()) {
            let (uuid, start) = (Uuid::new_v4().to_string(), lines.len() as u64);
            let at_ms = records.last().map_or(0, |(at_ms, _)| *at_ms);
            self.compose(&mut lines, &uuid, parent.as_deref(), at_ms, &body)?;
            if body.is_on_branch() {
                parent = Some(uuid);
            }
            title = title::given(&body, length + start, length + lines.len() as u64);
        }
        if !lines.is_empty() {
            self.write(lines).map_err(|cause| AppendError::Write { path: self.path.clone(), cause })?;
        }
        (self.parent, self.title) = (parent, title);
        Ok(uuids)
    }

    fn compose(
        &self,
        lines: &mut Vec<u8>,
        uuid: &str,
        parent_uuid: Option<&str>,
        at_ms: u64,
        body: &Body,
    ) -> Result<(), AppendError> {
        let timestamp = crate::time::to_text(at_ms).ok_or(AppendError::Time { at_ms })?;
        let (said, content) = body.into();
        let line = Line {
            uuid,
            parent_uuid,
            session_id: &self.identity.session_id,
            timestamp: &timestamp,
            said,
            cwd: &self.identity.cwd,
            version: &self.identity.version,
            content,
        };
        serde_json::to_writer(&mut *lines, &line)?;
        lines.push(b'\n');
        Ok(())
    }

    fn write(&mut self, mut lines: Vec<u8>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open_for_append(&self.path)?),
        };
        let tail = Tail::of(file)?;
        if tail == Tail::Torn {
            lines.insert(0, b'\n');
        }
        if file.write(&lines)? < lines.len() {
            return Err(io::Error::new(io::ErrorKind::WriteZero, "only a part of the line was written"));
        }
        match self.durability {
            Durability::Process => Ok(()),
            Durability::Fsync => {
                file.sync_data()?;
                // A file that was just made is found again only if its folder was flushed too.
                if tail == Tail::Empty { sync_folder(&self.path) } else { Ok(()) }
            }
        }
    }
}

fn open_for_append(path: &Path) -> io::Result<File> {
    folder::make_for(path)?;
    OpenOptions::new().read(true).append(true).create(true).mode(FILE_MODE).open(path)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// How a file ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// There is nothing in it.
    Empty,
    /// With the end of a line.
    Sealed,
    /// In the middle of a line, so that a record appended now would fuse with it.
    Torn,
}

impl Tail {
    fn of(file: &mut File) -> io::Result<Self> {
        if file.seek(SeekFrom::End(0))? == 0 {
            return Ok(Self::Empty);
        }
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(if last == *b"\n" { Self::Sealed } else { Self::Torn })
    }
}
