//! What a person is shown of a transcript: the updates that an agent would have sent, had one been watching.
//!
//! The branch is read from its end until the updates fill their bound, so that a long session costs what is shown of it.

mod json;

use std::collections::HashSet;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::branch::{Branch, Transcript, WINDOW_BYTES};
use crate::record::{Kind, Record};
use crate::results::ScanError;

/// Bytes of one record that are looked at. What is in a larger one nobody reads in a replay, and its place is kept.
const RECORD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// One update of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The update, as it stands in a `session/update` notification.
    pub update: Value,
    /// When the record behind it was written, in epoch milliseconds; none when nobody knows.
    pub at_ms: Option<u64>,
}

/// The end of a conversation, as it is shown.
#[derive(Debug, Clone, PartialEq, Default)]
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
pub fn replay(path: &Path, bytes_max: usize) -> Result<Replay, ScanError> {
    replay_within(path, Bounds { bytes_max, records_max: usize::MAX })
}

/// The same, bounded by records too.
pub fn replay_within(path: &Path, bounds: Bounds) -> Result<Replay, ScanError> {
    let read = || -> io::Result<Replay> {
        let Some(transcript) = Transcript::open(path)? else { return Ok(Replay::default()) };
        let branch = transcript.branch(WINDOW_BYTES)?;
        Screening::new(&transcript, bounds).run(branch)
    };
    read().map_err(|cause| ScanError { path: path.to_owned(), cause })
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
        let Some(first) = self.first.as_ref().filter(|_| branch.is_cut()) else { return Ok(self.finish(false)) };
        let gap = json::gap(first);
        let has_room = self.has_room(gap.bytes());
        self.frames.extend(has_room.then_some(gap));
        Ok(self.finish(!has_room))
    }

    /// Takes the next record towards the beginning; whether it found room.
    fn take(&mut self, record: &Record) -> io::Result<bool> {
        let shown = self.show(record)?;
        let unanswered = self.unanswered(record);
        let bytes: usize = shown.iter().chain(&unanswered).map(Frame::bytes).sum();
        if !self.has_room(bytes) {
            return Ok(false);
        }
        self.bytes += bytes;
        self.frames.extend(shown.into_iter().rev());
        self.unanswered.extend(unanswered);
        self.answered.extend(record.message.iter().flat_map(|message| message.responses.iter().cloned()));
        Ok(true)
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= self.bounds.bytes_max
    }

    fn show(&self, record: &Record) -> io::Result<Vec<Frame>> {
        if !json::is_shown(record) {
            return Ok(Vec::new());
        }
        let Some(whole) = self.transcript.value(&record.span, RECORD_BYTES_MAX)? else {
            return Ok(vec![json::left_out(record)]);
        };
        Ok(json::frames(record, &whole, &self.parts(record, &whole)?))
    }

    /// The parts of a record's message, those of its later fragments behind those of the first.
    fn parts(&self, record: &Record, whole: &Value) -> io::Result<Vec<Value>> {
        let in_message = |message: &Value| message.get("parts").and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(message) = &record.message else { return Ok(Vec::new()) };
        let [_] = message.spans[..] else {
            let mut parts = Vec::new();
            for span in &message.spans {
                parts.extend(self.transcript.value(span, RECORD_BYTES_MAX)?.iter().flat_map(in_message));
            }
            return Ok(parts);
        };
        Ok(whole.get("message").map(in_message).unwrap_or_default())
    }

    /// What is said of the calls of this record that nobody answered, last one first.
    fn unanswered(&self, record: &Record) -> Vec<Frame> {
        let calls = record.message.iter().filter(|_| record.kind == Kind::Assistant).flat_map(|said| &said.calls);
        let ids: Vec<_> = calls.filter_map(|call| call.id.as_ref()).filter(|id| !self.answered.contains(*id)).collect();
        ids.into_iter().rev().map(|id| json::unanswered(record, id)).collect()
    }

    fn finish(mut self, is_truncated: bool) -> Replay {
        self.frames.reverse();
        self.frames.extend(self.unanswered.into_iter().rev());
        Replay { frames: self.frames, is_truncated, first_record_id: self.first.map(|first| first.uuid) }
    }
}

impl Frame {
    /// How long the update is as JSON.
    fn bytes(&self) -> usize {
        let mut count = Count(0);
        // Counting cannot fail, and a value always has a text.
        let _ = serde_json::to_writer(&mut count, &self.update);
        count.0
    }
}

/// Counts what is written to it.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
