//! Reading a ledger: whole, or its tail.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::json::is_white_space;
use crate::record::Record;
use crate::wire;
use crate::wish::Wish;

/// How much is asked of the file at once, in bytes: large enough that the calls do not count beside the parsing.
const READ_BYTES: usize = 256 * 1024;

/// What a ledger held at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The records, in file order.
    pub records: Vec<Record>,
    /// The wishes, in file order, each with the number of records before it. See [`Reading::open_wishes`].
    pub wishes: Vec<(usize, Wish)>,
    /// How many lines were neither blank nor a record nor a wish. The cut first line of a tail is not among them.
    pub dropped_lines: usize,
    /// How long the file was when it was read, in bytes; for a tail too, the whole file. Any append changes it.
    pub len_bytes: u64,
}

/// Why a ledger could not be read. A missing file is none of these: it reads as empty.
#[derive(Debug)]
pub enum ReadError {
    /// There is a folder in the ledger's place.
    IsADirectory,
    /// There is something in the ledger's place that is neither a file nor a folder.
    NotAFile,
    /// Anything else the system reports.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IsADirectory => f.write_str("a folder is in the ledger's place"),
            Self::NotAFile => f.write_str("what is in the ledger's place is not a regular file"),
            Self::Io(error) => write!(f, "cannot read the ledger: {error}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::IsADirectory | Self::NotAFile => None,
            Self::Io(error) => Some(error),
        }
    }
}

/// All of the file.
pub(crate) fn whole(path: &Path) -> Result<Reading, ReadError> {
    tail(path, u64::MAX)
}

/// The last `window_bytes` of the file. When the file is longer, the first line of the window is taken as cut.
pub(crate) fn tail(path: &Path, window_bytes: u64) -> Result<Reading, ReadError> {
    let Some((mut file, len_bytes)) = open(path)? else {
        return Ok(Reading::default());
    };
    let skipped_bytes = len_bytes.saturating_sub(window_bytes);
    file.seek(SeekFrom::Start(skipped_bytes)).map_err(ReadError::Io)?;
    // No further than the length that will be reported, however fast somebody appends.
    let window = BufReader::with_capacity(READ_BYTES, file.take(len_bytes - skipped_bytes));
    let mut reading = collect(window, skipped_bytes > 0).map_err(ReadError::Io)?;
    reading.len_bytes = len_bytes;
    Ok(reading)
}

/// How long the file is, in bytes; 0 when it is missing.
pub(crate) fn len_bytes(path: &Path) -> Result<u64, ReadError> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        answer => answer.map_err(ReadError::Io)?,
    };
    if metadata.is_dir() {
        return Err(ReadError::IsADirectory);
    }
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    Ok(metadata.len())
}

/// The file and its length in bytes, or `None` when it is missing.
fn open(path: &Path) -> Result<Option<(File, u64)>, ReadError> {
    // Looked at before it is opened: opening a pipe would wait for its other end.
    len_bytes(path)?;
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        answer => answer.map_err(ReadError::Io)?,
    };
    let len_bytes = file.metadata().map_err(ReadError::Io)?.len();
    Ok(Some((file, len_bytes)))
}

fn collect(mut window: impl BufRead, first_line_is_cut: bool) -> io::Result<Reading> {
    let mut reading = Reading::default();
    let mut line = Vec::new();
    if first_line_is_cut {
        window.skip_until(b'\n')?;
    }
    while window.read_until(b'\n', &mut line)? > 0 {
        match wire::parse_line(&line) {
            Some(wire::Read::Record(record)) => reading.records.push(record),
            Some(wire::Read::Wish(wish)) => reading.wishes.push((reading.records.len(), wish)),
            None if line.iter().all(|byte| is_white_space(*byte)) => {}
            None => reading.dropped_lines += 1,
        }
        line.clear();
    }
    Ok(reading)
}
