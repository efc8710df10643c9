//! The host's own note beside the transcript: which session of the agent belongs to this one.
//!
//! Losing it costs the agent its memory and nobody an outcome, so nothing waits for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::choice::Choice;
use crate::limits::SIDECAR_BYTES_MAX;

/// The version written; another one is not read, and not overwritten with less than it said until a session begins.
const VERSION: u32 = 1;
/// It names folders and sessions of one person.
const FILE_MODE: u32 = 0o600;

/// What a host leaves for the next host of its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Note {
    v: u32,
    /// The session, as turnd names it.
    pub(crate) session_id: String,
    /// Where it works.
    pub(crate) cwd: String,
    /// The session, as the agent names it.
    pub(crate) agent_session_id: String,
    /// What clients have set the agent to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) choices: Vec<Choice>,
    /// The agent's command line.
    pub(crate) agent: Vec<String>,
    /// When this was written, in epoch milliseconds.
    pub(crate) updated_at: u64,
}

impl Note {
    pub(crate) fn new(session_id: &str, agent: Vec<String>) -> Self {
        let session_id = session_id.to_owned();
        let (cwd, agent_session_id, choices) = (String::new(), String::new(), Vec::new());
        Self { v: VERSION, session_id, cwd, agent_session_id, choices, agent, updated_at: 0 }
    }

    /// The same with what an earlier host had noted of settings.
    pub(crate) fn choosing(self, choices: Vec<Choice>) -> Self {
        Self { choices, ..self }
    }

    /// The session, as the agent names it; none where that was taken back.
    pub(crate) fn agent_session(&self) -> Option<String> {
        Some(self.agent_session_id.clone()).filter(|session| !session.is_empty())
    }
}

/// The note's place: `<session id>.host.json` beside the transcript.
pub(crate) fn path_beside(transcript: &Path) -> PathBuf {
    transcript.with_extension("host.json")
}

/// The note of an earlier host of this session. None when there is none that can be used.
pub(crate) fn read(path: &Path, session_id: &str) -> Option<Note> {
    let mut text = Vec::new();
    transcript::open_regular(path).ok()?.take(SIDECAR_BYTES_MAX).read_to_end(&mut text).ok()?;
    let note: Note = serde_json::from_slice(&text).ok()?;
    let usable = note.v == VERSION && note.session_id == session_id;
    usable.then_some(note)
}

/// Takes back which session of the agent it is, here and in all that is written of the note before another one is: whoever reads finds
/// none, but still what it was set to. It is on the disk when this returns, because what is written behind it may be there after a power cut.
pub(crate) fn forget(path: &Path, note: &mut Note) -> io::Result<()> {
    note.agent_session_id.clear();
    write(path, note)?;
    File::open(path)?.sync_all()?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Puts a note in the place of the one before. Whoever reads sees the old one or the new one.
pub(crate) fn write(path: &Path, note: &Note) -> io::Result<()> {
    let draft = path.with_extension("json.tmp");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&draft)?;
    let mut text = serde_json::to_vec(note)?;
    text.push(b'\n');
    file.write_all(&text)?;
    std::fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> Note {
        let agent = vec!["agent".to_owned(), "--acp".to_owned()];
        Note { agent_session_id: "ses_1".to_owned(), cwd: "/ws".to_owned(), ..Note::new("s1", agent) }
    }

    #[test]
    fn a_note_is_read_back_by_its_own_session_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_beside(&folder.path().join("s1.jsonl"));
        assert_eq!(read(&path, "s1"), None);
        write(&path, &note()).unwrap();
        assert_eq!(path.file_name().unwrap(), "s1.host.json");
        assert_eq!(read(&path, "s1"), Some(note()));
        assert_eq!(read(&path, "s2"), None);
    }

    #[test]
    fn a_forgotten_session_is_none_until_the_next_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_beside(&folder.path().join("s1.jsonl"));
        write(&path, &note()).unwrap();
        forget(&path, &mut note()).unwrap();
        assert_eq!(read(&path, "s1").unwrap().agent_session(), None);
        write(&path, &note()).unwrap();
        assert_eq!(read(&path, "s1"), Some(note()));
    }

    #[test]
    fn a_damaged_or_newer_note_is_no_note() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.host.json");
        for text in ["", "{", "[]", r#"{"v":1}"#] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path, "s1"), None, "{text}");
        }
        write(&path, &Note { v: 2, ..note() }).unwrap();
        assert_eq!(read(&path, "s1"), None);
    }

    #[test]
    fn a_pipe_in_the_notes_place_is_no_note_and_makes_nobody_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.host.json");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(read(&path, "s1"), None);
    }

    #[test]
    fn a_note_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.host.json");
        write(&path, &note()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, FILE_MODE);
    }
}
