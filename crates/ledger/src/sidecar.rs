//! The ledger as a file beside a transcript: its name, and what happens to it when the transcript moves or goes.
//!
//! Where the two lie is the caller's knowledge. A failure here is a warning to log, not a reason to stop what is being
//! done to the transcript (evidence rules, section 1, sidecar moves).

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::append::AppendError;
use crate::lock;
use crate::open;
use crate::overlap;
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
        write!(f, "cannot move {} to {}: {source}", from.display(), to.display())
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
/// either path meanwhile are kept. What an earlier move has appended before it was cut off, in this direction or the
/// other one, is recognised and not appended again.
///
/// # Errors
///
/// Names both full paths, for the warning.
pub fn move_merging(from: &Path, to: &Path) -> Result<(), MoveError> {
    move_paced(from, to, &|| Ok(()))
}

/// The same for any file of lines that is only appended to, with a word before each change to the disk: an error of
/// `pace` leaves the rest undone. So a caller can be stopped at every place where a crash could stop it.
///
/// # Errors
///
/// Those of [`move_merging`], and what `pace` gives.
pub fn move_paced(from: &Path, to: &Path, pace: Pace<'_>) -> Result<(), MoveError> {
    relocate(from, to, pace).map_err(|source| MoveError { from: full(from), to: full(to), source })
}

/// Called before each change to the disk.
pub type Pace<'p> = &'p dyn Fn() -> io::Result<()>;

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

fn relocate(from: &Path, to: &Path, pace: Pace<'_>) -> io::Result<()> {
    if is_missing(from)? {
        return Ok(());
    }
    pace()?;
    let made_folders = open::make_folder(open::folder_of(to))?;
    pace()?;
    // A second name and then one name less, because a rename would replace a target that somebody makes meanwhile.
    if fs::hard_link(from, to).is_ok() {
        open::sync_folders(to, &made_folders)?;
        pace()?;
        return remove_file(from);
    }
    if !is_same_file(from, to)? {
        // Also where hard links are not to be had, and when the target is on another disk.
        return merge(from, to, pace);
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
fn merge(from: &Path, to: &Path, pace: Pace<'_>) -> io::Result<()> {
    let Some(source) = open::existing(from)? else { return Ok(()) };
    let _held = lock::hold(&source.file);
    if source.file.metadata()?.nlink() == 0 {
        // Another move was faster.
        return Ok(());
    }
    let mut bytes = Vec::new();
    (&source.file).read_to_end(&mut bytes)?;
    if !bytes.is_empty() {
        if turn_back(&source.file, &bytes, from, to, pace)? {
            return Ok(());
        }
        append_synced(to, &bytes, pace)?;
    }
    pace()?;
    remove_file(from)
}

/// A move the other way may have been cut off while it appended the target to the source, which then ends with a beginning of it. The
/// source takes the rest, holds all that there is, and takes the target's place. False when it is not so.
fn turn_back(mut source: &File, bytes: &[u8], from: &Path, to: &Path, pace: Pace<'_>) -> io::Result<bool> {
    let Some(target) = open::existing(to)? else { return Ok(false) };
    let _held = lock::hold(&target.file);
    let mut wanted = Vec::new();
    (&target.file).read_to_end(&mut wanted)?;
    let known = overlap::of(bytes, true, &wanted);
    if known == 0 || overlap::of(&wanted, true, bytes) > 0 {
        return Ok(false);
    }
    if known < wanted.len() {
        pace()?;
        source.write_all(&wanted[known..])?;
    }
    source.sync_all()?;
    pace()?;
    fs::rename(from, to)?;
    open::sync_folders(to, &[])?;
    Ok(true)
}

/// Appends what of `bytes` the target does not end with already.
fn append_synced(to: &Path, bytes: &[u8], pace: Pace<'_>) -> io::Result<()> {
    for _ in 0..open::ATTEMPTS_MAX {
        pace()?;
        let opened = open::existing_or_new(to)?;
        let len_bytes = opened.file.metadata()?.len();
        let known = overlap::known(&opened.file, bytes)?;
        pace()?;
        let is_inside_a_line = known > 0 && bytes[known - 1] != b'\n';
        let sealed_at_bytes = if is_inside_a_line { len_bytes } else { 0 };
        let place = Place { expected_bytes: Some(len_bytes), sealed_at_bytes };
        let outcome = match known == bytes.len() {
            true => Ok(Outcome::Written { len_bytes }),
            false => sealed::append(&opened.file, &[b"\n", &bytes[known..]].concat(), place),
        };
        match outcome {
            Ok(Outcome::Removed) | Err(AppendError::Changed { .. }) => {}
            Ok(Outcome::Written { .. }) => {
                opened.file.sync_all()?;
                return open::sync_folders(to, &opened.made_folders);
            }
            Err(error) => return Err(into_io(error)),
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
