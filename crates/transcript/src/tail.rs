//! What the end of a transcript says.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

use crate::branch::Transcript;

/// How much of the end is looked at for the dispatch marker (ledger seed).
pub const TAIL_BYTES_MAX: u64 = 64 * 1024;

/// The dispatch marker: the `uuid` of the last non-empty line within the last [`TAIL_BYTES_MAX`], if that line is one
/// whole JSON object that has one; else none, also when the file cannot be read (evidence rules, section 2).
#[must_use]
pub fn tail_uuid(path: &Path) -> Option<String> {
    let tail = read_tail(path, TAIL_BYTES_MAX).ok()?;
    let last = tail.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty())?;
    let value: Value = serde_json::from_slice(last).ok()?;
    value.get("uuid")?.as_str().filter(|uuid| !uuid.is_empty()).map(str::to_owned)
}

/// The uuid of the last record that a next one may name as its parent.
pub(crate) fn leaf_uuid(path: &Path) -> io::Result<Option<String>> {
    let Some(transcript) = Transcript::open(path)? else { return Ok(None) };
    Ok(transcript.branch(0)?.wanted().map(str::to_owned))
}

fn read_tail(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    Ok(tail)
}
