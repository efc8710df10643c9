use proptest::prelude::*;

use super::*;

fn parse(line: &str) -> Result<Message, NotAMessage> {
    Message::parse(Bytes::copy_from_slice(line.as_bytes()))
}

/// The kind in a short notation: `request ID METHOD`, `notification METHOD`, `response ID`.
fn kind(line: &str) -> String {
    match parse(line).map(|message| message.kind().clone()) {
        Ok(Kind::Request { id, method }) => format!("request {id} {method}"),
        Ok(Kind::Notification { method }) => format!("notification {method}"),
        Ok(Kind::Response { id: Some(id) }) => format!("response {id}"),
        Ok(Kind::Response { id: None }) => "response to nothing".to_owned(),
        Err(reason) => reason.to_string(),
    }
}

#[test]
fn the_envelope_tells_who_is_meant() {
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#, "request 0 initialize"),
        (r#"{"jsonrpc":"2.0","method":"fs/read","params":{"id":3},"id":"a-1"}"#, "request \"a-1\" fs/read"),
        (r#"{"method":"session/update","params":{}}"#, "notification session/update"),
        (r#"{"id":1,"result":null}"#, "response 1"),
        (r#"{"jsonrpc":"2.0","result":{"id":2,"method":"x"},"id":1.50}"#, "response 1.50"),
        (r#"{"id":1,"error":{"code":1}}"#, "response 1"),
        (r#"{"id":null,"error":{"code":-32700}}"#, "response to nothing"),
        (r#"{"error":{"code":-32700}}"#, "response to nothing"),
        (r#"{"id":null,"method":"m"}"#, "request null m"),
        (r#"{"id":1,"id":2,"method":"a","method":"b"}"#, "request 2 b"),
        (r#"{"\u0069d":1,"meth\u006fd":"a\/b"}"#, "request 1 a/b"),
        (r#"{"id":1,"method":null,"params":null,"error":null,"result":{}}"#, "response 1"),
        (r#"{"id":"\ud83d","method":"a\ud83d"}"#, "request \"\\ud83d\" a\u{fffd}"),
    ] {
        assert_eq!(kind(line), expected, "{line}");
    }
}

#[test]
fn what_nobody_answers_is_told_whatever_id_it_has() {
    for id in ["null", "7", "{}", "false", "[]", "\"a\""] {
        for method in ["session/update", "qwen/notify/session/title-update", "session\\/update"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}"#);
            assert_eq!(kind(&line), format!("notification {}", method.replace('\\', "")), "{line}");
        }
    }
    assert_eq!(kind(r#"{"id":7,"method":"session/request_permission"}"#), "request 7 session/request_permission");
    assert_eq!(kind(r#"{"id":7,"method":"session/updates"}"#), "request 7 session/updates");
}

#[test]
fn an_update_whose_text_is_not_just_what_the_agent_wrote_is_not_exact() {
    let line = |text: &[u8]| {
        let (head, tail) = (br#"{"method":"session/update","params":{"update":{"content":{"text":""#, br#""}}}}"#);
        Message::parse([&head[..], text, &tail[..]].concat().into()).unwrap()
    };
    for exact in ["plain", "é \u{fffd}", r"\ud83d\ude00", r"\\ud83d", ""] {
        assert!(line(exact.as_bytes()).is_exact(), "{exact}");
    }
    for altered in [&br"\ud83d"[..], br"\ude00!", b"caf\xe9", b"\xed\xa0\xbd"] {
        assert!(!line(altered).is_exact(), "{altered:?}");
    }
    assert!(parse(r#"{"method":"session/update","params":{"update":{"title":"\ud83d"}}}"#).unwrap().is_exact());
}

#[test]
fn a_byte_order_mark_is_read_over_and_a_carriage_return_only_between_tokens() {
    assert_eq!(kind("\u{feff}{\"method\":\"m\"}"), "notification m");
    assert_eq!(kind(" \u{feff} {\"method\":\"m\"}"), "notification m");
    assert_eq!(parse("\u{feff}").map(|_| ()), Err(NotAMessage::Blank));
    assert_eq!(parse("{\"method\":\r\"m\"}").unwrap().raw().as_ref(), b"{\"method\": \"m\"}");
    assert_eq!(parse("{\"method\":\"a\rb\"}").map(|_| ()), Err(NotAMessage::NotJson { at: 12 }));
}

#[test]
fn a_line_that_is_no_message_says_why() {
    for (line, expected) in [
        ("", NotAMessage::Blank),
        (" \t\r", NotAMessage::Blank),
        ("Session ended.", NotAMessage::NotJson { at: 0 }),
        (r#"{"jsonrpc":"2.0","id":77,"method":"#, NotAMessage::NotJson { at: 34 }),
        (r#"{"id":1,"result":{}} trailing"#, NotAMessage::NotJson { at: 21 }),
        ("[]", NotAMessage::NotAnObject),
        (r#"[{"id":1,"method":"m"}]"#, NotAMessage::NotAnObject),
        ("7", NotAMessage::NotAnObject),
        ("null", NotAMessage::NotAnObject),
        ("{}", NotAMessage::NoEnvelope),
        (r#"{"id":1,"method":7}"#, NotAMessage::NoEnvelope),
        (r#"{"id":null,"error":null}"#, NotAMessage::NoEnvelope),
        (r#"{"id":{},"method":"m"}"#, NotAMessage::BadId),
        (r#"{"id":true,"result":1}"#, NotAMessage::BadId),
        (&format!(r#"{{"id":1,"result":{}"#, "[".repeat(2000)), NotAMessage::TooDeep),
    ] {
        assert_eq!(parse(line).map(|_| ()), Err(expected), "{line}");
    }
}

#[test]
fn parts_are_the_raw_text_between_the_commas() {
    let message = parse(r#" {"id":1, "method":"m", "params": {"sessionId":"s", "x":"\ud83d"} } "#).unwrap();
    assert_eq!(message.params(), Some(r#"{"sessionId":"s", "x":"\ud83d"}"#));
    assert_eq!((message.result(), message.error(), message.outcome()), (None, None, None));
    assert_eq!(message.method(), Some("m"));
    assert_eq!(message.raw(), r#"{"id":1, "method":"m", "params": {"sessionId":"s", "x":"\ud83d"} }"#.as_bytes());
}

#[test]
fn the_session_is_found_in_parameters_and_results() {
    for (line, expected) in [
        (r#"{"method":"m","params":{"update":{"sessionId":"no"},"sessionId":"s"}}"#, Some("s")),
        (r#"{"id":1,"result":{"sessionId":"s"}}"#, Some("s")),
        (r#"{"id":1,"result":null}"#, None),
        (r#"{"method":"m","params":["s"]}"#, None),
        (r#"{"method":"m","params":{"sessionId":7}}"#, None),
        (r#"{"method":"m"}"#, None),
    ] {
        assert_eq!(parse(line).unwrap().session_id().as_deref(), expected, "{line}");
    }
}

#[test]
fn an_answer_always_has_an_outcome() {
    let outcome = |line: &str| match parse(line).unwrap().outcome() {
        Some(Outcome::Result(raw)) => raw.to_owned(),
        Some(Outcome::Error(error)) => error.to_string(),
        None => "none".to_owned(),
    };
    assert_eq!(outcome(r#"{"id":1,"result":null}"#), "null");
    assert_eq!(outcome(r#"{"id":1,"result":{},"error":null}"#), "{}");
    assert_eq!(outcome(r#"{"id":1,"result":null,"error":{"code":4,"message":"m"}}"#), "m (4)");
    assert_eq!(outcome(r#"{"id":1,"error":"boom"}"#), "boom (-32603)");
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_the_message_is_routed() {
    let message = Message::parse(Bytes::from_static(b"{\"id\":1,\"method\":\"m\",\"params\":\"\xff\"}")).unwrap();
    assert_eq!(message.params(), Some("\"\u{fffd}\""));
    let outside_a_string = Message::parse(Bytes::from_static(b"{\"id\":\xff1,\"method\":\"m\"}"));
    assert_eq!(outside_a_string.unwrap_err(), NotAMessage::NotJson { at: 6 });
}

#[test]
fn no_line_break_is_left_in_the_raw_text() {
    let message = parse("{\"id\":1,\r\"result\":[1,\r2]}\r").unwrap();
    assert_eq!(message.raw(), "{\"id\":1, \"result\":[1, 2]}".as_bytes());
    assert_eq!(message.result(), Some("[1, 2]"));
}

#[test]
fn a_plain_line_is_not_copied() {
    let line = Bytes::from_static(b" {\"id\":1,\"result\":1}");
    let message = Message::parse(line.clone()).unwrap();
    assert_eq!(message.raw().as_ptr(), line[1..].as_ptr());
}

#[test]
fn a_line_of_a_million_members_is_scanned_and_not_collected() {
    let line = format!("{{{}\"id\":1,\"result\":2}}", "\"\":0,".repeat(1_000_000));
    assert_eq!(parse(&line).unwrap().result(), Some("2"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::parse(bytes.into());
    }

    #[test]
    fn damage_at_one_byte_never_panics_and_what_is_found_lies_inside(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut line = br#"{"jsonrpc":"2.0","id":"a\ud83d","method":"m","params":{"sessionId":"s","x":[1,"\u00e9"]}}"#.to_vec();
        let at = at.index(line.len());
        line[at] = byte;
        if let Ok(message) = Message::parse(line.into()) {
            let text = std::str::from_utf8(message.raw()).unwrap();
            for part in [message.params(), message.result(), message.error()].into_iter().flatten() {
                prop_assert!(text.contains(part) && scan::whole_value(part).is_ok());
            }
        }
    }
}

#[test]
fn an_id_alone_is_an_answer_that_says_nothing() {
    for line in [r#"{"id":1}"#, r#"{"jsonrpc":"2.0","id":1,"error":null}"#] {
        let message = parse(line).unwrap();
        assert_eq!(message.outcome(), Some(Outcome::Result("null")), "{line}");
    }
}
