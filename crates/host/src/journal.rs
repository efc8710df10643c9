//! The transcript as the host writes it: in order, and nothing lost to a disk that is full for a while.
//!
//! Records that cannot be written now are held and go first at the next try. So the file is at every moment a beginning
//! of what was meant to be written, and a reader is never shown a later record without the earlier ones. When too much is
//! held the host stops recording for good and takes no further prompt: a gap would be worse than an end.

use transcript::{Body, Rewind, RewindError, Writer};

use crate::limits::HELD_RECORD_BYTES_MAX;
use crate::machine::NotRewound;
use crate::recording::Recording;

/// Appends the records of one session.
#[derive(Debug)]
pub(crate) struct Journal {
    writer: Writer,
    held: Vec<(u64, Body)>,
    held_bytes: usize,
    /// How much may be held.
    bound_bytes: usize,
    /// Too much was held, and this is what was then in memory. It is given up.
    given_up: Option<Recording>,
    /// No record is dated earlier. The daemon's admission and our user record often fall into the same millisecond, and then
    /// nobody could tell from the dates which came first; we can, since we were told.
    floor_ms: u64,
}

impl Journal {
    pub(crate) fn new(writer: Writer) -> Self {
        Self {
            writer,
            held: Vec::new(),
            held_bytes: 0,
            bound_bytes: HELD_RECORD_BYTES_MAX,
            given_up: None,
            floor_ms: 0,
        }
    }

    /// Appends the record of a prompt that is not dispatched yet. A record that fails is not held: its prompt is refused.
    /// It, and every record after it, is dated later than `after_ms`.
    pub(crate) fn admit(&mut self, at_ms: u64, after_ms: u64, record: &Body) -> Result<(), String> {
        if self.given_up.is_some() {
            return Err("the transcript could not be written for too long".to_owned());
        }
        self.write_held().map_err(|error| error.to_string())?;
        self.floor_ms = self.floor_ms.max(after_ms.saturating_add(1));
        self.writer.append(at_ms.max(self.floor_ms), record).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Takes the branch back. What is held goes first, and then the branch is not the one that was looked at.
    pub(crate) fn rewind(&mut self, at_ms: u64, rewind: &Rewind) -> Result<(), NotRewound> {
        let unwritable = |cause: String| NotRewound::Unwritable(cause);
        if self.given_up.is_some() {
            return Err(unwritable("the transcript could not be written for too long".to_owned()));
        }
        self.write_held().map_err(|error| unwritable(error.to_string()))?;
        match self.writer.rewind(at_ms.max(self.floor_ms), rewind) {
            Ok(_) => Ok(()),
            Err(RewindError::Grown) => Err(NotRewound::Grown),
            Err(RewindError::Append(error)) => Err(unwritable(error.to_string())),
        }
    }

    /// Appends records of a turn in one write, or holds them.
    pub(crate) fn append(&mut self, at_ms: u64, records: Vec<Body>) {
        if self.given_up.is_some() {
            return;
        }
        let (at_ms, was_holding) = (at_ms.max(self.floor_ms), self.is_holding());
        self.held_bytes += records.iter().map(weight_bytes).sum::<usize>();
        self.held.extend(records.into_iter().map(|record| (at_ms, record)));
        if was_holding {
            // A failure is not tried again with every record, which would cost more the longer it lasts.
            self.give_up_over_bound();
        } else if let Err(error) = self.write_held() {
            tracing::error!(%error, "the transcript cannot be written; records are held and tried again");
        }
    }

    /// Tries again to write what is held.
    pub(crate) fn retry(&mut self) {
        if self.is_holding() && self.write_held().is_ok() {
            tracing::info!("the transcript can be written again");
        }
    }

    /// What the newest record says that names the session.
    pub(crate) fn title(&self) -> Option<&transcript::Value> {
        self.writer.title()
    }

    /// The host ends. A list finds the name, also where an earlier writer has pushed it out of sight.
    pub(crate) fn close(&mut self, at_ms: u64) {
        if self.given_up.is_none()
            && !self.is_holding()
            && let Err(error) = self.writer.repeat_title(at_ms.max(self.floor_ms))
        {
            tracing::warn!(%error, "the session's name cannot be repeated");
        }
    }

    /// Whether something waits to be written.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// What waits, for the daemon.
    pub(crate) fn recording(&self) -> Recording {
        let held = Recording { held_records: self.held.len(), held_bytes: self.held_bytes, given_up: false };
        self.given_up.unwrap_or(held)
    }

    fn write_held(&mut self) -> Result<(), transcript::AppendError> {
        if self.held.is_empty() {
            return Ok(());
        }
        self.writer.append_all(&self.held)?;
        self.held.clear();
        self.held_bytes = 0;
        Ok(())
    }

    fn give_up_over_bound(&mut self) {
        if self.held_bytes > self.bound_bytes {
            tracing::error!(records = self.held.len(), "too many records are held; this session is recorded no longer");
            self.given_up = Some(Recording { given_up: true, ..self.recording() });
            self.held = Vec::new();
        }
    }
}

/// About how much memory a record takes.
fn weight_bytes(record: &Body) -> usize {
    /// A record without content.
    const BARE_BYTES: usize = 128;
    let parts = match record {
        Body::MidTurn { parts } => parts,
        Body::User { parts, .. } | Body::Assistant { parts, .. } | Body::ToolResult { parts, .. } => parts,
        Body::System { payload, .. } => return BARE_BYTES + weight_of_value(payload),
    };
    BARE_BYTES + parts.iter().map(weight_of_value).sum::<usize>()
}

fn weight_of_value(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight_of_value).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + weight_of_value(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use transcript::{Durability, Identity};

    use super::*;
    use crate::turn::json::text_part;

    fn journal(path: &Path) -> Journal {
        let identity = Identity { session_id: "s1".into(), cwd: "/ws".into(), version: "0".into() };
        Journal::new(Writer::open(path, identity, Durability::Process).unwrap())
    }

    fn user(text: &str) -> Body {
        Body::User { prompt_id: Some(text.to_owned()), parts: vec![text_part(text)] }
    }

    fn texts(path: &Path) -> Vec<String> {
        let lines = std::fs::read_to_string(path).unwrap_or_default();
        let text = |line: &str| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            record.pointer("/message/parts/0/text").unwrap().as_str().unwrap().to_owned()
        };
        lines.lines().map(text).collect()
    }

