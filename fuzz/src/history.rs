//! A long history before a transcript: without one, all that is read of a short file is all of it.

use std::fmt::Write;

use serde_json::json;

use crate::plain::PlainFile;

/// Records of the history: more than the model's history is looked back for.
const RECORDS: usize = 60;

/// The parent of a first record.
const NO_PARENT: &str = r#""parentUuid":null"#;

/// The transcript with a history before it, of which its first record is the child. As it is when nobody can tell whose
/// it is, or when it does not begin anywhere.
#[must_use]
pub fn with_history(transcript: &[u8]) -> Vec<u8> {
    let plain = PlainFile::read(transcript);
    let (Some(first), Ok(text)) = (plain.as_ref().and_then(PlainFile::first), str::from_utf8(transcript)) else {
        return transcript.to_vec();
    };
    if !text.contains(NO_PARENT) {
        return transcript.to_vec();
    }
    let mut history = String::new();
    for index in 0..RECORDS {
        let (kind, role) = if index % 2 == 0 { ("user", "user") } else { ("assistant", "model") };
        let record = json!({
            "uuid": format!("h{index}"), "parentUuid": index.checked_sub(1).map(|before| format!("h{before}")),
            "sessionId": first.session_id, "timestamp": "2020-01-01T00:00:00.000Z", "type": kind, "cwd": first.cwd,
            "message": {"role": role, "parts": [{"text": "x"}]},
        });
        // A text takes what is written to it.
        let _ = writeln!(history, "{record}");
    }
    let child = format!(r#""parentUuid":"h{}""#, RECORDS - 1);
    (history + &text.replacen(NO_PARENT, &child, 1)).into_bytes()
}
