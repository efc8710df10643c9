//! What a person is shown of a transcript: the updates that an agent would have sent, had one been watching.
//!
//! The branch is read from its end until the updates fill their bound, so that a long session costs what is shown of it.
//! An update is the text that is sent: nobody looks into it, and a value built in memory takes ten times as much of it.

pub(crate) mod shown;
mod source;
pub(crate) mod timing;
mod update;

use std::collections::HashSet;
use std::io;
use std::path::Path;

pub(crate) use update::{gap, left_out};

use crate::branch::{Branch, Transcript, WINDOW_BYTES};
use crate::record::{Kind, Record};
use crate::snapshot::PageError;

/// How far back a replay is looked for, in bytes from the end of the file. A replay has a few megabytes; a session that
/// shows less than that of so much is shown from here on.
const REACH_BYTES: u64 = 32 * 1024 * 1024;

/// One update of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The update, as it stands in a `session/update` notification: the text of a JSON object.
    pub update: String,
    /// When the record behind it was written, in epoch milliseconds; none when nobody knows.
    pub at_ms: Option<u64>,
}

/// The end of a conversation, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replay {
    /// Oldest first.
    pub frames: Vec<Frame>,
    /// Whether there is more before the first frame.
    pub is_truncated: bool,
    /// The uuid of the oldest record that was looked at.
    pub first_record_id: Option<String>,
}

/// How much of a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all updates together, as JSON.
    pub bytes_max: usize,
    /// Records of the branch, shown or not.
    pub records_max: usize,
}

/// Shows the end of the active branch in at most `bytes_max` bytes of updates (wire, sections 7.3 and 16.7). Empty when
/// there is no transcript.
pub fn replay(path: &Path, bytes_max: usize) -> Result<Replay, PageError> {
    replay_within(path, Bounds { bytes_max, records_max: usize::MAX })
}

/// The same, bounded by records too.
pub fn replay_within(path: &Path, bounds: Bounds) -> Result<Replay, PageError> {
    let read = || -> io::Result<Replay> {
        let Some(transcript) = Transcript::open(path)? else { return Ok(Replay::default()) };
        let branch = transcript.branch_within(WINDOW_BYTES, REACH_BYTES)?;
        Screening::new(&transcript, bounds).run(branch)
    };
    read().map_err(|cause| PageError::of(path, cause))
}

/// A replay while it is put together, from its end.
struct Screening<'a> {
    transcript: &'a Transcript,
    bounds: Bounds,
    /// Newest first.
    frames: Vec<Frame>,
    bytes: usize,
    records: usize,
    first: Option<Record>,
    /// The calls whose answers have been met.
    answered: HashSet<String>,
    /// What is said at the very end of the calls that were never answered; newest first.
    unanswered: Vec<Frame>,
}

impl<'a> Screening<'a> {
    fn new(transcript: &'a Transcript, bounds: Bounds) -> Self {
        Self {
            transcript,
            bounds,
            frames: Vec::new(),
            bytes: 0,
            records: 0,
            first: None,
            answered: HashSet::new(),
            unanswered: Vec::new(),
        }
    }

    fn run(mut self, mut branch: Branch<'_>) -> io::Result<Replay> {
        while let Some(record) = branch.next_record()? {
            if self.records == self.bounds.records_max || !self.take(&record)? {
                return Ok(self.finish(true));
            }
            self.records += 1;
            self.first = Some(record);
        }
        let Some(first) = self.first.as_ref().filter(|_| branch.is_cut()) else {
            return Ok(self.finish(branch.is_out_of_reach()));
        };
        let gap = gap(first);
        let has_room = self.has_room(gap.update.len());
        self.frames.extend(has_room.then_some(gap));
        Ok(self.finish(!has_room))
    }

    /// Takes the next record towards the beginning; whether it found room.
    fn take(&mut self, record: &Record) -> io::Result<bool> {
        let unanswered = self.unanswered(record);
        let room_bytes = (self.bounds.bytes_max - self.bytes).checked_sub(bytes(&unanswered));
        let Some(room_bytes) = room_bytes else { return Ok(false) };
        let Some(shown) = shown::frames(self.transcript, record, room_bytes)? else { return Ok(false) };
        self.bytes += bytes(&shown) + bytes(&unanswered);
        self.frames.extend(shown.into_iter().rev());
        self.unanswered.extend(unanswered);
        self.answered.extend(record.message.iter().flat_map(|message| message.responses.iter().cloned()));
        Ok(true)
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= self.bounds.bytes_max
    }

    /// What is said of the calls of this record that nobody answered, last one first.
    fn unanswered(&self, record: &Record) -> Vec<Frame> {
        let calls = record.message.iter().filter(|_| record.kind == Kind::Assistant).flat_map(|said| &said.calls);
        let ids: Vec<_> = calls.filter_map(|call| call.id.as_ref()).filter(|id| !self.answered.contains(*id)).collect();
        ids.into_iter().rev().map(|id| update::unanswered(record, id)).collect()
    }

    fn finish(mut self, is_truncated: bool) -> Replay {
        self.frames.reverse();
        self.frames.extend(self.unanswered.into_iter().rev());
        Replay { frames: self.frames, is_truncated, first_record_id: self.first.map(|first| first.uuid) }
    }
}

/// How long updates are together.
fn bytes(frames: &[Frame]) -> usize {
    frames.iter().map(|frame| frame.update.len()).sum()
}
