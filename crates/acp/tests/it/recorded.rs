//! Lines of real agents are routed as a full parser would route them, and passed on untouched.

use acp::{Kind, Message, RequestId, compose, lenient_value};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::recorded_lines;

fn parse(line: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(line.as_bytes())).unwrap_or_else(|reason| panic!("{reason}: {line}"))
}

/// The same envelope by way of a full parser.
fn by_full_parser(value: &Value) -> Kind {
    let id = value.get("id").map(|id| RequestId::parse(&id.to_string()).unwrap());
    match (value.get("method").and_then(Value::as_str).map(str::to_owned), id) {
        (Some(method), Some(id)) => Kind::Request { id, method },
        (Some(method), None) => Kind::Notification { method },
        (None, id) => Kind::Response { id: id.filter(|id| !id.is_null()) },
    }
}

#[test]
fn every_line_is_routed_as_a_full_parser_would() {
    for (agent, line) in recorded_lines() {
        let message = parse(&line);
        let value = lenient_value(&line).unwrap();
        assert_eq!(*message.kind(), by_full_parser(&value), "{agent}: {line}");
        let session_id = value.pointer("/params/sessionId").or(value.pointer("/result/sessionId"));
        assert_eq!(message.session_id().as_deref(), session_id.and_then(Value::as_str), "{agent}: {line}");
        for (part, name) in [(message.params(), "params"), (message.result(), "result"), (message.error(), "error")] {
            assert_eq!(part.map(|raw| lenient_value(raw).unwrap()).as_ref(), value.get(name), "{agent}: {line}");
        }
    }
}

#[test]
fn every_line_is_passed_on_byte_for_byte() {
    for (agent, line) in recorded_lines() {
        let message = parse(&line);
        assert_eq!(message.raw(), line.as_bytes(), "{agent}");
        assert_eq!(compose::passed_on(message.raw()), format!("{line}\n"), "{agent}");
    }
}

#[test]
fn every_error_is_read_with_its_code_and_message() {
    let mut seen = 0;
    for (agent, line) in recorded_lines() {
        let Some(error) = parse(&line).rpc_error() else { continue };
        let expected = lenient_value(&line).unwrap()["error"].take();
        assert_eq!(json!(error.code), expected["code"], "{agent}: {line}");
        assert_eq!(json!(error.message), expected["message"], "{agent}: {line}");
        assert_eq!(error.data.and_then(|raw| lenient_value(&raw)).unwrap_or_default(), expected["data"]);
        seen += 1;
    }
    assert!(seen >= 20, "only {seen} errors among the recorded lines");
}

/// The recordings would prove little if they did not hold what makes agents hard to read.
#[test]
fn the_recordings_hold_the_hard_cases() {
    let count = |hard: fn(&str) -> bool| recorded_lines().iter().filter(|(_, line)| hard(line)).count();
    let half_a_pair = count(|line| serde_json::from_str::<Value>(line).is_err());
    let id_last = count(|line| {
        let keys: Vec<String> = match lenient_value(line) {
            Some(Value::Object(object)) => object.keys().cloned().collect(),
            _ => Vec::new(),
        };
        keys.last().is_some_and(|key| key == "id")
    });
    let id_as_string = count(|line| matches!(parse(line).kind(), Kind::Request { id, .. } if id.as_string().is_some()));
    let error_for_nothing = count(|line| *parse(line).kind() == Kind::Response { id: None });
    for (what, found) in [
        ("half a surrogate pair", half_a_pair),
        ("the id last", id_last),
        ("a string as id", id_as_string),
        ("an error for nothing", error_for_nothing),
    ] {
        assert!(found >= 2, "{found} lines with {what}");
    }
}

#[test]
fn a_line_of_half_a_megabyte_is_routed() {
    let commands: Vec<Value> = (0..2_500)
        .map(|n| json!({"name": format!("command-{n}"), "description": "d".repeat(150), "input": {"hint": "\u{e9}"}}))
        .collect();
    let params = json!({"sessionId": "s", "update": {"sessionUpdate": "available_commands_update", "availableCommands": commands}});
    let line = compose::notification("session/update", &params);
    assert!(line.len() > 500_000);
    let message = Message::parse(line.slice(..line.len() - 1)).unwrap();
    assert_eq!(message.session_id().as_deref(), Some("s"));
    assert_eq!(
        acp::string_at(message.params().unwrap(), &["update", "sessionUpdate"]).as_deref(),
        Some("available_commands_update")
    );
}
