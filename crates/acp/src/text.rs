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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(raw: &str, repaired: &str) {
        assert_eq!(repair_surrogates(raw), repaired);
    }

    #[test]
    fn half_a_pair_is_replaced_and_a_whole_one_kept() {
        check(r#""\ud83d""#, r#""\ufffd""#);
        check(r#""\uDC00""#, r#""\ufffd""#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#);
        check(r#""\ud83d x \ude00""#, r#""\ufffd x \ufffd""#);
        check(r#"["\uD83D","\uDe00","\ud7ff\ue000"]"#, r#"["\ufffd","\ufffd","\ud7ff\ue000"]"#);
    }

    #[test]
    fn an_escaped_backslash_starts_no_escape() {
        check(r#""\\ud83d""#, r#""\\ud83d""#);
        check(r#""\\\ud83d""#, r#""\\\ufffd""#);
        check(r#""\"\ud83d\"""#, r#""\"\ufffd\"""#);
    }

    #[test]
    fn a_text_that_ends_inside_an_escape_is_left_alone() {
        for raw in ["\\", "\\u", "\\ud8", "\\ud83", "é\\é", "\\ud83d\\", "\\ud83d\\u"] {
            let repaired = repair_surrogates(raw);
            assert_eq!(repaired.replace("\\ufffd", "\\ud83d"), raw);
        }
    }

    #[test]
    fn a_text_without_halves_is_not_copied() {
        assert!(matches!(repair_surrogates(r#"{"a":"\n\ud83d\ude00"}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn strings_decode_with_a_mark_where_half_a_pair_was() {
        assert_eq!(decode_string(r#""a\ud83d\nb""#).as_deref(), Some("a\u{fffd}\nb"));
        assert_eq!(decode_string(r#""\ud83d\ude00""#).as_deref(), Some("😀"));
        assert_eq!(decode_string(r#""plain é""#).as_deref(), Some("plain é"));
        assert_eq!(decode_string("\"\"").as_deref(), Some(""));
        for not_a_string in
            ["", "\"", "a", "\"a", "a\"", "1", "null", "\"a\"b\"", "\"a\nb\"", "\"\\q\"", "\"\\\"", "[\"\\n\"]"]
        {
            assert_eq!(decode_string(not_a_string), None, "{not_a_string}");
        }
    }

    #[test]
    fn a_value_with_half_a_pair_is_readable_and_what_no_value_can_hold_is_not() {
        assert_eq!(lenient_value(r#"{"a":["\ud83d",1]}"#), Some(json!({"a": ["\u{fffd}", 1]})));
        assert_eq!(lenient_value(r#"{"a":1,"a":2}"#), Some(json!({"a": 2})));
        for unreadable in ["", "{", "1e999", &"[".repeat(200), &format!("{}{}", "[".repeat(200), "]".repeat(200))] {
            assert_eq!(lenient_value(unreadable), None);
        }
    }

    fn units() -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(prop_oneof![0xd7f0_u16..0xe010, any::<u16>(), 0x20_u16..0x7f], 0..12)
    }

    proptest! {
        /// The standard library decodes UTF-16 by the same rule: a mark for each half.
        #[test]
        fn escapes_decode_as_utf_16_does(units in units()) {
            let raw: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let decoded = decode_string(&format!("\"{raw}\""));
            prop_assert_eq!(decoded, Some(String::from_utf16_lossy(&units)));
        }

        #[test]
        fn no_text_makes_the_repair_fail_or_change_it_twice(raw in "[\\\\u d8cf0-9a\"é]{0,40}") {
            let once = repair_surrogates(&raw).into_owned();
            prop_assert_eq!(repair_surrogates(&once).into_owned(), once);
        }

        #[test]
        fn every_string_comes_back(text in any::<String>()) {
            prop_assert_eq!(decode_string(&serde_json::to_string(&text).unwrap()), Some(text));
        }
    }
}
