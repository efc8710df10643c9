use serde_json::{Value, json};

use super::*;
use crate::json::SliceBytes;

fn parse(value: &Value) -> Option<Record> {
    let text = value.to_string();
    read(&mut Reader::new(SliceBytes::new(text.as_bytes(), 100))).unwrap()
}

fn base() -> Value {
    json!({"uuid": "u", "parentUuid": "p", "sessionId": "s", "type": "user", "timestamp": "1970-01-01T00:00:01Z"})
}

/// The base with other values in some fields.
fn with(fields: &Value) -> Value {
    let mut record = base();
    for (key, value) in fields.as_object().unwrap() {
        record[key] = value.clone();
    }
    record
}

fn record(fields: &Value) -> Record {
    parse(&with(fields)).unwrap()
}

fn message(parts: &Value) -> Message {
    record(&json!({"message": {"role": "user", "parts": parts}})).message.unwrap()
}

fn note(subtype: &str, payload: &Value) -> Payload {
    record(&json!({"type": "system", "subtype": subtype, "systemPayload": payload})).payload
}

#[test]
fn the_fields_of_a_record_are_read() {
    let found = record(&json!({"cwd": "/ws", "provenance": "system", "daemonPromptId": "p1", "subtype": "cron"}));
    let expected = Record {
        uuid: "u".to_owned(),
        parent: Some("p".to_owned()),
        session_id: "s".to_owned(),
        kind: Kind::User,
        subtype: Some("cron".to_owned()),
        at_ms: Some(1_000),
        cwd: Some("/ws".to_owned()),
        is_from_session: true,
        prompt_id: Some("p1".to_owned()),
        message: None,
        payload: Payload::Other,
        goal: None,
        span: found.span.clone(),
        payload_span: None,
    };
    assert_eq!(found, expected);
    assert_eq!(found.span.start, 100);
}

#[test]
fn a_record_is_usable_with_four_fields() {
    for field in ["uuid", "parentUuid", "sessionId", "type"] {
        let mut incomplete = base();
        incomplete.as_object_mut().unwrap().remove(field);
        assert_eq!(parse(&incomplete), None, "without {field}");
        assert_eq!(parse(&with(&json!({field: 7}))), None, "{field} is a number");
        assert_eq!(parse(&with(&json!({field: ["x"]}))), None, "{field} is a list");
    }
    assert_eq!(parse(&with(&json!({"type": "User"}))), None);
    for parent in [json!(null), json!("")] {
        assert_eq!(record(&json!({"parentUuid": parent})).parent, None);
    }
}

#[test]
fn other_fields_may_be_anything() {
    let odd = json!({
        "timestamp": 5, "cwd": null, "provenance": {}, "daemonPromptId": 7, "message": "text", "goalContext": "g", "subtype": null,
    });
    let found = record(&odd);
    assert_eq!((found.at_ms, found.cwd, found.prompt_id), (None, None, None));
    assert_eq!((found.message, found.goal, found.subtype, found.is_from_session), (None, None, None, false));
    // A subtype that is no text is one that nobody knows.
    assert_eq!(record(&json!({"subtype": 7})).subtype.as_deref(), Some(""));
}

#[test]
fn what_counts_as_written() {
    let said = |fields: Value| {
        let mut record = with(&json!({"message": {"role": "user", "parts": [{"text": "q"}]}}));
        for (key, value) in fields.as_object().unwrap() {
            record[key] = value.clone();
        }
        let record = parse(&record).unwrap();
        (record.is_material(), record.is_visible(), record.is_visible_write(), record.is_real_prompt())
    };
    let reminder = json!({"message": {"role": "user", "parts": [{"text": "<system-reminder>x</system-reminder>"}]}});
    for (fields, expected) in [
        (json!({}), (true, true, true, true)),
        (json!({"type": "assistant"}), (true, true, true, false)),
        (json!({"type": "tool_result"}), (true, true, true, false)),
        (json!({"type": "system"}), (false, false, false, false)),
        (json!({"message": null}), (false, false, false, false)),
        (json!({"subtype": "realtime_message"}), (false, false, false, false)),
        (json!({"provenance": "system"}), (true, false, false, false)),
        (json!({"provenance": "real_user"}), (true, true, true, true)),
        (json!({"subtype": "mid_turn_user_message"}), (true, true, true, false)),
        (json!({"subtype": "cron"}), (true, true, true, false)),
        (reminder, (true, true, false, false)),
    ] {
        assert_eq!(said(fields.clone()), expected, "{fields}");
    }
}

