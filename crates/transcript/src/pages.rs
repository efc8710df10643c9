//! The active branch, page by page, from its end or from its beginning (wire, section 13.8).
//!
//! All pages of one walk show one snapshot: the file as long as it was when the first page was read. Backward, a page
//! costs what stands on it, and what lies beside the branch up to a bound; a page may then hold fewer records than were
//! asked for, none among them, and the next one goes on. Forward, nobody knows what the branch is before its end was
//! read, so that every page reads the snapshot, and a large one is refused.

mod cursor;
mod dates;

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub use dates::dates;

use cursor::{Cursor, Place, hash};

use crate::branch::{Branch, Transcript, WINDOW_BYTES};
use crate::display::{Frame, gap, left_out, shown, timing};
use crate::record::Record;
use crate::snapshot::{PageError, Unavailable};

/// Most records of a page (wire, section 13.8).
pub const PAGE_RECORDS_MAX: usize = 500;
/// Most bytes of the records of a page (turn status seed).
pub const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most bytes of a file that is paged forward. To read as much takes a tenth of a second.
pub const SNAPSHOT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of the file that a page on the way back looks through.
const REACH_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of the updates of a page. A record is shown in about its own length; one that is made of tiny parts is not.
const SHOWN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much is seen at once, and how far a page looks.
const BOUNDS: Bounds = Bounds { window_bytes: WINDOW_BYTES, reach_bytes: REACH_BYTES };
/// Bytes at the end of a snapshot that must still say the same when a next page is read.
const MARK_BYTES: u64 = 256;

/// Which way the pages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the newest record to the oldest.
    Backward,
    /// From the oldest to the newest.
    Forward,
}

/// What page is asked for.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    /// The way of the pages. A cursor goes one way only.
    pub direction: Direction,
    /// Records of the page, from 1 to [`PAGE_RECORDS_MAX`]; other numbers are taken for the nearest of them.
    pub records_max: usize,
    /// Where the page before ended; none for a first page.
    pub cursor: Option<&'a str>,
}

/// A page of the branch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// What is shown of its records, oldest first, whatever the way.
    pub frames: Vec<Frame>,
    /// How many records it has, shown or not.
    pub records: usize,
    /// Where the next page begins; none when there is no more.
    pub next_cursor: Option<String>,
}

impl Page {
    /// Whether another page may have more.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.next_cursor.is_some()
    }
}

/// Reads a page. Empty when there is no transcript.
///
/// # Errors
/// When a record has more bytes than a page, when a file that is paged forward has more than [`SNAPSHOT_BYTES_MAX`], when
/// the cursor was not given out for this way, when the file is not the one it was or holds records of several sessions, and
/// when the system refuses.
pub fn page(path: &Path, request: PageRequest<'_>) -> Result<Page, PageError> {
    read(path, request, BOUNDS)
}

fn read(path: &Path, request: PageRequest<'_>, bounds: Bounds) -> Result<Page, PageError> {
    let cursor = request.cursor.map(|text| Cursor::parse(text).ok_or(PageError::InvalidCursor)).transpose()?;
    if cursor.as_ref().is_some_and(|cursor| cursor.place.direction() != request.direction) {
        return Err(PageError::InvalidCursor);
    }
    let failed = |cause| PageError::of(path, cause);
    let Some(mut transcript) = Transcript::open(path).map_err(failed)? else {
        return match cursor {
            Some(_) => Err(PageError::unavailable(path, Unavailable::Gone)),
            None => Ok(Page::default()),
        };
    };
    if let Some(cursor) = &cursor {
        transcript = cursor.snapshot(transcript).map_err(failed)?.map_err(|why| PageError::unavailable(path, why))?;
    }
    let records_max = request.records_max.clamp(1, PAGE_RECORDS_MAX);
    let paging = Paging { bounds, path, transcript: &transcript, records_max };
    let place = cursor.map(|cursor| cursor.place);
    let page = match request.direction {
        Direction::Backward => paging.backward(place)?,
        Direction::Forward => paging.forward(place)?,
    };
    match transcript.fate(path).map_err(failed)? {
        Some(why) => Err(PageError::unavailable(path, why)),
        None => Ok(page),
    }
}