    /// A transcript whose folder is a file, until [`heal`] is called.
    fn broken(folder: &Path) -> (Journal, std::path::PathBuf) {
        let path = folder.join("chats/s1.jsonl");
        let journal = journal(&path);
        std::fs::write(folder.join("chats"), "in the way").unwrap();
        (journal, path)
    }

    fn heal(folder: &Path) {
        std::fs::remove_file(folder.join("chats")).unwrap();
    }

    #[test]
    fn records_held_over_a_failure_are_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, path) = broken(folder.path());
        journal.append(1, vec![user("a")]);
        journal.append(2, vec![user("b")]);
        assert!(journal.is_holding());
        heal(folder.path());
        journal.append(3, vec![user("c")]);
        journal.retry();
        assert!(!journal.is_holding());
        journal.append(4, vec![user("d")]);
        assert_eq!(texts(&path), ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_prompt_is_refused_while_the_transcript_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, path) = broken(folder.path());
        assert!(journal.admit(1, 0, &user("a")).is_err());
        assert!(!journal.is_holding(), "the prompt was refused, so its record must not appear later");
        heal(folder.path());
        journal.admit(2, 0, &user("b")).unwrap();
        assert_eq!(texts(&path), ["b"]);
    }

    #[test]
    fn records_of_a_turn_are_dated_later_than_its_dispatch_also_when_the_clock_says_the_same_or_less() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.jsonl");
        let mut journal = journal(&path);
        journal.admit(5, 5, &user("same millisecond")).unwrap();
        journal.append(3, vec![user("clock stepped back")]);
        journal.append(9, vec![user("later")]);
        let dates: Vec<String> = std::fs::read_to_string(&path)
            .unwrap()
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["timestamp"].as_str().unwrap()[20..].into()
            })
            .collect();
        assert_eq!(dates, ["006Z", "006Z", "009Z"]);
    }

    #[test]
    fn held_records_go_before_the_next_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, path) = broken(folder.path());
        journal.append(1, vec![user("a")]);
        heal(folder.path());
        journal.admit(2, 0, &user("b")).unwrap();
        assert_eq!(texts(&path), ["a", "b"]);
    }

    #[test]
    fn too_much_held_ends_the_recording() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, path) = broken(folder.path());
        journal.bound_bytes = 1_000;
        journal.append(1, vec![user("a")]);
        assert!(journal.is_holding());
        let held = journal.recording();
        assert!(!held.is_well() && held.differs_from(Recording::default()) && held.held_bytes > 1, "{held:?}");
        journal.append(2, vec![user(&"x".repeat(1_000))]);
        assert!(!journal.is_holding());
        let given_up = journal.recording();
        assert!(given_up.given_up && given_up.held_records == 2 && given_up.differs_from(held), "{given_up:?}");
        heal(folder.path());
        journal.append(3, vec![user("c")]);
        assert!(journal.admit(4, 0, &user("d")).is_err());
        assert!(!path.exists(), "a gap would be worse than an end");
    }
}
