//! The records of one line: the line itself, or what can be saved of it.

use std::fs::File;
use std::io;

use crate::json::{Bytes, FileBytes, Malformed, Read, Reader, SliceBytes, Start};
use crate::lines::Line;
use crate::record::{self, Head, Record};

/// How many times its own length a damaged line may cost. An honest fragment is read once for each object that is left
/// open in it, and then once more for what was glued behind it; a line that costs more is made to cost, and what has
/// not been found by then is lost.
const WORK_FACTOR: u64 = 32;
/// What a short damaged line may cost in any case, in bytes.
const WORK_BYTES_MIN: u64 = 64 * 1024;
/// What the damaged lines that one reading meets may cost together, in bytes of text: a few seconds. A torn record of
/// hundreds of megabytes costs a quarter of it. A file that costs more was made to, and is not read.
pub(crate) const WORK_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// How many bytes of text a value costs, whatever is in it.
const VALUE_WORK_BYTES: u64 = 64;

/// The usable records of a line, in their order (evidence rules, section 2). A line that is one JSON value is one record
/// or none. Any other line is searched for objects, and every one that is whole counts, so that a record glued behind a
/// torn fragment is not lost. The peer loses it when the fragment leaves a brace or a text open; so it is disputed.
///
/// The search takes what it costs from `work_left`, in bytes, and is an error once nothing is left.
pub(crate) fn records(file: &File, line: &Line<'_>, work_left: &mut u64) -> io::Result<Vec<Record>> {
    Ok(objects(file, line, work_left)?.into_iter().filter_map(Result::ok).collect())
}

/// The same with the objects that are no usable records.
pub(crate) fn objects(file: &File, line: &Line<'_>, work_left: &mut u64) -> io::Result<Vec<Result<Record, Head>>> {
    match line.held {
        Some(held) => objects_of(SliceBytes::new(held, line.span.start), work_left),
        None => objects_of(FileBytes::new(file, line.span.clone()), work_left),
    }
}

/// The objects of a line that is held, each as it stands there.
pub(crate) fn parts<'l>(line: &'l [u8], work_left: &mut u64) -> io::Result<Vec<&'l [u8]>> {
    let spans = objects_of(SliceBytes::new(line, 0), work_left)?.into_iter();
    let spans = spans.map(|object| object.map_or_else(|head| head.span, |record| record.span));
    let place = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
    Ok(spans.filter_map(|span| line.get(place(span.start)..place(span.end))).collect())
}

fn objects_of<B: Bytes>(mut bytes: B, work_left: &mut u64) -> io::Result<Vec<Result<Record, Head>>> {
    skip_byte_order_mark(&mut bytes);
    let start = bytes.offset();
    let mut reader = Reader::new(bytes);
    let found = match whole_line(&mut reader) {
        Ok(object) => object.into_iter().collect(),
        Err(Malformed) => {
            reader.bytes.seek(start);
            salvaged(&mut reader, work_left)?
        }
    };
    match reader.bytes.take_error() {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

fn whole_line<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Result<Record, Head>>> {
    let object = match reader.start()? {
        Start::Object => Some(record::read(reader)?),
        Start::Array | Start::String | Start::Word => reader.skip().map(|()| None)?,
    };
    if reader.is_at_end() { Ok(object) } else { Err(Malformed) }
}

fn salvaged<B: Bytes>(reader: &mut Reader<B>, work_left: &mut u64) -> io::Result<Vec<Result<Record, Head>>> {
    let mut found = Vec::new();
    let line_start = reader.bytes.offset();
    let mut balance = Balance { offset: line_start, ..Balance::default() };
    let mut work = 0;
    while reader.bytes.find(b'{') {
        let start = reader.bytes.offset();
        reader.values = 0;
        let read = record::read(reader);
        let end = reader.bytes.offset();
        work += end - start;
        *work_left = work_left
            .checked_sub(end - start + VALUE_WORK_BYTES * reader.values)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is too damaged to be read"))?;
        match read {
            Ok(Ok(record)) => {
                let is_disputed = !balance.closes(&mut reader.bytes, start, end);
                found.push(Ok(Record { is_disputed, ..record }));
            }
            // It may be nobody's, but it must not hide where the file was begun by being found by some and not by others.
            Ok(Err(head)) => found.extend(balance.closes(&mut reader.bytes, start, end).then_some(Err(head))),
            Err(Malformed) if work > WORK_BYTES_MIN && work > WORK_FACTOR * (end - line_start) => break,
            Err(Malformed) => reader.bytes.seek(start + 1),
        }
    }
    Ok(found)
}

/// The other reading of a damaged line: braces are counted from its beginning, texts passed over, and an object is what
/// stands where the count is back at nothing.
#[derive(Default)]
struct Balance {
    offset: u64,
    depth: u64,
    /// Where the object began that the count is in.
    start: u64,
    is_in_text: bool,
    is_escaped: bool,
}

impl Balance {
    /// Counts on to `end`, where the cursor is then, and says whether the object from `start` to there is one by this reading
    /// too.
    fn closes(&mut self, bytes: &mut impl Bytes, start: u64, end: u64) -> bool {
        bytes.seek(self.offset);
        let mut closed = None;
        while bytes.offset() < end {
            // A text may be hundreds of megabytes long. It may also reach beyond the object, and then this is none.
            if self.is_in_text && !self.is_escaped {
                bytes.skip_run();
            }
            let Some(byte) = bytes.peek() else { break };
            if self.count(byte, bytes.offset()) {
                closed = Some((self.start, bytes.offset() + 1));
            }
            bytes.bump();
        }
        self.offset = bytes.offset();
        bytes.seek(end);
        closed == Some((start, end))
    }

    /// Takes one byte; whether it closes an object.
    fn count(&mut self, byte: u8, offset: u64) -> bool {
        if self.is_escaped {
            self.is_escaped = false;
            return false;
        }
        match byte {
            b'\\' => self.is_escaped = self.is_in_text,
            b'"' => self.is_in_text = !self.is_in_text,
            _ if self.is_in_text => {}
            b'{' => {
                if self.depth == 0 {
                    self.start = offset;
                }
                self.depth += 1;
            }
            b'}' => {
                let was_inside = self.depth > 0;
                self.depth = self.depth.saturating_sub(1);
                return was_inside && self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

fn skip_byte_order_mark(bytes: &mut impl Bytes) {
    let start = bytes.offset();
    for expected in *b"\xef\xbb\xbf" {
        if bytes.peek() != Some(expected) {
            bytes.seek(start);
            return;
        }
        bytes.bump();
    }
}

#[cfg(test)]
mod tests;
