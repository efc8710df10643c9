//! Putting a member into raw JSON without touching the rest of it.

use serde_json::Value;

use crate::field::{key_is, raw_at};
use crate::scan;

/// The raw object with one member set to raw JSON, every other byte as it was.
///
/// Where the key is repeated the last is set, as that one counts. What is not an object (agents
/// answer `null` where an object is due) gives an object of this one member.
#[must_use]
pub fn with_member(raw_object: &str, key: &str, raw_value: &str) -> String {
    let Ok(Some(members)) = scan::members(raw_object) else {
        return format!("{{{}:{raw_value}}}", Value::from(key));
    };
    if let Some(found) = members.iter().rev().find(|member| key_is(&raw_object[member.key.clone()], key)) {
        let (before, after) = (&raw_object[..found.value.start], &raw_object[found.value.end..]);
        return format!("{before}{raw_value}{after}");
    }
    let body = raw_object.trim_ascii_start().trim_start_matches('{');
    let comma = if members.is_empty() { "" } else { "," };
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
