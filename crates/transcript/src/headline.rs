//! What a list says of a session: where and when it was begun, what it is called, what was asked first. Two bounded pieces of the
//! file are read for that, its beginning and its end, however long it is.

mod note;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::memmem;
use serde_json::{Value, json};

use crate::json::{Reader, SliceBytes};
use crate::record::TITLE_SUBTYPE;
use crate::regular::open_regular;
use crate::salvage;
use crate::text::bounded;
use note::Note;

/// Bytes that are read of the beginning of a file, and of its end. A first prompt of ordinary size is whole in them; a writer that wants
/// its title found repeats it before this much has been written behind it.
pub const HEADLINE_BYTES_MAX: u64 = 64 * 1024;
/// UTF-16 units of the first prompt that are given: a line or two of a list.
const PROMPT_UNITS_MAX: usize = 200;
/// Bytes of damage in a beginning that are searched for objects, as often as that takes.
const WORK_BYTES_MAX: u64 = 4 * 1024 * 1024;
const TITLE: &[u8] = TITLE_SUBTYPE.as_bytes();

/// A session's transcript at a glance. What the pieces that are read do not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headline {
    /// The session its first object belongs to.
    pub session_id: Option<String>,
    /// The folder it was begun in, as its first object says.
    pub begun_in: Option<String>,
    /// The time of its first dated record, in epoch milliseconds.
    pub begun_at_ms: Option<u64>,
    /// The beginning of the first prompt, as a person is shown it.
    pub prompt: Option<String>,
    /// The name it was given last.
    pub title: Option<String>,
    /// Who gave that name.
    pub title_source: Option<String>,
    /// The session that made this one.
    pub parent_session_id: Option<String>,
    /// What kind of caller made it.
    pub source_type: Option<String>,
    /// Which one.
    pub source_id: Option<String>,
}

impl Headline {
    /// Reads the headline of the transcript at `path`; an empty file has an empty one.
    ///
    /// # Errors
    /// When there is no regular file, and when the system refuses.
    pub fn read(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        Self::of(&file, file.metadata()?.len())
    }

    /// The same of the first `length` bytes of an open file.
    ///
    /// # Errors
    /// When the system refuses, and when the file is shorter meanwhile.
    pub fn of(file: &File, length: u64) -> io::Result<Self> {
        let head = piece(file, 0, length.min(HEADLINE_BYTES_MAX))?;
        let mut headline = Self::default();
        headline.begin(&head, length > HEADLINE_BYTES_MAX);
        let tail_start = length.saturating_sub(HEADLINE_BYTES_MAX);
        let tail = if tail_start > 0 { piece(file, tail_start, length - tail_start)? } else { Vec::new() };
        // The first line of the end lacks its beginning as a rule, and a title is in many records or in none.
        let whole = tail.iter().position(|byte| is_line_end(*byte)).map_or(&[][..], |at| &tail[at..]);
        if let Some((named, ..)) = newest_title(whole).or_else(|| newest_title(&head)) {
            (headline.title, headline.title_source) = (named.title, named.title_source);
        }
        Ok(headline)
    }

    /// Whether it was begun as that of `session_id` in `workspace` or one of its worktrees: what does not say so is not listed.
    #[must_use]
    pub fn belongs(&self, session_id: &str, workspace: &Path) -> bool {
        self.session_id.as_deref() == Some(session_id) && crate::origin::begins_in(self.begun_in.as_deref(), workspace)
    }

    /// Takes what the beginning says; `is_cut` when the file goes on behind it.
    fn begin(&mut self, head: &[u8], is_cut: bool) {
        let mut work_left = WORK_BYTES_MAX;
        let mut is_first = true;
        let mut lines = head.split_inclusive(|byte| is_line_end(*byte)).peekable();
        while let Some(line) = lines.next() {
            let is_last = lines.peek().is_none();
            let is_whole = !is_last || !is_cut || line.last().is_some_and(|byte| is_line_end(*byte));
            for note in notes(line.trim_ascii(), is_whole, &mut work_left) {
                self.take(note, is_first);
                is_first = false;
            }
            if self.prompt.is_some() && self.begun_at_ms.is_some() {
                // What says whose session this is stands before its first prompt, or nowhere.
                return;
            }
        }
    }

