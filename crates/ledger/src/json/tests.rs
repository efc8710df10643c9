use super::*;

/// The members in the notation `key=text`, `key#number`, `key?` for anything else, or `-` when the line is malformed.
fn seen(line: &[u8]) -> String {
    let mut seen = Vec::new();
    let outcome = members(line, |key, value| {
        let key = key.decode();
        seen.push(match value {
            Value::Text(text) => format!("{key}={}", text.decode()),
            Value::Number(number) => format!("{key}#{number}"),
            Value::Other => format!("{key}?"),
        });
    });
    match outcome {
        Ok(()) => seen.join(" "),
        Err(Malformed) => "-".to_owned(),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        assert_eq!(&seen(line.as_bytes()), expected, "{line}");
    }
}

fn check_malformed(lines: &[&str]) {
    for line in lines {
        assert_eq!(seen(line.as_bytes()), "-", "{line}");
    }
}

#[test]
fn members_come_in_the_order_of_the_text() {
    check(&[
        ("{}", ""),
        (r#"{"a":"x","b":1,"c":null}"#, "a=x b#1 c?"),
        (r#"{"a":true,"b":false,"c":[],"d":{}}"#, "a? b? c? d?"),
        (r#"{"":""}"#, "="),
    ]);
}

#[test]
fn a_repeated_key_is_visited_each_time() {
    check(&[(r#"{"a":1,"a":"x","\u0061":2}"#, "a#1 a=x a#2")]);
}

#[test]
fn white_space_is_allowed_between_tokens_and_only_there() {
    check(&[(" \t\r\n{ \t\"a\" : 1 , \"b\" : [ 1 , { \"c\" : 2 } ] } \r\n", "a#1 b?"), ("{ }\r", "")]);
    check_malformed(&["\u{feff}{}", "\u{a0}{}", "{}\u{b}", "{\"a\":1 2}", "{\"a\":- 1}", "{\"a\":tr ue}"]);
}

#[test]
fn a_line_that_is_not_one_object_is_malformed() {
    check_malformed(&["", " ", "null", "1", "\"a\"", "[]", "[{}]", "{", "}", "{}{}", "{} {}", "{},", "{}x", "\0\0\0"]);
}

#[test]
fn every_cut_of_an_object_is_malformed() {
    let line = r#"{"v":1,"a":"x\u00e9\n","b":[1,{"c":[true,false,null,-1.5e+7]},[],{}],"d":{"e":"f"}}"#;
    assert_ne!(seen(line.as_bytes()), "-");
    for end in 0..line.len() {
        assert_eq!(seen(&line.as_bytes()[..end]), "-", "{}", &line[..end]);
    }
}

#[test]
fn commas_and_colons_stand_where_the_grammar_wants_them() {
    check_malformed(&[
        r#"{,}"#,
        r#"{"a":1,}"#,
        r#"{,"a":1}"#,
        r#"{"a":1,,"b":2}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a",1}"#,
        r#"{a:1}"#,
        r#"{'a':1}"#,
        r#"{1:1}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[,1]}"#,
        r#"{"a":[1 2]}"#,
        r#"{"a":[1}"#,
        r#"{"a":[1}]"#,
        r#"{"a":{]}}"#,
        r#"{"a":{"b"}}"#,
        r#"{"a":{"b":}}"#,
        r#"{"a":{"b":1,}}"#,
        r#"{"a":{,}}"#,
        r#"{"a":[1:2]}"#,
        r#"{"a":{1}}"#,
    ]);
}

#[test]
fn strings_hold_no_bare_control_character_and_no_unknown_escape() {
    check(&[("{\"a\":\"\u{7f}\u{2028}\"}", "a=\u{7f}\u{2028}"), (r#"{"a":"\/"}"#, "a=/")]);
    check_malformed(&[
        "{\"a\":\"\t\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\0\"}",
        "{\"a\":\"\u{1f}\"}",
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12g4"}"#,
        r#"{"a":"\u123"}"#,
        r#"{"a":"\U0041"}"#,
        r#"{"a":"\u+123"}"#,
        r#"{"a":"x}"#,
        r#"{"a":"\"}"#,
        r#"{"\q":1}"#,
    ]);
}

#[test]
fn numbers_follow_the_grammar_and_become_doubles() {
    check(&[
        (r#"{"a":0,"b":-0,"c":10,"d":-1.5}"#, "a#0 b#-0 c#10 d#-1.5"),
        (r#"{"a":1e0,"b":1E+2,"c":100e-2,"d":0.1e1}"#, "a#1 b#100 c#1 d#1"),
        (r#"{"a":9007199254740993}"#, "a#9007199254740992"),
        (r#"{"a":1e999,"b":-1e999,"c":1e99999999999999999999}"#, "a#inf b#-inf c#inf"),
        (r#"{"a":1e-99999999999999999999}"#, "a#0"),
    ]);
    check_malformed(&[
        r#"{"a":01}"#,
        r#"{"a":-01}"#,
        r#"{"a":+1}"#,
        r#"{"a":.1}"#,
        r#"{"a":1.}"#,
        r#"{"a":1.e1}"#,
        r#"{"a":-}"#,
        r#"{"a":1e}"#,
        r#"{"a":1e+}"#,
        r#"{"a":0x1}"#,
        r#"{"a":1_0}"#,
        r#"{"a":NaN}"#,
        r#"{"a":Infinity}"#,
        r#"{"a":-Infinity}"#,
        r#"{"a":[01]}"#,
    ]);
}

#[test]
fn only_the_three_words_are_words() {
    check_malformed(&[
        r#"{"a":nul}"#,
        r#"{"a":nulll}"#,
        r#"{"a":True}"#,
        r#"{"a":undefined}"#,
        r#"{"a":truefalse}"#,
        r#"{"a":[nul]}"#,
    ]);
}

#[test]
fn bytes_that_are_not_utf_8_are_fine_in_a_string_and_nowhere_else() {
    assert_eq!(seen(b"{\"a\":\"\xff\",\"\xff\":[\"\xc3\"]}"), "a=\u{fffd} \u{fffd}?");
    assert_eq!(seen(b"{\"a\":\xff}"), "-");
    assert_eq!(seen(b"\xff{}"), "-");
    assert_eq!(seen(b"{}\xff"), "-");
}

#[test]
fn nesting_a_million_deep_neither_overflows_nor_loses_the_other_members() {
    // An interpreter is some thousand times slower, and needs no depth to see what is wrong.
    const DEPTH: usize = if cfg!(miri) { 200 } else { 1_000_000 };
    let arrays = format!(r#"{{"z":{}{},"a":1}}"#, "[".repeat(DEPTH), "]".repeat(DEPTH));
    assert_eq!(seen(arrays.as_bytes()), "z? a#1");
    let objects = format!(r#"{{"z":{}0{},"a":1}}"#, r#"{"k":"#.repeat(DEPTH), "}".repeat(DEPTH));
    assert_eq!(seen(objects.as_bytes()), "z? a#1");
    let unclosed = format!(r#"{{"z":{}{},"a":1}}"#, "[".repeat(DEPTH), "]".repeat(DEPTH - 1));
    assert_eq!(seen(unclosed.as_bytes()), "-");
}

#[test]
fn a_container_is_closed_by_its_own_bracket() {
    check(&[(r#"{"a":[[{"b":[{"c":{}}]}],{}],"d":1}"#, "a? d#1")]);
    check_malformed(&[r#"{"a":[{]}}"#, r#"{"a":[[{"b":[}]]]}"#, r#"{"a":{"b":[]]}"#, r#"{"a":[}}"#]);
}

#[test]
fn eight_bytes_are_plain_exactly_when_each_of_them_is() {
    let is_special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    let neighbours = [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff, 0x00, b'"', b'\\'];
    for neighbour in neighbours.into_iter().step_by(if cfg!(miri) { 12 } else { 1 }) {
        for (byte, place) in (0..=u8::MAX).flat_map(|byte| (0..8).map(move |place| (byte, place))) {
            let mut eight = [neighbour; 8];
            eight[place] = byte;
            let expected = eight.into_iter().any(is_special);
            assert_eq!(has_special(u64::from_le_bytes(eight)), expected, "{eight:x?}");
        }
    }
}

#[test]
fn a_string_ends_at_its_quote_wherever_that_stands() {
    for length in 0..40 {
        let text = "\u{e9}x".repeat(length);
        assert_eq!(seen(format!(r#"{{"a":"{text}","{text}":1}}"#).as_bytes()), format!("a={text} {text}#1"));
        check_malformed(&[&format!("{{\"a\":\"{text}\u{1}\"}}"), &format!("{{\"a\":\"{text}")]);
    }
}
