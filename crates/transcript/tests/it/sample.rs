//! Transcripts written line by line.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript::{Record, Transcript, WINDOW_BYTES};

pub(crate) const SESSION_ID: &str = "s1";
pub(crate) const WORKSPACE: &str = "/ws";
/// When the first record of a sample is written; each further one comes a second later.
pub(crate) const START_MS: u64 = 1_795_977_220_000;

/// A transcript in a folder of its own.
pub(crate) struct Sample {
    folder: TempDir,
    path: PathBuf,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("chats").join("s1.jsonl");
        Self { folder, path }
    }

    pub(crate) fn of(bytes: impl AsRef<[u8]>) -> Self {
        let sample = Self::new();
        sample.write(bytes);
        sample
    }

    /// The lines with an LF behind each.
    pub(crate) fn of_lines<T: ToString>(lines: &[T]) -> Self {
        Self::of(lines.iter().map(|line| line.to_string() + "\n").collect::<String>())
    }

    pub(crate) fn write(&self, bytes: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path.parent().unwrap()).unwrap();
        std::fs::write(&self.path, bytes).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }

    /// The active branch, oldest first.
    pub(crate) fn branch(&self) -> Vec<Record> {
        branch_of(&self.path, WINDOW_BYTES)
    }

    /// The uuids of the active branch in one word, oldest first.
    pub(crate) fn uuids(&self) -> String {
        let uuids: Vec<_> = self.branch().into_iter().map(|record| record.uuid).collect();
        uuids.join(" ")
    }
}

/// The active branch, oldest first, with a window of this size.
pub(crate) fn branch_of(path: &Path, window_bytes: u64) -> Vec<Record> {
    let Some(transcript) = Transcript::open(path).unwrap() else { return Vec::new() };
    let mut branch = transcript.branch(window_bytes).unwrap();
    let mut records = Vec::new();
    while let Some(record) = branch.next_record().unwrap() {
        records.push(record);
    }
    records.reverse();
    records
}

/// A record: `kind` is a type, or the subtype of a note.
pub(crate) fn record(uuid: &str, parent: Option<&str>, kind: &str) -> Value {
    let mut record = json!({
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": SESSION_ID,
        "timestamp": "2026-11-29T18:33:40.001Z",
        "type": kind,
        "cwd": WORKSPACE,
    });
    match kind {
        "user" => record["message"] = json!({"role": "user", "parts": [{"text": format!("asked in {uuid}")}]}),
        "assistant" => record["message"] = json!({"role": "model", "parts": [{"text": format!("said in {uuid}")}]}),
        "tool_result" => {
            record["message"] = json!({"role": "user", "parts": [{"functionResponse": {"id": uuid, "response": {}}}]});
        }
        subtype => {
            record["type"] = json!("system");
            record["subtype"] = json!(subtype);
            record["systemPayload"] = json!({});
        }
    }
    record
}

/// The record with other values in some fields.
pub(crate) fn with(mut record: Value, fields: Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        record[key] = value.clone();
    }
    record
}

/// The record without one of its fields.
pub(crate) fn without(mut record: Value, field: &str) -> Value {
    record.as_object_mut().unwrap().remove(field);
    record
}

/// A chain of records: kinds separated by spaces, uuids `r0`, `r1` and so on.
pub(crate) fn chain(kinds: &str) -> Vec<Value> {
    let link = |(index, kind): (usize, &str)| {
        let parent = index.checked_sub(1).map(|before| format!("r{before}"));
        record(&format!("r{index}"), parent.as_deref(), kind)
    };
    kinds.split_whitespace().enumerate().map(link).collect()
}
