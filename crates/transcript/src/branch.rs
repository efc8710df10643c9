//! The active branch of a transcript, newest record first.
//!
//! The file is read from its end. Its last bytes, the *window*, are read at once and seen whole: there a parent may stand
//! behind its child, a loop ends at its first repeat, and the fragments of a record may lie apart. Beyond the window one
//! record is held at a time: a parent is looked for before its child, and fragments join when they are neighbours. So a
//! branch costs what is read of it, and files no longer than the window are read exactly.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use crate::json;
use crate::lines::{Backward, Forward, Line};
use crate::record::Record;
use crate::regular::open_regular;
use crate::salvage;

/// How much of the end is read at once and seen whole. Small enough to be read in a few hundredths of a second, large
/// enough that most transcripts are read exactly.
pub const WINDOW_BYTES: u64 = 4 * 1024 * 1024;
/// How far into a file its first record is looked for. A file that begins with more damage than this is taken to hold
/// nothing.
const HEAD_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A transcript opened for reading, as long as it was when it was opened.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    length: u64,
}

impl Transcript {
    /// Opens a transcript; none when there is no such file or nothing in it.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match open_regular(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let length = file.metadata()?.len();
        Ok((length > 0).then_some(Self { file, length }))
    }

    /// The first usable record in the file, if one begins within the first few megabytes.
    pub fn first_record(&self) -> io::Result<Option<Record>> {
        let mut lines = Forward::new(&self.file, self.length);
        while let Some(span) = lines.next()?.filter(|span| span.start < HEAD_BYTES_MAX) {
            let line = Line { span, held: None };
            if let Some(first) = salvage::records(&self.file, &line)?.into_iter().next() {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// The active branch, its window read. `window_bytes` may be 0: then only what is asked for is read.
    pub fn branch(&self, window_bytes: u64) -> io::Result<Branch<'_>> {
        Branch::open(self, window_bytes)
    }

    /// The JSON value that stands at `span`; none when it has more than `bytes_max` bytes.
    pub fn value(&self, span: &Range<u64>, bytes_max: u64) -> io::Result<Option<Value>> {
        if span.end - span.start > bytes_max {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(span.end - span.start).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, span.start)?;
        Ok(json::value(&bytes))
    }
}

/// Walks the active branch from its last record to its first.
pub struct Branch<'a> {
    records: Records<'a>,
    /// The records of the window that have not been given out, fragments joined.
    window: HashMap<String, Record>,
    /// Those that have.
    given: HashSet<String>,
    /// The record to be given out next.
    wanted: Option<String>,
    is_beyond_window: bool,
    is_cut: bool,
    /// Where the record begins that was given out last.
    given_from: u64,
    /// The newest prompt that was passed by on the search for a parent.
    passed_prompt: Option<Record>,
}

impl<'a> Branch<'a> {
    fn open(transcript: &'a Transcript, window_bytes: u64) -> io::Result<Self> {
        let mut branch = Self {
            records: Records::new(transcript),
            window: HashMap::new(),
            given: HashSet::new(),
            wanted: None,
            is_beyond_window: false,
            is_cut: false,
            given_from: transcript.length,
            passed_prompt: None,
        };
        let window_start = transcript.length.saturating_sub(window_bytes);
        let mut last = None;
        while branch.wanted.is_none() || branch.records.read_from() > window_start {
            let Some(record) = branch.records.next_on_branch()? else { break };
            last = Some(record.uuid.clone());
            branch.keep(record);
        }
        // The window may end inside of a record that is in pieces.
        while let Some(piece) = branch.records.next_if(|record| Some(&record.uuid) == last.as_ref())? {
            branch.keep(piece);
        }
        Ok(branch)
    }

    /// The uuid of the record that is given out next, as far as it is known without reading on. At the beginning: the
    /// last record of the branch.
    #[must_use]
    pub fn wanted(&self) -> Option<&str> {
        self.wanted.as_deref()
    }

    /// Whether the walk has left the window.
    #[must_use]
    pub fn is_beyond_window(&self) -> bool {
        self.is_beyond_window
    }

