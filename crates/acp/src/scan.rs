//! A JSON scanner that finds where values begin and end and decodes nothing.
//!
//! It exists because full parsers refuse what real agents send: half a surrogate pair in a title
//! is grammatical JSON, yet no Rust string can hold it. The scanner accepts exactly the grammar of
//! RFC 8259, keeps its place in a fixed number of bits instead of on the call stack, and is
//! therefore safe on any input.

use std::ops::Range;

use crate::text::decode_string;

/// Nesting levels the scanner follows. A full parser gives up at 128; the margin keeps a deep but
/// harmless tool input routable. One bit a level.
pub const DEPTH_LEVELS_MAX: usize = 1024;

/// Why a text is not one JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// The byte at this offset cannot stand there, or the text ends there too early.
    Syntax {
        /// Offset in bytes from the start of the text.
        at: usize,
    },
    /// More than [`DEPTH_LEVELS_MAX`] arrays and objects lie inside each other.
    TooDeep,
}

/// One member of an object, as places in the text.
#[derive(Clone)]
pub(crate) struct Member {
    /// The key, quotes included.
    pub(crate) key: Range<usize>,
    /// The value, without the space around it.
    pub(crate) value: Range<usize>,
}

/// Finds the single value that `text` consists of, without the space around it.
pub(crate) fn whole_value(text: &str) -> Result<Range<usize>, ScanError> {
    let mut cursor = Cursor::new(text);
    let value = cursor.value()?;
    cursor.end()?;
    Ok(value)
}

/// Shows each member of the object that `text` consists of, in order and with duplicates. False,
/// with nothing shown, when the text is another kind of value. What was shown counts only if the
/// whole text turns out to be JSON.
///
/// Members are shown and not collected: one line can hold millions of them.
pub(crate) fn each_member(text: &str, show: impl FnMut(Member)) -> Result<bool, ScanError> {
    let mut cursor = Cursor::new(text);
    cursor.space();
    let is_object = cursor.peek() == Some(b'{');
    if is_object {
        cursor.object(show)?;
    } else {
        cursor.value()?;
    }
    cursor.end()?;
    Ok(is_object)
}

/// The last member called `name` of the object that `text` consists of, as that one counts.
/// `Ok(None)` when it has none, an error when the text is no object.
pub(crate) fn last_member(text: &str, name: &str) -> Result<Option<Member>, NotAnObject> {
    let mut last = None;
    let is_object = each_member(text, |member| {
        if key_is(&text[member.key.clone()], name) {
            last = Some(member);
        }
    });
    if matches!(is_object, Ok(true)) { Ok(last) } else { Err(NotAnObject) }
}

/// The text is not JSON, or JSON of another kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotAnObject;

/// Whether a raw key, quotes included, spells `name`; escapes count as what they stand for.
pub(crate) fn key_is(raw_key: &str, name: &str) -> bool {
    let inner = &raw_key[1..raw_key.len() - 1];
    inner == name || (inner.contains('\\') && decode_string(raw_key).is_some_and(|key| key == name))
}

/// A place in a text. Every method leaves it just behind what it consumed.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }

    fn syntax(&self) -> ScanError {
        ScanError::Syntax { at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.eat(byte) { Ok(()) } else { Err(self.syntax()) }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Nothing but space is left.
    fn end(&mut self) -> Result<(), ScanError> {
        self.space();
        if self.at < self.bytes.len() { Err(self.syntax()) } else { Ok(()) }
    }

    /// An object whose opening brace is next.
    fn object(&mut self, mut show: impl FnMut(Member)) -> Result<(), ScanError> {
        self.expect(b'{')?;
        self.space();
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let key = self.key()?;
            let value = self.value()?;
            show(Member { key, value });
            self.space();
            if self.eat(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
            self.space();
        }
    }

    /// A key and the colon behind it.
    fn key(&mut self) -> Result<Range<usize>, ScanError> {
        let start = self.at;
        self.string()?;
        let end = self.at;
        self.space();
        self.expect(b':')?;
        Ok(start..end)
    }

    /// Any value, however deep up to the limit.
    fn value(&mut self) -> Result<Range<usize>, ScanError> {
        self.space();
        let start = self.at;
        let mut nest = Nest::default();
        loop {
            self.space();
            let opened = match self.peek() {
                Some(b'{') => self.open(&mut nest, Container::Object)?,
                Some(b'[') => self.open(&mut nest, Container::Array)?,
                _ => {
                    self.scalar()?;
                    false
                }
            };
            if !opened && self.close(&mut nest)? {
                return Ok(start..self.at);
            }
        }
    }

    /// Enters a container; false when it was empty and is already behind us.
    fn open(&mut self, nest: &mut Nest, container: Container) -> Result<bool, ScanError> {
        self.at += 1;
        self.space();
        if self.eat(container.closer()) {
            return Ok(false);
        }
        nest.push(container)?;
        if container == Container::Object {
            self.key()?;
        }
        Ok(true)
    }

    /// After a value: leaves every container that ends here. True when the outermost value ended,
    /// false when a sibling follows.
    fn close(&mut self, nest: &mut Nest) -> Result<bool, ScanError> {
        while let Some(container) = nest.top() {
            self.space();
            if self.eat(b',') {
                self.space();
                if container == Container::Object {
                    self.key()?;
                }
                return Ok(false);
            }
            self.expect(container.closer())?;
            nest.pop();
        }
        Ok(true)
    }

    fn scalar(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.syntax()),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), ScanError> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(self.syntax());
        }
        self.at += word.len();
        Ok(())
    }

    fn string(&mut self) -> Result<(), ScanError> {
        self.expect(b'"')?;
        loop {
            let rest = &self.bytes[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20));
            self.at += plain.unwrap_or(rest.len());
            if self.eat(b'"') {
                return Ok(());
            }
            self.escape()?;
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        self.expect(b'\\')?;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.syntax());
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.syntax()),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), ScanError> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.syntax()) } else { Ok(()) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

impl Container {
    fn closer(self) -> u8 {
        match self {
            Self::Array => b']',
            Self::Object => b'}',
        }
    }
}

/// The containers we are inside of, one bit each, so that depth costs no stack.
#[derive(Default)]
struct Nest {
    depth: usize,
    objects: [u64; DEPTH_LEVELS_MAX / 64],
}

impl Nest {
    fn push(&mut self, container: Container) -> Result<(), ScanError> {
        if self.depth == DEPTH_LEVELS_MAX {
            return Err(ScanError::TooDeep);
        }
        let bit = 1 << (self.depth % 64);
        match container {
            Container::Object => self.objects[self.depth / 64] |= bit,
            Container::Array => self.objects[self.depth / 64] &= !bit,
        }
        self.depth += 1;
        Ok(())
    }

    fn top(&self) -> Option<Container> {
        let last = self.depth.checked_sub(1)?;
        let object = self.objects[last / 64] >> (last % 64) & 1 == 1;
        Some(if object { Container::Object } else { Container::Array })
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
