//! One form for JSON that says the same: no white space, members by name. Texts and numbers stay what they are.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::limits::CONTENT_DEPTH_MAX;

/// JSON text in canonical form: members sorted by the bytes of their names, those of the same name in the order given; texts with the fewest
/// escapes; numbers as they were written, because what an agent makes of `1.0` is not ours to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical(String);

/// Why a text has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CanonicalError {
    /// It is no JSON, or has half a character in a text.
    #[error("not valid JSON")]
    NotJson,
    /// It is nested deeper than [`CONTENT_DEPTH_MAX`].
    #[error("nested deeper than {CONTENT_DEPTH_MAX} levels")]
    TooDeep,
}

impl Canonical {
    /// The canonical form of a JSON text.
    ///
    /// # Errors
    /// See [`CanonicalError`].
    pub fn of(json: &str) -> Result<Self, CanonicalError> {
        let raw: &RawValue = serde_json::from_str(json).map_err(|_| CanonicalError::NotJson)?;
        let mut text = String::with_capacity(json.len());
        write(raw, CONTENT_DEPTH_MAX, &mut text)?;
        Ok(Self(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn write(raw: &RawValue, depth: usize, out: &mut String) -> Result<(), CanonicalError> {
    let json = raw.get();
    match json.as_bytes().first() {
        Some(b'{' | b'[') if depth == 0 => Err(CanonicalError::TooDeep),
        Some(b'{') => write_object(json, depth, out),
        Some(b'[') => write_array(json, depth, out),
        Some(b'"') => {
            let text: String = serde_json::from_str(json).map_err(|_| CanonicalError::NotJson)?;
            write_text(&text, out)
        }
        // A number, `true`, `false` or `null`, which has one form or the one that it was given.
        _ => {
            out.push_str(json);
            Ok(())
        }
    }
}

fn write_object(json: &str, depth: usize, out: &mut String) -> Result<(), CanonicalError> {
    let mut json = serde_json::Deserializer::from_str(json);
    let mut members = json.deserialize_map(Members).map_err(|_| CanonicalError::NotJson)?;
    // Stable: of two members of one name an agent may take either, so that their order says something.
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    out.push('{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_text(&name, out)?;
        out.push(':');
        write(value, depth - 1, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_array(json: &str, depth: usize, out: &mut String) -> Result<(), CanonicalError> {
    let mut json = serde_json::Deserializer::from_str(json);
    let items = json.deserialize_seq(Items).map_err(|_| CanonicalError::NotJson)?;
    out.push('[');
    for (place, value) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write(value, depth - 1, out)?;
    }
    out.push(']');
    Ok(())
}

fn write_text(text: &str, out: &mut String) -> Result<(), CanonicalError> {
    out.push_str(&serde_json::to_string(text).map_err(|_| CanonicalError::NotJson)?);
    Ok(())
}

/// All members of an object, also those of one name.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// All items of an array.
struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element()? {
            values.push(value);
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, canonical: &str) {
        assert_eq!(Canonical::of(json).as_ref().map(Canonical::as_str), Ok(canonical), "{json}");
    }

    #[test]
    fn white_space_and_the_order_of_members_say_nothing() {
        check(" [ { \"b\" : 1 , \"a\" : [ ] } , { } ] ", r#"[{"a":[],"b":1},{}]"#);
    }

    #[test]
    fn a_text_has_the_fewest_escapes_and_keeps_every_character() {
        check(r#""\u00e4\/\n A ""#, r#""ä/\n A ""#);
        check(r#"{"\u0062":1,"a":2}"#, r#"{"a":2,"b":1}"#);
    }

    #[test]
    fn a_number_stays_as_it_was_written() {
        check(
            "[1.0,1,1e2,0.1000000000000000055,123456789012345678901234567890]",
            "[1.0,1,1e2,0.1000000000000000055,123456789012345678901234567890]",
        );
    }

    #[test]
    fn members_of_one_name_keep_their_order() {
        check(r#"{"b":0,"a":1,"a":2}"#, r#"{"a":1,"a":2,"b":0}"#);
        check(r#"{"b":0,"a":2,"a":1}"#, r#"{"a":2,"a":1,"b":0}"#);
    }

    #[test]
    fn what_is_no_json_or_too_deep_has_no_form() {
        for json in ["", "[", "[1,]", "{\"a\"}", "nul", r#"["\ud800"]"#, "[1] 2", "{1:2}"] {
            assert_eq!(Canonical::of(json), Err(CanonicalError::NotJson), "{json}");
        }
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Canonical::of(&nested(CONTENT_DEPTH_MAX)).is_ok());
        assert_eq!(Canonical::of(&nested(CONTENT_DEPTH_MAX + 1)), Err(CanonicalError::TooDeep));
        assert!(Canonical::of(&nested(1_000_000)).is_err());
    }
}
