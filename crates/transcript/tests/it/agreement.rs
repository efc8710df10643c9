//! Reading backward gives what a reader of the whole file would see.
//!
//! The reader here is as plain as can be: all lines, all records, the leaf, the way up. It knows nothing of windows.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{Kind, Record, WINDOW_BYTES};

use crate::damage::{damaged, damages, with_long_ids};
use crate::sample::{Sample, branch_of, record};

/// One record of the plain reader: uuid, kind, time, number of parts, spans apart.
#[derive(Debug, Clone, PartialEq)]
struct Plain {
    uuid: String,
    parent: Option<String>,
    kind: String,
    at: String,
    texts: Vec<String>,
}

fn plain_branch(bytes: &[u8]) -> Vec<Plain> {
    let mut by_uuid: HashMap<String, Plain> = HashMap::new();
    let mut leaf = None;
    for line in bytes.split(|byte| matches!(byte, b'\n' | b'\r')) {
        for value in objects(line) {
            let Some(record) = plain(&value) else { continue };
            leaf = Some(record.uuid.clone());
            match by_uuid.get_mut(&record.uuid) {
                Some(first) => {
                    first.texts.extend(record.texts);
                    first.at = first.at.clone().max(record.at);
                }
                None => drop(by_uuid.insert(record.uuid.clone(), record)),
            }
        }
    }
    let mut seen = HashSet::new();
    let mut branch = Vec::new();
    while let Some(record) = leaf.take().filter(|uuid| seen.insert(uuid.clone())).and_then(|uuid| by_uuid.get(&uuid)) {
        branch.push(record.clone());
        leaf.clone_from(&record.parent);
    }
    branch.reverse();
    branch
}

/// The objects of a line: the line itself, or every one that can be found in it.
fn objects(line: &[u8]) -> Vec<Value> {
    if let Ok(whole) = serde_json::from_slice::<Value>(line) {
        return vec![whole];
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(brace) = line[at..].iter().position(|byte| *byte == b'{') {
        at += brace;
        let mut values = serde_json::Deserializer::from_slice(&line[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                found.push(value);
                at += values.byte_offset();
            }
            _ => at += 1,
        }
    }
    found
}

fn plain(value: &Value) -> Option<Plain> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = text("type").filter(|kind| matches!(*kind, "user" | "assistant" | "tool_result" | "system"))?;
    if kind == "system" && text("subtype").is_some_and(|subtype| subtype.starts_with("session_artifact_")) {
        return None;
    }
    text("sessionId")?;
    let parent = value.get("parentUuid")?;
    if !(parent.is_null() || parent.is_string()) {
        return None;
    }
    let parts = value["message"]["parts"].as_array().cloned().unwrap_or_default();
    Some(Plain {
        uuid: text("uuid")?.to_owned(),
        parent: parent.as_str().map(str::to_owned),
        kind: kind.to_owned(),
        at: text("timestamp")?.to_owned(),
        texts: parts.iter().map(Value::to_string).collect(),
    })
}

/// The same of a record that was read backward.
fn as_plain(sample: &Sample, record: &Record) -> Plain {
    let bytes = sample.bytes();
    let mut texts = Vec::new();
    for span in record.message.iter().flat_map(|message| &message.spans) {
        let place = usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap();
        let message: Value = serde_json::from_slice(&bytes[place]).unwrap();
        texts.extend(message["parts"].as_array().unwrap().iter().map(Value::to_string));
    }
    let kind = match record.kind {
        Kind::User => "user",
        Kind::Assistant => "assistant",
        Kind::ToolResult => "tool_result",
        Kind::System => "system",
    };
    Plain {
        uuid: record.uuid.clone(),
        parent: record.parent.clone(),
        kind: kind.to_owned(),
        at: time_text(record.at_ms.unwrap()),
        texts,
    }
}

fn time_text(at_ms: i64) -> String {
    format!("2026-11-29T18:33:{:02}.000Z", (at_ms - 1_795_977_180_000) / 1_000)
}

/// One step in the making of a file.
#[derive(Debug, Clone)]
enum Step {
    /// A record of some kind, whose parent is so many steps back.
    Record { kind: usize, back: usize },
    /// A record without a parent, or with one that is nowhere.
    Lost { is_root: bool },
    /// The last record once more.
    Again,
    /// A record that is written anew, so many steps back, with another parent.
    Stray { back: usize, parent_back: usize },
    /// Something that is no record.
    Junk(usize),
    /// The end of the last line is torn off, so many bytes.
    Torn(usize),
    /// The line end is missing.
    Glued,
}

