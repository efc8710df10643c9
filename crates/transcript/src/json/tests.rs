use std::io::Write;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn reader(bytes: &[u8]) -> Reader<SliceBytes<'_>> {
    Reader::new(SliceBytes::new(bytes, 0))
}

/// Whether the bytes are one value and nothing else.
fn is_one_value(bytes: &[u8]) -> bool {
    let mut reader = reader(bytes);
    reader.skip().is_ok() && reader.is_at_end()
}

#[test]
fn what_is_nested_deeper_than_anyone_writes_is_no_json() {
    let mut open = Nesting { bits: vec![0; DEPTH_MAX / 64], depth: DEPTH_MAX - 1 };
    assert_eq!(open.push(true), Ok(()));
    assert_eq!(open.push(true), Err(Malformed));
}

#[test]
fn values_of_every_kind_are_passed_over() {
    for text in [
        "{}",
        "[]",
        "\"\"",
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-12.50e-3",
        "1E+9",
        " [ 1 , {\"a\" : [ ] } ] ",
        "{\"a\":{},\"b\":[{}]}",
    ] {
        assert!(is_one_value(text.as_bytes()), "{text}");
    }
}

#[test]
fn what_is_no_json_is_malformed() {
    for text in [
        "",
        " ",
        "{",
        "[",
        "\"",
        "}",
        "]",
        ",",
        "{]",
        "[}",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "01",
        "1.",
        ".1",
        "-",
        "1e",
        "1e+",
        "+1",
        "tru",
        "nulll",
        "'a'",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u12\"",
        "\"\n\"",
        "1 2",
        "{} {}",
        "NaN",
    ] {
        assert!(!is_one_value(text.as_bytes()), "{text}");
    }
}

#[test]
fn no_nesting_is_too_deep() {
    // An interpreter is some thousand times slower, and needs no depth to see what is wrong.
    const DEPTH: usize = if cfg!(miri) { 200 } else { 200_000 };
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":[", "]}]")] {
        let deep = open.repeat(DEPTH) + "1" + &close.repeat(DEPTH);
        assert!(is_one_value(deep.as_bytes()));
        assert!(!is_one_value(&deep.as_bytes()[..deep.len() - 1]));
    }
}

