//! A transcript as it was when reading began, and why it cannot be read as that.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::branch::Transcript;

/// Why a transcript cannot be searched or paged. None of it means that something was not found (turn status seed).
#[derive(Debug, Error)]
pub enum PageError {
    /// The system does not let us read it.
    #[error("cannot read {}: {cause}", path.display())]
    Io {
        /// The transcript.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A single record has more bytes than a page may have.
    #[error("{} holds a record of {bytes} bytes, and a page has at most {bytes_max}", path.display())]
    OversizedPage {
        /// The transcript.
        path: PathBuf,
        /// Bytes of the record.
        bytes: u64,
        /// Bytes of a page.
        bytes_max: u64,
    },
    /// More of the file would have to be read than may be read at once.
    #[error("{} has {bytes} bytes, and at most {bytes_max} of them are read at once", path.display())]
    OversizedSnapshot {
        /// The transcript.
        path: PathBuf,
        /// Bytes of the file.
        bytes: u64,
        /// Bytes of it that are read at most.
        bytes_max: u64,
    },
    /// The cursor is none that was given out.
    #[error("the cursor is none that was given out here")]
    InvalidCursor,
    /// What was to be read is not there any more, or was never one session's.
    #[error("{} cannot be read as one snapshot: {why}", path.display())]
    Unavailable {
        /// The transcript.
        path: PathBuf,
        /// What happened to it.
        why: Unavailable,
    },
}

/// What happened to a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// The file is not there any more.
    #[error("the file is gone")]
    Gone,
    /// Another file stands in its place.
    #[error("another file is in its place")]
    Replaced,
    /// It is shorter than it was, or says something else where it ended.
    #[error("the file was changed")]
    Changed,
    /// Its records belong to several sessions.
    #[error("it holds records of another session")]
    TwoSessions,
}

impl PageError {
    /// The stable word for it, as the wire names it (wire, section 18.1).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "transcript_unreadable",
            Self::OversizedPage { .. } => "transcript_page_too_large",
            Self::OversizedSnapshot { .. } => "transcript_too_large",
            Self::InvalidCursor => "invalid_transcript_cursor",
            Self::Unavailable { .. } => "transcript_snapshot_unavailable",
        }
    }

    /// What the system said about a file that was read. A file that ends before it should was cut while it was read.
    pub(crate) fn of(path: &Path, cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::UnexpectedEof => Self::unavailable(path, Unavailable::Changed),
            _ => Self::Io { path: path.to_owned(), cause },
        }
    }

    pub(crate) fn unavailable(path: &Path, why: Unavailable) -> Self {
        Self::Unavailable { path: path.to_owned(), why }
    }
}

/// Which file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Transcript {
    pub(crate) fn identity(&self) -> io::Result<Identity> {
        self.file().metadata().map(|metadata| identity(&metadata))
    }

    /// What has happened to the snapshot since it was opened at `path`; none when it is still there as it was. Whoever
    /// writes only appends, so that a file as long as before is taken for the same.
    pub(crate) fn fate(&self, path: &Path) -> io::Result<Option<Unavailable>> {
        let here = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Unavailable::Gone)),
            here => here?,
        };
        if identity(&here) != self.identity()? {
            return Ok(Some(Unavailable::Replaced));
        }
        Ok((here.len() < self.len_bytes()).then_some(Unavailable::Changed))
    }

    /// Whether the file at `path` is this one, and was not written to since it was opened.
    pub(crate) fn is_unchanged(&self, path: &Path) -> io::Result<bool> {
        let here = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            here => here?,
        };
        let is_same_file = identity(&here) == self.identity()?;
        Ok(is_same_file && here.len() == self.len_bytes() && here.modified()? == self.modified())
    }
}

fn identity(metadata: &std::fs::Metadata) -> Identity {
    Identity { device: metadata.dev(), inode: metadata.ino() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_only_grows_stays_the_same_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, "12345").unwrap();
        let transcript = Transcript::open(&path).unwrap().unwrap();
        let fate = || transcript.fate(&path).unwrap();
        assert_eq!(fate(), None);
        fs::write(&path, "1234567").unwrap();
        assert_eq!(fate(), None);
        fs::write(&path, "1234").unwrap();
        assert_eq!(fate(), Some(Unavailable::Changed));
        fs::write(folder.path().join("other"), "12345").unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        assert_eq!(fate(), Some(Unavailable::Replaced));
        fs::remove_file(&path).unwrap();
        assert_eq!(fate(), Some(Unavailable::Gone));
    }

    #[test]
    fn a_file_that_was_cut_while_it_was_read_is_no_longer_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, "{\"a\":1}\n").unwrap();
        let transcript = Transcript::open(&path).unwrap().unwrap();
        fs::write(&path, "").unwrap();
        let cause = transcript.branch(0).err().unwrap();
        assert_eq!(PageError::of(&path, cause).code(), "transcript_snapshot_unavailable");
        assert_eq!(PageError::of(&path, io::Error::other("x")).code(), "transcript_unreadable");
    }
}