impl Cursor {
    /// The transcript as this cursor's first page saw it, or why there is none any more.
    fn snapshot(&self, mut transcript: Transcript) -> io::Result<Result<Transcript, Unavailable>> {
        if transcript.identity()? != self.identity {
            return Ok(Err(Unavailable::Replaced));
        }
        if !transcript.cut_to(self.length) || transcript.mark()? != self.mark {
            return Ok(Err(Unavailable::Changed));
        }
        Ok(Ok(transcript))
    }
}

impl Transcript {
    /// A hash of the snapshot's last bytes.
    fn mark(&self) -> io::Result<u64> {
        let start = self.len_bytes().saturating_sub(MARK_BYTES);
        let mut bytes = vec![0; usize::try_from(self.len_bytes() - start).unwrap_or(usize::MAX)];
        self.file().read_exact_at(&mut bytes, start)?;
        Ok(hash(&bytes))
    }
}

#[derive(Debug, Clone, Copy)]
struct Bounds {
    window_bytes: u64,
    reach_bytes: u64,
}

/// The reading of one page.
struct Paging<'a> {
    bounds: Bounds,
    path: &'a Path,
    transcript: &'a Transcript,
    records_max: usize,
}

impl Paging<'_> {
    fn backward(&self, place: Option<Place>) -> Result<Page, PageError> {
        let (mut branch, mut given) = self.resumed(place)?;
        let mut sheet = Sheet::new(self);
        loop {
            let before = given.then_behind(&branch);
            let Some(record) = self.of(branch.next_record())? else { break };
            if !sheet.add(&record)? {
                return self.end(&branch, sheet.turned(), Some(before));
            }
            given = given.one_more(record);
            if sheet.is_full() {
                let next = branch.wanted().is_some().then(|| given.then_behind(&branch));
                return self.end(&branch, sheet.turned(), next);
            }
        }
        if branch.is_out_of_reach() {
            let next = given.behind(&branch).ok_or_else(|| self.too_large(self.bounds.reach_bytes))?;
            return self.end(&branch, sheet.turned(), Some(next));
        }
        let mut page = sheet.turned();
        page.frames.splice(..0, given.last.filter(|_| branch.is_cut()).map(|first| gap(&first)));
        self.end(&branch, page, None)
    }

    fn forward(&self, place: Option<Place>) -> Result<Page, PageError> {
        if self.transcript.len_bytes() > SNAPSHOT_BYTES_MAX {
            return Err(self.too_large(SNAPSHOT_BYTES_MAX));
        }
        let mut branch = self.of(self.transcript.branch(self.bounds.window_bytes))?;
        let mut records = VecDeque::new();
        let start = match place {
            Some(Place::After(start)) => Some(start),
            _ => None,
        };
        let is_met = loop {
            let Some(record) = self.of(branch.next_record())? else { break start.is_none() };
            if Some(record.span.start) == start {
                break true;
            }
            records.push_front(record);
            // One more than the page has, so that it is known whether there are more.
            records.truncate(self.records_max + 1);
        };
        if !is_met {
            return Err(PageError::unavailable(self.path, Unavailable::Changed));
        }
        let mut sheet = Sheet::new(self);
        let is_cut = start.is_none() && branch.is_cut();
        sheet.frames.extend(records.front().filter(|_| is_cut).map(gap));
        let mut next = None;
        for record in records {
            if sheet.is_full() || !sheet.add(&record)? {
                return self.end(&branch, sheet.page(), next);
            }
            next = Some(Place::After(record.span.start));
        }
        self.end(&branch, sheet.page(), None)
    }

    /// Puts the cursor on a page, unless what was read was not one session's.
    fn end(&self, branch: &Branch<'_>, page: Page, next: Option<Place>) -> Result<Page, PageError> {
        if branch.is_mixed() {
            return Err(PageError::unavailable(self.path, Unavailable::TwoSessions));
        }
        let Some(place) = next else { return Ok(page) };
        let cursor = Cursor {
            identity: self.of(self.transcript.identity())?,
            length: self.transcript.len_bytes(),
            mark: self.of(self.transcript.mark())?,
            place,
        };
        Ok(Page { next_cursor: Some(cursor.to_text()), ..page })
    }

    /// The branch where the page before ended.
    fn resumed(&self, place: Option<Place>) -> Result<(Branch<'_>, Given), PageError> {
        if let Some(Place::Behind { child, from }) = place {
            let resumed = self.of(self.transcript.branch_behind(&child, from, self.bounds.reach_bytes))?;
            let (branch, child) = resumed.ok_or(PageError::InvalidCursor)?;
            return Ok((branch, Given { records: 0, last: Some(child) }));
        }
        let mut branch = self.of(self.transcript.branch_within(self.bounds.window_bytes, self.bounds.reach_bytes))?;
        let mut given = Given { records: 0, last: None };
        if let Some(Place::Given(records)) = place {
            while given.records < records {
                let record = self.of(branch.next_record())?.ok_or(PageError::InvalidCursor)?;
                given = given.one_more(record);
            }
        }
        Ok((branch, given))
    }

    fn too_large(&self, bytes_max: u64) -> PageError {
        PageError::OversizedSnapshot { path: self.path.to_owned(), bytes: self.transcript.len_bytes(), bytes_max }
    }

    fn of<T>(&self, read: io::Result<T>) -> Result<T, PageError> {
        read.map_err(|cause| PageError::of(self.path, cause))
    }
}

