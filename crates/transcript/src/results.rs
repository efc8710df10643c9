//! Looking back for what a note says: how a turn ended, or when the branch was rewound.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::branch::{Branch, Transcript};
use crate::record::{Payload, Record};
use crate::snapshot::{PageError, Unavailable};
use crate::turn_result::TurnResult;
use crate::writer::REWIND_SUBTYPE;

/// How far back is looked: ten pages of 500 records or 4 MiB (turn status seed).
pub(crate) const REACH: Reach = Reach { pages: 10, page_records: 500, page_bytes: 4 * 1024 * 1024 };
/// How much of the end is seen whole. A poll is usually about one of the last turns.
pub(crate) const SCAN_WINDOW_BYTES: u64 = 256 * 1024;
/// Bytes of a turn result's payload. Four texts at their bounds have less, however they are escaped.
pub(crate) const PAYLOAD_BYTES_MAX: u64 = 1024 * 1024;

/// How far back a branch is looked through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// How many pages.
    pages: usize,
    /// Records of one page.
    page_records: usize,
    /// Bytes of one page; a single record may have more.
    page_bytes: u64,
}

impl Reach {
    /// Bytes of the file behind which nothing is looked at, what lies beside the branch included: every page twice.
    pub(crate) fn file_bytes(self) -> u64 {
        (self.pages as u64).saturating_mul(self.page_bytes).saturating_mul(2)
    }
}

/// The newest result of a prompt's turn on the active branch, or the newest of any prompt when `prompt_id` is none. None
/// also when there is no file, and when the result lies further back than ten pages of 500 records or 4 MiB each (turn
/// status seed).
///
/// A record larger than a page is passed over, and what is found behind it counts; it is an error only when nothing is
/// found. So it is when ten pages could not be seen because too much of the file lies beside the branch, and when what was
/// read is not one session's, or not there any more.
pub fn find_turn_result(path: &Path, prompt_id: Option<&str>) -> Result<Option<TurnResult>, PageError> {
    find_result(path, prompt_id, REACH)
}

fn find_result(path: &Path, prompt_id: Option<&str>, reach: Reach) -> Result<Option<TurnResult>, PageError> {
    let transcript = Transcript::open(path).map_err(|cause| PageError::of(path, cause))?;
    let Some(transcript) = transcript else { return Ok(None) };
    Ok(find_result_in(&transcript, path, prompt_id, reach)?.map(|found| found.result))
}

/// A turn's result and where it was found.
pub(crate) struct FoundResult {
    pub(crate) result: TurnResult,
    /// Where its record stands in the file.
    pub(crate) span: Range<u64>,
    /// The record right behind it on the branch.
    pub(crate) next: Option<Record>,
}

/// The newest result of a prompt's turn in a transcript that was opened at `path`.
pub(crate) fn turn_result_in(
    transcript: &Transcript,
    path: &Path,
    prompt_id: &str,
) -> Result<Option<FoundResult>, PageError> {
    find_result_in(transcript, path, Some(prompt_id), REACH)
}

fn find_result_in(
    transcript: &Transcript,
    path: &Path,
    prompt_id: Option<&str>,
    reach: Reach,
) -> Result<Option<FoundResult>, PageError> {
    let found = find(transcript, path, reach, |record, next| {
        let Payload::TurnResult { prompt_id: Some(of) } = &record.payload else { return Ok(None) };
        if prompt_id.is_some_and(|wanted| wanted != of) {
            return Ok(None);
        }
        let result = transcript.turn_result(record)?;
        Ok(result.map(|result| FoundResult { result, span: record.span.clone(), next: next.cloned() }))
    })?;
    match found {
        Found::Nothing { largest_bytes } if largest_bytes > reach.page_bytes => {
            Err(PageError::OversizedPage { path: path.to_owned(), bytes: largest_bytes, bytes_max: reach.page_bytes })
        }
        Found::Nothing { .. } => Ok(None),
        Found::Thing(result) => Ok(Some(result)),
    }
}

