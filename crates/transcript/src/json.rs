//! JSON as a browser reads it, without keeping what nobody asked for.
//!
//! The files were written by JavaScript and are read by its rules: half a surrogate pair is a character like any other
//! (it becomes U+FFFD here), a number may overflow, a repeated key takes the last value, and nesting has no limit. A
//! record may weigh hundreds of megabytes, so a value that is not wanted is passed over and never held.

mod copy;
mod cursor;
mod text;
mod value;

pub(crate) use copy::text as copied;
pub(crate) use cursor::{Bytes, FileBytes, SliceBytes};
pub(crate) use text::{Kept, Nothing, Short, Sink};
pub(crate) use value::value;

/// The bytes are no JSON at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What reading gives.
pub(crate) type Read<T> = Result<T, Malformed>;

/// Letters of a number that are kept. A double needs at most 24; what is cut off is beyond its precision.
const WORD_BYTES_MAX: usize = 1024;

/// What a value begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Object,
    Array,
    String,
    /// `true`, `false`, `null` or a number.
    Word,
}

/// Reads JSON from bytes, value by value.
pub(crate) struct Reader<B> {
    pub(crate) bytes: B,
    /// How many values were begun, which is what costs more than the bytes in them.
    pub(crate) values: u64,
}

impl<B: Bytes> Reader<B> {
    pub(crate) fn new(bytes: B) -> Self {
        Self { bytes, values: 0 }
    }

    /// Passes over white space and says what the next value is, without taking any of it.
    pub(crate) fn start(&mut self) -> Read<Start> {
        self.values += 1;
        self.skip_space();
        match self.bytes.peek() {
            Some(b'{') => Ok(Start::Object),
            Some(b'[') => Ok(Start::Array),
            Some(b'"') => Ok(Start::String),
            Some(b't' | b'f' | b'n' | b'-' | b'0'..=b'9') => Ok(Start::Word),
            _ => Err(Malformed),
        }
    }

