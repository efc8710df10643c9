//! The id that ties an answer to its request, kept as it was spelled.

use crate::scan;
use crate::text::decode_string;

/// A JSON-RPC request id: a number, a string, or null, byte for byte as it arrived.
///
/// Ids are opaque to whoever answers. Two ids are the same when their spelling is; the agent's ids
/// and ours are separate spaces, and an id says nothing about which space it is from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// Takes the raw JSON text of an id. `None` when it is neither number, string nor null.
    #[must_use]
    pub fn parse(raw: &str) -> Option<Self> {
        let raw = raw.trim_ascii();
        let scalar = matches!(raw.as_bytes().first()?, b'"' | b'-' | b'0'..=b'9' | b'n');
        (scalar && scan::whole_value(raw).is_ok()).then(|| Self(raw.into()))
    }

    /// The id of an answer to something that could not be read.
    #[must_use]
    pub fn null() -> Self {
        Self("null".into())
    }

    /// An id that is a string.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string().into())
    }

    /// The raw JSON text, quotes included.
    #[must_use]
    pub fn as_raw(&self) -> &str {
        &self.0
    }

    /// Whether the id is null, which ties an answer to nothing.
    #[must_use]
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// The number, when the id is a whole one that fits. `7` and `7.0` are one number; `"7"` is a
    /// string and none.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok().or_else(|| self.0.strip_suffix(".0")?.parse().ok())
    }

    /// The id as whoever numbers his requests plainly wrote it. An agent that keeps ids as floating-point numbers answers `7` with
    /// `7.0`, and has answered it.
    #[must_use]
    pub fn as_numbered(&self) -> Self {
        self.as_u64().map_or_else(|| self.clone(), Self::from)
    }

    /// The text, when the id is a string.
    #[must_use]
    pub fn as_string(&self) -> Option<String> {
        decode_string(&self.0)
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl From<&Self> for RequestId {
    fn from(id: &Self) -> Self {
        id.clone()
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_strings_and_null_are_ids_as_they_are_spelled() {
        for raw in
            ["0", "-1", "7.0", "1e3", "123456789012345678901234567890", r#""a""#, r#""\u0061""#, r#""\ud83d""#, "null"]
        {
            assert_eq!(RequestId::parse(raw).unwrap().as_raw(), raw);
        }
        assert_eq!(RequestId::parse(" 7 ").unwrap(), RequestId::from(7));
    }

    #[test]
    fn other_values_are_no_ids() {
        for raw in ["", "true", "[]", "{}", "[1]", "nul", "1 2", "01", "\"a", "a"] {
            assert_eq!(RequestId::parse(raw), None, "{raw}");
        }
    }

    #[test]
    fn a_number_and_a_string_of_it_are_two_ids() {
        let (number, text) = (RequestId::from(7), RequestId::string("7"));
        assert_ne!(number, text);
        assert_eq!((number.as_u64(), text.as_u64()), (Some(7), None));
        assert_eq!((number.as_string(), text.as_string()), (None, Some("7".to_owned())));
        assert_eq!(RequestId::parse("7.0").unwrap().as_u64(), Some(7));
        assert_eq!(RequestId::parse("-7").unwrap().as_u64(), None);
        let plain = |raw: &str| RequestId::parse(raw).unwrap().as_numbered().as_raw().to_owned();
        assert_eq!([plain("7.0"), plain("7"), plain("\"7.0\""), plain("7.5")], ["7", "7", "\"7.0\"", "7.5"]);
    }

    #[test]
    fn null_is_known_as_such() {
        assert!(RequestId::null().is_null());
        assert!(!RequestId::string("null").is_null());
        assert_eq!(RequestId::parse("null"), Some(RequestId::null()));
    }

    #[test]
    fn a_string_is_quoted_and_escaped() {
        assert_eq!(RequestId::string("a\"\n").to_string(), r#""a\"\n""#);
    }
}
