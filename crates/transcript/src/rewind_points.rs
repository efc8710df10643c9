//! The places to which a conversation can be taken back: before each prompt on the active branch.
//!
//! A place has up to three names: the prompt's own id, the id of the file snapshot that qwen-code writes behind the prompt's record, and
//! the uuid of that record. The whole branch is walked, since only that shows how many prompts stand before a place.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use crate::branch::{Transcript, WINDOW_BYTES};
use crate::record::{Kind, Payload, Record, Snapshot};
use crate::snapshot::{PageError, Unavailable};
use crate::writer::REWIND_SUBTYPE;

/// How many places are given, the newest ones: more than anybody looks through, some hundred kilobytes.
pub const REWIND_POINTS_MAX: usize = 1_000;

/// The subtype of the note behind a prompt that says how the files were.
pub(crate) const FILE_SNAPSHOT: &str = "file_history_snapshot";
/// Bytes of such a note that are read. One that tracks very many files has no id here, and its place has other names.
const SNAPSHOT_BYTES_MAX: u64 = 1024 * 1024;

/// A place before one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    /// The uuid of the prompt's record.
    pub record: String,
    /// The prompt's id, where it has one.
    pub prompt_id: Option<String>,
    /// The id of its file snapshot, where the agent wrote one.
    pub snapshot_id: Option<String>,
    /// When it was asked, in epoch milliseconds.
    pub at_ms: Option<i64>,
    /// How many prompts stand before it on the branch.
    pub turn_index: u64,
    /// The record before it; none when it is the first of all.
    pub before: Option<String>,
    /// The last record of its turn: the one before the next prompt, or the last of the branch.
    pub last: String,
    /// How many entries of the model's history stand at it and behind it.
    pub entries: u64,
}

impl RewindPoint {
    /// Whether this is one of its names.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let names = [Some(&self.record), self.prompt_id.as_ref(), self.snapshot_id.as_ref()];
        names.into_iter().flatten().any(|own| own == name)
    }
}

/// What was found of the places of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindPoints {
    /// The last record of the branch; none when there is none.
    pub leaf: Option<String>,
    /// The places, oldest first.
    pub points: Vec<RewindPoint>,
    /// Whether the model's history was replaced by a snapshot anywhere on the branch: what was asked before that is in no history any
    /// more, and numbers of turns do not say which one is meant.
    pub is_compressed: bool,
}

/// The newest [`REWIND_POINTS_MAX`] places on the active branch of the transcript at `path`, or those of the name `wanted`. Blocks, for as
/// long as the whole branch takes to read; what it holds does not grow with the branch.
///
/// # Errors
/// When the transcript cannot be read, holds records of two sessions, or changed meanwhile.
pub fn rewind_points(path: &Path, wanted: Option<&str>) -> Result<RewindPoints, PageError> {
    let failed = |cause| PageError::of(path, cause);
    let Some(transcript) = Transcript::open(path).map_err(failed)? else { return Ok(RewindPoints::default()) };
    let mut branch = transcript.branch(WINDOW_BYTES).map_err(failed)?;
    let mut walk = Walk { leaf: branch.wanted().map(str::to_owned), ..Walk::default() };
    while let Some(record) = branch.next_record().map_err(failed)? {
        walk.take(&transcript, record, wanted).map_err(failed)?;
    }
    if branch.is_mixed() {
        return Err(PageError::unavailable(path, Unavailable::TwoSessions));
    }
    if let Some(why) = transcript.fate(path).map_err(failed)? {
        return Err(PageError::unavailable(path, why));
    }
    Ok(walk.finish())
}

/// A walk from the end of the branch to its beginning.
#[derive(Default)]
struct Walk {
    leaf: Option<String>,
    /// Newest first, each with how many prompts had been met when it was.
    found: VecDeque<(u64, RewindPoint)>,
    met: u64,
    entries: u64,
    /// The id of the file snapshot that was met last, and is the next prompt's.
    snapshot_id: Option<String>,
    /// The record that was met last but for the prompt now looked at: the last one of the turn, while nothing newer of it was met.
    last: Option<String>,
    is_compressed: bool,
}

impl Walk {
    fn take(&mut self, transcript: &Transcript, record: Record, wanted: Option<&str>) -> io::Result<()> {
        self.entries += u64::from(record.is_material());
        let last = self.last.get_or_insert_with(|| record.uuid.clone()).clone();
        if record.is_note(FILE_SNAPSHOT) {
            self.snapshot_id = snapshot_id(transcript, &record)?;
        } else if record.is_note(REWIND_SUBTYPE) {
            // What stands behind it repeats the snapshots of prompts that were asked before.
            self.snapshot_id = None;
        }
        self.is_compressed |=
            matches!(record.payload, Payload::Compression(Snapshot::Entries(_) | Snapshot::Unreadable));
        if !is_prompt(&record) {
            return Ok(());
        }
        let point = RewindPoint {
            record: record.uuid,
            prompt_id: record.prompt_id,
            snapshot_id: self.snapshot_id.take(),
            at_ms: record.at_ms,
            turn_index: 0,
            before: record.parent,
            last,
            entries: self.entries,
        };
        self.last = None;
        if wanted.is_none_or(|name| point.is_named(name)) && self.found.len() < REWIND_POINTS_MAX {
            self.found.push_back((self.met, point));
        }
        self.met += 1;
        Ok(())
    }

    fn finish(self) -> RewindPoints {
        let numbered = |(behind, point)| RewindPoint { turn_index: self.met - 1 - behind, ..point };
        let points = self.found.into_iter().rev().map(numbered).collect();
        RewindPoints { leaf: self.leaf, points, is_compressed: self.is_compressed }
    }
}

/// Whether a turn begins here. What was said into a running turn belongs to that one.
fn is_prompt(record: &Record) -> bool {
    record.kind == Kind::User && record.subtype.is_none() && record.message.is_some() && !record.is_from_session
}

/// The id of the newest snapshot that a note holds.
fn snapshot_id(transcript: &Transcript, record: &Record) -> io::Result<Option<String>> {
    let Some(span) = &record.payload_span else { return Ok(None) };
    let payload = transcript.value(span, SNAPSHOT_BYTES_MAX)?.unwrap_or_default();
    let id = payload["snapshots"].as_array().and_then(|snapshots| snapshots.last()?["promptId"].as_str());
    Ok(id.map(str::to_owned))
}
