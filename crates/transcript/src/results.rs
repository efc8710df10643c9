//! Looking back for what a note says: how a turn ended, or when the branch was rewound.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::branch::{Branch, Transcript};
use crate::record::{Payload, Record};
use crate::turn_result::TurnResult;

/// How far back is looked: ten pages of 500 records or 4 MiB (turn status seed).
const REACH: Reach = Reach { pages: 10, page_records: 500, page_bytes: 4 * 1024 * 1024 };
/// How much of the end is seen whole. A poll is usually about one of the last turns.
const SCAN_WINDOW_BYTES: u64 = 256 * 1024;
/// Bytes of a turn result's payload. Four texts at their bounds have less, however they are escaped.
const PAYLOAD_BYTES_MAX: u64 = 1024 * 1024;

/// How far back a branch is looked through.
#[derive(Debug, Clone, Copy)]
struct Reach {
    /// How many pages.
    pages: usize,
    /// Records of one page.
    page_records: usize,
    /// Bytes of one page; a single record may have more.
    page_bytes: u64,
}

impl Reach {
    /// Bytes of the file behind which no further record is asked for, what lies beside the branch included: every page
    /// twice. The search for one record's parent is not broken off.
    fn file_bytes(self) -> u64 {
        (self.pages as u64).saturating_mul(self.page_bytes).saturating_mul(2)
    }
}

/// Why a transcript could not be searched.
#[derive(Debug, Error)]
#[error("cannot read {}: {cause}", path.display())]
pub struct ScanError {
    /// The transcript.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub cause: io::Error,
}

/// The newest result of a prompt's turn on the active branch, or the newest of any prompt when `prompt_id` is none. None
/// also when it lies further back than ten pages of 500 records or 4 MiB each (turn status seed).
pub fn find_turn_result(path: &Path, prompt_id: Option<&str>) -> Result<Option<TurnResult>, ScanError> {
    find_result(path, prompt_id, REACH)
}

fn find_result(path: &Path, prompt_id: Option<&str>, reach: Reach) -> Result<Option<TurnResult>, ScanError> {
    find(path, reach, |transcript, record| {
        let Payload::TurnResult { prompt_id: Some(of) } = &record.payload else { return Ok(None) };
        if prompt_id.is_some_and(|wanted| wanted != of) {
            return Ok(None);
        }
        transcript.turn_result(record)
    })
}

/// When the active branch was last rewound, in epoch milliseconds; none when it was not, as far back as
/// [`find_turn_result`] looks. A rewind whose time nobody knows is taken for the latest possible one.
pub fn last_rewind_at_ms(path: &Path) -> Result<Option<u64>, ScanError> {
    find(path, REACH, |_, record| {
        let at_ms = record.at_ms.map_or(u64::MAX, |at_ms| u64::try_from(at_ms).unwrap_or(0));
        Ok(record.is_note("rewind").then_some(at_ms))
    })
}

impl Transcript {
    /// How a turn ended, if the record is a note that says so in full.
    pub fn turn_result(&self, record: &Record) -> io::Result<Option<TurnResult>> {
        let (Payload::TurnResult { .. }, Some(span)) = (&record.payload, &record.payload_span) else { return Ok(None) };
        Ok(self.value(span, PAYLOAD_BYTES_MAX)?.as_ref().and_then(TurnResult::from_payload))
    }
}

fn find<T>(
    path: &Path,
    reach: Reach,
    wanted: impl Fn(&Transcript, &Record) -> io::Result<Option<T>>,
) -> Result<Option<T>, ScanError> {
    let search = || -> io::Result<Option<T>> {
        let Some(transcript) = Transcript::open(path)? else { return Ok(None) };
        let mut pages = Pages::new(transcript.branch(SCAN_WINDOW_BYTES)?, reach);
        while let Some(record) = pages.next()? {
            if let Some(found) = wanted(&transcript, &record)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    };
    search().map_err(|cause| ScanError { path: path.to_owned(), cause })
}

/// The records of the last pages of a branch, newest first.
struct Pages<'a> {
    branch: Branch<'a>,
    reach: Reach,
    pages_left: usize,
    records: usize,
    bytes: u64,
}

impl<'a> Pages<'a> {
    fn new(branch: Branch<'a>, reach: Reach) -> Self {
        Self { branch, reach, pages_left: reach.pages, records: 0, bytes: 0 }
    }

    fn next(&mut self) -> io::Result<Option<Record>> {
        if self.branch.bytes_read() > self.reach.file_bytes() {
            return Ok(None);
        }
        let Some(record) = self.branch.next_record()? else { return Ok(None) };
        let bytes = record.span.end - record.span.start;
        if self.records == self.reach.page_records || self.records > 0 && self.bytes + bytes > self.reach.page_bytes {
            self.pages_left -= 1;
            (self.records, self.bytes) = (0, 0);
        }
        self.records += 1;
        self.bytes += bytes;
        Ok((self.pages_left > 0).then_some(record))
    }
}

#[cfg(test)]
mod tests;
