//! A value written anew, as JSON that every reader accepts, without building it in memory.

use std::io::Write;

use super::cursor::Bytes;
use super::value::word_value;
use super::{Kept, Malformed, Read, Reader, Start};

/// Takes the next value and gives its text. What strict readers refuse is mended: half a surrogate pair and bytes that
/// are no UTF-8 become U+FFFD, a number that no double can hold becomes null, and so does what is nested too deep.
pub(crate) fn text<B: Bytes>(reader: &mut Reader<B>) -> Read<String> {
    let mut text = Vec::new();
    copy(reader, super::value::DEPTH_MAX, &mut text)?;
    String::from_utf8(text).map_err(|_| Malformed)
}

fn copy<B: Bytes>(reader: &mut Reader<B>, depth: usize, text: &mut Vec<u8>) -> Read<()> {
    let Some(inner) = depth.checked_sub(1) else {
        text.extend_from_slice(b"null");
        return reader.skip();
    };
    match reader.start()? {
        Start::String => {
            let mut kept = Kept::new(usize::MAX);
            reader.string(&mut kept)?;
            written(text, &kept.into_prefix())
        }
        Start::Word => {
            let word = reader.word()?;
            written(text, &word_value(&word))
        }
        Start::Array => {
            text.push(b'[');
            let start = text.len();
            reader.array(|reader| {
                separate(text, start);
                copy(reader, inner, text)
            })?;
            text.push(b']');
            Ok(())
        }
        Start::Object => {
            text.push(b'{');
            let start = text.len();
            reader.members(
                || Kept::new(usize::MAX),
                |key, reader| {
                    separate(text, start);
                    written(text, &key.into_prefix())?;
                    text.push(b':');
                    copy(reader, inner, text)
                },
            )?;
            text.push(b'}');
            Ok(())
        }
    }
}

/// Puts a comma behind whatever stands there since `start`.
fn separate(text: &mut Vec<u8>, start: usize) {
    if text.len() > start {
        text.push(b',');
    }
}

/// To write into memory cannot fail, and neither can a text or a number be without JSON.
fn written(text: &mut impl Write, value: &impl serde::Serialize) -> Read<()> {
    serde_json::to_writer(text, value).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::json::{SliceBytes, value};

    fn copied(json: &[u8]) -> Option<String> {
        text(&mut Reader::new(SliceBytes::new(json, 0))).ok()
    }

    #[test]
    fn what_strict_readers_refuse_is_mended() {
        for (json, expected) in [
            (&b"{ \"a\" : [ 1 , \"b\" ] , \"c\" : { } }"[..], r#"{"a":[1,"b"],"c":{}}"#),
            (b"\"\\ud800\"", "\"\u{fffd}\""),
            (b"\"\xff\"", "\"\u{fffd}\""),
            (b"[1e999,-1,true,null]", "[null,-1,true,null]"),
            (b"{\"k\\\"ey\":\"\\u0001\"}", r#"{"k\"ey":"\u0001"}"#),
        ] {
            assert_eq!(copied(json).as_deref(), Some(expected));
        }
        for broken in [&b""[..], b"{", b"[1,", b"{\"a\"}", b"nul"] {
            assert_eq!(copied(broken), None);
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_null() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(copied(nested(120).as_bytes()), Some(nested(120)));
        assert_eq!(copied(nested(100_000).as_bytes()), Some("[".repeat(120) + "null" + &"]".repeat(120)));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..5)
                    .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        /// A copy says what the value says that would have been built.
        #[test]
        #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
        fn a_copy_is_the_value(written in values()) {
            let json = written.to_string();
            prop_assert_eq!(copied(json.as_bytes()).map(|copy| serde_json::from_str(&copy).unwrap()), value(json.as_bytes()));
        }
    }
}