#[test]
fn some_notes_stand_beside_the_branch() {
    for (subtype, is_on_branch) in [
        ("session_artifact_event", false),
        ("session_artifact_snapshot", false),
        ("session_sources_snapshot", false),
        ("managed_session_header_v1", false),
        ("session_source", true),
        ("turn_result", true),
    ] {
        assert_eq!(record(&json!({"type": "system", "subtype": subtype})).is_on_branch(), is_on_branch, "{subtype}");
        // Only notes do.
        assert!(record(&json!({"subtype": subtype})).is_on_branch(), "{subtype}");
    }
}

#[test]
fn the_kinds_of_parts_are_counted() {
    let reminder = json!({"text": "<system-reminder>\nx\n</system-reminder>"});
    let task = json!({"text": "<task-notification>x</task-notification> \n"});
    for (parts, is_reminder, is_notification, has_call) in [
        (json!([]), false, false, false),
        (json!([{"text": "q"}]), false, false, false),
        (json!([reminder]), true, false, false),
        (json!([reminder, reminder]), true, false, false),
        (json!([reminder, {"text": ""}]), false, false, false),
        (json!([reminder, {"inlineData": {}}]), false, false, false),
        (json!([task]), false, true, false),
        (json!([task, reminder]), false, false, false),
        (json!([{"text": "<system-reminder>x"}]), false, false, false),
        (json!([{"text": " <system-reminder>x</system-reminder>"}]), false, false, false),
        (json!([{"text": 7}]), false, false, false),
        (json!([{"functionCall": {}}]), false, false, true),
        (json!([{"functionCall": "ls"}]), false, false, true),
        (json!([{"functionCall": null}]), false, false, false),
        (json!([{"functionCall": ""}]), false, false, false),
        (json!([{"functionCall": 0}]), false, false, false),
        (json!([{"functionResponse": {"id": "c1"}}]), false, false, false),
    ] {
        let found = message(&parts);
        let kinds = (found.is_reminder(), found.is_notification(), found.has_call());
        assert_eq!(kinds, (is_reminder, is_notification, has_call), "{parts}");
    }
}

#[test]
fn a_long_text_is_known_by_its_two_ends() {
    let wrapped = |inside: &str, behind: &str| {
        message(&json!([{"text": format!("<system-reminder>{inside}</system-reminder>{behind}")}])).is_reminder()
    };
    assert!(wrapped(&"long \n".repeat(10_000), &" \n\t".repeat(1_000)));
    assert!(wrapped("x", "\u{a0}\u{feff}\u{2003}"));
    assert!(!wrapped("x", "and more"));
    assert!(!wrapped(&" ".repeat(10_000), &format!("{}.", " ".repeat(10_000))));
}

#[test]
fn calls_and_answers_are_named_in_their_order() {
    let found = message(&json!([
        {"functionCall": {"id": "c1", "name": "ls", "args": {"id": "inner"}}},
        {"functionCall": {"name": "cat"}},
        {"functionCall": {"id": "", "name": 7}},
        {"functionResponse": {"id": "c0", "response": {"id": "inner"}}},
        {"functionResponse": {"response": {}}},
    ]));
    let call = |id: Option<&str>, name: Option<&str>| Call { id: id.map(str::to_owned), name: name.map(str::to_owned) };
    assert_eq!(found.calls, [call(Some("c1"), Some("ls")), call(None, Some("cat")), call(None, None)]);
    assert_eq!(found.responses, ["c0"]);
}

