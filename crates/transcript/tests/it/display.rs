//! The replay, held against what the recorded daemon told of the same files.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use transcript::display::{Bounds, Replay, replay, replay_within};

use crate::sample::{Sample, chain, record};

/// Room for everything that is recorded.
const AMPLE_BYTES: usize = 16 * 1024 * 1024;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/qwen-serve").join(name)
}

/// The transcript of a recorded session, and the updates that the daemon told of it.
fn recorded(name: &str) -> (PathBuf, Vec<Value>) {
    let entries = std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    let told = entries.into_iter().find(|path| path.to_str().unwrap().ends_with(".told.json")).unwrap();
    let value: Value = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
    let transcript = PathBuf::from(told.to_str().unwrap().replace(".told.json", ".jsonl"));
    (transcript, value["updates"].as_array().unwrap().clone())
}

/// An update without what only the daemon's own presentation of its tools and commands knows.
fn bare(update: &Value) -> Value {
    let mut update = update.clone();
    let is_call = update["sessionUpdate"] == "tool_call";
    let fields: &mut Map<_, _> = update.as_object_mut().unwrap();
    if is_call {
        fields.remove("title");
    }
    let meta = fields["_meta"].as_object_mut().unwrap();
    meta.remove("provenance");
    meta.remove("contextCompression");
    update
}

fn updates(replay: &Replay) -> Vec<Value> {
    replay.frames.iter().map(|frame| serde_json::from_str(&frame.update).unwrap()).collect()
}

fn check(name: &str) {
    let (path, told) = recorded(name);
    let found = replay(&path, AMPLE_BYTES).unwrap();
    assert!(!found.is_truncated);
    let found: Vec<_> = updates(&found).iter().map(bare).collect();
    let told: Vec<_> = told.iter().map(bare).collect();
    for (index, (found, told)) in found.iter().zip(&told).enumerate() {
        assert_eq!(found, told, "{name}, update {index}");
    }
    assert_eq!(found.len(), told.len(), "{name}");
}

#[test]
fn a_replay_tells_what_the_recorded_daemon_told() {
    for name in [
        "agent-crash",
        "close-with-queue",
        "compression",
        "daemon-sigkill",
        "deadline-and-shutdown",
        "history-projection",
        "refused-slash-command",
    ] {
        check(name);
    }
}

/// The kinds of the updates of a transcript, with the text of each, in one line.
fn shown(lines: &[Value]) -> String {
    let sample = Sample::of_lines(lines);
    let replay = replay(sample.path(), AMPLE_BYTES).unwrap();
    let words: Vec<_> = updates(&replay).iter().map(in_short).collect();
    words.join(", ")
}

fn in_short(update: &Value) -> String {
    let kind = update["sessionUpdate"].as_str().unwrap();
    let text = update["content"]["text"].as_str().or(update["status"].as_str()).or(update["content"]["type"].as_str());
    format!("{kind}: {}", text.unwrap_or("-"))
}

#[test]
fn a_turn_is_shown_part_by_part() {
    let mut records = chain("user assistant tool_result assistant turn_result");
    records[0]["message"]["parts"] = json!([
        {"text": "<system-reminder>be brief</system-reminder>"},
        {"text": "look"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"inlineData": {"mimeType": "text/plain", "data": "AAAA"}},
    ]);
    records[1]["message"]["parts"] = json!([
        {"text": "hm", "thought": true},
        {"text": "so"},
        {"functionCall": {"id": "r2", "name": "read_file", "args": {"path": "a"}}},
    ]);
    records[2]["message"]["parts"][0]["functionResponse"]["response"] = json!({"error": "no such file"});
    assert_eq!(
        shown(&records),
        "user_message_chunk: look, user_message_chunk: image, agent_thought_chunk: hm, agent_message_chunk: so, \
         tool_call: in_progress, tool_call_update: failed, agent_message_chunk: said in r3"
    );
}

#[test]
fn what_the_session_shows_instead_stands_for_the_text() {
    let mut records = chain("user");
    records[0]["message"]["parts"] = json!([{"text": "a long instruction"}, {"text": "more of it"}]);
    records[0]["systemPayload"] = json!({"displayText": "/do"});
    assert_eq!(shown(&records), "user_message_chunk: /do");
}

