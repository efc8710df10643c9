use serde_json::json;

use super::*;
use crate::body::Body;

/// The payload of a turn of each state that keeps to every rule.
fn payload(state: &str) -> Value {
    let mut payload = json!({"promptId": "p", "state": state, "endedAt": 3});
    if state == "error" {
        payload["error"] = json!({"message": "m"});
    }
    payload
}

/// The payload of an error with other values in some fields; null takes a field away.
fn read(state: &str, fields: &Value) -> Option<TurnResult> {
    let mut payload = payload(state);
    for (key, value) in fields.as_object().unwrap() {
        match value {
            Value::Null => drop(payload.as_object_mut().unwrap().remove(key)),
            value => payload[key] = value.clone(),
        }
    }
    TurnResult::from_payload(&payload)
}

fn written(result: TurnResult) -> Value {
    match Body::from(result) {
        Body::System { payload, .. } => payload,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_text_has_its_own_bound_in_utf16_units() {
    for (field, units_max) in [
        ("promptId", 256),
        ("stopReason", 256),
        ("originatorClientId", 256),
        ("agentStopReason", 256),
        ("promptText", 32_768),
        ("resultText", 32_768),
        ("partialText", 32_768),
    ] {
        for (letter, units) in [("x", 1), ("é", 1), ("中", 1), ("🧪", 2)] {
            let fits = letter.repeat(units_max / units);
            assert!(read("completed", &json!({field: fits})).is_some(), "{field} of {units_max} in {letter}");
            let too_long = fits + "x";
            assert!(read("completed", &json!({field: too_long})).is_none(), "{field} beyond {units_max} in {letter}");
        }
    }
}

#[test]
fn both_parts_of_an_error_have_their_bounds() {
    let error = |message: String, code: Value| read("error", &json!({"error": {"message": message, "code": code}}));
    for (message, code, is_read) in
        [(1, 0, true), (4_096, 256, true), (4_097, 1, false), (1, 257, false), (0, 1, false)]
    {
        let found = error("m".repeat(message), json!("c".repeat(code)));
        assert_eq!(found.is_some(), is_read, "a message of {message}, a code of {code}");
    }
}

#[test]
fn every_field_has_its_kind() {
    for field in ["promptId", "state", "stopReason", "promptText", "resultText", "resultCode", "originatorClientId"] {
        for wrong in [json!(7), json!(true), json!(["x"]), json!({})] {
            assert_eq!(read("completed", &json!({field: wrong})), None, "{field}: {wrong}");
        }
    }
    for field in ["startedAt", "cancelledAt", "endedAt"] {
        for wrong in [json!("3"), json!(-1), json!(-0.5), json!(1e300), json!(true), json!([3])] {
            assert_eq!(read("completed", &json!({field: wrong})), None, "{field}: {wrong}");
        }
    }
    for field in ["promptTextTruncated", "resultTruncated"] {
        for wrong in [json!(1), json!("true"), json!({})] {
            assert_eq!(read("completed", &json!({field: wrong})), None, "{field}: {wrong}");
        }
    }
    for wrong in [json!("m"), json!(7), json!([]), json!({}), json!({"code": "c"}), json!({"message": 7})] {
        assert_eq!(read("error", &json!({"error": wrong})), None, "error: {wrong}");
    }
}

#[test]
fn three_fields_must_be_there() {
    for field in ["promptId", "state", "endedAt"] {
        assert_eq!(read("completed", &json!({field: null})), None, "without {field}");
    }
    for payload in [json!(null), json!("text"), json!([]), json!(7)] {
        assert_eq!(TurnResult::from_payload(&payload), None, "{payload}");
    }
    for state in ["completed", "cancelled", "error"] {
        assert_eq!(read(state, &json!({})).map(|found| found.state.as_str()), Some(state));
    }
}

#[test]
fn null_is_not_the_same_as_missing() {
    for field in ["stopReason", "promptText", "startedAt", "resultTruncated", "error", "partialText"] {
        let mut payload = payload("completed");
        payload[field] = Value::Null;
        assert_eq!(TurnResult::from_payload(&payload), None, "{field}");
    }
}

#[test]
fn an_error_and_the_state_of_one_go_together() {
    let error = json!({"error": {"message": "m"}});
    for (state, fields, is_read) in [
        ("completed", &error, false),
        ("cancelled", &error, false),
        ("error", &error, true),
        ("error", &json!({"error": null}), false),
    ] {
        assert_eq!(read(state, fields).is_some(), is_read, "{state}, {fields}");
    }
}

#[test]
fn a_result_code_says_that_a_text_was_cut() {
    for (fields, is_read) in [
        (json!({"resultTruncated": true, "resultCode": "RESULT_TEXT_TRUNCATED"}), true),
        (json!({"resultTruncated": true}), true),
        (json!({"resultTruncated": false}), true),
        (json!({"resultTruncated": false, "resultCode": "RESULT_TEXT_TRUNCATED"}), false),
        (json!({"resultTruncated": true, "resultCode": ""}), false),
    ] {
        assert_eq!(read("completed", &fields).is_some(), is_read, "{fields}");
    }
}

#[test]
fn a_time_is_read_however_its_number_is_written() {
    let ended_at = |text: &str| {
        let payload = format!("{{\"promptId\":\"p\",\"state\":\"completed\",\"endedAt\":{text}}}");
        TurnResult::from_payload(&crate::json::value(payload.as_bytes()).unwrap()).map(|found| found.ended_at)
    };
    for (text, expected) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("3.0", Some(3)),
        ("3.9", Some(3)),
        ("1.795977220001e12", Some(1_795_977_220_001)),
        ("9007199254740992", Some(9_007_199_254_740_992)),
        ("1e16", None),
        ("-1", None),
        ("1e999", None),
    ] {
        assert_eq!(ended_at(text), expected, "{text}");
    }
}

#[test]
fn a_numeric_code_becomes_the_text_that_javascript_makes_of_it() {
    let code = |text: &str| {
        let error = format!("{{\"message\":\"m\",\"code\":{text}}}");
        let payload = format!("{{\"promptId\":\"p\",\"state\":\"error\",\"endedAt\":1,\"error\":{error}}}");
        TurnResult::from_payload(&crate::json::value(payload.as_bytes()).unwrap())?.error?.code
    };
    for (text, expected) in [
        ("-32603", "-32603"),
        ("-32603.0", "-32603"),
        ("5e2", "500"),
        ("0", "0"),
        ("-0.0", "0"),
        ("1.5", "1.5"),
        ("\"rate_limited\"", "rate_limited"),
    ] {
        assert_eq!(code(text).as_deref(), Some(expected), "{text}");
    }
    assert_eq!(code("null"), None);
    assert_eq!(code("true"), None);
}

#[test]
fn fields_that_nobody_knows_change_nothing() {
    assert_eq!(read("completed", &json!({"branchPoint": {"v": 1}, "x": [1]})), read("completed", &json!({})));
}

#[test]
fn a_stop_reason_of_any_length_is_a_result_that_can_be_read() {
    let long = "🧪".repeat(300);
    let result = TurnResult {
        stop_reason: Some(format!("x{long}")),
        agent_stop_reason: Some(long),
        ..TurnResult::new("p", TurnState::Cancelled, 1)
    };
    let found = TurnResult::from_payload(&written(result)).unwrap();
    assert_eq!(found.stop_reason, Some(format!("x{}", "🧪".repeat(127))));
    assert_eq!(found.agent_stop_reason, Some("🧪".repeat(128)));
}

#[test]
fn a_client_id_too_long_to_be_one_is_left_out_and_not_cut() {
    let from = |id: &str| {
        let originator_client_id = Some(id.to_owned());
        let result = TurnResult { originator_client_id, ..TurnResult::new("p", TurnState::Completed, 1) };
        TurnResult::from_payload(&written(result)).unwrap().originator_client_id
    };
    assert_eq!(from(&"c".repeat(256)), Some("c".repeat(256)));
    assert_eq!(from(&"c".repeat(257)), None);
}

#[test]
fn an_error_without_a_message_is_an_error_that_can_be_read() {
    let result = TurnResult::new("p", TurnState::Error, 1).with_error("", None);
    let found = TurnResult::from_payload(&written(result)).unwrap();
    assert_eq!(found.error, Some(TurnError { message: "unknown error".to_owned(), code: None }));
}

#[test]
fn texts_are_cut_where_no_pair_is_torn() {
    let cut = |text: &str| TurnResult::new("p", TurnState::Completed, 1).with_result_text(text);
    for (text, units, is_cut) in [
        ("x".repeat(32_768), 32_768, false),
        ("x".repeat(32_769), 32_768, true),
        ("x".repeat(32_766) + "🧪", 32_768, false),
        ("x".repeat(32_767) + "🧪", 32_767, true),
        ("x".repeat(32_768) + "🧪", 32_768, true),
    ] {
        let found = cut(&text);
        assert_eq!(found.result_text.map(|text| text.encode_utf16().count()), Some(units));
        assert_eq!((found.result_truncated, found.result_code.is_some()), (is_cut, is_cut));
    }
}

#[test]
fn an_empty_answer_is_none_and_an_empty_prompt_is_one() {
    let result = TurnResult::new("p", TurnState::Completed, 1);
    let result = result.with_prompt_text("").with_result_text("").with_partial_text("");
    assert_eq!(written(result), json!({"promptId": "p", "state": "completed", "endedAt": 1, "promptText": ""}));
}

#[test]
fn a_result_is_written_with_the_names_of_the_format() {
    let result = TurnResult {
        stop_reason: Some("cancelled".to_owned()),
        started_at: Some(1),
        cancelled_at: Some(2),
        originator_client_id: Some("c".to_owned()),
        agent_stop_reason: Some("end_turn".to_owned()),
        ..TurnResult::new("p", TurnState::Cancelled, 3)
    };
    let expected = json!({
        "promptId": "p", "state": "cancelled", "stopReason": "cancelled", "startedAt": 1, "cancelledAt": 2, "endedAt": 3,
        "promptText": "q", "originatorClientId": "c", "agentStopReason": "end_turn", "partialText": "half",
    });
    assert_eq!(written(result.with_prompt_text("q").with_partial_text("half")), expected);
}

#[test]
fn the_three_states_are_told_by_their_words() {
    for state in [TurnState::Completed, TurnState::Cancelled, TurnState::Error] {
        assert_eq!(TurnState::parse(state.as_str()), Some(state));
        assert_eq!(json!(state), json!(state.as_str()));
    }
    for word in ["", "Completed", "interrupted", "running", " error"] {
        assert_eq!(TurnState::parse(word), None, "{word:?}");
    }
}

#[test]
fn what_speaks_against_a_turn_is_read_as_it_was_written_and_in_no_other_word() {
    for word in ["prompt_mismatch", "extra_user_message"] {
        let found = read("completed", &json!({"contradiction": word})).unwrap();
        assert_eq!(written(found)["contradiction"], word);
    }
    assert_eq!(read("completed", &json!({})).unwrap().contradiction, None);
    for other in [json!("else"), json!(true), json!("")] {
        assert_eq!(read("completed", &json!({"contradiction": other})), None, "{other}: it says something");
    }
}
