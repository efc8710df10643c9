//! The one place that puts bytes behind a ledger.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::append::AppendError;
use crate::lock;

/// What the caller knows of the place to write to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// The only length at which the bytes are wanted.
    pub(crate) expected_bytes: Option<u64>,
    /// A length at which the last byte is known to be an LF, or to be none at all.
    pub(crate) sealed_at_bytes: u64,
}

/// What came of an attempt to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The bytes are in the file, which is that long now. Writers that know no lock may have made it longer.
    Written { len_bytes: u64 },
    /// The file has no name any more: what is written to it is lost with the last one who holds it open.
    Removed,
}

/// Appends to `file` in one write call. `sealed` begins with the LF that closes a torn tail; it is left out when the
/// file is empty or ends with one already.
///
/// The lock makes looking and writing one step against everybody who takes it; against others (and where there are no
/// locks) the write itself is still whole, because the descriptor appends.
pub(crate) fn append(file: &File, sealed: &[u8], place: Place) -> Result<Outcome, AppendError> {
    let _held = lock::hold(file);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(AppendError::NotAFile);
    }
    if metadata.nlink() == 0 {
        return Ok(Outcome::Removed);
    }
    let found_bytes = metadata.len();
    if let Some(expected_bytes) = place.expected_bytes
        && expected_bytes != found_bytes
    {
        return Err(AppendError::Changed { expected_bytes, found_bytes });
    }
    let is_torn = found_bytes != place.sealed_at_bytes && is_torn(file, found_bytes)?;
    let bytes = if is_torn { sealed } else { &sealed[1..] };
    write_once(file, bytes)?;
    Ok(Outcome::Written { len_bytes: found_bytes + bytes.len() as u64 })
}

/// Whether the file ends inside a line.
fn is_torn(file: &File, len_bytes: u64) -> io::Result<bool> {
    let Some(last) = len_bytes.checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}

/// A loop only over calls that were interrupted before they wrote anything.
fn write_once(mut file: &File, bytes: &[u8]) -> Result<(), AppendError> {
    let written_bytes = loop {
        match file.write(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            answer => break answer?,
        }
    };
    if written_bytes < bytes.len() {
        return Err(AppendError::Short { written_bytes, line_bytes: bytes.len() });
    }
    Ok(())
}
