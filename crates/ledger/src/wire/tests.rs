use super::*;

/// The record of a line as our own writer puts it, or `-` when the line is dropped.
fn reread(line: &[u8]) -> String {
    Record::parse(line).map_or("-".to_owned(), |record| record.to_line())
}

fn check(cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        assert_eq!(&reread(line.as_bytes()), expected, "{line}");
    }
}

fn check_dropped(lines: &[&str]) {
    for line in lines {
        assert_eq!(reread(line.as_bytes()), "-", "{line}");
    }
}

#[test]
fn records_are_written_byte_for_byte_in_the_order_of_the_format() {
    let cases = [
        (
            Record::in_flight("p", None, 1_692_000_000_000),
            r#"{"v":1,"promptId":"p","state":"in_flight","at":1692000000000}"#,
        ),
        (
            Record::in_flight("p", Some("rec-uuid"), 5),
            r#"{"v":1,"promptId":"p","state":"in_flight","tailUuid":"rec-uuid","at":5}"#,
        ),
        (
            Record::completed("p", "stop", 1_692_000_000_123),
            r#"{"v":1,"promptId":"p","terminal":"completed","stopReason":"stop","at":1692000000123}"#,
        ),
        (Record::cancelled("p", 0), r#"{"v":1,"promptId":"p","terminal":"cancelled","at":0}"#),
        (
            Record::error("p", Some("daemon_shutdown"), 7),
            r#"{"v":1,"promptId":"p","terminal":"error","code":"daemon_shutdown","at":7}"#,
        ),
        (Record::error("p", None, 7), r#"{"v":1,"promptId":"p","terminal":"error","at":7}"#),
        (
            Record::interrupted("p", "daemon_lost", 7),
            r#"{"v":1,"promptId":"p","terminal":"interrupted","code":"daemon_lost","at":7}"#,
        ),
        (
            Record::completed("a\"b\\\u{1f9ea}\n", "\u{1}", 7),
            "{\"v\":1,\"promptId\":\"a\\\"b\\\\\u{1f9ea}\\n\",\"terminal\":\"completed\",\"stopReason\":\"\\u0001\",\"at\":7}",
        ),
    ];
    for (record, line) in cases {
        assert_eq!(record.to_line(), line);
        assert_eq!(Record::parse(line.as_bytes()), Some(record));
    }
}

#[test]
fn code_stands_before_stop_reason_when_both_are_there() {
    let fact =
        Fact::Terminal { terminal: Terminal::Error, code: Some("c".to_owned()), stop_reason: Some("s".to_owned()) };
    let record = Record { prompt_id: String::new(), at_ms: 0.5, fact };
    let line = r#"{"v":1,"promptId":"","terminal":"error","code":"c","stopReason":"s","at":0.5}"#;
    assert_eq!(record.to_line(), line);
    assert_eq!(Record::parse(line.as_bytes()), Some(record));
}

#[test]
fn an_empty_marker_is_never_written() {
    assert_eq!(Record::in_flight("p", Some(""), 1), Record::in_flight("p", None, 1));
    let fact = Fact::InFlight { tail_uuid: Some(String::new()) };
    let literal = Record { prompt_id: "p".to_owned(), at_ms: 1.0, fact };
    assert_eq!(literal.to_line(), Record::in_flight("p", None, 1).to_line());
}

#[test]
fn a_time_that_is_not_finite_makes_a_line_that_no_reader_accepts() {
    let record = Record { at_ms: f64::NAN, ..Record::cancelled("p", 1) };
    assert_eq!(record.to_line(), r#"{"v":1,"promptId":"p","terminal":"cancelled","at":null}"#);
    assert_eq!(Record::parse(record.to_line().as_bytes()), None);
}

#[test]
fn the_version_is_the_number_one_however_it_is_spelled() {
    for version in ["1", "1.0", "1e0", "10e-1", "0.1e1"] {
        let line = format!(r#"{{"v":{version},"promptId":"p","state":"in_flight","at":5}}"#);
        check(&[(&line, r#"{"v":1,"promptId":"p","state":"in_flight","at":5}"#)]);
    }
    for version in ["0", "2", "1.5", "-1", "\"1\"", "true", "null", "[1]", "1e999"] {
        let line = format!(r#"{{"v":{version},"promptId":"p","state":"in_flight","at":5}}"#);
        check_dropped(&[&line]);
    }
    check_dropped(&[r#"{"promptId":"p","state":"in_flight","at":5}"#]);
}

#[test]
fn the_prompt_id_is_any_string_the_empty_one_included() {
    check(&[
        (r#"{"v":1,"promptId":"","state":"in_flight","at":5}"#, r#"{"v":1,"promptId":"","state":"in_flight","at":5}"#),
        (
            r#"{"v":1,"promptId":"caf\u00e9","state":"in_flight","at":5}"#,
            "{\"v\":1,\"promptId\":\"caf\u{e9}\",\"state\":\"in_flight\",\"at\":5}",
        ),
    ]);
    check_dropped(&[
        r#"{"v":1,"state":"in_flight","at":5}"#,
        r#"{"v":1,"promptId":42,"state":"in_flight","at":5}"#,
        r#"{"v":1,"promptId":null,"state":"in_flight","at":5}"#,
        r#"{"v":1,"promptId":{"a":1},"state":"in_flight","at":5}"#,
    ]);
}

#[test]
fn an_id_that_is_not_whole_text_keeps_its_record_and_says_so() {
    let half = Record::parse(br#"{"v":1,"promptId":"x\ud800","state":"in_flight","at":1}"#).unwrap();
    assert_eq!((half.prompt_id.as_str(), half.has_exact_id()), ("x\u{fffd}", false));
    let bytes = Record::parse(b"{\"v\":1,\"promptId\":\"x\xff\",\"state\":\"in_flight\",\"at\":1}").unwrap();
    assert_eq!((bytes.prompt_id.as_str(), bytes.has_exact_id()), ("x\u{fffd}", false));
    let whole = Record::parse(br#"{"v":1,"promptId":"\ud83e\uddea","state":"in_flight","at":1}"#).unwrap();
    assert_eq!((whole.prompt_id.as_str(), whole.has_exact_id()), ("\u{1f9ea}", true));
}

#[test]
fn the_time_is_any_finite_number() {
    for (written, read) in [
        ("5", "5"),
        ("0", "0"),
        ("-0", "0"),
        ("-5.25", "-5.25"),
        ("1.795977220e12", "1795977220000"),
        ("9007199254740993", "9007199254740992"),
        ("1e21", "1e+21"),
        ("1e-7", "1e-7"),
    ] {
        let line = format!(r#"{{"v":1,"promptId":"p","terminal":"cancelled","at":{written}}}"#);
        check(&[(&line, &format!(r#"{{"v":1,"promptId":"p","terminal":"cancelled","at":{read}}}"#))]);
    }
    for at in ["\"5\"", "null", "true", "[5]", "1e999", "-1e999"] {
        check_dropped(&[&format!(r#"{{"v":1,"promptId":"p","terminal":"cancelled","at":{at}}}"#)]);
    }
    check_dropped(&[r#"{"v":1,"promptId":"p","terminal":"cancelled"}"#]);
}

#[test]
fn an_admission_wins_over_a_terminal_on_the_same_line() {
    check(&[
        (
            r#"{"v":1,"promptId":"p","state":"in_flight","terminal":"completed","code":"c","at":5}"#,
            r#"{"v":1,"promptId":"p","state":"in_flight","at":5}"#,
        ),
        (
            r#"{"v":1,"promptId":"p","state":"settled","terminal":"completed","tailUuid":"u","at":5}"#,
            r#"{"v":1,"promptId":"p","terminal":"completed","at":5}"#,
        ),
    ]);
}

#[test]
fn a_line_with_neither_word_is_dropped() {
    for fact in [
        "",
        r#","state":"queued""#,
        r#","state":"IN_FLIGHT""#,
        r#","state":"""#,
        r#","state":null"#,
        r#","terminal":"timeout""#,
        r#","terminal":"Completed""#,
        r#","terminal":"done""#,
        r#","terminal":null"#,
        r#","terminal":["completed"]"#,
        r#","terminal":"completed ""#,
        r#","state":["in_flight"]"#,
    ] {
        check_dropped(&[&format!(r#"{{"v":1,"promptId":"p"{fact},"at":5}}"#)]);
    }
}

#[test]
fn a_wish_is_a_line_of_its_own_and_no_record() {
    let wish = Wish::new("a\"b", 1_795_977_220_000);
    let line = r#"{"v":1,"promptId":"a\"b","state":"cancel_requested","at":1795977220000}"#;
    assert_eq!(wish.to_line(), line);
    assert_eq!(Wish::parse(line.as_bytes()), Some(wish));
    check_dropped(&[line]);
    let admission = Record::in_flight("p", None, 5).to_line();
    assert_eq!(Wish::parse(admission.as_bytes()), None);
}

#[test]
fn a_wish_is_read_as_tolerantly_as_a_record() {
    let p = Some(Wish::new("p", 5));
    for line in [
        r#"{"at":5.0,"promptId":"p","state":"cancel_requested","v":1e0}"#,
        r#" {"v":1,"state":"in_flight","promptId":"p","state":"cancel_requested","at":5,"by":{"v":2}} "#,
        r#"{"v":1,"promptId":"p","state":"cancel_requested","tailUuid":"u","terminal":"stopped","code":"c","at":5}"#,
    ] {
        assert_eq!(Wish::parse(line.as_bytes()), p, "{line}");
    }
    for line in [
        r#"{"v":2,"promptId":"p","state":"cancel_requested","at":5}"#,
        r#"{"v":1,"promptId":7,"state":"cancel_requested","at":5}"#,
        r#"{"v":1,"promptId":"p","state":"cancel_requested","at":null}"#,
        r#"{"v":1,"promptId":"p","state":"cancel_requested"}"#,
        r#"{"v":1,"promptId":"p","state":"cancelRequested","at":5}"#,
        r#"{"v":1,"promptId":"p","state":["cancel_requested"],"at":5}"#,
        r#"{"v":1,"promptId":"p","terminal":"cancel_requested","at":5}"#,
    ] {
        assert_eq!(Wish::parse(line.as_bytes()), None, "{line}");
    }
}

#[test]
fn a_terminal_wins_over_a_wish_on_the_same_line() {
    let line = r#"{"v":1,"promptId":"p","state":"cancel_requested","terminal":"completed","at":5}"#;
    assert_eq!(Wish::parse(line.as_bytes()), None);
    check(&[(line, r#"{"v":1,"promptId":"p","terminal":"completed","at":5}"#)]);
}

#[test]
fn an_empty_or_foreign_marker_makes_an_admission_without_one() {
    for marker in ["\"\"", "5", "null", "[\"u\"]", "{}", "true"] {
        let line = format!(r#"{{"v":1,"promptId":"p","state":"in_flight","tailUuid":{marker},"at":5}}"#);
        assert_eq!(Record::parse(line.as_bytes()), Some(Record::in_flight("p", None, 5)), "{line}");
    }
}

#[test]
fn a_code_or_stop_reason_that_is_no_string_is_dropped_and_the_record_stays() {
    let bare = r#"{"v":1,"promptId":"p","terminal":"error","at":5}"#;
    for value in ["5", "null", "[\"c\"]", "{}", "false"] {
        for key in ["code", "stopReason"] {
            check(&[(&format!(r#"{{"v":1,"promptId":"p","terminal":"error","{key}":{value},"at":5}}"#), bare)]);
        }
    }
    let empty = r#"{"v":1,"promptId":"p","terminal":"error","code":"","stopReason":"","at":5}"#;
    check(&[(empty, empty)]);
}

#[test]
fn a_repeated_key_takes_its_last_value() {
    let p = r#"{"v":1,"promptId":"p","state":"in_flight","at":5}"#;
    check(&[
        (r#"{"v":2,"promptId":"q","state":"x","at":1,"v":1,"promptId":"p","state":"in_flight","at":5}"#, p),
        (r#"{"v":1,"promptId":"p","state":"in_flight","tailUuid":"u","at":5,"tailUuid":null}"#, p),
        (r#"{"v":1,"prompt\u0049d":"q","state":"in_flight","at":5,"promptId":"p"}"#, p),
    ]);
    check_dropped(&[r#"{"v":1,"promptId":"p","state":"in_flight","at":5,"v":2}"#]);
    check_dropped(&[r#"{"v":1,"promptId":"p","state":"in_flight","at":5,"at":"5"}"#]);
}

#[test]
fn what_is_not_read_loses_nothing() {
    let p = r#"{"v":1,"promptId":"p","state":"in_flight","at":5}"#;
    const DEPTH: usize = if cfg!(miri) { 100 } else { 20_000 };
    let deep = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    for value in ["1e999", r#""\ud800""#, "{\"v\":2,\"promptId\":\"q\"}", "[null]", &deep] {
        let line = format!(r#"{{"v":1,"unread":{value},"promptId":"p","state":"in_flight","\udc00":0,"at":5}}"#);
        check(&[(&line, p)]);
    }
}

#[test]
fn white_space_around_the_object_is_none_of_the_record() {
    let p = r#"{"v":1,"promptId":"p","state":"in_flight","at":5}"#;
    check(&[(&format!("{p}\r"), p), (&format!("{p}\r\n"), p), (&format!(" \t{p} "), p)]);
    check_dropped(&[&format!("\u{feff}{p}"), &format!("{p}{p}"), &format!("{p},{p}"), &format!("[{p}]")]);
}

#[test]
fn a_line_of_any_length_is_just_a_line() {
    let id = "k".repeat(if cfg!(miri) { 1_000 } else { 400_000 });
    let record = Record::in_flight(id, None, 1);
    assert_eq!(Record::parse(record.to_line().as_bytes()), Some(record));
}
