//! A long history in the middle of a transcript: without one, all that is read of a short file is all of it.

use std::fmt::Write;

use serde_json::{Value, json};

/// Records of the history: more than the model's history is looked back for.
const RECORDS: usize = 60;

/// The transcript with a history behind its record number `place`, counted round: a child of that record, and the parent
/// of its child. It is made of prompts and answers, or, behind records of odd numbers, of answers alone. As it is where
/// that is no record.
#[must_use]
pub fn with_history(transcript: &[u8], place: usize) -> Vec<u8> {
    let spliced = str::from_utf8(transcript).ok().and_then(|text| splice(text, place));
    spliced.map_or_else(|| transcript.to_vec(), String::into_bytes)
}

fn splice(text: &str, place: usize) -> Option<String> {
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    let (before, behind) = text.split_at(*ends.get(place % ends.len().max(1))?);
    let parent: Value = serde_json::from_str(before.lines().last()?).ok()?;
    let uuid = parent.get("uuid")?.as_str()?;
    let mut spliced = before.to_owned();
    for index in 0..RECORDS {
        let is_asked = index.is_multiple_of(2) && place.is_multiple_of(2);
        let (kind, role) = if is_asked { ("user", "user") } else { ("assistant", "model") };
        let record = json!({
            "uuid": format!("h{index}"),
            "parentUuid": index.checked_sub(1).map_or_else(|| uuid.to_owned(), |before| format!("h{before}")),
            "sessionId": parent["sessionId"], "timestamp": parent["timestamp"], "cwd": parent["cwd"], "type": kind,
            "message": {"role": role, "parts": [{"text": "x"}]},
        });
        // A text takes what is written to it.
        let _ = writeln!(spliced, "{record}");
    }
    let child = |uuid: &str| format!(r#""parentUuid":"{uuid}""#);
    Some(spliced + &behind.replacen(&child(uuid), &child(&format!("h{}", RECORDS - 1)), 1))
}
