//! How far the store got, on a small file beside it, so that a file that cannot be read, or that has forgotten its newest commits, is not
//! believed to be the whole of it.
//!
//! Two things are noted. *What was done*: after each commit its number and the head, which costs no more than a copy of a few bytes: it is
//! flushed once nobody waits for the writer, or after many of them. It is never ahead of the file: the commit was flushed before. A file that says less has lost what somebody was told of,
//! whatever SQLite finds in it (a bit of its log that fell over ends the log there). *What may be given*: a bound that no number of the
//! stream is above, flushed before the first number above the last bound is given. Behind it a recovery goes on when the file itself does
//! not say how far it got.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::error::StoreError;
use super::limits::NUMBERS_STEP;
use super::meta::Meta;
use super::place::{create, flush_folder};
use super::schema::io as failed;

/// Bytes of a slot: one sector, which a disk writes whole or not at all.
const SLOT_BYTES: usize = 512;
/// Slots that are written in turn, so that one is whole whatever happens to the other.
const SLOTS: usize = 2;
/// Digits of the check at the end of a slot: against torn bytes, not against people.
const CHECK_DIGITS: usize = 16;

/// What is noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Level {
    v: u32,
    pub(super) stream_id: String,
    /// The daemon's life.
    pub(super) daemon_epoch: u64,
    /// The last commit that somebody may have been told of.
    pub(super) commit_no: u64,
    /// The highest number then.
    pub(super) head: u64,
    /// No number of the stream is above this one.
    pub(super) bound: u64,
    /// The latest time that the store has seen, in epoch milliseconds; 0 in a note of an earlier program.
    #[serde(default)]
    pub(super) wall_ms: u64,
}

impl Level {
    /// What a row says.
    pub(super) fn of(meta: &Meta) -> Self {
        Self {
            v: 1,
            stream_id: meta.stream_id.clone(),
            daemon_epoch: meta.daemon_epoch,
            commit_no: meta.commit_no,
            head: meta.head_seq,
            bound: meta.head_seq,
            wall_ms: meta.last_wall_ms,
        }
    }
}

/// All that is noted of stores in a folder; after a change of the stream that may be two of them.
#[derive(Debug, Default)]
pub(super) struct Levels(Vec<Level>);

impl Levels {
    /// Reads the file. What cannot be read says nothing.
    pub(super) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_default();
        Self(bytes.chunks(SLOT_BYTES).take(SLOTS).filter_map(parse).collect())
    }

    /// What is missing from a file that says less than what is noted of the same stream.
    pub(super) fn missing(&self, meta: &Meta) -> Option<String> {
        let noted = self.0.iter().filter(|level| level.stream_id == meta.stream_id);
        let noted = noted.max_by_key(|level| level.commit_no)?;
        (noted.commit_no > meta.commit_no || noted.head > meta.head_seq).then(|| {
            let (done, kept) = (noted.commit_no, meta.commit_no);
            let (given, head) = (noted.head, meta.head_seq);
            format!("commit {done} was done, the file ends with {kept}; number {given} was given, it ends with {head}")
        })
    }

    /// That nothing is noted of a file that has commits. Nothing tells then whether its newest ones are missing, nor which numbers were
    /// given, and a number that is passed over would be a hole: so it is said, and no more.
    pub(super) fn silence(&self, meta: &Meta) -> Option<String> {
        let has_none = meta.commit_no > 0 && self.0.iter().all(|level| level.stream_id != meta.stream_id);
        has_none
            .then(|| "nothing beside the file says how far it got: an older copy of it would look the same".to_owned())
    }

    /// The number that none that was given is above; none when nothing is noted.
    pub(super) fn bound(&self) -> Option<u64> {
        self.0.iter().map(|level| level.bound.max(level.head)).max()
    }

    /// The latest time that is noted, in epoch milliseconds; 0 when none is.
    pub(super) fn wall_ms(&self) -> u64 {
        self.0.iter().map(|level| level.wall_ms).max().unwrap_or(0)
    }

    /// The last life of the daemon that is noted.
    pub(super) fn daemon_epoch(&self) -> u64 {
        self.0.iter().map(|level| level.daemon_epoch).max().unwrap_or(0)
    }
}

