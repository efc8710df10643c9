//! The whole final answer of a turn: found by the turn's result, read from the record before it, and never held.
//!
//! The result holds an answer as long as it is short. A longer one is cut there and stands whole in the answer's own record, the last
//! thing said before the result. That it is this turn's and no other's is checked three times: nothing but notes stands between the two,
//! the text begins with what the result holds of it, and it is as long as the result says, where it says that.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::branch::Transcript;
use crate::json::{Bytes, FileBytes, Malformed, Read, Reader, Sink, Start};
use crate::record::{Kind, Record};
use crate::results::{FoundResult, REACH, turn_result_in};
use crate::snapshot::PageError;
use crate::turn_result::{TurnResult, TurnState};

/// Parts of one answer whose places are held: forty megabytes of them. An agent that thinks between any two letters has many.
const TEXTS_MAX: usize = 1024 * 1024;

/// How a turn ended, and all that it said at last. A clone is cheap but for the result's own texts.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The turn's result.
    pub result: TurnResult,
    /// The answer; [`Answer::Nothing`] of a turn that did not complete.
    pub answer: Answer,
    /// All that was said in a turn that did not complete, where the result holds only its beginning and the rest is certain.
    pub partial: Option<Recorded>,
}

/// The final answer of a turn.
#[derive(Debug, Clone)]
pub enum Answer {
    /// There is none.
    Nothing,
    /// The result itself holds it.
    Short(String),
    /// It stands in the file.
    Recorded(Recorded),
    /// There was one, and it cannot be given.
    Lost(Lost),
}

/// Why an answer cannot be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// It was longer than what its writer recorded.
    NotRecorded,
    /// What stands before the result does not agree with it, or may not be read by everybody.
    Uncertain,
}

/// Finds the newest result of a prompt's turn on the active branch, as far back as [`find_turn_result`](crate::find_turn_result)
/// looks, and its whole answer. None when there is no result.
///
/// # Errors
/// Those of `find_turn_result`.
pub fn find_answer(path: &Path, prompt_id: &str) -> Result<Option<Answered>, PageError> {
    let failed = |cause| PageError::of(path, cause);
    let Some(transcript) = Transcript::open(path).map_err(failed)? else { return Ok(None) };
    let Some(found) = turn_result_in(&transcript, path, prompt_id)? else { return Ok(None) };
    let FoundResult { result, span, next } = found;
    if result.state != TurnState::Completed {
        let partial = next.map(|next| partial(transcript, &result, &next)).transpose().map_err(failed)?.flatten();
        return Ok(Some(Answered { result, answer: Answer::Nothing, partial }));
    }
    let answer = answer(transcript, &result, &span).map_err(failed)?;
    Ok(Some(Answered { result, answer, partial: None }))
}

/// What was said in a turn that was cut: its result comes first, and then its words. The record behind the result is theirs when it is
/// as long as the result says and begins with what the result holds; a writer that was killed in between left less, or nothing.
fn partial(transcript: Transcript, result: &TurnResult, next: &Record) -> io::Result<Option<Recorded>> {
    let (Some(text), Some(bytes)) = (&result.partial_text, result.partial_bytes) else { return Ok(None) };
    if !is_spoken(next) {
        return Ok(None);
    }
    let Some(texts) = texts(&transcript, next)? else { return Ok(None) };
    let whole = texts.iter().map(|text| text.bytes).sum::<u64>();
    let recorded = Recorded { transcript: Arc::new(transcript), texts: texts.into(), before: 0, bytes };
    let agrees = whole == bytes && bytes > text.len() as u64 && recorded.begins_with(text)?;
    Ok(Some(recorded).filter(|_| agrees))
}

/// Whether it is an agent's own words and nothing else, and everybody reads it so.
fn is_spoken(record: &Record) -> bool {
    let has_no_call = record.message.as_ref().is_some_and(|message| !message.has_call());
    record.kind == Kind::Assistant && record.is_visible() && !record.is_disputed && has_no_call
}