/// How far a walk back has come.
struct Given {
    /// Records from the end, as long as the walk began there.
    records: u64,
    /// The last one.
    last: Option<Record>,
}

impl Given {
    fn one_more(self, record: Record) -> Self {
        Self { records: self.records + 1, last: Some(record) }
    }

    /// The place where the walk stands now.
    fn then_behind(&self, branch: &Branch<'_>) -> Place {
        let behind = self.behind(branch).filter(|_| branch.is_beyond_window());
        behind.unwrap_or(Place::Given(self.records))
    }

    fn behind(&self, branch: &Branch<'_>) -> Option<Place> {
        let child = self.last.as_ref()?.span.clone();
        Some(Place::Behind { from: branch.read_from().min(child.end), child })
    }
}

/// A page while it is filled.
struct Sheet<'a> {
    paging: &'a Paging<'a>,
    /// The frames of each record in order; the records in the order in which they came.
    frames: Vec<Frame>,
    /// Where the frames of each record begin.
    starts: Vec<usize>,
    bytes: u64,
    shown_bytes: usize,
}

impl<'a> Sheet<'a> {
    fn new(paging: &'a Paging<'a>) -> Self {
        Self { paging, frames: Vec::new(), starts: Vec::new(), bytes: 0, shown_bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.starts.len() == self.paging.records_max
    }

    /// Adds a record, if there is room for it; whether there was. A record that alone has too many bytes is an error; one
    /// whose updates have keeps its place.
    fn add(&mut self, record: &Record) -> Result<bool, PageError> {
        let bytes = record.span.end - record.span.start;
        if self.bytes + bytes > PAGE_BYTES_MAX {
            let path = self.paging.path.to_owned();
            let too_large = PageError::OversizedPage { path, bytes, bytes_max: PAGE_BYTES_MAX };
            return if self.starts.is_empty() { Err(too_large) } else { Ok(false) };
        }
        let room_bytes = SHOWN_BYTES_MAX - self.shown_bytes;
        let timing = self.paging.of(timing::frame(self.paging.transcript, record))?;
        let frames = match self.paging.of(shown::frames(self.paging.transcript, record, room_bytes))? {
            Some(frames) => timing.into_iter().chain(frames).collect(),
            None if self.starts.is_empty() => vec![left_out(record)],
            None => return Ok(false),
        };
        self.bytes += bytes;
        self.shown_bytes += frames.iter().map(|frame| frame.update.len()).sum::<usize>();
        self.starts.push(self.frames.len());
        self.frames.extend(frames);
        Ok(true)
    }

    fn page(self) -> Page {
        Page { records: self.starts.len(), frames: self.frames, next_cursor: None }
    }

    /// The page of records that came newest first.
    fn turned(mut self) -> Page {
        let mut frames = Vec::with_capacity(self.frames.len());
        for start in self.starts.iter().rev() {
            frames.extend(self.frames.drain(*start..));
        }
        Page { records: self.starts.len(), frames, next_cursor: None }
    }
}

#[cfg(test)]
mod tests;
