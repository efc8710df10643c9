//! JSON-RPC errors, read leniently and written plainly.

use serde_json::Value;

use crate::field::{raw_at, string_at};
use crate::text::decode_string;

/// The text was not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message was JSON but no request that can be served now.
pub const INVALID_REQUEST: i64 = -32600;
/// Nobody here knows the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The work failed; also what an error without a readable code counts as.
pub const INTERNAL_ERROR: i64 = -32603;

/// The error half of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// The code. Agents use JSON-RPC's negative numbers, and some HTTP's.
    pub code: i64,
    /// One line for people.
    pub message: String,
    /// Raw JSON of whatever else was said: an object, a string, an array, or nothing.
    pub data: Option<String>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with data.
    #[must_use]
    pub fn with_data(mut self, data: &Value) -> Self {
        self.data = Some(data.to_string());
        self
    }

    /// Reads the raw value of an `error` member. Every value gives some error, because an answer
    /// that says `error` in an odd way must still end the request it answers.
    #[must_use]
    pub fn from_raw(raw: &str) -> Self {
        let code = raw_at(raw, &["code"]).and_then(whole_number).unwrap_or(INTERNAL_ERROR);
        let message = string_at(raw, &["message"])
            .or_else(|| decode_string(raw))
            .unwrap_or_else(|| "the error carries no message".to_owned());
        let data = raw_at(raw, &["data"]).filter(|data| *data != "null").map(str::to_owned);
        Self { code, message, data }
    }

    /// The string `data.details`, where many agents put what really happened.
    #[must_use]
    pub fn details(&self) -> Option<String> {
        string_at(self.data.as_deref()?, &["details"])
    }
}

/// A number that some agents write as a float or a string.
fn whole_number(raw: &str) -> Option<i64> {
    let text = raw.trim_matches('"');
    text.parse().ok().or_else(|| text.strip_suffix(".0")?.parse().ok())
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_usual_shape_is_read_whole() {
        let error =
            RpcError::from_raw(r#"{"code":-32603,"message":"Internal error","data":{"details":"no such file"}}"#);
        assert_eq!(error, RpcError::new(-32603, "Internal error").with_data(&json!({"details": "no such file"})));
        assert_eq!(error.details().as_deref(), Some("no such file"));
    }

    #[test]
    fn data_may_be_anything_or_nothing() {
        for (data, expected) in
            [("\"text\"", Some("\"text\"")), ("[1]", Some("[1]")), ("{}", Some("{}")), ("null", None)]
        {
            let error = RpcError::from_raw(&format!(r#"{{"code":1,"message":"m","data":{data}}}"#));
            assert_eq!(error.data.as_deref(), expected);
            assert_eq!(error.details(), None);
        }
    }

    #[test]
    fn an_odd_error_is_still_an_error() {
        assert_eq!(RpcError::from_raw("\"boom\""), RpcError::new(INTERNAL_ERROR, "boom"));
        assert_eq!(RpcError::from_raw(r#"{"code":"400","message":"bad"}"#), RpcError::new(400, "bad"));
        assert_eq!(RpcError::from_raw(r#"{"code":500.0,"message":"bad"}"#), RpcError::new(500, "bad"));
        for raw in ["{}", "7", "[]", r#"{"code":null,"message":7}"#] {
            let error = RpcError::from_raw(raw);
            assert_eq!(error.code, INTERNAL_ERROR);
            assert!(!error.message.is_empty());
        }
    }

    #[test]
    fn half_a_pair_in_the_message_is_marked() {
        assert_eq!(RpcError::from_raw(r#"{"code":1,"message":"a\ud83d"}"#).message, "a\u{fffd}");
    }
}
