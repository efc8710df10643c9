//! How turns ended, as the transcript tells it.

use serde_json::{Value, json};
use transcript::{TurnResult, TurnState, find_turn_result, last_rewind_at_ms};

use crate::sample::{Sample, chain, record, with};

fn result_record(uuid: &str, parent: &str, payload: Value) -> Value {
    with(record(uuid, Some(parent), "turn_result"), json!({"systemPayload": payload}))
}

fn completed(prompt_id: &str, ended_at: u64) -> Value {
    json!({"promptId": prompt_id, "state": "completed", "stopReason": "end_turn", "endedAt": ended_at})
}

fn found(lines: &[Value], prompt_id: Option<&str>) -> Option<u64> {
    let sample = Sample::of_lines(lines);
    find_turn_result(sample.path(), prompt_id).unwrap().map(|result| result.ended_at)
}

#[test]
fn the_newest_result_of_a_prompt_is_found() {
    let mut lines = chain("user assistant");
    lines.push(result_record("t1", "r1", completed("p1", 1)));
    lines.push(result_record("t2", "t1", completed("p2", 2)));
    lines.push(result_record("t3", "t2", completed("p1", 3)));
    assert_eq!(found(&lines, Some("p1")), Some(3));
    assert_eq!(found(&lines, Some("p2")), Some(2));
    assert_eq!(found(&lines, Some("p3")), None);
    assert_eq!(found(&lines, None), Some(3));
}

#[test]
fn a_result_beside_the_branch_is_gone() {
    let mut lines = chain("user assistant");
    lines.push(result_record("t1", "r1", completed("p1", 1)));
    lines.push(record("w", Some("r0"), "rewind"));
    assert_eq!(found(&lines, Some("p1")), None);
}

#[test]
fn no_file_holds_no_result() {
    assert!(find_turn_result(Sample::new().path(), None).unwrap().is_none());
    assert!(find_turn_result(Sample::new().folder(), None).is_err());
}

#[test]
fn a_payload_that_breaks_a_rule_is_no_result() {
    let broken = |fields: Value| {
        let mut payload = completed("p1", 1);
        for (key, value) in fields.as_object().unwrap() {
            payload[key] = value.clone();
        }
        let mut lines = chain("user");
        lines.push(result_record("t1", "r0", payload));
        found(&lines, None)
    };
    assert_eq!(broken(json!({})), Some(1));
    assert_eq!(broken(json!({"resultText": "x".repeat(32_768)})), Some(1));
    assert_eq!(broken(json!({"state": "error", "error": {"message": "m", "code": -32603}})), Some(1));
    for fields in [
        json!({"resultText": "x".repeat(32_769)}),
        json!({"promptText": "🧪".repeat(16_385)}),
        json!({"state": "running"}),
        json!({"state": "error"}),
        json!({"error": {"message": "m"}}),
        json!({"state": "error", "error": {"message": ""}}),
        json!({"state": "error", "error": {"message": "m".repeat(4_097)}}),
        json!({"endedAt": "now"}),
        json!({"endedAt": null}),
        json!({"startedAt": -1}),
        json!({"promptId": ""}),
        json!({"promptId": 7}),
        json!({"stopReason": null}),
        json!({"resultCode": "RESULT_TEXT_TRUNCATED"}),
        json!({"resultCode": "OTHER", "resultTruncated": true}),
    ] {
        assert_eq!(broken(fields.clone()), None, "{fields}");
    }
}

#[test]
fn what_is_composed_is_read_back() {
    let long = "🧪".repeat(20_000);
    let result =
        TurnResult { started_at: Some(1), cancelled_at: Some(2), ..TurnResult::new("p1", TurnState::Error, 3) }
            .with_prompt_text(&long)
            .with_result_text(&long)
            .with_partial_text(&long)
            .with_error(&"m".repeat(5_000), Some(&"c".repeat(300)));
    assert!(result.prompt_text_truncated && result.result_truncated);
    assert_eq!(result.prompt_text.as_ref().map(|text| text.encode_utf16().count()), Some(32_768));
    assert_eq!(TurnResult::from_payload(&serde_json::to_value(&result).unwrap()), Some(result));
}

