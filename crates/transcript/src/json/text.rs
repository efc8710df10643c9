//! Strings, decoded piece by piece into whatever wants to know of them.

use super::cursor::Bytes;
use super::{Malformed, Read};

/// Takes the pieces of a decoded string in order.
pub(crate) trait Sink {
    /// The next piece. A piece may end inside a character of several bytes.
    fn push(&mut self, piece: &[u8]);
    /// Whether it wants nothing of what is still to come, so that it need not be decoded.
    fn is_deaf(&self) -> bool {
        false
    }
}

/// Wants nothing.
pub(crate) struct Nothing;

impl Sink for Nothing {
    #[inline]
    fn push(&mut self, _piece: &[u8]) {}

    #[inline]
    fn is_deaf(&self) -> bool {
        true
    }
}

/// Keeps a text up to a bound.
pub(crate) struct Kept {
    bytes: Vec<u8>,
    bytes_max: usize,
    is_whole: bool,
}

impl Kept {
    /// Keeps at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), bytes_max, is_whole: true }
    }

    /// The text, if all of it was kept. Bytes that are no UTF-8 become replacement characters.
    pub(crate) fn into_text(self) -> Option<String> {
        self.is_whole.then(|| self.into_prefix())
    }

    /// What was kept of the text.
    pub(crate) fn into_prefix(self) -> String {
        String::from_utf8(self.bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl Sink for Kept {
    #[inline]
    fn push(&mut self, piece: &[u8]) {
        let fits = piece.len().min(self.bytes_max - self.bytes.len());
        self.bytes.extend_from_slice(&piece[..fits]);
        self.is_whole &= fits == piece.len();
    }
}

/// Bytes of a short text: more than any key or word of the format has.
const SHORT_BYTES_MAX: usize = 64;

/// Keeps a key or a word of the format, in place.
pub(crate) struct Short {
    bytes: [u8; SHORT_BYTES_MAX],
    length: usize,
    is_whole: bool,
}

impl Short {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; SHORT_BYTES_MAX], length: 0, is_whole: true }
    }

    /// The text; none when it was too long to be any that is asked for.
    pub(crate) fn text(&self) -> Option<&str> {
        let kept = self.bytes.get(..self.length).filter(|_| self.is_whole)?;
        std::str::from_utf8(kept).ok()
    }
}

impl Sink for Short {
    #[inline]
    fn push(&mut self, piece: &[u8]) {
        let end = self.length + piece.len();
        match self.bytes.get_mut(self.length..end) {
            Some(room) => {
                room.copy_from_slice(piece);
                self.length = end;
            }
            None => self.is_whole = false,
        }
    }
}

/// Reads one string, quotes included.
pub(crate) fn read(bytes: &mut impl Bytes, sink: &mut impl Sink) -> Read<()> {
    if bytes.peek() != Some(b'"') {
        return Err(Malformed);
    }
    bytes.bump();
    loop {
        if sink.is_deaf() {
            bytes.skip_run();
        }
        // A raw control character is no part of a JSON string, and so ends the run like a quote.
        sink.push(bytes.plain_run());
        let Some(byte) = bytes.peek() else { return Err(Malformed) };
        match byte {
            b'"' => {
                bytes.bump();
                return Ok(());
            }
            b'\\' => {
                bytes.bump();
                escape(bytes, sink)?;
            }
            0..0x20 => return Err(Malformed),
            // The next block begins with plain text.
            _ => {}
        }
    }
}

fn escape(bytes: &mut impl Bytes, sink: &mut impl Sink) -> Read<()> {
    let byte = bytes.peek().ok_or(Malformed)?;
    bytes.bump();
    let plain = match byte {
        b'"' | b'\\' | b'/' => byte,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unicode(bytes, sink),
        _ => return Err(Malformed),
    };
    sink.push(&[plain]);
    Ok(())
}

/// Reads what follows `\u`, and the second half of the pair if it is a first half.
fn unicode(bytes: &mut impl Bytes, sink: &mut impl Sink) -> Read<()> {
    let unit = hex4(bytes)?;
    if !(0xd800..0xdc00).contains(&unit) {
        push_char(char::from_u32(unit), sink);
        return Ok(());
    }
    let after_first = bytes.offset();
    match second_half(bytes) {
        Some(low) => push_char(char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)), sink),
        None => {
            bytes.seek(after_first);
            push_char(None, sink);
        }
    }
    Ok(())
}

fn second_half(bytes: &mut impl Bytes) -> Option<u32> {
    for expected in *b"\\u" {
        if bytes.peek() != Some(expected) {
            return None;
        }
        bytes.bump();
    }
    hex4(bytes).ok().filter(|unit| (0xdc00..0xe000).contains(unit))
}

fn hex4(bytes: &mut impl Bytes) -> Read<u32> {
    let mut unit = 0;
    for _ in 0..4 {
        let byte = bytes.peek().ok_or(Malformed)?;
        let digit = char::from(byte).to_digit(16).ok_or(Malformed)?;
        bytes.bump();
        unit = unit << 4 | digit;
    }
    Ok(unit)
}

/// Half a pair becomes the replacement character.
fn push_char(character: Option<char>, sink: &mut impl Sink) {
    let mut buffer = [0; 4];
    let text = character.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut buffer);
    sink.push(text.as_bytes());
}