    fn take(&mut self, note: Note, is_first: bool) {
        if is_first {
            (self.session_id, self.begun_in) = (note.session_id, note.cwd);
        }
        self.begun_at_ms = self.begun_at_ms.or(note.at_ms);
        if note.is_prompt && self.prompt.is_none() {
            self.prompt = note.text.as_deref().and_then(line_of_list);
        }
        if note.parent_session_id.is_some() {
            self.parent_session_id = note.parent_session_id;
        }
        if note.source_type.is_some() {
            (self.source_type, self.source_id) = (note.source_type, note.source_id);
        }
    }
}

/// The beginning of a prompt, on one line; none of one that says nothing.
fn line_of_list(text: &str) -> Option<String> {
    let line = text.split_whitespace().fold(String::new(), |line, word| match line.is_empty() {
        true => word.to_owned(),
        false => line + " " + word,
    });
    let cut = bounded(&line, PROMPT_UNITS_MAX);
    let mark = if cut.truncated { "…" } else { "" };
    (!line.is_empty()).then(|| cut.text + mark)
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn piece(file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// The objects of a line, as a reader of the whole file would find them. Of a line that the piece cuts off, what stands in it.
fn notes(line: &[u8], is_whole: bool, work_left: &mut u64) -> Vec<Note> {
    if line.is_empty() {
        return Vec::new();
    }
    let mut note = Note::default();
    let read = note::read(&mut Reader::new(SliceBytes::new(line, 0)), &mut note);
    if read.is_ok() || !is_whole && note.cwd.is_some() {
        return vec![note];
    }
    let damaged = if is_whole { salvage::parts(line, work_left).unwrap_or_default() } else { Vec::new() };
    let note = |object: &[u8]| {
        let mut note = Note::default();
        note::read(&mut Reader::new(SliceBytes::new(object, 0)), &mut note).is_ok().then_some(note)
    };
    damaged.into_iter().filter_map(note).collect()
}

/// What the session is called, as the newest record that names it says, of those in the last `tail_max` bytes of the transcript at `path`
/// or in its beginning; none when it is called nothing.
///
/// # Errors
/// When there is something else than a regular file, and when the system refuses.
pub fn find_title(path: &Path, tail_max: u64) -> io::Result<Option<String>> {
    let found = last_title(path, tail_max)?;
    Ok(found.and_then(|(payload, ..)| payload["customTitle"].as_str().map(str::to_owned)))
}

/// The payload of the newest record that names the session, of those in the last `tail_max` bytes of the transcript at `path` or in its
/// beginning, and where its line begins and ends. None where there is no transcript.
pub(crate) fn last_title(path: &Path, tail_max: u64) -> io::Result<Option<(Value, u64, u64)>> {
    let file = match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    for (start, length) in
        [(length.saturating_sub(tail_max), length.min(tail_max)), (0, length.min(HEADLINE_BYTES_MAX))]
    {
        if let Some((named, at, end)) = newest_title(&piece(&file, start, length)?) {
            let mut payload = json!({ "customTitle": named.title });
            if let Some(source) = named.title_source {
                payload["titleSource"] = source.into();
            }
            return Ok(Some((payload, start + at as u64, start + end as u64 + 1)));
        }
    }
    Ok(None)
}

/// The newest record of a piece that names the session, and where its line stands. A name that was taken back is none.
fn newest_title(piece: &[u8]) -> Option<(Note, usize, usize)> {
    let mut rest = piece;
    while let Some(at) = memmem::rfind(rest, TITLE) {
        let start = rest[..at].iter().rposition(|byte| is_line_end(*byte)).map_or(0, |end| end + 1);
        let end = piece[at..].iter().position(|byte| is_line_end(*byte)).map_or(piece.len(), |end| at + end);
        let mut note = Note::default();
        let read = note::read(&mut Reader::new(SliceBytes::new(&piece[start..end], 0)), &mut note);
        if read.is_ok() && note.is_title {
            return Some((note, start, end));
        }
        rest = &rest[..start];
    }
    None
}

#[cfg(test)]
mod tests;
