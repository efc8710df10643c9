//! Looking into raw JSON at a shallow path, without decoding the rest.

use crate::scan;
use crate::text::decode_string;

/// The raw text at `path` inside the object `raw`, or `None` when a step is missing or not an
/// object. Of a repeated key the last counts, as in every common parser.
#[must_use]
pub fn raw_at<'a>(raw: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(raw, |object, key| member(object, key))
}

/// The string at `path` inside the object `raw`, halves of surrogate pairs replaced by U+FFFD.
/// `None` when there is none or it is no string.
#[must_use]
pub fn string_at(raw: &str, path: &[&str]) -> Option<String> {
    decode_string(raw_at(raw, path)?)
}

fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let found = scan::last_member(object, key).ok()??;
    Some(&object[found.value])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &str = r#"{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\ud83d"},"n":[1, 2]}}"#;

    #[test]
    fn a_path_leads_to_the_raw_text_or_the_string() {
        assert_eq!(string_at(PARAMS, &["sessionId"]).as_deref(), Some("s-1"));
        assert_eq!(string_at(PARAMS, &["update", "content", "text"]).as_deref(), Some("a\u{fffd}"));
        assert_eq!(raw_at(PARAMS, &["update", "n"]), Some("[1, 2]"));
        assert_eq!(raw_at(PARAMS, &[]), Some(PARAMS));
    }

    #[test]
    fn a_path_that_leads_nowhere_gives_nothing() {
        for path in [&["nope"][..], &["sessionId", "x"], &["update", "n", "0"], &["update", "content", "text", "x"]] {
            assert_eq!(raw_at(PARAMS, path), None);
        }
        assert_eq!(string_at(PARAMS, &["update"]), None);
        assert_eq!(raw_at("{\"a\":1", &["a"]), None);
        assert_eq!(raw_at("", &["a"]), None);
    }

    #[test]
    fn of_a_repeated_key_the_last_is_found() {
        assert_eq!(raw_at(r#"{"a":{"b":1},"a":{"b":2}}"#, &["a", "b"]), Some("2"));
    }
}