    /// Whether the walk ended because a parent was missing.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The newest prompt in the file that stands before the record at which the branch was cut; none when it was not. What is
    /// left of a turn that lost its beginning may be this one's.
    #[must_use]
    pub fn prompt_before_cut(&self) -> Option<&Record> {
        let in_window = self.window.values().filter(|record| record.is_real_prompt());
        let in_window = in_window.filter(|record| record.span.start < self.given_from);
        let newest = in_window.max_by_key(|record| record.span.start).or(self.passed_prompt.as_ref());
        newest.filter(|_| self.is_cut)
    }

    /// The one session that everything read so far belongs to; none when there are several, or nothing was usable.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.records.session_id.as_deref().filter(|_| !self.records.is_mixed)
    }

    /// How much of the file has been read, in bytes from its end.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.records.length - self.records.read_from()
    }

    /// The next record towards the beginning; none where the branch ends.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        let Some(wanted) = self.wanted.take() else { return Ok(None) };
        let found = match self.window.remove(&wanted) {
            Some(record) => Some(record),
            // A branch that comes back to itself ends there.
            None if self.given.contains(&wanted) => return Ok(None),
            None => self.find_beyond_window(&wanted)?,
        };
        let Some(record) = found else {
            self.is_cut = true;
            return Ok(None);
        };
        self.given_from = record.span.start;
        self.passed_prompt = None;
        if !self.is_beyond_window {
            self.given.insert(wanted);
        }
        self.wanted.clone_from(&record.parent);
        Ok(Some(record))
    }

    fn keep(&mut self, record: Record) {
        if self.wanted.is_none() {
            self.wanted = Some(record.uuid.clone());
        }
        match self.window.get_mut(&record.uuid) {
            Some(later) => later.join_earlier(record),
            None => drop(self.window.insert(record.uuid.clone(), record)),
        }
    }

    fn find_beyond_window(&mut self, wanted: &str) -> io::Result<Option<Record>> {
        self.is_beyond_window = true;
        while let Some(mut record) = self.records.next_on_branch()? {
            if record.uuid != wanted {
                if self.passed_prompt.is_none() && record.is_real_prompt() {
                    self.passed_prompt = Some(record);
                }
                continue;
            }
            while let Some(piece) = self.records.next_if(|earlier| earlier.uuid == wanted)? {
                record.join_earlier(piece);
            }
            return Ok(Some(record));
        }
        Ok(None)
    }
}

/// The usable records of a file, last one first.
struct Records<'a> {
    file: &'a File,
    lines: Backward<'a>,
    length: u64,
    /// What is left of the line that was read last, in the order of the file.
    line: Vec<Record>,
    session_id: Option<String>,
    is_mixed: bool,
}

impl<'a> Records<'a> {
    fn new(transcript: &'a Transcript) -> Self {
        Self {
            file: &transcript.file,
            lines: Backward::new(&transcript.file, transcript.length),
            length: transcript.length,
            line: Vec::new(),
            session_id: None,
            is_mixed: false,
        }
    }

    fn read_from(&self) -> u64 {
        self.line.last().map_or_else(|| self.lines.read_from(), |next| next.span.end)
    }

    /// The next record that may be on a branch.
    fn next_on_branch(&mut self) -> io::Result<Option<Record>> {
        while self.fill()? {
            if let Some(record) = self.line.pop().filter(Record::is_on_branch) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The same, if it is a certain one; else it stays.
    fn next_if(&mut self, is_wanted: impl Fn(&Record) -> bool) -> io::Result<Option<Record>> {
        while self.fill()? {
            match self.line.last() {
                Some(next) if !next.is_on_branch() => drop(self.line.pop()),
                Some(next) if is_wanted(next) => return Ok(self.line.pop()),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Reads on until there is a record; whether there is.
    fn fill(&mut self) -> io::Result<bool> {
        while self.line.is_empty() {
            let Some(line) = self.lines.next()? else { return Ok(false) };
            self.line = salvage::records(self.file, &line)?;
            for record in &self.line {
                let session_id = self.session_id.get_or_insert_with(|| record.session_id.clone());
                self.is_mixed |= *session_id != record.session_id;
            }
        }
        Ok(true)
    }
}
