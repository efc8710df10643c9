//! The replay, held against what the recorded daemon told of the same files.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use transcript::display::{Bounds, Replay, replay, replay_within};

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
    replay.frames.iter().map(|frame| frame.update.clone()).collect()
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