/// When the active branch was last rewound, in epoch milliseconds; none when it was not, as far back as
/// [`find_turn_result`] looks. A rewind whose time nobody knows is taken for the latest possible one.
pub fn last_rewind_at_ms(path: &Path) -> Result<Option<u64>, PageError> {
    let transcript = Transcript::open(path).map_err(|cause| PageError::of(path, cause))?;
    let Some(transcript) = transcript else { return Ok(None) };
    let found = find(&transcript, path, REACH, |record, _| {
        let at_ms = record.at_ms.map_or(u64::MAX, |at_ms| u64::try_from(at_ms).unwrap_or(0));
        Ok(record.is_note(REWIND_SUBTYPE).then_some(at_ms))
    })?;
    // However large the records were that were passed over, each was seen to be no rewind.
    Ok(match found {
        Found::Thing(at_ms) => Some(at_ms),
        Found::Nothing { .. } => None,
    })
}

impl Transcript {
    /// How a turn ended, if the record is a note that says so in full.
    pub fn turn_result(&self, record: &Record) -> io::Result<Option<TurnResult>> {
        let (Payload::TurnResult { .. }, Some(span)) = (&record.payload, &record.payload_span) else { return Ok(None) };
        Ok(self.value(span, PAYLOAD_BYTES_MAX)?.as_ref().and_then(TurnResult::from_payload))
    }
}

/// What a search gave.
enum Found<T> {
    Thing(T),
    /// Nothing on any page.
    Nothing {
        /// Bytes of the largest record that was passed over.
        largest_bytes: u64,
    },
}

/// Looks for what `wanted` makes of a record and the one behind it on the branch.
fn find<T>(
    transcript: &Transcript,
    path: &Path,
    reach: Reach,
    wanted: impl Fn(&Record, Option<&Record>) -> io::Result<Option<T>>,
) -> Result<Found<T>, PageError> {
    let failed = |cause| PageError::of(path, cause);
    let branch = transcript.branch_within(SCAN_WINDOW_BYTES, reach.file_bytes()).map_err(failed)?;
    let mut pages = Pages::new(branch, reach);
    let (mut found, mut next) = (None, None);
    while found.is_none() {
        let Some(record) = pages.next().map_err(failed)? else { break };
        found = wanted(&record, next.as_ref()).map_err(failed)?;
        next = Some(record);
    }
    if pages.branch.is_mixed() {
        return Err(PageError::unavailable(path, Unavailable::TwoSessions));
    }
    if let Some(why) = transcript.fate(path).map_err(failed)? {
        return Err(PageError::unavailable(path, why));
    }
    match found {
        Some(thing) => Ok(Found::Thing(thing)),
        None if pages.branch.is_out_of_reach() => Err(PageError::OversizedSnapshot {
            path: path.to_owned(),
            bytes: transcript.len_bytes(),
            bytes_max: reach.file_bytes(),
        }),
        None => Ok(Found::Nothing { largest_bytes: pages.largest_bytes }),
    }
}

/// The records of the last pages of a branch, newest first.
pub(crate) struct Pages<'a> {
    branch: Branch<'a>,
    reach: Reach,
    pages_left: usize,
    records: usize,
    bytes: u64,
    /// Bytes of the largest record of all.
    largest_bytes: u64,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(branch: Branch<'a>, reach: Reach) -> Self {
        Self { branch, reach, pages_left: reach.pages, records: 0, bytes: 0, largest_bytes: 0 }
    }

    /// The branch, as far as it was walked.
    pub(crate) fn branch(&self) -> &Branch<'a> {
        &self.branch
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        let Some(record) = self.branch.next_record()? else { return Ok(None) };
        let bytes = record.span.end - record.span.start;
        if self.records == self.reach.page_records || self.records > 0 && self.bytes + bytes > self.reach.page_bytes {
            self.pages_left -= 1;
            (self.records, self.bytes) = (0, 0);
        }
        self.records += 1;
        self.bytes += bytes;
        if self.pages_left == 0 {
            return Ok(None);
        }
        self.largest_bytes = self.largest_bytes.max(bytes);
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests;
