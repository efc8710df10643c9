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
