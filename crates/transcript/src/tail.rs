//! What the end of a transcript says.

use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use crate::branch::Transcript;
use crate::json::{Malformed, Read, Reader, SliceBytes};
use crate::record::NAME_BYTES_MAX;
use crate::regular::open_regular;

/// How much of the end is looked at for the dispatch marker (ledger seed).
pub const TAIL_BYTES_MAX: u64 = 64 * 1024;

/// The dispatch marker: the `uuid` of the last non-empty line within the last [`TAIL_BYTES_MAX`], if that line is one
/// whole JSON object that has one; else none, also when the file cannot be read (evidence rules, section 2).
///
/// Lines end at LF alone here, and nothing is salvaged: a marker that is missing costs a prompt some evidence, a wrong
/// one costs the truth.
#[must_use]
pub fn tail_uuid(path: &Path) -> Option<String> {
    let tail = Tail::read(path).ok()?;
    uuid(tail.last_line()?).ok().flatten().filter(|uuid| !uuid.is_empty())
}

/// The uuid of the last record that a next one may name as its parent. A device takes records and keeps none, so it has no
/// last one; whether it takes them shows when one is written.
pub(crate) fn leaf_uuid(path: &Path) -> io::Result<Option<String>> {
    if path.metadata().is_ok_and(|metadata| metadata.file_type().is_char_device()) {
        return Ok(None);
    }
    let Some(transcript) = Transcript::open(path)? else { return Ok(None) };
    Ok(transcript.branch(0)?.wanted().map(str::to_owned))
}

/// The last bytes of a file.
struct Tail {
    bytes: Vec<u8>,
    /// Whether the first line of the bytes lacks its beginning.
    is_cut: bool,
}

impl Tail {
    fn read(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let length = file.metadata()?.len();
        let start = length.saturating_sub(TAIL_BYTES_MAX);
        let mut bytes = vec![0; usize::try_from(length - start).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, start)?;
        let mut before = *b"\n";
        if let Some(place) = start.checked_sub(1) {
            file.read_exact_at(&mut before, place)?;
        }
        Ok(Self { bytes, is_cut: before != *b"\n" })
    }

    fn last_line(&self) -> Option<&[u8]> {
        let end = self.bytes.iter().rposition(|byte| *byte != b'\n')? + 1;
        let start = self.bytes[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |lf| lf + 1);
        (start > 0 || !self.is_cut).then(|| &self.bytes[start..end])
    }
}

fn uuid(line: &[u8]) -> Read<Option<String>> {
    let mut uuid = None;
    let mut reader = Reader::new(SliceBytes::new(line, 0));
    reader.start()?;
    reader.object(|key, reader| {
        match key {
            "uuid" => uuid = reader.text(NAME_BYTES_MAX)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    if reader.is_at_end() { Ok(uuid) } else { Err(Malformed) }
}