#[test]
fn an_absurd_number_of_calls_is_counted_and_not_kept() {
    let parts: Vec<_> = (0..5_000).map(|index| json!({"functionCall": {"id": format!("c{index}")}})).collect();
    let found = message(&json!(parts));
    assert_eq!((found.calls.len(), found.parts, found.has_call()), (1_000, 5_000, true));
}

#[test]
fn parts_that_come_twice_count_once() {
    let text = r#"{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","message":{"parts":[{"text":"a"}],"role":"model","parts":[]}}"#;
    let found = read(&mut Reader::new(SliceBytes::new(text.as_bytes(), 0))).unwrap().unwrap().message.unwrap();
    assert_eq!((found.role, found.parts), (Role::Model, 0));
}

#[test]
fn the_same_text_has_the_same_mark_however_it_is_escaped() {
    let mark = |text: &str| {
        let mut reader = Reader::new(SliceBytes::new(text.as_bytes(), 0));
        message::mark(&mut reader).unwrap().unwrap()
    };
    assert_eq!(mark(r#""/caf\u00e9 \"now\"""#), mark("\"/caf\u{e9} \\u0022now\\u0022\""));
    assert_ne!(mark("\"/about\""), mark("\"/about \""));
    assert_ne!(mark("\"\""), mark(r#""\u0000""#));
    assert_ne!(mark("\"12345678abcdefgh\""), mark("\"abcdefgh12345678\""));
}

#[test]
fn the_payloads_that_matter_are_read() {
    assert_eq!(note("turn_result", &json!({"promptId": "p"})), Payload::TurnResult { prompt_id: Some("p".to_owned()) });
    assert_eq!(note("turn_result", &json!({"promptId": 7})), Payload::TurnResult { prompt_id: None });
    assert_eq!(note("turn_result", &json!("text")), Payload::Other);
    let end = |id: Option<&str>| Payload::GoalEnd(GoalEnd { tool_call_id: id.map(str::to_owned) });
    assert_eq!(note("goal_turn_end", &json!({"toolCallId": "c1"})), end(Some("c1")));
    assert_eq!(note("goal_turn_end", &json!({"toolCallId": ""})), end(None));
    assert_eq!(note("ui_telemetry", &json!({"promptId": "p"})), Payload::Other);
    // The payload of what is no note means nothing.
    let user = json!({"subtype": "turn_result", "systemPayload": {"promptId": "p"}});
    assert_eq!(record(&user).payload, Payload::Other);
}

#[test]
fn a_payload_may_stand_before_its_subtype() {
    let text = r#"{"systemPayload":{"promptId":"p"},"uuid":"u","parentUuid":null,"sessionId":"s","type":"system","subtype":"turn_result"}"#;
    let mut reader = Reader::new(SliceBytes::new(text.as_bytes(), 0));
    let found = read(&mut reader).unwrap().unwrap();
    assert_eq!(found.payload, Payload::TurnResult { prompt_id: Some("p".to_owned()) });
    assert!(reader.is_at_end());
}

#[test]
fn only_the_end_of_a_snapshot_is_kept() {
    let entries: Vec<_> =
        (0..200).map(|index| json!({"role": "user", "parts": vec![json!({"text": "x"}); index]})).collect();
    let Payload::Compression(Snapshot::Entries(kept)) =
        note("chat_compression", &json!({"compressedHistory": entries}))
    else {
        panic!("no snapshot");
    };
    assert_eq!((kept.len(), kept[0].parts, kept[49].parts), (50, 150, 199));
}

#[test]
fn a_goal_is_named_by_all_three() {
    let goal = |fields: Value| record(&json!({"goalContext": fields})).goal;
    let whole = json!({"goalId": "g", "turnId": "t", "revision": 1});
    assert_eq!(goal(whole.clone()).map(|goal| goal.revision), Some("1".to_owned()));
    for (key, value) in
        [("goalId", json!("")), ("turnId", json!(null)), ("revision", json!("1")), ("revision", json!(null))]
    {
        let mut partial = whole.clone();
        partial[key] = value.clone();
        assert_eq!(goal(partial), None, "{key}: {value}");
    }
}