fn answer(transcript: Transcript, result: &TurnResult, span: &Range<u64>) -> io::Result<Answer> {
    let Some(text) = result.result_text.as_deref() else { return Ok(Answer::Nothing) };
    if result.result_unrecorded_bytes.is_some_and(|bytes| bytes > 0) {
        return Ok(Answer::Lost(Lost::NotRecorded));
    }
    if !result.result_truncated {
        return Ok(Answer::Short(text.to_owned()));
    }
    let Some(record) = spoken_before(&transcript, span)? else { return Ok(Answer::Lost(Lost::Uncertain)) };
    let Some(texts) = texts(&transcript, &record)? else { return Ok(Answer::Lost(Lost::Uncertain)) };
    let whole = texts.iter().map(|text| text.bytes).sum::<u64>();
    let bytes = result.result_bytes.unwrap_or(whole);
    // What was said while a tool ran stands in the same record, before the answer.
    let Some(before) = whole.checked_sub(bytes) else { return Ok(Answer::Lost(Lost::Uncertain)) };
    let recorded = Recorded { transcript: Arc::new(transcript), texts: texts.into(), before, bytes };
    let agrees = bytes > text.len() as u64 && recorded.begins_with(text)?;
    Ok(if agrees { Answer::Recorded(recorded) } else { Answer::Lost(Lost::Uncertain) })
}

/// The answer, where the record before the result says it and nothing else: of a short one too, which the result holds alone otherwise.
/// An answer that is only the end of a record might be the end of a longer one, whose result lost a letter.
pub(crate) fn whole_answer(transcript: Transcript, result: &TurnResult, span: &Range<u64>) -> io::Result<Answer> {
    let uncertain = Answer::Lost(Lost::Uncertain);
    let (Some(text), false) = (result.result_text.as_deref(), result.result_truncated) else {
        let answer = answer(transcript, result, span)?;
        let is_part = matches!(&answer, Answer::Recorded(recorded) if recorded.before > 0);
        return Ok(if is_part { uncertain } else { answer });
    };
    let Some(record) = spoken_before(&transcript, span)? else { return Ok(uncertain) };
    let Some(texts) = texts(&transcript, &record)? else { return Ok(uncertain) };
    let (whole, bytes) = (texts.iter().map(|text| text.bytes).sum::<u64>(), text.len() as u64);
    let recorded = Recorded { transcript: Arc::new(transcript), texts: texts.into(), before: 0, bytes };
    let agrees = whole == bytes && recorded.begins_with(text)?;
    Ok(if agrees { Answer::Short(text.to_owned()) } else { uncertain })
}

/// The record of the answer whose turn's result stands at `span`; none unless it is the last thing said before that.
fn spoken_before(transcript: &Transcript, span: &Range<u64>) -> io::Result<Option<Record>> {
    let Some((mut branch, _)) = transcript.branch_behind(span, span.start, REACH.file_bytes())? else {
        return Ok(None);
    };
    while let Some(record) = branch.next_record()? {
        if record.kind == Kind::System {
            continue;
        }
        return Ok(Some(record).filter(|record| is_spoken(record) && !branch.is_mixed()));
    }
    Ok(None)
}

/// An answer that stands in a transcript, as it was when it was found.
#[derive(Debug, Clone)]
pub struct Recorded {
    transcript: Arc<Transcript>,
    texts: Arc<[Text]>,
    /// Bytes of the record's text before the answer.
    before: u64,
    bytes: u64,
}

/// A text of a record, thoughts left out.
#[derive(Debug)]
pub(crate) struct Text {
    /// Where it stands, quotes included.
    pub(crate) span: Range<u64>,
    /// How long it is when it is decoded.
    pub(crate) bytes: u64,
}

impl Recorded {
    /// How long the answer is, in bytes of UTF-8.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// In how many parts it stands in the file. The place of each is held, and costs a few words of memory.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.texts.len()
    }

    /// Whether the file at `path` is the one that it was found in, and nobody has written to it since: then what was found is what a
    /// new search would find.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn is_current(&self, path: &Path) -> io::Result<bool> {
        self.transcript.is_unchanged(path)
    }

    /// Where it stands: device, file, first byte and length tell it apart from every other answer.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn place(&self) -> io::Result<[u64; 4]> {
        let identity = self.transcript.identity()?;
        let start = self.texts.first().map_or(0, |text| text.span.start);
        Ok([identity.device, identity.inode, start, self.bytes])
    }

    /// Hands on the bytes of `range` in order, piece by piece, until `take` wants no more; whether all of them were handed on. They
    /// are not when the file was changed meanwhile. A piece may end inside a character.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self, range: Range<u64>, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<bool> {
        let end = range.end.min(self.bytes);
        let mut tap = Tap {
            skip: self.before + range.start.min(end),
            left: end.saturating_sub(range.start),
            is_refused: false,
            take: &mut take,
        };
        for text in &*self.texts {
            if tap.skip >= text.bytes {
                tap.skip -= text.bytes;
            } else if tap.left > 0 {
                self.transcript.string_at(&text.span, &mut tap)?;
            }
        }
        Ok(tap.left == 0 && !tap.is_refused)
    }

    fn begins_with(&self, text: &str) -> io::Result<bool> {
        let mut left = text.as_bytes();
        self.read(0..text.len() as u64, |piece| match left.strip_prefix(piece) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
    }
}

