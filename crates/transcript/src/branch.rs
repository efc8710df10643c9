//! The active branch of a transcript, newest record first.
//!
//! The file is read from its end. Its last bytes, the *window*, are read at once and seen whole: there a parent may stand
//! behind its child, a loop ends at its first repeat, and the fragments of a record may lie apart. Beyond the window one
//! record is held at a time: a parent is looked for before its child, and fragments join when they are neighbours. So a
//! branch costs what is read of it, and files no longer than the window are read exactly.
//!
//! A parent that is missing is looked for to the beginning of the file, since nothing less shows that it is missing. Who
//! can do without that knowledge bounds the walk by a *reach*: behind it no further line is read.

mod records;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use records::Records;
use serde_json::Value;

use crate::json::{self, Bytes, FileBytes, Reader};
use crate::lines::{Forward, Line};
use crate::record::{self, Head, Kind, Record};
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
    modified: SystemTime,
    leaves_out_disputed: bool,
}

impl Transcript {
    /// Opens a transcript; none when there is no such file or nothing in it.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match open_regular(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let metadata = file.metadata()?;
        let (length, modified) = (metadata.len(), metadata.modified()?);
        Ok((length > 0).then_some(Self { file, length, modified, leaves_out_disputed: false }))
    }

    /// The same file as the reader sees it who finds no record behind a torn fragment: disputed records are not in it.
    #[must_use]
    pub fn leaving_out_disputed(self) -> Self {
        Self { leaves_out_disputed: true, ..self }
    }

    /// How long it was when it was opened, in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.length
    }

    /// When it had been written to last when it was opened.
    pub(crate) fn modified(&self) -> SystemTime {
        self.modified
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The first usable record in the file, if one begins within the first few megabytes.
    pub fn first_record(&self) -> io::Result<Option<Record>> {
        self.first_object(Result::ok)
    }

    /// The folder in which the file was begun, as its first object says, a usable record or not; none when that does not say, or
    /// no object begins within the first few megabytes.
    pub fn begun_in(&self) -> io::Result<Option<String>> {
        Ok(self.head()?.and_then(|head| head.cwd))
    }

    /// Where the first object of the file, a usable record or not, says that it belongs: its session and its folder. None
    /// when no object begins within the first few megabytes.
    pub(crate) fn head(&self) -> io::Result<Option<Head>> {
        let of = |record: Record| Head { session_id: Some(record.session_id), cwd: record.cwd, span: record.span };
        self.first_object(|object| Some(object.map_or_else(|head| head, of)))
    }

    /// The first object that gives anything, of those that begin within the first few megabytes.
    fn first_object<T>(&self, give: impl Fn(Result<Record, Head>) -> Option<T>) -> io::Result<Option<T>> {
        let mut lines = Forward::new(&self.file, self.length);
        let mut work_left = salvage::WORK_BYTES_MAX;
        while let Some(span) = lines.next()?.filter(|span| span.start < HEAD_BYTES_MAX) {
            let line = Line { span, held: None };
            let mut objects = salvage::objects(&self.file, &line, &mut work_left)?.into_iter();
            if let Some(first) = objects.find_map(&give) {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// The active branch, its window read. `window_bytes` may be 0: then only what is asked for is read.
    pub fn branch(&self, window_bytes: u64) -> io::Result<Branch<'_>> {
        Branch::open(self, window_bytes, u64::MAX)
    }

    /// The same, but no line is begun behind the last `reach_bytes`, for which a huge line counts as one of 8 MiB. What lies
    /// there is out of reach, and neither found nor known to be missing.
    pub fn branch_within(&self, window_bytes: u64, reach_bytes: u64) -> io::Result<Branch<'_>> {
        Branch::open(self, window_bytes, reach_bytes)
    }

    /// The branch from the parent of the record at `child` on, read from `from` towards the beginning, one record at a time;
    /// no line is begun behind the last `reach_bytes` before that. The record at `child` comes with it; none when there is
    /// none that may be on a branch.
    pub(crate) fn branch_behind(
        &self,
        child: &Range<u64>,
        from: u64,
        reach_bytes: u64,
    ) -> io::Result<Option<(Branch<'_>, Record)>> {
        let mut reader = Reader::new(FileBytes::new(&self.file, child.clone()));
        let record = record::read(&mut reader).ok().and_then(Result::ok).filter(Record::is_on_branch);
        if let Some(error) = reader.bytes.take_error() {
            return Err(error);
        }
        let Some(record) = record.filter(|record| record.span == *child) else { return Ok(None) };
        let mut records = Records::new(self, from, reach_bytes);
        records.session_id = Some(record.session_id.clone());
        let branch = Branch {
            records,
            window: HashMap::new(),
            given: HashSet::from([record.uuid.clone()]),
            wanted: record.parent.clone(),
            is_beyond_window: true,
            end: None,
            given_from: child.start,
            passed_prompt: None,
        };
        Ok(Some((branch, record)))
    }

    /// Whether a user record that does not bear this prompt's id begins within these bytes, on the branch or beside it: of two programs that
    /// write at once neither hangs its records on the other's.
    pub(crate) fn is_asked_by_another(&self, within: Range<u64>, prompt_id: &str) -> io::Result<bool> {
        let mut records = Records::new(self, within.end, within.end.saturating_sub(within.start));
        while let Some(record) = records.next_on_branch()?.filter(|record| record.span.start >= within.start) {
            if record.kind == Kind::User && record.prompt_id.as_deref() != Some(prompt_id) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the file for shorter than it is; whether it is that long at all.
    pub(crate) fn cut_to(&mut self, length: u64) -> bool {
        let is_shorter = length <= self.length;
        self.length = self.length.min(length);
        is_shorter
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
    window: HashMap<String, Box<Record>>,
    /// Those that have.
    given: HashSet<String>,
    /// The record to be given out next.
    wanted: Option<String>,
    is_beyond_window: bool,
    end: Option<End>,
    /// Where the record begins that was given out last.
    given_from: u64,
    /// The newest prompt that was passed by on the search for a parent.
    passed_prompt: Option<Record>,
}

/// Why a walk is over before a record without a parent was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The parent is not in the file.
    Cut,
    /// The parent is not within the reach.
    OutOfReach,
}

impl<'a> Branch<'a> {
    fn open(transcript: &'a Transcript, window_bytes: u64, reach_bytes: u64) -> io::Result<Self> {
        let mut branch = Self {
            records: Records::new(transcript, transcript.length, reach_bytes),
            window: HashMap::new(),
            given: HashSet::new(),
            wanted: None,
            is_beyond_window: false,
            end: None,
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
        if branch.wanted.is_none() && branch.records.is_out_of_reach() {
            branch.end = Some(End::OutOfReach);
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
        self.end == Some(End::Cut)
    }

    /// Whether the walk ended because it came to the end of its reach.
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        self.end == Some(End::OutOfReach)
    }

    /// The newest prompt in the file that stands before the record at which the branch was cut; none when it was not. What is
    /// left of a turn that lost its beginning may be this one's. Whose it is and of what kind counts; where it stands beyond
    /// the window and in pieces, it lacks its places and names.
    #[must_use]
    pub fn prompt_before_cut(&self) -> Option<&Record> {
        let in_window = self.window.values().map(|record| &**record).filter(|record| record.is_real_prompt());
        let in_window = in_window.filter(|record| record.span.start < self.given_from);
        let newest = in_window.max_by_key(|record| record.span.start).or(self.passed_prompt.as_ref());
        newest.filter(|_| self.is_cut())
    }

    /// The one session that everything read so far belongs to; none when there are several, or nothing was usable.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.records.session_id.as_deref().filter(|_| !self.records.is_mixed)
    }

    /// Whether a disputed record was met, on the branch or beside it.
    #[must_use]
    pub fn is_disputed(&self) -> bool {
        self.records.is_disputed
    }

    /// Whether records of several sessions have been read.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.records.is_mixed
    }

    /// Where the bytes begin that have been read, in bytes from the beginning of the file.
    pub(crate) fn read_from(&self) -> u64 {
        self.records.read_from()
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
            Some(record) => Some(*record),
            // A branch that comes back to itself ends there.
            None if self.given.contains(&wanted) => return Ok(None),
            None => self.find_beyond_window(&wanted)?,
        };
        let Some(record) = found else {
            self.end = Some(if self.records.is_out_of_reach() { End::OutOfReach } else { End::Cut });
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
            None => drop(self.window.insert(record.uuid.clone(), Box::new(record))),
        }
    }

    fn find_beyond_window(&mut self, wanted: &str) -> io::Result<Option<Record>> {
        self.is_beyond_window = true;
        while let Some(mut record) = self.records.next_on_branch()? {
            let is_wanted = record.uuid == wanted;
            if !is_wanted && self.passed_prompt.is_some() {
                continue;
            }
            // Of one that is passed by too the first piece says whether it is a prompt, and whose.
            while let Some(mut piece) = self.records.next_if(|earlier| earlier.uuid == record.uuid)? {
                if !is_wanted {
                    record.forget_names();
                    piece.forget_names();
                }
                record.join_earlier(piece);
            }
            if is_wanted {
                return Ok(Some(record));
            }
            self.passed_prompt = Some(record).filter(Record::is_real_prompt);
        }
        Ok(None)
    }
}