#[test]
fn the_scan_ends_after_ten_pages_of_records() {
    let filler = |count: usize| {
        let mut lines = vec![result_record("t", "none", completed("p1", 1))];
        let mut parent = "t".to_owned();
        for index in 0..count {
            let uuid = format!("f{index}");
            lines.push(record(&uuid, Some(&parent), "user"));
            parent = uuid;
        }
        found(&lines, Some("p1"))
    };
    assert_eq!(filler(4_999), Some(1));
    assert_eq!(filler(5_000), None);
}

#[test]
fn the_scan_ends_after_ten_pages_of_bytes() {
    let large = |count: usize| {
        let mut lines = vec![result_record("t", "none", completed("p1", 1))];
        let mut parent = "t".to_owned();
        for index in 0..count {
            let uuid = format!("f{index}");
            let message = json!({"message": {"role": "user", "parts": [{"text": "x".repeat(2_200_000)}]}});
            lines.push(with(record(&uuid, Some(&parent), "user"), message));
            parent = uuid;
        }
        found(&lines, Some("p1"))
    };
    // One record to a page, because two would weigh more than four megabytes.
    assert_eq!(large(10), Some(1));
    assert_eq!(large(11), None);
}

#[test]
fn the_last_rewind_is_found_by_its_time() {
    let rewind_at = |timestamp: &str| {
        let mut lines = chain("user assistant");
        lines.push(with(record("w", Some("r0"), "rewind"), json!({"timestamp": timestamp})));
        lines.push(record("r3", Some("w"), "user"));
        last_rewind_at_ms(Sample::of_lines(&lines).path()).unwrap()
    };
    assert_eq!(rewind_at("2026-11-29T18:33:45.000Z"), Some(1_795_977_225_000));
    assert_eq!(rewind_at("once"), Some(u64::MAX));
    assert_eq!(rewind_at("1969-12-31T23:59:59Z"), Some(0));
    assert_eq!(last_rewind_at_ms(Sample::of_lines(&chain("user assistant")).path()).unwrap(), None);
}

#[test]
fn of_several_rewinds_the_last_one_on_the_branch_counts() {
    let mut lines = chain("user rewind user rewind user assistant");
    for (index, second) in [(1, 41), (3, 43)] {
        lines[index]["timestamp"] = json!(format!("2026-11-29T18:33:{second}.000Z"));
    }
    let last = |lines: &[Value]| last_rewind_at_ms(Sample::of_lines(lines).path()).unwrap();
    assert_eq!(last(&lines), Some(1_795_977_223_000));
    // A rewind that was rewound itself is no longer on the branch.
    lines[4]["parentUuid"] = json!("r2");
    assert_eq!(last(&lines), Some(1_795_977_221_000));
}

#[test]
fn only_a_note_is_a_rewind() {
    for kind in ["user", "assistant", "tool_result"] {
        let line = with(record("r0", None, kind), json!({"subtype": "rewind"}));
        assert_eq!(last_rewind_at_ms(Sample::of_lines(&[line]).path()).unwrap(), None, "{kind}");
    }
    assert_eq!(last_rewind_at_ms(Sample::new().path()).unwrap(), None);
}

#[test]
fn a_result_that_breaks_a_rule_hides_none_before_it() {
    let mut lines = chain("user assistant");
    lines.push(result_record("t1", "r1", completed("p1", 1)));
    lines.push(result_record("t2", "t1", json!({"promptId": "p1", "state": "running", "endedAt": 2})));
    assert_eq!(found(&lines, Some("p1")), Some(1));
    assert_eq!(found(&lines, None), Some(1));
    // Nor does one that stands in what is no note.
    lines.push(with(result_record("t3", "t2", completed("p1", 3)), json!({"type": "user"})));
    assert_eq!(found(&lines, Some("p1")), Some(1));
}
