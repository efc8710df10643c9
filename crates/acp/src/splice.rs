//! Putting a member into raw JSON without touching the rest of it.

use std::borrow::Cow;

use serde_json::Value;

use crate::field::raw_at;
use crate::scan::{self, Member, NotAnObject};
use crate::text::decode_string;

/// The raw object with one member set to raw JSON, every other byte as it was.
///
/// Where the key is repeated the last is set, as that one counts. What is not an object (agents
/// answer `null` where an object is due) gives an object of this one member.
#[must_use]
pub fn with_member(raw_object: &str, key: &str, raw_value: &str) -> String {
    match scan::last_member(raw_object, key) {
        Ok(Some(found)) => {
            let (before, after) = (&raw_object[..found.value.start], &raw_object[found.value.end..]);
            format!("{before}{raw_value}{after}")
        }
        Ok(None) => with_first_member(raw_object, key, raw_value),
        Err(NotAnObject) => with_first_member("{}", key, raw_value),
    }
}

/// Puts a member in front of those that the object has.
fn with_first_member(raw_object: &str, key: &str, raw_value: &str) -> String {
    let body = raw_object.trim_ascii_start().strip_prefix('{').unwrap_or("}");
    let comma = if body.trim_ascii_start().starts_with('}') { "" } else { "," };
    format!("{{{}:{raw_value}{comma}{body}", Value::from(key))
}

/// The raw object with one key of its `_meta` set, every other byte as it was.
///
/// A missing or null `_meta` is made; one that is no object is replaced.
#[must_use]
pub fn with_meta(raw_object: &str, key: &str, value: &Value) -> String {
    let meta = raw_at(raw_object, &["_meta"]).unwrap_or("{}");
    with_member(raw_object, "_meta", &with_member(meta, key, &value.to_string()))
}

/// The raw object without the members whose names begin with `prefix`, in whatever spelling; every other member as it was.
///
/// Nothing of it is decoded but the names, so that nothing a full parser refuses keeps such a member in. Borrowed where there is none,
/// and what is not an object is as it was, since nobody finds a member in it.
#[must_use]
pub fn without_prefixed<'a>(raw_object: &'a str, prefix: &str) -> Cow<'a, str> {
    let begins_so = |member: &Member| {
        // A name that cannot be read may be read otherwise by somebody else.
        decode_string(&raw_object[member.key.clone()]).is_none_or(|name| name.starts_with(prefix))
    };
    let mut found = false;
    let is_object = scan::each_member(raw_object, |member| found |= begins_so(&member));
    if !found || !matches!(is_object, Ok(true)) {
        return Cow::Borrowed(raw_object);
    }
    let mut kept = String::from("{");
    // It is an object, as was just seen.
    let _ = scan::each_member(raw_object, |member| {
        if !begins_so(&member) {
            let comma = if kept.len() > 1 { "," } else { "" };
            kept.extend([comma, &raw_object[member.key], ":", &raw_object[member.value]]);
        }
    });
    kept.push('}');
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_is_set_and_everything_else_is_left_as_it_was() {
        for (object, expected) in [
            ("{}", r#"{"k":1}"#),
            (" { } ", r#"{"k":1 } "#),
            (r#"{"a":"\ud83d", "b":1e999}"#, r#"{"k":1,"a":"\ud83d", "b":1e999}"#),
            (r#"{"a":2,"k":{"x":[]},"b":3}"#, r#"{"a":2,"k":1,"b":3}"#),
            (r#"{"k":2,"k":3}"#, r#"{"k":2,"k":1}"#),
            (r#"{"\u006b":2}"#, r#"{"\u006b":1}"#),
        ] {
            assert_eq!(with_member(object, "k", "1"), expected);
        }
    }

    #[test]
    fn what_is_no_object_gives_one_of_this_member() {
        for text in ["null", "[]", "\"x\"", "", "{\"a\":", "{} {}"] {
            assert_eq!(with_member(text, "k", "1"), r#"{"k":1}"#);
        }
    }

    #[test]
    fn a_key_of_meta_is_set_beside_the_others() {
        for (object, expected) in [
            ("{}", r#"{"_meta":{"k":true}}"#),
            (r#"{"a":1}"#, r#"{"_meta":{"k":true},"a":1}"#),
            (r#"{"_meta":{},"a":1}"#, r#"{"_meta":{"k":true},"a":1}"#),
            (r#"{"a":1,"_meta":{"x":"\ud83d"}}"#, r#"{"a":1,"_meta":{"k":true,"x":"\ud83d"}}"#),
            (r#"{"_meta":{"k":{"old":1},"x":2}}"#, r#"{"_meta":{"k":true,"x":2}}"#),
            (r#"{"_meta":null}"#, r#"{"_meta":{"k":true}}"#),
            (r#"{"_meta":[1]}"#, r#"{"_meta":{"k":true}}"#),
            ("null", r#"{"_meta":{"k":true}}"#),
        ] {
            assert_eq!(with_meta(object, "k", &json!(true)), expected);
        }
    }

    #[test]
    fn members_are_taken_out_by_the_beginning_of_their_names_however_these_are_spelled() {
        for (object, expected) in [
            (r#"{"t/a":1}"#, "{}"),
            (r#"{"t\/a":1,"b" : 2 , "\u0074/c":{"d":1}}"#, r#"{"b":2}"#),
            (r#"{"a":1e9999,"t/a":"\ud83d","c":"\ud83d","t\u002fb\ud83d":0}"#, r#"{"a":1e9999,"c":"\ud83d"}"#),
            (r#"{"t/a":1,"t/a":2,"a":{"t/a":3}}"#, r#"{"a":{"t/a":3}}"#),
        ] {
            assert_eq!(without_prefixed(object, "t/"), expected);
        }
        for kept in ["{}", "null", r#"{ "x t/" : 1 }"#, r#"["t/a"]"#, r#""t/a""#, r#"{"t\\/a":1}"#] {
            assert!(matches!(without_prefixed(kept, "t/"), Cow::Borrowed(raw) if raw == kept), "{kept}");
        }
    }

    proptest! {
        #[test]
        fn a_splice_means_what_an_insert_means(
            keys in prop::collection::vec("[a-c_]{0,2}|_meta", 0..5),
            key in "[a-c]{1,2}",
            space in " {0,2}",
        ) {
            let members: Vec<String> = keys.iter().map(|key| format!("{space}\"{key}\":{space}{{\"{key}\":1}}{space}")).collect();
            let object = format!("{space}{{{}}}", members.join(","));
            let mut expected: Value = serde_json::from_str(&object).unwrap();
            expected[&key] = json!([1]);
            let spliced = with_member(&object, &key, "[1]");
            prop_assert_eq!(serde_json::from_str::<Value>(&spliced).unwrap(), expected.clone());

            expected["_meta"][&key] = json!("m");
            let spliced = with_meta(&spliced, &key, &json!("m"));
            prop_assert_eq!(serde_json::from_str::<Value>(&spliced).unwrap(), expected);
        }
    }
}
