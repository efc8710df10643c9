//! How a session was left.

use serde_json::{Value, json};
use transcript::{Left, how_left};

use crate::sample::{Sample, chain, record, with};

/// A chain in which `call` is an answer of the model that calls a function.
fn records(kinds: &str) -> Vec<Value> {
    let call = json!({"message": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "ls"}}]}});
    let kind = |index: usize| kinds.split_whitespace().nth(index).unwrap();
    let fit = |(index, record): (usize, Value)| if kind(index) == "call" { with(record, call.clone()) } else { record };
    chain(&kinds.replace("call", "assistant")).into_iter().enumerate().map(fit).collect()
}

#[test]
fn a_session_is_left_as_its_end_says() {
    for (kinds, expected) in [
        ("user assistant", Left::Nothing),
        ("user", Left::Prompt),
        ("user file_history_snapshot ui_telemetry", Left::Prompt),
        ("user call", Left::Turn),
        ("user call tool_result", Left::Prompt),
        ("user call tool_result assistant", Left::Nothing),
        // Cancelled or failed, it is over.
        ("user turn_result", Left::Nothing),
        ("user call turn_result ui_telemetry", Left::Nothing),
        ("user assistant turn_result user", Left::Prompt),
        ("user turn_result user call", Left::Turn),
        ("custom_title", Left::Nothing),
    ] {
        let sample = Sample::of_lines(&records(kinds));
        assert_eq!(how_left(sample.path()).unwrap(), expected, "{kinds}");
    }
}

#[test]
fn what_cannot_be_said_is_not_said() {
    let other = with(record("x", Some("r0"), "user"), json!({"sessionId": "s2"}));
    let mixed = Sample::of_lines(&[chain("user")[0].clone(), other]);
    assert_eq!(how_left(mixed.path()).unwrap_err().code(), "transcript_snapshot_unavailable");
    let odd = with(record("r0", None, "user"), json!({"message": {"role": "user", "parts": [5]}}));
    assert_eq!(how_left(Sample::of_lines(&[odd]).path()).unwrap_err().code(), "transcript_unreadable");
    assert_eq!(how_left(std::path::Path::new("/nowhere")).unwrap(), Left::Nothing);
}
