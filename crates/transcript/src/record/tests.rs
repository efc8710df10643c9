use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::SliceBytes;

fn parse(value: &Value) -> Option<Record> {
    let text = value.to_string();
    read(&mut Reader::new(SliceBytes::new(text.as_bytes(), 100))).unwrap().ok()
}

fn base() -> Value {
    json!({"uuid": "u", "parentUuid": "p", "sessionId": "s", "type": "user", "timestamp": "1970-01-01T00:00:01.000Z"})
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
        is_disputed: false,
        has_plain_time: true,
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
    assert!(!wrapped("x", "\u{85}"));
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
fn names_beyond_their_bound_are_none_and_their_calls_still_count() {
    let long = "n".repeat(NAME_BYTES_MAX);
    let call = json!({"functionCall": {"id": long, "name": "ls"}});
    let answer = json!({"functionResponse": {"id": long}});
    let found = message(&json!([call, call, call, call, call, answer]));
    let named: Vec<_> = found.calls.iter().map(|call| call.id.is_some()).collect();
    assert_eq!((named, found.responses.len()), (vec![true, true, true, false, false], 0));
    assert!(found.weight() < 5 * NAME_BYTES_MAX);
    let longer = message(&json!([{"functionCall": {"id": long + "n"}}]));
    assert_eq!((longer.calls[0].id.as_ref(), longer.has_call()), (None, true));
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

#[test]
fn fragments_join_into_one_record() {
    let fragment = |fields: Value| record(&fields);
    let said = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let mut later = fragment(json!({
        "parentUuid": "q", "type": "assistant", "daemonPromptId": "late", "message": said("b"),
        "timestamp": "1970-01-01T00:00:05.000Z",
    }));
    let earlier = fragment(json!({"daemonPromptId": "early", "message": said("a")}));
    later.join_earlier(earlier.clone());
    // The first one is the base.
    assert_eq!(
        (later.parent.as_deref(), later.kind, later.prompt_id.as_deref()),
        (Some("p"), Kind::User, Some("early"))
    );
    assert_eq!((later.at_ms, later.span), (Some(5_000), earlier.span));
    assert_eq!(later.message.map(|message| (message.parts, message.spans.len())), Some((2, 2)));
}

#[test]
fn the_later_time_is_kept_whichever_fragment_has_it() {
    let at = |timestamp: Value| record(&json!({"timestamp": timestamp}));
    let joined = |earlier: Value, later: Value| {
        let mut record = at(later);
        record.join_earlier(at(earlier));
        record.at_ms
    };
    let (one, two) = (json!("1970-01-01T00:00:01.000Z"), json!("1970-01-01T00:00:02.000Z"));
    assert_eq!(joined(one.clone(), two.clone()), Some(2_000));
    assert_eq!(joined(two, one.clone()), Some(2_000));
    assert_eq!(joined(one.clone(), json!("once")), None);
    assert_eq!(joined(json!("once"), one.clone()), None);
    // The later text is not the later time, and which of the two counts is not known.
    let east = json!("1970-01-01T02:00:00.500+02:00");
    assert_eq!(joined(east.clone(), one.clone()), None);
    assert_eq!(joined(one, east.clone()), None);
    assert_eq!(joined(east.clone(), east), Some(500));
}

#[test]
fn a_fragment_without_a_message_takes_none_away() {
    let said = json!({"message": {"role": "user", "parts": [{"text": "a"}]}});
    let (with_message, without) = (record(&said), record(&json!({})));
    let parts = |earlier: &Record, later: &Record| {
        let mut joined = later.clone();
        joined.join_earlier(earlier.clone());
        joined.message.map(|message| message.parts)
    };
    assert_eq!(parts(&with_message, &without), Some(1));
    assert_eq!(parts(&without, &with_message), Some(1));
    assert_eq!(parts(&without, &without), None);
}

#[test]
fn a_reminder_that_was_joined_with_words_is_none() {
    let said = |text: &str| message(&json!([{"text": text}]));
    let reminder = || said("<system-reminder>x</system-reminder>");
    assert!(reminder().joined(reminder()).is_reminder());
    assert!(!reminder().joined(said("q")).is_reminder());
    assert!(!said("q").joined(reminder()).is_reminder());
    assert!(reminder().joined(message(&json!([]))).is_reminder());
}

#[test]
fn only_what_the_model_is_told_is_a_notification() {
    let parts = json!([{"text": "<task-notification>x</task-notification>"}]);
    let said = |role: &str| record(&json!({"message": {"role": role, "parts": parts}})).message.unwrap();
    assert!(said("user").is_notification());
    for role in ["model", "system", ""] {
        assert!(!said(role).is_notification(), "{role}");
    }
}

#[test]
fn a_role_is_one_of_two_words() {
    for (role, expected) in [
        (json!("user"), Role::User),
        (json!("model"), Role::Model),
        (json!("assistant"), Role::Other),
        (json!("User"), Role::Other),
        (json!(7), Role::Other),
        (json!(null), Role::Other),
    ] {
        let found = record(&json!({"message": {"role": role, "parts": []}})).message.unwrap().role;
        assert_eq!(found, expected, "{role}");
    }
}

#[test]
fn what_a_browser_takes_for_nothing_is_no_call() {
    for (call, is_one) in [
        ("null", false),
        ("false", false),
        ("0", false),
        ("-0", false),
        ("0.0e5", false),
        ("\"\"", false),
        ("true", true),
        ("1", true),
        ("1e-400", false),
        ("\" \"", true),
        ("[]", true),
        ("{}", true),
    ] {
        let text = format!("{{\"parts\":[{{\"functionCall\":{call}}}]}}");
        let mut reader = Reader::new(SliceBytes::new(text.as_bytes(), 0));
        assert_eq!(message::read(&mut reader).unwrap().unwrap().has_call(), is_one, "{call}");
    }
}

/// A JSON text whose letters are escaped or not.
fn escaped(text: &str, every: usize) -> String {
    let letter = |(index, unit): (usize, u16)| match char::from_u32(unit.into()) {
        Some(plain) if index % every != 0 && !plain.is_control() && !matches!(plain, '"' | '\\') => plain.to_string(),
        _ => format!("\\u{unit:04x}"),
    };
    let body: String = text.encode_utf16().enumerate().map(letter).collect();
    format!("\"{body}\"")
}

proptest! {
    /// However a text is escaped, and so cut into pieces, it is a reminder when its two ends say so.
    #[test]
    fn a_reminder_is_known_however_it_is_escaped(
        head in prop::sample::select(vec!["", " ", "<system-reminder>", "<system-reminder"]),
        inside in "[a<>/ \\n\u{a0}\u{feff}é🧪\"\\\\]{0,80}",
        end in prop::sample::select(vec!["", "</system-reminder>", "</system- reminder>", "</system-reminder>x"]),
        space in "[ \\n\u{a0}\u{feff}\u{85}]{0,8}",
        every in 1..9_usize,
    ) {
        let text = format!("{head}{inside}{end}{space}");
        let json = format!("{{\"role\":\"user\",\"parts\":[{{\"text\":{}}}]}}", escaped(&text, every));
        let mut reader = Reader::new(SliceBytes::new(json.as_bytes(), 0));
        let found = message::read(&mut reader).unwrap().unwrap();
        let trimmed = crate::text::trimmed_end(&text);
        let expected = text.starts_with("<system-reminder>") && trimmed.ends_with("</system-reminder>");
        prop_assert_eq!(found.is_reminder(), expected, "{:?}", text);
    }
}
