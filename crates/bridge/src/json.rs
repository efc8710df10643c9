//! Writing JSON objects member by member, so that raw text passes through untouched.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::value::RawValue;

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

    pub(crate) fn maybe_number(self, key: &str, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.number(key, number),
            None => self,
        }
    }

    pub(crate) fn flag(self, key: &str, flag: bool) -> Self {
        self.raw(key, if flag { "true" } else { "false" })
    }

    /// Null where there is none.
    pub(crate) fn number_or_null(self, key: &str, number: Option<i64>) -> Self {
        self.raw(key, &number.map_or("null".to_owned(), |number| number.to_string()))
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }

    /// A member whose name is not one of ours.
    pub(crate) fn member(mut self, name: &str, raw: &str) -> Self {
        self.comma();
        self.text.push_str(&quoted(name));
        self.text.push(':');
        self.text.push_str(raw);
        self
    }

    fn key(&mut self, key: &str) {
        self.comma();
        self.text.push('"');
        self.text.push_str(key);
        self.text.push_str("\":");
    }

    fn comma(&mut self) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
    }
}

/// The raw object without one of its members. Where a key is too odd to be read, the member stays and is null.
pub(crate) fn without(raw_object: &str, key: &str) -> String {
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw_object) else {
        return acp::with_member(raw_object, key, "null");
    };
    let kept = members.iter().filter(|(name, _)| *name != key);
    kept.fold(Object::new(), |object, (name, value)| object.member(name, value.get())).finish()
}

/// An array of what is JSON text already.
pub(crate) fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    proptest! {
        #[test]
        fn any_text_comes_back_as_it_was(text in any::<String>(), number in any::<u64>()) {
            let object = Object::new().text("text", &text).number("number", number).finish();
            prop_assert!(!object.contains(['\n', '\r']));
            let read: Value = serde_json::from_str(&object).unwrap();
            prop_assert_eq!(&read["text"], &Value::from(text));
            prop_assert_eq!(&read["number"], &Value::from(number));
        }

        #[test]
        fn without_takes_exactly_one_member(
            members in prop::collection::btree_map("[a-d\"\\\\é]{0,3}", any::<i32>(), 0..6),
            key in "[a-d]{0,2}",
        ) {
            let whole = serde_json::to_string(&members).unwrap();
            let mut expected = members;
            expected.remove(&key);
            let read: BTreeMap<String, i32> = serde_json::from_str(&without(&whole, &key)).unwrap();
            prop_assert_eq!(read, expected);
        }
    }

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
    fn a_member_is_taken_out_and_the_others_stay_as_they_are() {
        assert_eq!(without(r#"{"a":1,"texts":{"b":2},"c":"\ud83d"}"#, "texts"), r#"{"a":1,"c":"\ud83d"}"#);
        assert_eq!(without(r#"{"\ud83d":1,"texts":2}"#, "texts"), r#"{"\ud83d":1,"texts":null}"#);
    }

    #[test]
    fn a_value_spread_over_lines_comes_out_on_one() {
        assert_eq!(Object::new().raw("a", "[\r\n 1,\n 2]").finish(), r#"{"a":[   1,  2]}"#);
    }
}
