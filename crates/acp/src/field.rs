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
    let members = scan::members(object).ok()??;
    let found = members.iter().rev().find(|member| key_is(&object[member.key.clone()], key))?;
    Some(&object[found.value.clone()])
}

/// Whether a raw key, quotes included, spells `name`; escapes count as what they stand for.
pub(crate) fn key_is(raw_key: &str, name: &str) -> bool {
    let inner = &raw_key[1..raw_key.len() - 1];
    inner == name || (inner.contains('\\') && decode_string(raw_key).is_some_and(|key| key == name))
}
