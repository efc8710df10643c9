use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::Message;

/// What an unreadable line is while the prompt with the id 7 runs: `noise`, `words` or `answer`.
fn seen(line: &[u8]) -> &'static str {
    let why = Message::parse(Bytes::copy_from_slice(line)).expect_err("a message");
    match Unreadable::of(line, why) {
        None => "noise",
        Some(lost) if lost.may_answer(&RequestId::from(7)) => "answer",
        Some(_) => "words",
    }
}

fn check(expected: &str, lines: &[&str]) {
    for line in lines {
        assert_eq!(seen(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn what_was_not_meant_for_a_message_is_noise() {
    check(
        "noise",
        &["", "   ", "Warning: no config", "[INFO] up", "\"id\":7", "[1,2]", "7", "null", "id: 7, result: \"x\""],
    );
    check("noise", &["{}", r#"{"level":30,"msg":"up"}"#, r#"{"a":{"b":[1]}}"#]);
}

#[test]
fn what_may_have_been_said_is_words() {
    let deep = format!(r#"{{"method":"session/update","params":{}{}}}"#, "[".repeat(1500), "]".repeat(1500));
    check(
        "words",
        &[
            r#"{"method":"session/update","params":{"update":{"_meta":{"cost":NaN}}}}"#,
            &deep,
            "{\"method\":\"session/update\",\"params\":{\"text\":\"a\tb\"}}",
            r#"{"method":"session/update"}{"method":"session/update"}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"x":"debug"#,
            r#"{"jsonrpc":"2.0","method":7}"#,
            r#"{"params":{"update":{}}}"#,
            r#"[{"method":"session/update"},{"method":"session/update"}]"#,
            r#"{"id":{},"method":"session/request_permission"}"#,
            "config {a: 1} was read",
            r#""}}}}"#,
        ],
    );
}

#[test]
fn what_may_have_been_the_answer_is_the_answer() {
    let deep = format!(r#"{{"id":7,"result":{}{}}}"#, "[".repeat(1500), "]".repeat(1500));
    check(
        "answer",
        &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn","_meta":{"cost":NaN}}}"#,
            r#"{"result":{"x":Infinity},"id" : 7.0}"#,
            r#"{"id":7,"error":{"code":NaN}}"#,
            r#"{"\u0069d":7,"result":NaN}"#,
            &deep,
            "{\"id\":7,\"result\":{\"x\":\"a\tb\"}}",
            r#"{"method":"session/update","params":{}}{"id":7,"result":{}}"#,
            r#"{"id":7,"result":{}}{"method":"session/update","params":{}}"#,
            r#"log line {"id":7,"result":{}}"#,
            r#"[{"method":"session/update"},{"id":7,"result":{}}]"#,
            r#"{"id":[7],"result":{}}"#,
            r#""stopReason":"end_turn"}}"#,
        ],
    );
}

#[test]
fn either_half_of_an_answer_that_was_torn_ends_what_waits_for_it() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"m"}}"#,
    ] {
        for cut in 1..answer.len() {
            let (head, tail) = answer.split_at(cut);
            let halves = [format!("{head}debug"), tail.to_owned()].map(|half| seen(half.as_bytes()));
            assert!(halves.contains(&"answer"), "{head} and {tail}: {halves:?}");
        }
    }
}

#[test]
fn another_requests_answer_and_what_only_speaks_of_one_end_nothing() {
    check(
        "words",
        &[
            r#"{"id":77,"result":{"x":NaN}}"#,
            r#"{"id":"7","result":{"x":NaN}}"#,
            r#"{"id":null,"error":{"x":NaN}}"#,
            r#"{"method":"session/update","params":{"rawOutput":{"id":7,"result":NaN}}}"#,
            r#"{"method":"session/update","params":{"text":"{\"id\":7,\"result\":1}"},"x":NaN}"#,
            r#"{"id":7,"method":"session/request_permission","params":NaN}"#,
        ],
    );
}

proptest! {
    #[test]
    fn any_bytes_can_be_looked_at(line in proptest::collection::vec(prop_oneof![
        Just(b'{'), Just(b'}'), Just(b'"'), Just(b'\\'), Just(b':'), Just(b'['), Just(b'7'), any::<u8>()], 0..60)) {
        if let Err(why) = Message::parse(line.clone().into()) {
            let has_braces = line.iter().any(|byte| matches!(byte, b'{' | b'}'));
            let lost = Unreadable::of(&line, why);
            prop_assert!(has_braces || lost.is_none());
            let _ = lost.map(|lost| lost.may_answer(&RequestId::from(7)));
        }
    }

    /// An answer with something in it that JSON does not have is found whatever is around it.
    #[test]
    fn an_answer_is_found_behind_any_text_without_braces(log in "[^{}\\[\\]\n]{0,30}", number in 0_u64..1000) {
        let line = format!("{log}{{\"id\":{number},\"result\":{{\"cost\":NaN}}}}");
        let why = Message::parse(line.clone().into()).unwrap_err();
        prop_assert!(Unreadable::of(line.as_bytes(), why).unwrap().may_answer(&RequestId::from(number)));
    }
}
