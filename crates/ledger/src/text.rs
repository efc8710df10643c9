//! JSON strings: decoded as a browser decodes them, quoted as a browser quotes them.

use std::borrow::Cow;

/// The bytes between the quotes of a string whose grammar the scanner has checked.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    raw: &'a [u8],
}

impl<'a> Text<'a> {
    pub(crate) fn new(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    /// Whether the decoded text is `word`.
    pub(crate) fn is(&self, word: &str) -> bool {
        *self.bytes() == *word.as_bytes()
    }

    /// The text without its escapes, as bytes to be compared with plain words: no such word holds a byte that would have
    /// to be replaced, so bytes that are not UTF-8 are left as they are.
    pub(crate) fn bytes(&self) -> Cow<'a, [u8]> {
        if self.is_escaped() { Cow::Owned(self.decode().into_bytes()) } else { Cow::Borrowed(self.raw) }
    }

    /// The text with its escapes resolved. Half a surrogate pair and bytes that are not UTF-8 become U+FFFD each.
    pub(crate) fn decode(&self) -> String {
        if !self.is_escaped() {
            return match str::from_utf8(self.raw) {
                Ok(text) => text.to_owned(),
                Err(_) => String::from_utf8_lossy(self.raw).into_owned(),
            };
        }
        let mut decoded = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
            push_lossy(&mut decoded, &rest[..at]);
            let (character, length) = unescape(&rest[at..]);
            decoded.push(character);
            rest = &rest[at + length..];
        }
        push_lossy(&mut decoded, rest);
        decoded
    }

    fn is_escaped(&self) -> bool {
        self.raw.contains(&b'\\')
    }
}

/// Appends `text` as a JSON string: only what has to be escaped is, control characters without a short form as
/// `\u00xx` in lower case.
pub(crate) fn push_quoted(json: &mut String, text: &str) {
    json.push('"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        json.push_str(&text[plain_from..at]);
        push_escape(json, byte);
        plain_from = at + 1;
    }
    json.push_str(&text[plain_from..]);
    json.push('"');
}

fn push_escape(json: &mut String, byte: u8) {
    let short = match byte {
        b'"' => '"',
        b'\\' => '\\',
        0x08 => 'b',
        b'\t' => 't',
        b'\n' => 'n',
        0x0c => 'f',
        b'\r' => 'r',
        _ => {
            json.push_str(&format!("\\u{byte:04x}"));
            return;
        }
    };
    json.push('\\');
    json.push(short);
}

fn push_lossy(decoded: &mut String, bytes: &[u8]) {
    decoded.push_str(&String::from_utf8_lossy(bytes));
}

/// The character of the escape that `rest` begins with, and the length of that escape in bytes.
fn unescape(rest: &[u8]) -> (char, usize) {
    match rest.get(1) {
        Some(b'u') => unescape_units(rest),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(itself) => (char::from(*itself), 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}

/// One `\uXXXX`, or two of them when they are the halves of one character.
fn unescape_units(rest: &[u8]) -> (char, usize) {
    let Some(unit) = code_unit(rest) else {
        return (char::REPLACEMENT_CHARACTER, rest.len());
    };
    if let Some(character) = char::from_u32(u32::from(unit)) {
        return (character, 6);
    }
    let other_half = rest.get(6..).and_then(code_unit);
    let pair = other_half.and_then(|half| char::decode_utf16([unit, half]).next()?.ok());
    pair.map_or((char::REPLACEMENT_CHARACTER, 6), |character| (character, 12))
}

/// The UTF-16 code unit of the `\uXXXX` that `rest` begins with, if it does.
fn code_unit(rest: &[u8]) -> Option<u16> {
    let digits = rest.strip_prefix(b"\\u")?.get(..4)?;
    let text = str::from_utf8(digits).ok()?;
    u16::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(raw: &[u8]) -> String {
        Text::new(raw).decode()
    }

    #[test]
    fn escapes_are_resolved() {
        let cases: [(&[u8], &str); 9] = [
            (b"", ""),
            (b"plain", "plain"),
            (br#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (br"caf\u00e9", "caf\u{e9}"),
            (br"caf\u00E9", "caf\u{e9}"),
            (br"\ud83e\uddea!", "\u{1f9ea}!"),
            (br"\u0000", "\0"),
            (br"a\\u0041", "a\\u0041"),
            ("\u{4efb}\\n\u{52a1}".as_bytes(), "\u{4efb}\n\u{52a1}"),
        ];
        for (raw, expected) in cases {
            assert_eq!(decode(raw), expected, "{}", String::from_utf8_lossy(raw));
        }
    }

    #[test]
    fn half_a_surrogate_pair_becomes_one_replacement_character() {
        let cases: [(&[u8], &str); 7] = [
            (br"x\ud800", "x\u{fffd}"),
            (br"x\udc00y", "x\u{fffd}y"),
            (br"\ud800\ud800", "\u{fffd}\u{fffd}"),
            (br"\ud800\u0041", "\u{fffd}A"),
            (br"\ud800A", "\u{fffd}A"),
            (br"\udc00\ud800", "\u{fffd}\u{fffd}"),
            (br"\ud800\ud83e\uddea", "\u{fffd}\u{1f9ea}"),
        ];
        for (raw, expected) in cases {
            assert_eq!(decode(raw), expected, "{}", String::from_utf8_lossy(raw));
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced_as_a_lossy_reader_replaces_them() {
        let cases: [(&[u8], &str); 5] = [
            (b"a\xffb", "a\u{fffd}b"),
            (b"a\xe4\xbb", "a\u{fffd}"),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xe4\xbb\\n\xbb", "\u{fffd}\n\u{fffd}"),
            (b"\xf0\x9f\xa7\xaa", "\u{1f9ea}"),
        ];
        for (raw, expected) in cases {
            assert_eq!(decode(raw), expected, "{raw:x?}");
        }
    }

    #[test]
    fn a_word_is_recognised_in_any_spelling_and_only_whole() {
        assert!(Text::new(b"promptId").is("promptId"));
        assert!(Text::new(br"prompt\u0049d").is("promptId"));
        assert!(!Text::new(b"promptI").is("promptId"));
        assert!(!Text::new(b"promptId ").is("promptId"));
        assert!(!Text::new(b"PromptId").is("promptId"));
    }

    #[test]
    fn text_is_quoted_as_a_browser_quotes_it() {
        let cases = [
            ("", r#""""#),
            ("end_turn", r#""end_turn""#),
            ("a\"b\\c/d", r#""a\"b\\c/d""#),
            ("\u{8}\t\n\u{c}\r", r#""\b\t\n\f\r""#),
            ("\0\u{1}\u{1f}\u{7f}", "\"\\u0000\\u0001\\u001f\u{7f}\""),
            ("\u{2028}\u{e9}\u{1f9ea}", "\"\u{2028}\u{e9}\u{1f9ea}\""),
        ];
        for (text, expected) in cases {
            let mut json = String::new();
            push_quoted(&mut json, text);
            assert_eq!(json, expected);
        }
    }

    #[test]
    fn every_character_of_the_first_planes_survives_quoting_and_decoding() {
        let step = if cfg!(miri) { 9_001 } else { 7 };
        for character in ('\0'..='\u{20000}').step_by(step).chain('\0'..='\u{100}') {
            let text = format!("<{character}>");
            let mut json = String::new();
            push_quoted(&mut json, &text);
            let raw = &json.as_bytes()[1..json.len() - 1];
            assert_eq!(decode(raw), text);
        }
    }
}
