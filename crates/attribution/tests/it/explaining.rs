//! The explanation for a program.

use attribution::Standing;
use serde_json::{Value, json};

use crate::told;

fn explained(words: &str) -> Value {
    serde_json::from_str(&told::files(&told::story(words).remains()).explain().to_json()).unwrap()
}

#[test]
fn a_program_is_told_everything() {
    let expected = json!({
        "records": [{"v": 1, "promptId": "A", "state": "in_flight", "tailUuid": "r0", "at": 1_795_977_222_000_u64}],
        "droppedLines": 0,
        "dangling": ["A"],
        "tailUuid": "r2",
        "projection": ["r0", "r1", "r2"],
        "classify": {"kind": "none"},
        "verdict": {"append": [
            {"v": 1, "promptId": "A", "terminal": "completed", "stopReason": "reconstructed_from_transcript"},
        ]},
        "evidence": "inferred",
        "terminals": null,
    });
    assert_eq!(explained("[note, A if marked, user, answer]"), expected);
}

#[test]
fn the_parts_that_were_left_open_are_told() {
    let parts = json!([
        {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "x"}}},
        {"text": "wait"},
    ]);
    assert_eq!(
        explained("[A if, user, call, tool, mid-turn]")["classify"],
        json!({"kind": "interrupted_prompt", "parts": parts})
    );
    let calls = json!([{"callId": "c1", "name": "ls"}]);
    assert_eq!(
        explained("[A if, user, call]")["classify"],
        json!({"kind": "interrupted_turn", "danglingCalls": calls})
    );
}

#[test]
fn a_result_is_told_from_an_inference() {
    let explanation = explained("[A if, B if, A user, answer, A result completed, B user, answer]");
    assert_eq!(explanation["evidence"], "turn_result");
    assert_eq!(explanation["verdict"]["withheld"], "tail_before_other_terminal");
    assert_eq!(explanation["verdict"]["append"][0]["stopReason"], "max_tokens");
}

#[test]
fn what_is_not_there_is_null() {
    let files = crate::files::Files::with(None, None);
    let explanation: Value = serde_json::from_str(&files.explain().to_json()).unwrap();
    let expected = json!({
        "records": [], "droppedLines": 0, "dangling": [], "tailUuid": null, "projection": null, "classify": null,
        "verdict": {"withheld": "no_dangling"}, "evidence": null, "terminals": null,
    });
    assert_eq!(explanation, expected);
}

#[test]
fn nothing_is_written_by_an_explanation() {
    let remains = told::story("[A if, user, answer]").remains();
    let files = told::files(&remains);
    let explanation = files.explain();
    assert_eq!(files.ledger_bytes(), remains.ledger);
    assert_eq!(explanation.plan.standing(), Standing::Resolvable);
    assert_eq!(explanation.plan.apply(files.ledger(), 7).appended.len(), 1);
}
