//! JSON read as a browser reads it.
//!
//! A scanner, not a tree: it proves that a line is one object and hands out the members of that object. What nobody
//! reads is checked for grammar only, so a number too large for a double, nesting thousands deep or half a surrogate
//! pair in an unread key costs nothing and loses nothing. Nesting is counted on the heap, never on the stack.

use crate::text::Text;

/// The text is not one JSON object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The value of one member of the object.
pub(crate) enum Value<'a> {
    /// A string, not yet decoded.
    Text(Text<'a>),
    /// A number as the nearest double; infinite when it is too large for one.
    Number(f64),
    /// `true`, `false`, `null`, an object or an array: nothing a ledger line reads.
    Other,
}

/// Calls `visit` with the key and the value of every member of the one object in `line`, in the order of the text.
///
/// A repeated key is visited each time, so that the caller's last assignment wins. When the line turns out to be
/// malformed, what was visited before has to be forgotten.
pub(crate) fn members<'a>(line: &'a [u8], mut visit: impl FnMut(Text<'a>, Value<'a>)) -> Result<(), Malformed> {
    let mut cursor = Cursor { rest: line };
    cursor.skip_white_space();
    cursor.expect(b'{')?;
    cursor.skip_white_space();
    if !cursor.eat(b'}') {
        loop {
            let key = cursor.key()?;
            visit(key, cursor.value()?);
            cursor.skip_white_space();
            if cursor.eat(b'}') {
                break;
            }
            cursor.expect(b',')?;
            cursor.skip_white_space();
        }
    }
    cursor.skip_white_space();
    if cursor.rest.is_empty() { Ok(()) } else { Err(Malformed) }
}

/// Whether `byte` is white space between two JSON tokens.
pub(crate) fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether one of the eight bytes is a quote, a backslash or below a space.
///
/// Subtracting from a byte sets its high bit when it was smaller; bytes whose high bit was set before do not count. A
/// borrow can only come from a byte that is itself special, so it cannot make the answer wrong.
fn has_special(eight: u64) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let below = |word: u64, limit: u8| word.wrapping_sub(EACH * u64::from(limit)) & !word & (EACH * 0x80);
    let equal = |byte: u8| below(eight ^ (EACH * u64::from(byte)), 1);
    (below(eight, b' ') | equal(b'"') | equal(b'\\')) != 0
}

/// A container that was begun and not yet closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Array,
    Object,
}

impl Open {
    fn begun_by(byte: u8) -> Option<Self> {
        match byte {
            b'[' => Some(Self::Array),
            b'{' => Some(Self::Object),
            _ => None,
        }
    }

    fn end(self) -> u8 {
        match self {
            Self::Array => b']',
            Self::Object => b'}',
        }
    }
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Result<u8, Malformed> {
        self.rest.first().copied().ok_or(Malformed)
    }

    fn next(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.eat(byte) { Ok(()) } else { Err(Malformed) }
    }

    fn skip_white_space(&mut self) {
        while let Some((byte, rest)) = self.rest.split_first()
            && is_white_space(*byte)
        {
            self.rest = rest;
        }
    }

    /// A key, its colon and the white space behind both.
    fn key(&mut self) -> Result<Text<'a>, Malformed> {
        let key = self.text()?;
        self.skip_white_space();
        self.expect(b':')?;
        self.skip_white_space();
        Ok(key)
    }

    fn value(&mut self) -> Result<Value<'a>, Malformed> {
        if Open::begun_by(self.peek()?).is_some() {
            self.skip_container()?;
            return Ok(Value::Other);
        }
        self.scalar()
    }

    fn scalar(&mut self) -> Result<Value<'a>, Malformed> {
        match self.peek()? {
            b'"' => self.text().map(Value::Text),
            b'-' | b'0'..=b'9' => self.number().map(Value::Number),
            _ => self.skip_word().map(|()| Value::Other),
        }
    }

    fn text(&mut self) -> Result<Text<'a>, Malformed> {
        self.expect(b'"')?;
        let start = self.rest;
        loop {
            self.skip_plain();
            match self.next()? {
                b'"' => break,
                b'\\' => self.skip_escape()?,
                0..=0x1f => return Err(Malformed),
                _ => {}
            }
        }
        let length = start.len() - self.rest.len() - 1;
        Ok(Text::new(&start[..length]))
    }

    /// Eight bytes at a time while none of them ends a string, begins an escape or is a control character: most of what a
    /// ledger holds are ids, and most of the time of a reading is spent in them.
    fn skip_plain(&mut self) {
        while let Some((bytes, rest)) = self.rest.split_first_chunk()
            && !has_special(u64::from_le_bytes(*bytes))
        {
            self.rest = rest;
        }
    }

    /// The rest of an escape whose backslash was taken.
    fn skip_escape(&mut self) -> Result<(), Malformed> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => return Ok(()),
            b'u' => {}
            _ => return Err(Malformed),
        }
        for _ in 0..4 {
            if !self.next()?.is_ascii_hexdigit() {
                return Err(Malformed);
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<f64, Malformed> {
        let start = self.rest;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.skip_digits()?;
        }
        if self.eat(b'.') {
            self.skip_digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            self.skip_digits()?;
        }
        let length = start.len() - self.rest.len();
        let digits = str::from_utf8(&start[..length]).map_err(|_| Malformed)?;
        digits.parse().map_err(|_| Malformed)
    }

    /// One digit or more.
    fn skip_digits(&mut self) -> Result<(), Malformed> {
        if !self.next()?.is_ascii_digit() {
            return Err(Malformed);
        }
        while let Some((byte, rest)) = self.rest.split_first()
            && byte.is_ascii_digit()
        {
            self.rest = rest;
        }
        Ok(())
    }

    fn skip_word(&mut self) -> Result<(), Malformed> {
        let words: [&[u8]; 3] = [b"true", b"false", b"null"];
        self.rest = words.into_iter().find_map(|word| self.rest.strip_prefix(word)).ok_or(Malformed)?;
        Ok(())
    }

    /// An array or object with everything in it. Without recursion, because the text decides how deep it nests.
    fn skip_container(&mut self) -> Result<(), Malformed> {
        let mut open = Vec::new();
        loop {
            if let Some(container) = Open::begun_by(self.peek()?) {
                self.next()?;
                self.skip_white_space();
                if !self.eat(container.end()) {
                    open.push(container);
                    self.skip_to_value(container)?;
                    continue;
                }
            } else {
                self.scalar()?;
            }
            if self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// In an object, a value has a key before it.
    fn skip_to_value(&mut self, container: Open) -> Result<(), Malformed> {
        if container == Open::Object {
            self.key()?;
        }
        Ok(())
    }

    /// Behind a value: closes what ends here. True when nothing is open any more, false at the start of a next value.
    fn close(&mut self, open: &mut Vec<Open>) -> Result<bool, Malformed> {
        while let Some(container) = open.last().copied() {
            self.skip_white_space();
            if self.eat(b',') {
                self.skip_white_space();
                self.skip_to_value(container)?;
                return Ok(false);
            }
            self.expect(container.end())?;
            open.pop();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
