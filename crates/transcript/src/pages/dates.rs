//! When a session was begun, and when it was written to last.

use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::branch::Transcript;
use crate::snapshot::PageError;

/// Epoch milliseconds of the first and of the last record; where one does not say, of the last change of the file. None when there is
/// no transcript.
///
/// # Errors
/// When the system refuses, and when the file was cut meanwhile.
pub fn dates(path: &Path) -> Result<Option<(u64, u64)>, PageError> {
    read(path).map_err(|cause| PageError::of(path, cause))
}

fn read(path: &Path) -> io::Result<Option<(u64, u64)>> {
    let Some(transcript) = Transcript::open(path)? else { return Ok(None) };
    let changed = transcript.modified().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed_ms = u64::try_from(changed.as_millis()).unwrap_or(u64::MAX);
    let said = |at_ms: Option<i64>| at_ms.and_then(|at_ms| u64::try_from(at_ms).ok()).unwrap_or(changed_ms);
    let first = transcript.first_record()?.and_then(|record| record.at_ms);
    let last = transcript.branch(0)?.next_record()?.and_then(|record| record.at_ms);
    Ok(Some((said(first), said(last))))
}