#[test]
fn a_string_is_decoded() {
    let check = |text: &str, expected: &str| {
        let mut kept = Kept::new(usize::MAX);
        reader(text.as_bytes()).string(&mut kept).unwrap();
        assert_eq!(kept.into_text().as_deref(), Some(expected), "{text}");
    };
    check(r#""""#, "");
    check(r#""a\"\\\/\b\f\n\r\tz""#, "a\"\\/\u{8}\u{c}\n\r\tz");
    check(r#""\u0041\u00e9\u4e2d""#, "Aé中");
    check(r#""\ud83e\uddea""#, "🧪");
    check(r#""\ud83e""#, "\u{fffd}");
    check(r#""\uddea""#, "\u{fffd}");
    check(r#""\ud83e\n""#, "\u{fffd}\n");
    check(r#""\ud83e\ud83e\uddea""#, "\u{fffd}🧪");
    check(r#""\ud83e\u0041""#, "\u{fffd}A");
}

#[test]
fn a_text_is_kept_within_its_bound() {
    let kept = |bytes_max| {
        let mut kept = Kept::new(bytes_max);
        reader(b"\"caf\\u00e9\"").string(&mut kept).unwrap();
        kept
    };
    assert_eq!(kept(5).into_text().as_deref(), Some("café"));
    assert_eq!(kept(4).into_text(), None);
    assert_eq!(kept(4).into_prefix(), "caf\u{fffd}");
    assert_eq!(kept(3).into_prefix(), "caf");
    let short =
        |text: &str| reader(format!("\"{text}\"").as_bytes()).short().unwrap().unwrap().text().map(str::to_owned);
    assert_eq!(short("user"), Some("user".to_owned()));
    assert_eq!(short(&"x".repeat(64)), Some("x".repeat(64)));
    assert_eq!(short(&"x".repeat(65)), None);
}

#[test]
fn a_repeated_key_takes_its_last_value() {
    assert_eq!(value(br#"{"a":1,"b":2,"a":3}"#), Some(json!({"a": 3, "b": 2})));
}

#[test]
fn a_number_that_no_double_holds_is_null() {
    assert_eq!(value(b"[1e999,-1e999,18446744073709551615,9007199254740993]"), {
        Some(json!([null, null, 1.844_674_407_370_955_2e19, 9_007_199_254_740_993_i64]))
    });
}

#[test]
fn what_lies_too_deep_to_be_handed_on_is_null() {
    let deep = "[".repeat(500) + &"]".repeat(500);
    let mut found = value(deep.as_bytes()).unwrap();
    let mut depth = 0;
    while let Some(inner) = found.as_array_mut().and_then(Vec::pop) {
        found = inner;
        depth += 1;
    }
    assert_eq!((found, depth), (Value::Null, 120));
}

#[test]
fn a_reader_can_go_back() {
    let mut reader = reader(b"{\"a\":[1,2],\"b\":3}");
    let mut place = None;
    reader
        .object(|key, reader| {
            if key == "a" {
                place = Some(reader.bytes.offset());
            }
            reader.skip()
        })
        .unwrap();
    reader.bytes.seek(place.unwrap());
    assert_eq!(reader.start(), Ok(Start::Array));
}

#[test]
#[cfg_attr(miri, ignore = "an interpreter has no files")]
fn a_file_is_read_block_by_block() {
    let text = format!("  [\"{}\", {}, \"\\ud83e\\uddea\"]", "x".repeat(200_000), "1".repeat(70_000));
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    for start in [0, 1, 2] {
        let mut from_file = Reader::new(FileBytes::new(&file, start..text.len() as u64));
        from_file.skip().unwrap();
        assert!(from_file.is_at_end());
        assert!(from_file.bytes.take_error().is_none());
    }
    // What the file lost since its length was taken is an error and not an end.
    let mut cut = Reader::new(FileBytes::new(&file, 0..text.len() as u64 + 1));
    let _ = cut.skip();
    assert!(!cut.is_at_end() || cut.bytes.take_error().is_some());
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..6).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn what_serde_writes_is_read_back(written in any_value(), is_pretty in any::<bool>()) {
        let bytes = if is_pretty { serde_json::to_vec_pretty(&written) } else { serde_json::to_vec(&written) }.unwrap();
        prop_assert!(is_one_value(&bytes));
        let expected: Value = serde_json::from_slice(&bytes).unwrap();
        prop_assert!(is_close(&value(&bytes).unwrap(), &expected), "{}", expected);
    }

    /// On plain ASCII a value is what serde takes for one.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn what_is_a_value_agrees_with_serde(text in "[\\[\\]{}:,\"a1 .e-]{0,12}") {
        let is_value = serde_json::from_str::<Value>(&text).is_ok();
        // A number that overflows is one here and none there.
        let overflows = serde_json::from_str::<Value>(&text).is_err_and(|error| error.to_string().contains("out of range"));
        prop_assert_eq!(is_one_value(text.as_bytes()), is_value || overflows, "{}", text);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = value(&bytes);
        let _ = is_one_value(&bytes);
    }
}

/// Equal, but for the last digit of a number: serde reads a long fraction a little off.
fn is_close(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            // Of the smallest numbers the last digit is more than that.
            (found - expected).abs() <= (expected.abs() * 1e-15).max(f64::from_bits(1))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_close(found, expected))
        }
        (Value::Object(found), Value::Object(expected)) => {
            let same = |(key, expected)| found.get(key).is_some_and(|found| is_close(found, expected));
            found.len() == expected.len() && expected.iter().all(same)
        }
        (found, expected) => found == expected,
    }
}
