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
    /// Goes on over such bytes and over the escapes of one letter, as far as they are at hand.
    fn skip_run(&mut self);
    /// Goes on to the next `byte`, or to the end; whether there is one.
    fn find(&mut self, byte: u8) -> bool;
    /// Where the cursor stands, in bytes from the beginning of the file.
    fn offset(&self) -> u64;
    /// Puts the cursor elsewhere within the same bytes.
    fn seek(&mut self, offset: u64);
    /// Why the end came early, if it did.
    fn take_error(&mut self) -> Option<io::Error> {
        None
    }
}

/// One bit in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte of a word.
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The beginning of `bytes` that a string holds unescaped: up to a quote, a backslash or a control character. Eight bytes
/// are looked at together, since a huge record is nothing but such runs.
fn plain_prefix(bytes: &[u8]) -> &[u8] {
    let mut end = 0;
    while let Some(chunk) = bytes[end..].first_chunk() {
        let ends = ends_of_run(u64::from_le_bytes(*chunk));
        if ends != 0 {
            return &bytes[..end + ends.trailing_zeros() as usize / 8];
        }
        end += chunk.len();
    }
    let ends_run = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    end += bytes[end..].iter().position(ends_run).unwrap_or(bytes.len() - end);
    &bytes[..end]
}

/// How many bytes of the beginning of `bytes` are plain or an escape of one letter, which ends within them.
fn skippable(bytes: &[u8]) -> usize {
    let mut end = 0;
    loop {
        end += plain_prefix(&bytes[end..]).len();
        match bytes[end..].first_chunk() {
            Some([b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't']) => end += 2,
            _ => return end,
        }
    }
}

/// Marks the bytes of a word that end a run. The lowest mark is right; those above it may be false, for a borrow.
fn ends_of_run(word: u64) -> u64 {
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    let equal = |byte: u8| zeros(word ^ (ONES * u64::from(byte)));
    (equal(b'"') | equal(b'\\') | controls) & HIGHS
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

    fn skip_run(&mut self) {
        self.at += skippable(self.bytes.get(self.at..).unwrap_or_default());
    }

    fn find(&mut self, byte: u8) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = memchr::memchr(byte, rest);
        self.at += found.unwrap_or(rest.len());
        found.is_some()
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

    /// The bytes of the block from a place in it.
    fn at_hand(&self, from: u64) -> &[u8] {
        let index = usize::try_from(from - self.block_start).unwrap_or(usize::MAX);
        self.block.get(index..).unwrap_or_default()
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
        let (start, length) = (self.at, plain_prefix(self.at_hand(self.at)).len());
        self.at += length as u64;
        &self.at_hand(start)[..length]
    }

    fn skip_run(&mut self) {
        if self.peek().is_some() {
            self.at += skippable(self.at_hand(self.at)) as u64;
        }
    }

    fn find(&mut self, byte: u8) -> bool {
        while self.peek().is_some() {
            let rest = self.at_hand(self.at);
            let found = memchr::memchr(byte, rest);
            self.at += found.unwrap_or(rest.len()) as u64;
            if found.is_some() {
                return true;
            }
        }
        false
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_plain(byte: u8) -> bool {
        !matches!(byte, b'"' | b'\\' | 0..0x20)
    }

    #[test]
    fn every_byte_ends_a_run_at_every_place_or_nowhere() {
        for byte in 0..=u8::MAX {
            for at in 0..20 {
                let mut bytes = [b'x'; 20];
                bytes[at] = byte;
                assert_eq!(plain_prefix(&bytes).len(), if is_plain(byte) { 20 } else { at }, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn an_escape_of_one_letter_is_passed_over_and_no_other() {
        for (bytes, expected) in [
            (&b"ab\\n\\\"cd\"x"[..], 8),
            (b"\\u0041", 0),
            (b"a\\x", 1),
            (b"a\\", 1),
            (b"\\\\\\", 2),
            (b"a\nb", 1),
            (b"", 0),
        ] {
            assert_eq!(skippable(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
        fn a_run_is_as_long_as_one_byte_after_the_other_says(
            bytes in prop::collection::vec(prop_oneof![8 => 0x20..=u8::MAX, 1 => any::<u8>()], 0..60),
        ) {
            let plain = bytes.iter().take_while(|byte| is_plain(**byte)).count();
            prop_assert_eq!(plain_prefix(&bytes).len(), plain);
        }

        #[test]
        fn a_byte_is_found_where_it_stands(bytes in prop::collection::vec(prop::sample::select(b"ab{".to_vec()), 0..40)) {
            let mut cursor = SliceBytes::new(&bytes, 7);
            let at = bytes.iter().position(|byte| *byte == b'{');
            prop_assert_eq!(cursor.find(b'{'), at.is_some());
            prop_assert_eq!(cursor.offset(), 7 + at.unwrap_or(bytes.len()) as u64);
        }
    }
}
