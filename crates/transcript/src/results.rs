//! Looking back for what a note says: how a turn ended, or when the branch was rewound.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::branch::{Branch, Transcript};
use crate::record::{Payload, Record};
use crate::turn_result::TurnResult;

/// How many pages of the branch are looked through (turn status seed).
const PAGES_MAX: usize = 10;
/// Records of one page (turn status seed).
const PAGE_RECORDS_MAX: usize = 500;
/// Bytes of one page (turn status seed).
const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of the file that are read at most, what lies beside the branch included: every page twice.
const READ_BYTES_MAX: u64 = 2 * PAGES_MAX as u64 * PAGE_BYTES_MAX;
/// How much of the end is seen whole. A poll is usually about one of the last turns.
const SCAN_WINDOW_BYTES: u64 = 256 * 1024;
/// Bytes of a turn result's payload. Four texts at their bounds have less, however they are escaped.
const PAYLOAD_BYTES_MAX: u64 = 1024 * 1024;

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
    find(path, |transcript, record| {
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
    find(path, |_, record| {
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
    wanted: impl Fn(&Transcript, &Record) -> io::Result<Option<T>>,
) -> Result<Option<T>, ScanError> {
    let search = || -> io::Result<Option<T>> {
        let Some(transcript) = Transcript::open(path)? else { return Ok(None) };
        let mut pages = Pages::new(transcript.branch(SCAN_WINDOW_BYTES)?);
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
    pages_left: usize,
    records: usize,
    bytes: u64,
}

impl<'a> Pages<'a> {
    fn new(branch: Branch<'a>) -> Self {
        Self { branch, pages_left: PAGES_MAX, records: 0, bytes: 0 }
    }

    fn next(&mut self) -> io::Result<Option<Record>> {
        if self.branch.bytes_read() > READ_BYTES_MAX {
            return Ok(None);
        }
        let Some(record) = self.branch.next_record()? else { return Ok(None) };
        let bytes = record.span.end - record.span.start;
        if self.records == PAGE_RECORDS_MAX || self.records > 0 && self.bytes + bytes > PAGE_BYTES_MAX {
            self.pages_left -= 1;
            (self.records, self.bytes) = (0, 0);
        }
        self.records += 1;
        self.bytes += bytes;
        Ok((self.pages_left > 0).then_some(record))
    }
}