/// Hands on a part of what is decoded.
struct Tap<'a> {
    skip: u64,
    left: u64,
    is_refused: bool,
    take: &'a mut dyn FnMut(&[u8]) -> bool,
}

impl Sink for Tap<'_> {
    fn push(&mut self, piece: &[u8]) {
        let skipped = self.skip.min(piece.len() as u64);
        self.skip -= skipped;
        let rest = &piece[usize::try_from(skipped).unwrap_or(piece.len())..];
        let rest = &rest[..usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len())];
        if rest.is_empty() {
            return;
        }
        self.left -= rest.len() as u64;
        if !(self.take)(rest) {
            (self.left, self.is_refused) = (0, true);
        }
    }

    fn is_deaf(&self) -> bool {
        self.left == 0
    }
}

/// Counts what is decoded.
struct Count(u64);

impl Sink for Count {
    fn push(&mut self, piece: &[u8]) {
        self.0 += piece.len() as u64;
    }
}

impl Transcript {
    /// Decodes the string at `span`, as far as it is one.
    pub(crate) fn string_at(&self, span: &Range<u64>, sink: &mut impl Sink) -> io::Result<()> {
        let mut reader = Reader::new(FileBytes::new(self.file(), span.clone()));
        let _ = reader.string(sink);
        reader.bytes.take_error().map_or(Ok(()), Err)
    }
}

/// The texts of a record, in the order of its pieces; none when there are too many.
pub(crate) fn texts(transcript: &Transcript, record: &Record) -> io::Result<Option<Vec<Text>>> {
    let mut spans = Vec::new();
    for span in record.message.iter().flat_map(|message| &message.spans) {
        let mut reader = Reader::new(FileBytes::new(transcript.file(), span.clone()));
        let read = add_texts(&mut reader, &mut spans);
        if let Some(error) = reader.bytes.take_error() {
            return Err(error);
        }
        if read.is_err() {
            return Ok(None);
        }
    }
    let mut texts = Vec::with_capacity(spans.len());
    for span in spans {
        let mut count = Count(0);
        transcript.string_at(&span, &mut count)?;
        texts.push(Text { span, bytes: count.0 });
    }
    Ok(Some(texts))
}

fn add_texts(reader: &mut Reader<FileBytes<'_>>, spans: &mut Vec<Range<u64>>) -> Read<()> {
    let first = spans.len();
    reader.object(|key, reader| {
        let is_list = reader.start()? == Start::Array;
        if key != "parts" {
            return reader.skip();
        }
        // Of a repeated key the last value counts.
        spans.truncate(first);
        if !is_list {
            return reader.skip();
        }
        reader.array(|reader| {
            spans.extend(text_of_part(reader)?);
            if spans.len() > TEXTS_MAX { Err(Malformed) } else { Ok(()) }
        })
    })
}

/// Where the text of a part stands, if it has one that is not a thought.
fn text_of_part(reader: &mut Reader<FileBytes<'_>>) -> Read<Option<Range<u64>>> {
    if reader.start()? != Start::Object {
        return reader.skip().map(|()| None);
    }
    let (mut text, mut is_thought) = (None, false);
    reader.object(|key, reader| {
        let start = reader.start()?;
        let from = reader.bytes.offset();
        match key {
            "thought" if start == Start::Word => is_thought = reader.word()? == "true",
            "text" => {
                reader.skip()?;
                text = (start == Start::String).then(|| from..reader.bytes.offset());
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(text.filter(|_| !is_thought))
}
