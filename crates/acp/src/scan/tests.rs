use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

fn accepts(text: &str) -> bool {
    whole_value(text).is_ok()
}

/// The reference: it checks the grammar, and decodes strings no more than we do.
fn reference_accepts(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[test]
fn the_grammar_of_json_is_accepted() {
    for text in [
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "-0.5e+3",
        "1E-2",
        "10",
        r#""""#,
        r#""a""#,
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,[2,{}],\"x\"]",
        r#"{"a":{"b":[]},"c":1}"#,
        "\t[\r\n1 , 2]\n",
        r#""\ud83d""#,
        r#""\udc00\ud800x""#,
        r#""\"\\\/\b\f\n\r\t\u00e9""#,
        "\"\u{7f}é\"",
    ] {
        assert!(accepts(text) && reference_accepts(text), "{text}");
    }
}

#[test]
fn nothing_but_the_grammar_of_json_is_accepted() {
    for text in [
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x1",
        "\"",
        "\"a",
        r#""\x""#,
        r#""\u12""#,
        r#""\u12g4""#,
        "\"a\nb\"",
        "\"\u{1}\"",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{",
        "}",
        "{1:2}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{,"a":1}"#,
        r#"{"a":1]"#,
        r#"{"a":1}}"#,
        "{}{}",
        "1 2",
        "'a'",
        "\u{feff}1",
    ] {
        assert!(!accepts(text) && !reference_accepts(text), "{text}");
    }
}

#[test]
fn the_offset_points_at_what_is_wrong() {
    assert_eq!(whole_value("[1,x]"), Err(ScanError::Syntax { at: 3 }));
    assert_eq!(whole_value("{\"a\":"), Err(ScanError::Syntax { at: 5 }));
    assert_eq!(whole_value("1 ,"), Err(ScanError::Syntax { at: 2 }));
}

#[test]
fn depth_is_bounded_and_costs_no_stack() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(whole_value(&nested(DEPTH_LEVELS_MAX)), Ok(0..2 * DEPTH_LEVELS_MAX + 1));
    assert_eq!(whole_value(&nested(DEPTH_LEVELS_MAX + 1)), Err(ScanError::TooDeep));
    assert_eq!(whole_value(&"[{\"a\":".repeat(1_000_000)), Err(ScanError::TooDeep));
}

#[test]
fn kinds_of_container_are_told_apart_at_every_depth() {
    for levels in [1, 63, 64, 65, 128, 500] {
        let text = format!("{}1{}", "[{\"a\":".repeat(levels), "}]".repeat(levels));
        assert_eq!(whole_value(&text), Ok(0..text.len()));
        let crossed = text.replacen("}]", "]}", 1);
        assert!(matches!(whole_value(&crossed), Err(ScanError::Syntax { .. })), "{levels}");
    }
}

#[test]
fn the_space_around_a_value_is_not_part_of_it() {
    assert_eq!(whole_value("  [ 1 ]\n"), Ok(2..7));
}

#[test]
fn members_are_shown_in_order_with_their_duplicates() {
    let text = r#" { "a" : 1 , "b":[2,{"a":3}], "a":"x" } "#;
    let mut seen = Vec::new();
    let is_object = each_member(text, |member| {
        seen.push((text[member.key].to_owned(), text[member.value].to_owned()));
    });
    assert_eq!(is_object, Ok(true));
    let expected = [("\"a\"", "1"), ("\"b\"", r#"[2,{"a":3}]"#), ("\"a\"", "\"x\"")];
    assert_eq!(seen, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn what_is_no_object_shows_no_members() {
    for text in ["[]", "1", "\"{}\"", "null"] {
        assert_eq!(each_member(text, |_| panic!("shown")), Ok(false));
        assert_eq!(last_member(text, "a").err(), Some(NotAnObject));
    }
    assert_eq!(last_member("{\"a\":1} x", "a").err(), Some(NotAnObject));
}

#[test]
fn the_last_of_a_repeated_key_counts_however_it_is_spelled() {
    let text = r#"{"id":1,"\u0069d":2,"other":3}"#;
    let found = last_member(text, "id").unwrap().unwrap();
    assert_eq!(&text[found.value], "2");
    assert!(last_member(text, "i").unwrap().is_none());
}

fn tokens() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\ud83d\"",
        "\"\\q\"",
        "\"",
        "\\",
        "1",
        "-0.5e+3",
        "01",
        "true",
        "nul",
        "null",
        " ",
        "\n",
        "é",
        "\u{0}",
        "{\"a\":",
        "[1,",
        "]}",
    ]);
    prop::collection::vec(token, 0..14).prop_map(|tokens| tokens.concat())
}

fn values() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_judged_as_the_reference_judges_it(text in prop_oneof![tokens(), any::<String>()]) {
        prop_assert_eq!(accepts(&text), reference_accepts(&text));
    }

    #[test]
    fn what_a_parser_writes_is_accepted(value in values()) {
        let text = value.to_string();
        prop_assert_eq!(whole_value(&text), Ok(0..text.len()));
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(whole_value(&pretty), Ok(0..pretty.len()));
    }

    #[test]
    fn a_damaged_text_is_judged_as_the_reference_judges_it(
        value in values(),
        place in any::<prop::sample::Index>(),
        byte in any::<char>(),
    ) {
        let mut chars: Vec<char> = value.to_string().chars().collect();
        let at = place.index(chars.len());
        chars[at] = byte;
        let replaced: String = chars.iter().collect();
        chars.remove(at);
        let removed: String = chars.iter().collect();
        for text in [replaced, removed] {
            prop_assert_eq!(accepts(&text), reference_accepts(&text), "{}", text);
        }
    }
}