#[test]
fn a_lost_beginning_is_said_to_be_lost() {
    let records = [record("r1", Some("gone"), "user")];
    let words = shown(&records);
    assert!(words.starts_with("agent_message_chunk: ⚠️ History gap") && words.ends_with("asked in r1"), "{words}");
    // A loop is no loss.
    assert_eq!(shown(&[record("r1", Some("r1"), "user")]), "user_message_chunk: asked in r1");
}

#[test]
fn a_call_that_nobody_answered_has_failed() {
    let mut records = chain("user assistant");
    records[1]["message"]["parts"] = json!([{"functionCall": {"id": "c1", "name": "ls"}}]);
    assert_eq!(shown(&records), "user_message_chunk: asked in r0, tool_call: in_progress, tool_call_update: failed");
}

#[test]
fn fragments_are_shown_as_one_record() {
    let mut records = chain("user assistant");
    records.push(records[1].clone());
    let sample = Sample::of_lines(&records);
    let replay = replay(sample.path(), AMPLE_BYTES).unwrap();
    let segments: Vec<_> =
        updates(&replay).iter().map(|update| update["_meta"]["qwenTranscript"]["segmentId"].clone()).collect();
    assert_eq!(segments, ["r0:0", "r1:0", "r1:1"]);
}

#[test]
fn a_huge_record_keeps_its_place() {
    let mut records = chain("user assistant");
    records[0]["message"]["parts"] = json!([{"text": "x".repeat(17 * 1024 * 1024)}]);
    let words = shown(&records);
    assert!(words.starts_with("agent_message_chunk: A message of 178") && words.ends_with("said in r1"), "{words}");
}

#[test]
fn a_replay_keeps_to_its_bytes_and_ends_with_the_newest() {
    let sample = Sample::of_lines(&chain(&"user assistant ".repeat(20)));
    let whole = replay(sample.path(), AMPLE_BYTES).unwrap();
    assert_eq!((whole.frames.len(), whole.is_truncated, whole.first_record_id.as_deref()), (40, false, Some("r0")));
    let sizes: Vec<_> = updates(&whole).iter().map(|update| update.to_string().len()).collect();
    for count in 0..sizes.len() {
        let room: usize = sizes[sizes.len() - count..].iter().sum();
        for bytes_max in [room, room + 1] {
            let cut = replay(sample.path(), bytes_max).unwrap();
            assert_eq!(cut.frames, whole.frames[40 - count..], "{bytes_max} bytes");
            assert!(cut.is_truncated);
            let first = (count > 0).then(|| format!("r{}", 40 - count));
            assert_eq!(cut.first_record_id, first);
        }
    }
}

#[test]
fn a_page_counts_records_that_are_not_shown() {
    let sample = Sample::of_lines(&chain("user assistant turn_result ui_telemetry"));
    let page = |records_max| replay_within(sample.path(), Bounds { bytes_max: AMPLE_BYTES, records_max }).unwrap();
    assert_eq!((page(2).frames.len(), page(2).is_truncated), (0, true));
    assert_eq!((page(3).frames.len(), page(3).first_record_id.as_deref()), (1, Some("r1")));
    assert_eq!((page(4).frames.len(), page(4).is_truncated), (2, false));
}

#[test]
fn nothing_is_shown_of_no_transcript() {
    assert_eq!(replay(Sample::new().path(), AMPLE_BYTES).unwrap(), Replay::default());
    assert!(replay(Sample::new().folder(), AMPLE_BYTES).is_err());
}

#[test]
fn a_session_that_shows_little_is_shown_as_far_as_a_replay_looks() {
    // Notes of which nothing is shown, a megabyte each.
    let session = |notes: usize| {
        let mut records = chain(&("user ".to_owned() + &"note ".repeat(notes) + "user"));
        for note in &mut records[1..=notes] {
            note["systemPayload"] = json!("x".repeat(1024 * 1024));
        }
        let shown = replay(Sample::of_lines(&records).path(), AMPLE_BYTES).unwrap();
        (shown.frames.len(), shown.is_truncated)
    };
    assert_eq!(session(20), (2, false));
    assert_eq!(session(40), (1, true));
}
