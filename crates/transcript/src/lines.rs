//! Lines of a file, from its end or from its beginning, without holding more than one of them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// How much is read at once. Most lines are much shorter, so most reads bring many.
const BLOCK_BYTES: u64 = 64 * 1024;
/// The longest line that is held in memory. A longer one is known by its place alone and read block by block.
pub(crate) const HELD_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A line that is not empty. Lines end at LF or CR, so that CRLF ends one line and an empty one.
pub(crate) struct Line<'a> {
    /// Where it stands in the file, in bytes, its end left out.
    pub(crate) span: Range<u64>,
    /// Its bytes, unless there are too many of them.
    pub(crate) held: Option<&'a [u8]>,
}

/// Lines from the end of a file to its beginning.
pub(crate) struct Backward<'a> {
    file: &'a File,
    /// Everything at and behind this place has been given out.
    end: u64,
    /// No line is given out that ends at or before this place.
    floor: u64,
    block: Vec<u8>,
    block_start: u64,
    /// The memory of the block before, to be used for the next one.
    spare: Vec<u8>,
}

impl<'a> Backward<'a> {
    /// Reads the first `length` bytes of the file, last line first.
    pub(crate) fn new(file: &'a File, length: u64) -> Self {
        Self { file, end: length, floor: 0, block: Vec::new(), block_start: length, spare: Vec::new() }
    }

    /// The same, but no line that ends at or before `floor`, which goes further back by what a line has beyond
    /// [`HELD_BYTES_MAX`].
    pub(crate) fn down_to(mut self, floor: u64) -> Self {
        self.floor = floor;
        self
    }

    /// Whether there are no more lines because of the floor.
    pub(crate) fn is_at_floor(&self) -> bool {
        self.floor > 0 && self.end <= self.floor
    }

    /// Where the bytes begin that have been given out, in bytes from the beginning of the file.
    pub(crate) fn read_from(&self) -> u64 {
        self.end
    }

    /// The line before the last one that was given out; none at the beginning of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            self.drop_line_ends()?;
            if self.end <= self.floor {
                return Ok(None);
            }
            let start = self.find_start()?;
            let span = start..self.end;
            self.end = start;
            if span.end - span.start > HELD_BYTES_MAX {
                // What is behind a huge record is no further away than behind a large one.
                self.floor = self.floor.saturating_sub(span.end - span.start - HELD_BYTES_MAX);
                return Ok(Some(Line { span, held: None }));
            }
            let held = index(span.start, self.block_start)..index(span.end, self.block_start);
            if self.block[held.clone()].trim_ascii().is_empty() {
                continue;
            }
            return Ok(Some(Line { span, held: Some(&self.block[held]) }));
        }
    }

    /// Goes back over the ends of lines and over the white space before them, which are no part of any.
    fn drop_line_ends(&mut self) -> io::Result<()> {
        while self.end > self.floor {
            if self.end <= self.block_start {
                self.block.clear();
                self.block_start = self.end;
                self.prepend()?;
            }
            let before = &self.block[..index(self.end, self.block_start)];
            let kept = before.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
            self.end = self.block_start + kept as u64;
            if kept > 0 {
                break;
            }
        }
        Ok(())
    }

    /// Where the line begins whose last byte stands before `end`.
    fn find_start(&mut self) -> io::Result<u64> {
        let mut searched = self.end;
        loop {
            let unsearched = &self.block[..index(searched, self.block_start)];
            if let Some(at) = memchr::memrchr2(b'\n', b'\r', unsearched) {
                return Ok(self.block_start + at as u64 + 1);
            }
            searched = self.block_start;
            if searched == 0 {
                return Ok(0);
            }
            if self.end - searched > HELD_BYTES_MAX {
                self.block.clear();
            }
            self.prepend()?;
        }
    }

    /// Puts the bytes before the block in front of it, as many as it has itself, so that a long line costs a few reads.
    /// What has been given out is dropped.
    fn prepend(&mut self) -> io::Result<()> {
        self.block.truncate(index(self.end.max(self.block_start), self.block_start));
        let wanted = BLOCK_BYTES.max(self.block.len() as u64).min(self.block_start);
        let start = self.block_start - wanted;
        let read = index(wanted, 0);
        self.spare.resize(read + self.block.len(), 0);
        let (before, behind) = self.spare.split_at_mut(read);
        self.file.read_exact_at(before, start)?;
        behind.copy_from_slice(&self.block);
        std::mem::swap(&mut self.block, &mut self.spare);
        self.block_start = start;
        Ok(())
    }
}

/// Lines from the beginning of a file, as far as one asks.
pub(crate) struct Forward<'a> {
    file: &'a File,
    at: u64,
    length: u64,
    block: Vec<u8>,
    block_start: u64,
}

impl<'a> Forward<'a> {
    /// Reads the first `length` bytes of the file, first line first.
    pub(crate) fn new(file: &'a File, length: u64) -> Self {
        Self { file, at: 0, length, block: Vec::new(), block_start: 0 }
    }

    /// Where the next line stands, in bytes. Empty ones are given out too.
    pub(crate) fn next(&mut self) -> io::Result<Option<Range<u64>>> {
        let start = self.at;
        if start >= self.length {
            return Ok(None);
        }
        let mut end = start;
        while end < self.length {
            let unsearched = self.bytes_from(end)?;
            let found = memchr::memchr2(b'\n', b'\r', unsearched);
            end += found.unwrap_or(unsearched.len()) as u64;
            if found.is_some() {
                break;
            }
        }
        self.at = end + 1;
        Ok(Some(start..end))
    }

    /// Some bytes that begin at `offset`, at least one.
    fn bytes_from(&mut self, offset: u64) -> io::Result<&[u8]> {
        if offset >= self.block_start + self.block.len() as u64 {
            self.block.resize(index((self.length - offset).min(BLOCK_BYTES), 0), 0);
            self.block_start = offset;
            self.file.read_exact_at(&mut self.block, offset)?;
        }
        Ok(&self.block[index(offset, self.block_start)..])
    }
}

/// White space of JSON, the ends of lines among it.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b' ' | b'\t')
}

/// The place of a byte of the file in a block that begins at `start`. Blocks are small, so the number fits.
fn index(offset: u64, start: u64) -> usize {
    usize::try_from(offset - start).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
