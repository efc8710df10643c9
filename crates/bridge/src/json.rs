//! Writing JSON objects member by member, so that raw text passes through untouched.

use std::fmt::Write as _;

/// An object being written. Members appear in the order of the calls.
pub(crate) struct Object {
    text: String,
}

impl Object {
    pub(crate) fn new() -> Self {
        Self { text: String::from("{") }
    }

    /// A member whose value is JSON text already. A line break in it can only stand between tokens and becomes a space: both the
    /// agent's lines and the event stream's end at one.
    pub(crate) fn raw(mut self, key: &str, raw: &str) -> Self {
        self.key(key);
        if raw.contains(['\n', '\r']) {
            self.text.push_str(&raw.replace(['\n', '\r'], " "));
        } else {
            self.text.push_str(raw);
        }
        self
    }

    pub(crate) fn maybe_raw(self, key: &str, raw: Option<&str>) -> Self {
        match raw {
            Some(raw) => self.raw(key, raw),
            None => self,
        }
    }

    pub(crate) fn text(self, key: &str, text: &str) -> Self {
        let quoted = quoted(text);
        self.raw(key, &quoted)
    }

    pub(crate) fn maybe_text(self, key: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    pub(crate) fn number(mut self, key: &str, number: u64) -> Self {
        self.key(key);
        // Writing into a string cannot fail.
        let _ = write!(self.text, "{number}");
        self
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }

    fn key(&mut self, key: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(key);
        self.text.push_str("\":");
    }
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_raw_text_its_bytes() {
        let object = Object::new().raw("a", r#"{"x":"\ud83d"}"#).text("b", "say \"hi\"\n").number("c", 7).finish();
        assert_eq!(object, r#"{"a":{"x":"\ud83d"},"b":"say \"hi\"\n","c":7}"#);
    }

    #[test]
    fn absent_members_leave_no_trace() {
        assert_eq!(Object::new().maybe_text("a", None).maybe_raw("b", None).number("c", 1).finish(), r#"{"c":1}"#);
        assert_eq!(Object::new().finish(), "{}");
    }

    #[test]
    fn a_value_spread_over_lines_comes_out_on_one() {
        assert_eq!(Object::new().raw("a", "[\r\n 1,\n 2]").finish(), r#"{"a":[   1,  2]}"#);
    }
}