const KINDS: [&str; 5] = ["user", "assistant", "tool_result", "note", "session_artifact_event"];
const JUNK: [&str; 8] = ["", "  ", "garbage {", "null", "[{}]", "\0\0", "{\"uuid\":\"r1\",\"type\":\"user\"}", "\"{\""];

fn steps(is_tame: bool) -> impl Strategy<Value = Vec<Step>> {
    let tame = prop_oneof![
        8 => (0..KINDS.len(), Just(1_usize)).prop_map(|(kind, back)| Step::Record { kind, back }),
        2 => (0..KINDS.len(), 2..6_usize).prop_map(|(kind, back)| Step::Record { kind, back }),
        1 => any::<bool>().prop_map(|is_root| Step::Lost { is_root }),
        1 => Just(Step::Again),
        2 => (0..JUNK.len()).prop_map(Step::Junk),
        1 => (1..80_usize).prop_map(Step::Torn),
        1 => Just(Step::Glued),
    ];
    let wild = (1..6_usize, 0..6_usize).prop_map(|(back, parent_back)| Step::Stray { back, parent_back });
    let step = if is_tame { tame.boxed() } else { prop_oneof![6 => tame, 1 => wild].boxed() };
    prop::collection::vec(step, 0..40)
}

fn file(steps: &[Step], line_end: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut count = 0_usize;
    let line = |uuid: usize, parent: Option<String>, kind: &str| {
        let mut line = record(&format!("r{uuid}"), parent.as_deref(), kind);
        line["timestamp"] = json!(time_text(1_795_977_180_000 + 1_000 * i64::try_from(uuid % 60).unwrap()));
        line.to_string()
    };
    let mut last = String::new();
    for step in steps {
        let back_from = |count: usize, back: usize| count.checked_sub(back).map(|index| format!("r{index}"));
        let text = match step {
            Step::Record { kind, back } => {
                last = line(count, back_from(count, *back), KINDS[*kind]);
                count += 1;
                last.clone()
            }
            Step::Lost { is_root } => {
                last = line(count, (!is_root).then(|| "nowhere".to_owned()), "user");
                count += 1;
                last.clone()
            }
            Step::Again => last.clone(),
            Step::Stray { back, parent_back } => {
                line(count.saturating_sub(*back), Some(format!("r{}", count.saturating_sub(*parent_back))), "assistant")
            }
            Step::Junk(index) => JUNK[*index].to_owned(),
            Step::Torn(cut) => {
                bytes.truncate(bytes.len().saturating_sub(line_end.len() + cut));
                continue;
            }
            Step::Glued => {
                bytes.truncate(bytes.len().saturating_sub(line_end.len()));
                continue;
            }
        };
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(line_end.as_bytes());
    }
    bytes
}

fn check(bytes: &[u8], window_bytes: u64) -> Result<(), TestCaseError> {
    let sample = Sample::of(bytes);
    let found: Vec<_> = branch_of(sample.path(), window_bytes).iter().map(|record| as_plain(&sample, record)).collect();
    prop_assert_eq!(found, plain_branch(bytes), "{}", String::from_utf8_lossy(bytes));
    Ok(())
}

fn line_end() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["\n", "\r\n", "\r"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the file: within the window nothing is missed, not even a record that is written anew far from its first
    /// place or a parent behind its child.
    #[test]
    fn the_window_is_seen_whole(steps in steps(false), end in line_end()) {
        check(&file(&steps, end), WINDOW_BYTES)?;
    }

    /// Files whose records stand behind their parents, and whose fragments are neighbours: with any window.
    #[test]
    fn a_small_window_misses_nothing_that_is_in_order(steps in steps(true), end in line_end(), window in 0..3_000_u64) {
        check(&file(&steps, end), window)?;
    }

    /// The same files, damaged: whatever is read of one is read of it with any window.
    #[test]
    fn a_small_window_misses_nothing_of_a_damaged_file(
        steps in steps(true),
        damages in damages(),
        window in 0..3_000_u64,
    ) {
        let whole = with_long_ids(&String::from_utf8(file(&steps, "\n")).unwrap());
        let sample = Sample::of(damaged(whole.into_bytes(), &damages));
        let seen = branch_of(sample.path(), WINDOW_BYTES);
        prop_assert_eq!(branch_of(sample.path(), window), seen, "{:?}", String::from_utf8_lossy(&sample.bytes()));
    }
}