    /// Whether nothing but white space is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.bytes.peek().is_none()
    }

    /// Reads an object, handing each key to `field`, which must take the value. Keys longer than anyone asks for are
    /// handed over as the empty text.
    pub(crate) fn object(&mut self, mut field: impl FnMut(&str, &mut Self) -> Read<()>) -> Read<()> {
        self.members(Short::new, |key, reader| field(key.text().unwrap_or_default(), reader))
    }

    /// Reads an object, each key into a sink of its own.
    pub(crate) fn members<S: Sink>(
        &mut self,
        new_key: impl Fn() -> S,
        mut field: impl FnMut(S, &mut Self) -> Read<()>,
    ) -> Read<()> {
        self.expect(b'{')?;
        self.skip_space();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let mut key = new_key();
            self.skip_space();
            self.string(&mut key)?;
            self.skip_space();
            self.expect(b':')?;
            field(key, self)?;
            self.skip_space();
            if self.take(b',') {
                continue;
            }
            return self.expect(b'}');
        }
    }

    /// Reads an array, calling `element` before each one, which must take it.
    pub(crate) fn array(&mut self, mut element: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.expect(b'[')?;
        self.skip_space();
        if self.take(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            self.skip_space();
            if self.take(b',') {
                continue;
            }
            return self.expect(b']');
        }
    }

    /// Reads a string into a sink.
    pub(crate) fn string(&mut self, sink: &mut impl Sink) -> Read<()> {
        text::read(&mut self.bytes, sink)
    }

    /// Takes the next value; its text when it is a string of at most `bytes_max` bytes.
    pub(crate) fn text(&mut self, bytes_max: usize) -> Read<Option<String>> {
        if self.start()? != Start::String {
            self.skip()?;
            return Ok(None);
        }
        let mut kept = Kept::new(bytes_max);
        self.string(&mut kept)?;
        Ok(kept.into_text())
    }

    /// Takes the next value; none when it is no string.
    pub(crate) fn short(&mut self) -> Read<Option<Short>> {
        if self.start()? != Start::String {
            self.skip()?;
            return Ok(None);
        }
        let mut short = Short::new();
        self.string(&mut short)?;
        Ok(Some(short))
    }

    /// Takes the next value; whether it is this word.
    pub(crate) fn is_word(&mut self, word: &str) -> Read<bool> {
        Ok(self.short()?.is_some_and(|short| short.text() == Some(word)))
    }

    /// Takes `true`, `false`, `null` or a number and gives its letters, or as many as fit.
    pub(crate) fn word(&mut self) -> Read<String> {
        let mut word = Kept::new(WORD_BYTES_MAX);
        match self.bytes.peek() {
            Some(b't') => self.literal(b"true", &mut word)?,
            Some(b'f') => self.literal(b"false", &mut word)?,
            Some(b'n') => self.literal(b"null", &mut word)?,
            _ => self.number(&mut word)?,
        }
        Ok(word.into_prefix())
    }

    /// Takes the next value and keeps nothing of it, however deep it is.
    pub(crate) fn skip(&mut self) -> Read<()> {
        let mut open = Nesting::default();
        loop {
            match self.start()? {
                Start::String => self.string(&mut Nothing)?,
                Start::Word => drop(self.word()?),
                start => {
                    if self.open(start, &mut open)? {
                        continue;
                    }
                }
            }
            if !self.next_sibling(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Opens an object or array; whether it has something in it that must be read now.
    fn open(&mut self, start: Start, open: &mut Nesting) -> Read<bool> {
        let is_object = start == Start::Object;
        self.bytes.bump();
        self.skip_space();
        if self.take(if is_object { b'}' } else { b']' }) {
            return Ok(false);
        }
        open.push(is_object)?;
        if is_object {
            self.key()?;
        }
        Ok(true)
    }

    /// After a value: closes what ends here and goes to the next value; whether there is one.
    fn next_sibling(&mut self, open: &mut Nesting) -> Read<bool> {
        while let Some(in_object) = open.last() {
            self.skip_space();
            if self.take(b',') {
                if in_object {
                    self.skip_space();
                    self.key()?;
                }
                return Ok(true);
            }
            self.expect(if in_object { b'}' } else { b']' })?;
            open.pop();
        }
        Ok(false)
    }

    fn key(&mut self) -> Read<()> {
        self.string(&mut Nothing)?;
        self.skip_space();
        self.expect(b':')
    }

    fn literal(&mut self, word: &[u8], kept: &mut Kept) -> Read<()> {
        for byte in word {
            self.expect(*byte)?;
        }
        kept.push(word);
        Ok(())
    }

    fn number(&mut self, kept: &mut Kept) -> Read<()> {
        self.take_into(|byte| byte == b'-', 1, kept);
        if self.take_into(|byte| byte == b'0', 1, kept) == 0 {
            self.digits(kept)?;
        }
        if self.take_into(|byte| byte == b'.', 1, kept) == 1 {
            self.digits(kept)?;
        }
        if self.take_into(|byte| matches!(byte, b'e' | b'E'), 1, kept) == 1 {
            self.take_into(|byte| matches!(byte, b'+' | b'-'), 1, kept);
            self.digits(kept)?;
        }
        Ok(())
    }

    fn digits(&mut self, kept: &mut Kept) -> Read<()> {
        match self.take_into(|byte| byte.is_ascii_digit(), usize::MAX, kept) {
            0 => Err(Malformed),
            _ => Ok(()),
        }
    }

    fn take_into(&mut self, wanted: impl Fn(u8) -> bool, most: usize, kept: &mut Kept) -> usize {
        let mut taken = 0;
        while taken < most {
            let Some(byte) = self.bytes.peek().filter(|byte| wanted(*byte)) else { break };
            kept.push(&[byte]);
            self.bytes.bump();
            taken += 1;
        }
        taken
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.peek() {
            self.bytes.bump();
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.bytes.peek() == Some(byte);
        if is_next {
            self.bytes.bump();
        }
        is_next
    }

    fn expect(&mut self, byte: u8) -> Read<()> {
        if self.take(byte) { Ok(()) } else { Err(Malformed) }
    }
}

/// How many containers may be open at once: four megabytes of marks. What is nested deeper was made to be.
const DEPTH_MAX: usize = 32 * 1024 * 1024;

/// Which containers are open: one bit each, so that no nesting that anybody wrote in earnest is too deep to hold.
#[derive(Default)]
struct Nesting {
    bits: Vec<u64>,
    depth: usize,
}

impl Nesting {
    fn push(&mut self, is_object: bool) -> Read<()> {
        if self.depth == DEPTH_MAX {
            return Err(Malformed);
        }
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        self.bits[word] = self.bits[word] & !(1 << bit) | u64::from(is_object) << bit;
        self.depth += 1;
        Ok(())
    }

    fn last(&self) -> Option<bool> {
        let index = self.depth.checked_sub(1)?;
        Some(self.bits[index / 64] >> (index % 64) & 1 == 1)
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
