//! Records too long to be held in memory.

use serde_json::json;
use transcript::{TurnResult, TurnState};

use crate::sample::{Sample, chain, record, with};

/// Longer than the longest line that is held.
const HUGE_BYTES: usize = 9 * 1024 * 1024;

#[test]
fn a_huge_record_is_a_record() {
    let mut records = chain("user assistant user assistant");
    let text = "<system-reminder>".to_owned() + &"\\\"é🧪\n".repeat(HUGE_BYTES / 10) + "</system-reminder>";
    records[2]["message"]["parts"] = json!([{"text": text}, {"functionCall": {"id": "c1", "name": "ls"}}]);
    let sample = Sample::of_lines(&records);
    assert_eq!(sample.uuids(), "r0 r1 r2 r3");
    let message = sample.branch().swap_remove(2).message.unwrap();
    assert_eq!((message.calls.len(), message.is_reminder()), (1, false));
    records[2]["message"]["parts"] = json!([{"text": text}]);
    assert!(Sample::of_lines(&records).branch().swap_remove(2).message.unwrap().is_reminder());
}

#[test]
fn a_record_is_saved_from_a_huge_torn_line() {
    let torn = with(record("r1", Some("r0"), "assistant"), json!({"text": "x".repeat(HUGE_BYTES)})).to_string();
    let first = record("r0", None, "user");
    let glued = record("r2", Some("r0"), "user");
    let sample = Sample::of(format!("{first}\n{}{glued}\n", &torn[..torn.len() - 10]));
    assert_eq!(sample.uuids(), "r0 r2");
}

#[test]
fn a_huge_first_record_names_the_workspace() {
    let first = with(record("r0", None, "user"), json!({"aaa": "x".repeat(HUGE_BYTES)}));
    let sample = Sample::of_lines(&[first]);
    transcript::check(sample.path(), "s1", "/ws".as_ref()).unwrap();
}

#[test]
fn results_are_found_behind_a_huge_record() {
    let result = TurnResult::new("p1", TurnState::Completed, 1);
    let note = with(record("t", None, "turn_result"), json!({"systemPayload": result}));
    let huge = with(record("r1", Some("t"), "user"), json!({"aaa": "x".repeat(HUGE_BYTES)}));
    let sample = Sample::of_lines(&[note, huge]);
    assert_eq!(transcript::find_turn_result(sample.path(), Some("p1")).unwrap(), Some(result));
}

#[test]
fn a_foreign_first_record_is_seen_however_far_back_it_is() {
    let first = with(record("r0", None, "user"), json!({"sessionId": "s2"}));
    let long = with(record("r1", Some("r0"), "user"), json!({"aaa": "x".repeat(5 * 1024 * 1024)}));
    let sample = Sample::of_lines(&[first, long]);
    let refused = transcript::check(sample.path(), "s1", "/ws".as_ref());
    assert!(matches!(refused, Err(transcript::Absent::TwoSessions)), "{refused:?}");
}
