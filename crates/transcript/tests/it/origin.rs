//! Whether a transcript loads.

use std::path::Path;

use serde_json::{Value, json};
use transcript::{Absent, check};

use crate::sample::{SESSION_ID, Sample, WORKSPACE, chain, record, with, without};

fn outcome(bytes: &[u8]) -> &'static str {
    let sample = Sample::of(bytes);
    name(check(sample.path(), SESSION_ID, Path::new(WORKSPACE)))
}

fn name(checked: Result<(), Absent>) -> &'static str {
    match checked {
        Ok(()) => "loads",
        Err(Absent::NoFile) => "no file",
        Err(Absent::NoRecord) => "no record",
        Err(Absent::TwoSessions) => "two sessions",
        Err(Absent::ForeignWorkspace) => "foreign workspace",
        Err(Absent::Unreadable(_)) => "unreadable",
    }
}

fn lines(lines: &[Value]) -> Vec<u8> {
    Sample::of_lines(lines).bytes()
}

#[test]
fn a_transcript_loads_when_its_first_record_is_of_this_workspace() {
    let first = |fields: Value| with(record("r0", None, "user"), fields);
    assert_eq!(outcome(&lines(&chain("user assistant"))), "loads");
    assert_eq!(outcome(&lines(&[first(json!({"cwd": "/ws/.qwen/worktrees/w1"}))])), "loads");
    assert_eq!(outcome(&lines(&[first(json!({"cwd": "/elsewhere"}))])), "foreign workspace");
    assert_eq!(outcome(&lines(&[first(json!({"cwd": "/ws/sub"}))])), "foreign workspace");
    assert_eq!(outcome(&lines(&[first(json!({"cwd": "/ws/"}))])), "foreign workspace");
    assert_eq!(outcome(&lines(&[without(record("r0", None, "user"), "cwd")])), "foreign workspace");
    let later_elsewhere =
        [chain("user").remove(0), with(record("r1", Some("r0"), "user"), json!({"cwd": "/elsewhere"}))];
    assert_eq!(outcome(&lines(&later_elsewhere)), "loads");
}

#[test]
fn a_record_of_another_session_spoils_the_file() {
    let mut foreign_end = chain("user assistant");
    foreign_end[1]["sessionId"] = json!("s2");
    assert_eq!(outcome(&lines(&foreign_end)), "two sessions");
    let mut foreign_all = chain("user assistant");
    for record in &mut foreign_all {
        record["sessionId"] = json!("s2");
    }
    assert_eq!(outcome(&lines(&foreign_all)), "two sessions");
    let mut beside = chain("user assistant session_artifact_event");
    beside[2]["sessionId"] = json!("s2");
    assert_eq!(outcome(&lines(&beside)), "two sessions");
}

#[test]
fn a_file_without_a_usable_record_holds_nothing() {
    assert_eq!(outcome(b""), "no file");
    assert_eq!(outcome(b"\n \r\n\n"), "no record");
    assert_eq!(outcome(b"garbage\n[1,2]\nnull\n5\n"), "no record");
    assert_eq!(outcome(&lines(&[without(record("r0", None, "user"), "uuid")])), "no record");
    assert_eq!(name(check(Sample::new().path(), SESSION_ID, Path::new(WORKSPACE))), "no file");
    let folder = Sample::new();
    assert_eq!(name(check(folder.folder(), SESSION_ID, Path::new(WORKSPACE))), "unreadable");
}

#[test]
fn damage_before_the_first_record_does_not_hide_it() {
    let first = record("r0", None, "user").to_string();
    assert_eq!(outcome(format!("\u{feff}garbage\n\0\0{{\"torn\":\"{first}\n").as_bytes()), "loads");
}

#[test]
fn what_is_no_record_and_begins_the_file_says_where_it_is_from() {
    let behind = |first: Value| outcome(&lines(&[first, record("r1", None, "user")]));
    let first = record("r0", None, "user");
    assert_eq!(behind(without(first.clone(), "uuid")), "loads");
    assert_eq!(behind(without(first.clone(), "cwd")), "foreign workspace");
    assert_eq!(behind(json!({"uuid": "r0"})), "foreign workspace");
    assert_eq!(behind(without(first.clone(), "sessionId")), "two sessions");
    assert_eq!(behind(with(first, json!({"sessionId": ""}))), "two sessions");
}

#[test]
fn a_long_beginning_of_nothing_is_passed_over_quickly() {
    let first = record("r0", None, "user").to_string();
    assert_eq!(outcome(format!("{}{first}\n", "\n".repeat(1_000_000)).as_bytes()), "loads");
    // What begins behind more damage than anyone would look through is not looked for.
    assert_eq!(outcome(format!("{}{first}\n", "x\n".repeat(3_000_000)).as_bytes()), "no record");
}