/// The file, while the store is open.
#[derive(Debug)]
pub(super) struct Watermark {
    file: File,
    level: Level,
    slot: usize,
    /// Notes since the last flush.
    unflushed: u64,
    has_failed: bool,
}

impl Watermark {
    /// Notes where a store begins, durably, in a file that is made if need be.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(super) fn begin(path: &Path, meta: &Meta) -> Result<Self, StoreError> {
        let is_new = !path.exists();
        drop(create(path).map_err(failed)?);
        // Not for appending: a slot has its place.
        let file = File::options().write(true).open(path).map_err(failed)?;
        let mut watermark = Self { file, level: Level::of(meta), slot: 0, unflushed: 0, has_failed: false };
        watermark.level.bound = meta.head_seq + NUMBERS_STEP;
        for _ in 0..SLOTS {
            watermark.write().and_then(|()| watermark.file.sync_all()).map_err(failed)?;
        }
        if is_new {
            flush_folder(path.parent().unwrap_or_else(|| Path::new("/"))).map_err(failed)?;
        }
        Ok(watermark)
    }

    /// The head that was noted last.
    pub(super) const fn head(&self) -> u64 {
        self.level.head
    }

    /// Makes sure that numbers through this one may be given.
    ///
    /// # Errors
    /// When the disk does not take it; no number above the bound may be given then.
    pub(super) fn reserve(&mut self, through: u64) -> Result<(), StoreError> {
        if through <= self.level.bound {
            return Ok(());
        }
        let before = self.level.bound;
        self.level.bound = through + NUMBERS_STEP;
        let written = self.write().and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            self.level.bound = before;
            failed(error)
        })
    }

    /// Notes a commit, before anybody is told of it. A disk that does not take it leaves the note behind the file, which is as true.
    pub(super) fn note(&mut self, commit_no: u64, newest: Option<u64>, wall_ms: u64) {
        self.level.commit_no = commit_no;
        self.unflushed += 1;
        self.level.wall_ms = self.level.wall_ms.max(wall_ms);
        self.level.head = newest.map_or(self.level.head, |newest| newest.max(self.level.head));
        if let Err(cause) = self.write()
            && !std::mem::replace(&mut self.has_failed, true)
        {
            tracing::warn!(%cause, "how far the request store got cannot be noted beside it");
        }
    }

    /// Notes that a power cut would take back.
    pub(super) const fn unflushed(&self) -> u64 {
        self.unflushed
    }

    /// Makes what is noted durable. A disk that does not take it leaves the note as old as it is.
    pub(super) fn flush(&mut self) {
        self.unflushed = 0;
        if let Err(cause) = self.file.sync_data() {
            tracing::debug!(%cause, "how far the request store got is not flushed");
        }
    }

    /// Notes durably that no more numbers are given in this life.
    pub(super) fn end(&mut self) {
        self.level.bound = self.level.head;
        let written = (0..SLOTS).try_for_each(|_| self.write()).and_then(|()| self.file.sync_data());
        if let Err(cause) = written {
            tracing::debug!(%cause, "the end of the request store's life is not noted");
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let bytes = render(&self.level)?;
        self.file.write_all_at(&bytes, (self.slot * SLOT_BYTES) as u64)?;
        self.slot = (self.slot + 1) % SLOTS;
        Ok(())
    }
}

/// One line with a check at its end, filled up with blanks.
fn render(level: &Level) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_string(level)?;
    let check = check(&text);
    text.push(' ');
    text.push_str(&check);
    let mut bytes = text.into_bytes();
    if bytes.len() >= SLOT_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    bytes.resize(SLOT_BYTES - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

fn parse(slot: &[u8]) -> Option<Level> {
    let text = std::str::from_utf8(slot).ok()?.trim_end();
    let (text, found) = text.rsplit_once(' ')?;
    let level: Level = serde_json::from_str(text).ok()?;
    (found == check(text) && level.v == 1).then_some(level)
}

fn check(text: &str) -> String {
    let mut digits = crate::Hash(Sha256::digest(text).into()).to_string();
    digits.truncate(CHECK_DIGITS);
    digits
}

#[cfg(test)]
mod tests;
