//! JSON strings that may hold half a surrogate pair.

use std::borrow::Cow;

/// What stands in for half a pair once a text is decoded.
const REPLACEMENT_ESCAPE: &str = "\\ufffd";

/// The four kinds of `\u` escape, as the code unit they name.
#[derive(Clone, Copy)]
enum Unit {
    Plain,
    High,
    Low,
}

/// Replaces every escape of half a surrogate pair by the escape of U+FFFD and leaves every other
/// byte alone, so that a full parser takes the text. A text without such halves is borrowed.
#[must_use]
pub fn repair_surrogates(raw: &str) -> Cow<'_, str> {
    let bytes = raw.as_bytes();
    let mut repaired = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += offset;
        match unit_at(bytes, at) {
            None => at = (at + 2).min(bytes.len()),
            Some(Unit::Plain) => at += 6,
            Some(Unit::High) if matches!(unit_at(bytes, at + 6), Some(Unit::Low)) => at += 12,
            Some(Unit::High | Unit::Low) => {
                repaired.push_str(&raw[kept..at]);
                repaired.push_str(REPLACEMENT_ESCAPE);
                at += 6;
                kept = at;
            }
        }
    }
    if kept == 0 {
        return Cow::Borrowed(raw);
    }
    repaired.push_str(&raw[kept..]);
    Cow::Owned(repaired)
}

/// The kind of the `\uXXXX` escape that starts at `at`, if one does.
fn unit_at(bytes: &[u8], at: usize) -> Option<Unit> {
    let escape = bytes.get(at..at + 6)?;
    if !escape.starts_with(b"\\u") || !escape[2..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let is_surrogate = matches!(escape[2], b'd' | b'D');
    Some(match escape[3] {
        b'8'..=b'9' | b'a' | b'b' | b'A' | b'B' if is_surrogate => Unit::High,
        b'c'..=b'f' | b'C'..=b'F' if is_surrogate => Unit::Low,
        _ => Unit::Plain,
    })
}

/// The text a raw JSON string (quotes included) stands for, halves of surrogate pairs replaced by
/// U+FFFD. `None` when it is not a JSON string.
#[must_use]
pub fn decode_string(raw: &str) -> Option<String> {
    if !raw.contains('\\') {
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        return (!inner.contains(|c: char| c == '"' || c < ' ')).then(|| inner.to_owned());
    }
    serde_json::from_str(&repair_surrogates(raw)).ok()
}

/// The value a raw JSON text stands for, halves of surrogate pairs replaced by U+FFFD.
///
/// `None` when the text is not JSON, nests more than 128 levels, or holds a number that no double
/// can; callers then keep the raw text, which stays valid.
#[must_use]
pub fn lenient_value(raw: &str) -> Option<serde_json::Value> {
    serde_json::from_str(&repair_surrogates(raw)).ok()
}
