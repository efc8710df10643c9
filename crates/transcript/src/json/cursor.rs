//! Bytes one after the other, from memory or from a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// How much of a file is held while a long line is read. Large enough to make reads few, small enough not to matter.
const BLOCK_BYTES: usize = 64 * 1024;

/// Bytes with a place.
pub(crate) trait Bytes {
    /// The byte at the cursor; none at the end.
    fn peek(&mut self) -> Option<u8>;
    /// Goes on by one byte.
    fn bump(&mut self);
    /// Takes the bytes at the cursor that stand for themselves inside a string, or as many of them as are at hand.
    fn plain_run(&mut self) -> &[u8];
    /// Where the cursor stands, in bytes from the beginning of the file.
    fn offset(&self) -> u64;
    /// Puts the cursor elsewhere within the same bytes.
    fn seek(&mut self, offset: u64);
    /// Why the end came early, if it did.
    fn take_error(&mut self) -> Option<io::Error> {
        None
    }
}

/// The beginning of `bytes` that a string holds unescaped.
fn plain_prefix(bytes: &[u8]) -> &[u8] {
    let ends_run = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let end = bytes.iter().position(ends_run).unwrap_or(bytes.len());
    &bytes[..end]
}

/// A line held in memory.
pub(crate) struct SliceBytes<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
}

impl<'a> SliceBytes<'a> {
    /// The bytes that stand at `base` in the file.
    pub(crate) fn new(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, base }
    }
}

impl Bytes for SliceBytes<'_> {
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn bump(&mut self) {
        self.at += 1;
    }

    fn plain_run(&mut self) -> &[u8] {
        let run = plain_prefix(self.bytes.get(self.at..).unwrap_or_default());
        self.at += run.len();
        run
    }

    fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    fn seek(&mut self, offset: u64) {
        self.at = usize::try_from(offset.saturating_sub(self.base)).unwrap_or(usize::MAX);
    }
}

/// A line too long to be held, read from the file block by block.
pub(crate) struct FileBytes<'a> {
    file: &'a File,
    end: u64,
    block: Vec<u8>,
    block_start: u64,
    at: u64,
    error: Option<io::Error>,
}

impl<'a> FileBytes<'a> {
    /// The bytes of `range`.
    pub(crate) fn new(file: &'a File, range: Range<u64>) -> Self {
        Self { file, end: range.end, block: Vec::new(), block_start: range.start, at: range.start, error: None }
    }

    fn in_block(&self) -> Option<u8> {
        let index = self.at.checked_sub(self.block_start)?;
        self.block.get(usize::try_from(index).ok()?).copied()
    }

    /// Reads the block that begins at the cursor.
    fn fill(&mut self) -> Option<u8> {
        let left = self.end.saturating_sub(self.at);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        self.block.resize(wanted, 0);
        self.block_start = self.at;
        if let Err(error) = self.file.read_exact_at(&mut self.block, self.at) {
            self.block.clear();
            self.error = Some(error);
        }
        self.in_block()
    }
}

impl Bytes for FileBytes<'_> {
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        if self.at >= self.end || self.error.is_some() {
            return None;
        }
        self.in_block().or_else(|| self.fill())
    }

    #[inline]
    fn bump(&mut self) {
        self.at += 1;
    }

    fn plain_run(&mut self) -> &[u8] {
        if self.peek().is_none() {
            return &[];
        }
        let index = usize::try_from(self.at - self.block_start).unwrap_or(usize::MAX);
        let run = plain_prefix(self.block.get(index..).unwrap_or_default());
        self.at += run.len() as u64;
        run
    }

    fn offset(&self) -> u64 {
        self.at
    }

    fn seek(&mut self, offset: u64) {
        self.at = offset;
    }

    fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}
