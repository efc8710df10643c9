//! The writer: one writer a transcript, one write a call, a chain that survives what others tore.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use transcript::{AppendError, Body, Durability, Identity, TurnResult, TurnState, Writer};

use crate::sample::{SESSION_ID, START_MS, Sample, WORKSPACE, chain};

fn identity() -> Identity {
    Identity { session_id: SESSION_ID.to_owned(), cwd: WORKSPACE.to_owned(), version: "0.0.0".to_owned() }
}

fn open(sample: &Sample) -> Writer {
    Writer::open(sample.path(), identity(), Durability::Process).unwrap()
}

fn user(text: &str) -> Body {
    Body::User { prompt_id: Some("p1".to_owned()), parts: vec![json!({"text": text})] }
}

fn lines(sample: &Sample) -> Vec<Value> {
    let text = String::from_utf8(sample.bytes()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_file_is_made_with_its_first_record_for_its_owner_alone() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    assert!(!sample.path().exists());
    writer.append(START_MS, &user("q")).unwrap();
    let mode = std::fs::metadata(sample.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_line_has_the_fields_of_the_format_in_their_order() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let first = writer.append(START_MS, &user("q")).unwrap();
    let second =
        writer.append(START_MS + 1, &Body::Assistant { model: None, parts: vec![json!({"text": "a"})] }).unwrap();
    let expected = format!(
        concat!(
            r#"{{"uuid":"{first}","parentUuid":null,"sessionId":"s1","timestamp":"2026-11-29T18:33:40.000Z","type":"user","#,
            r#""provenance":"real_user","cwd":"/ws","version":"0.0.0","daemonPromptId":"p1","#,
            r#""message":{{"role":"user","parts":[{{"text":"q"}}]}}}}"#,
            "\n",
            r#"{{"uuid":"{second}","parentUuid":"{first}","sessionId":"s1","timestamp":"2026-11-29T18:33:40.001Z","#,
            r#""type":"assistant","provenance":"assistant_output","cwd":"/ws","version":"0.0.0","#,
            r#""message":{{"role":"model","parts":[{{"text":"a"}}]}}}}"#,
            "\n",
        ),
        first = first,
        second = second,
    );
    assert_eq!(String::from_utf8(sample.bytes()).unwrap(), expected);
}

#[test]
fn every_kind_of_record_is_read_back() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let call = json!({"functionCall": {"id": "c1", "name": "ls", "args": {}}});
    let answer = json!({"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "x"}}});
    let result = TurnResult::new("p1", TurnState::Completed, START_MS + 9).with_prompt_text("q").with_result_text("a");
    let bodies = [
        user("q"),
        Body::Assistant { model: Some("m".to_owned()), parts: vec![call] },
        Body::ToolResult { call_id: "c1".to_owned(), status: "success".to_owned(), parts: vec![answer] },
        Body::Assistant { model: None, parts: vec![json!({"text": "a"})] },
        Body::from(result.clone()),
    ];
    let uuids: Vec<_> = bodies.iter().map(|body| writer.append(START_MS, body).unwrap()).collect();
    assert_eq!(sample.uuids(), uuids.join(" "));
    assert_eq!(lines(&sample)[2]["toolCallResult"], json!({"callId": "c1", "status": "success"}));
    assert_eq!(transcript::find_turn_result(sample.path(), Some("p1")).unwrap(), Some(result));
}

#[test]
fn several_records_at_once_are_a_chain_of_their_own() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let before = writer.append(START_MS, &user("q")).unwrap();
    let uuids = writer.append_all(&[(START_MS, user("a")), (START_MS, user("b"))]).unwrap();
    assert_eq!(sample.uuids(), format!("{before} {} {}", uuids[0], uuids[1]));
    assert_eq!(writer.parent(), Some(uuids[1].as_str()));
}

#[test]
fn of_several_records_none_is_written_when_one_cannot_be() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let refused = writer.append_all(&[(START_MS, user("a")), (u64::MAX, user("b"))]);
    assert!(matches!(refused, Err(AppendError::Time { at_ms: u64::MAX })), "{refused:?}");
    assert!(!sample.path().exists());
    assert_eq!(writer.parent(), None);
}

#[test]
fn a_note_beside_the_branch_is_nobodys_parent() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let first = writer.append(START_MS, &user("q")).unwrap();
    let beside = Body::System { subtype: "session_artifact_event".to_owned(), payload: json!({}) };
    writer.append(START_MS, &beside).unwrap();
    let second = writer.append(START_MS, &user("again")).unwrap();
    assert_eq!(lines(&sample)[1]["parentUuid"], json!(first));
    assert_eq!(sample.uuids(), format!("{first} {second}"));
}

#[test]
fn a_second_writer_goes_on_where_the_first_one_stopped() {
    let sample = Sample::new();
    let first = open(&sample).append(START_MS, &user("q")).unwrap();
    let second = open(&sample).append(START_MS, &user("again")).unwrap();
    assert_eq!(sample.uuids(), format!("{first} {second}"));
}

#[test]
fn a_record_behind_a_torn_one_is_whole_at_every_cut() {
    let whole = Sample::of_lines(&chain("user assistant")).bytes();
    let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in first_line..=whole.len() {
        let sample = Sample::of(&whole[..cut]);
        let appended = open(&sample).append(START_MS, &user("again")).unwrap();
        // Without its LF the last record is whole all the same.
        let parent = if cut >= whole.len() - 1 { "r0 r1" } else { "r0" };
        assert_eq!(sample.uuids(), format!("{parent} {appended}"), "cut at {cut}");
        let sealed = whole[..cut].last() != Some(&b'\n');
        assert_eq!(sample.bytes()[cut] == b'\n', sealed, "cut at {cut}");
    }
}

#[test]
fn what_cannot_be_written_changes_nothing_and_can_be_tried_again() {
    let sample = Sample::new();
    std::fs::create_dir_all(sample.path()).unwrap();
    let refused = Writer::open(sample.path(), identity(), Durability::Process);
    assert!(refused.is_err());
    std::fs::remove_dir(sample.path()).unwrap();

    let mut writer = open(&sample);
    std::fs::create_dir_all(sample.path()).unwrap();
    assert!(matches!(writer.append(START_MS, &user("q")), Err(AppendError::Write { .. })));
    assert_eq!(writer.parent(), None);
    std::fs::remove_dir(sample.path()).unwrap();
    let uuid = writer.append(START_MS, &user("q")).unwrap();
    assert_eq!(sample.uuids(), uuid);
}

#[test]
fn a_full_disk_is_an_error_and_not_a_record() {
    let mut writer = Writer::open("/dev/full", identity(), Durability::Process).unwrap();
    let refused = writer.append(START_MS, &user("q"));
    assert!(matches!(refused, Err(AppendError::Write { .. })), "{refused:?}");
    assert_eq!(writer.parent(), None);
}

#[test]
fn a_flushed_record_is_written_like_any_other() {
    let sample = Sample::new();
    let mut writer = Writer::open(sample.path(), identity(), Durability::Fsync).unwrap();
    let uuid = writer.append(START_MS, &user("q")).unwrap();
    assert_eq!(sample.uuids(), uuid);
}
