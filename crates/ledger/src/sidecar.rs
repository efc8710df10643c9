//! The ledger as a file beside a transcript: its name, and what happens to it when the transcript moves or goes.
//!
//! Where the two lie is the caller's knowledge. A failure here is a warning to log, not a reason to stop what is being
//! done to the transcript (evidence rules, section 1, sidecar moves).

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::append::AppendError;
use crate::lock;
use crate::open;
use crate::sealed::{self, Outcome, Place};

/// What a ledger's name ends with.
pub const SUFFIX: &str = ".ledger.jsonl";

/// The name of the ledger of a session, without a folder.
pub fn file_name(session_id: &str) -> String {
    format!("{session_id}{SUFFIX}")
}

/// Whether a file's name is that of a ledger. A scan that takes `*.jsonl` for transcripts has to leave these out.
pub fn is_ledger(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()))
}

/// A ledger could not be moved. Where it was, it still is; when the bytes had already been copied, they are in both
/// places, which reads the same and is cleared by moving again.
#[derive(Debug)]
pub struct MoveError {
    /// The full path of the source.
    pub from: PathBuf,
    /// The full path of the target.
    pub to: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, source } = self;
        write!(f, "cannot move the ledger {} to {}: {source}", from.display(), to.display())
    }
}

impl std::error::Error for MoveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// A ledger could not be removed.
#[derive(Debug)]
pub struct RemoveError {
    /// The full path of the ledger that is still there; of the active one, if both are.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
    /// The full path of the archived ledger and what the system said, if both are still there.
    pub also: Option<(PathBuf, io::Error)>,
}

impl fmt::Display for RemoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot remove the ledger {}: {}", self.path.display(), self.source)?;
        match &self.also {
            Some((path, source)) => write!(f, "; nor {}: {source}", path.display()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RemoveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Moves the ledger at `from` to `to`, making the folder of `to`. Nothing at `from` is nothing to do.
///
/// When `to` exists, the bytes of `from` are appended to it, behind a seal if its tail is torn, and `from` is removed
/// once they are on disk: no record of either is lost, and the later ones stand later. Records that others append to
/// either path meanwhile are kept.
///
/// # Errors
///
/// Names both full paths, for the warning.
pub fn move_merging(from: &Path, to: &Path) -> Result<(), MoveError> {
    relocate(from, to).map_err(|source| MoveError { from: full(from), to: full(to), source })
}

/// Removes both states of a session's ledger. What is missing is removed already.
///
/// # Errors
///
/// When one of them stays; the other is removed nevertheless. Names the full path of each that stays, for the warning.
pub fn remove(active: &Path, archived: &Path) -> Result<(), RemoveError> {
    let failures = [active, archived].map(|path| remove_file(path).err().map(|source| (full(path), source)));
    let mut failures = failures.into_iter().flatten();
    match failures.next() {
        Some((path, source)) => Err(RemoveError { path, source, also: failures.next() }),
        None => Ok(()),
    }
}

fn full(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn relocate(from: &Path, to: &Path) -> io::Result<()> {
    if is_missing(from)? {
        return Ok(());
    }
    let made_folders = open::make_folder(open::folder_of(to))?;
    // A second name and then one name less, because a rename would replace a target that somebody makes meanwhile.
    if fs::hard_link(from, to).is_ok() {
        open::sync_folders(to, &made_folders)?;
        return remove_file(from);
    }
    if !is_same_file(from, to)? {
        // Also where hard links are not to be had, and when the target is on another disk.
        return merge(from, to);
    }
    if fs::canonicalize(from)? == fs::canonicalize(to)? {
        return Ok(());
    }
    // The two names of a move that was cut off above.
    remove_file(from)
}

fn is_missing(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn is_same_file(from: &Path, to: &Path) -> io::Result<bool> {
    let identity = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let from = identity(from)?;
    Ok(from.is_some() && from == identity(to)?)
}

/// The source stays locked until it is gone: who appends to it meanwhile finds that it is gone and starts it anew.
fn merge(from: &Path, to: &Path) -> io::Result<()> {
    let source = match File::open(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        answer => answer?,
    };
    let _held = lock::hold(&source);
    if source.metadata()?.nlink() == 0 {
        // Another move was faster.
        return Ok(());
    }
    let mut sealed = vec![b'\n'];
    (&source).read_to_end(&mut sealed)?;
    if sealed.len() > 1 {
        append_synced(to, &sealed)?;
    }
    remove_file(from)
}

fn append_synced(to: &Path, sealed: &[u8]) -> io::Result<()> {
    for _ in 0..open::ATTEMPTS_MAX {
        let opened = open::existing_or_new(to)?;
        let outcome = sealed::append(&opened.file, sealed, Place::default()).map_err(into_io)?;
        if outcome != Outcome::Removed {
            opened.file.sync_all()?;
            return open::sync_folders(to, &opened.made_folders);
        }
    }
    Err(open::comes_and_goes())
}

fn into_io(error: AppendError) -> io::Error {
    match error {
        AppendError::Io(error) | AppendError::NotSynced(error) => error,
        other => io::Error::other(other),
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        answer => answer,
    }
}
