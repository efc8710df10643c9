//! Where the files of a session lie inside a store.

use std::path::{Path, PathBuf};

/// How the name of a transcript ends.
const TRANSCRIPT_SUFFIX: &str = ".jsonl";
/// How the name of a ledger ends. It ends like a transcript too, and is none.
const LEDGER_SUFFIX: &str = ".ledger.jsonl";

/// The folder name of a workspace: its absolute path with every UTF-16 unit that is not an ASCII letter or digit written
/// as `-` (wire, section 16.1). `/ws` becomes `-ws`. Units, because the peer's JavaScript goes by them: a character beyond
/// the first plane becomes two dashes.
///
/// Two workspaces may share a name; the `cwd` of a transcript's first object tells them apart.
#[must_use]
pub fn project_dir_name(workspace: &Path) -> String {
    let ascii = |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric);
    workspace.to_string_lossy().encode_utf16().map(|unit| ascii(unit).map_or('-', char::from)).collect()
}

/// The folder that holds the transcripts and ledgers of a workspace: `STORE/projects/<name>/chats`.
#[must_use]
pub fn chats_dir(store: &Path, workspace: &Path) -> PathBuf {
    store.join("projects").join(project_dir_name(workspace)).join("chats")
}

/// The transcript of a session inside its chats folder.
#[must_use]
pub fn transcript_path(chats: &Path, session_id: &str) -> PathBuf {
    chats.join(format!("{session_id}{TRANSCRIPT_SUFFIX}"))
}

/// The ledger of a session inside its chats folder.
#[must_use]
pub fn ledger_path(chats: &Path, session_id: &str) -> PathBuf {
    chats.join(format!("{session_id}{LEDGER_SUFFIX}"))
}

/// The session id of a transcript's file name; none when the name is not one of a transcript. A ledger is never taken
/// for a transcript (evidence rules, section 1).
#[must_use]
pub fn session_id_of_file_name(name: &str) -> Option<&str> {
    if name.ends_with(LEDGER_SUFFIX) {
        return None;
    }
    name.strip_suffix(TRANSCRIPT_SUFFIX).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_named_by_its_path_with_dashes() {
        for (workspace, name) in [("/ws", "-ws"), ("/home/a.b/c_d", "-home-a-b-c-d"), ("/é", "--"), ("/", "-")] {
            assert_eq!(project_dir_name(Path::new(workspace)), name);
        }
    }

    #[test]
    fn a_workspace_is_named_by_utf16_units_as_its_peer_names_it() {
        for (workspace, name) in [("/🧪", "---"), ("/a🧪b", "-a--b"), ("/中", "--"), ("/e\u{301}", "-e-")] {
            assert_eq!(project_dir_name(Path::new(workspace)), name, "{workspace}");
        }
    }

    #[test]
    fn a_path_that_is_no_text_has_a_name_all_the_same() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        assert_eq!(project_dir_name(Path::new(OsStr::from_bytes(b"/a\xffb"))), "-a-b");
    }

    #[test]
    fn only_ascii_letters_and_digits_stay() {
        let all: String = (1..=127).map(char::from).collect();
        let name = project_dir_name(Path::new(&all));
        for (written, named) in all.chars().zip(name.chars()) {
            assert_eq!(named, if written.is_ascii_alphanumeric() { written } else { '-' });
        }
        assert_eq!(name.len(), all.len());
    }

    #[test]
    fn a_transcript_s_path_names_its_session() {
        for id in ["s1", "a.b", "3f1c0a52-0000-4000-8000-000000000000"] {
            let path = transcript_path(Path::new("/chats"), id);
            let name = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(session_id_of_file_name(name), Some(id));
            let ledger = ledger_path(Path::new("/chats"), id);
            assert_eq!(session_id_of_file_name(ledger.file_name().unwrap().to_str().unwrap()), None);
        }
    }

    #[test]
    fn a_ledger_is_no_transcript() {
        assert_eq!(session_id_of_file_name("s1.jsonl"), Some("s1"));
        assert_eq!(session_id_of_file_name("s1.ledger.jsonl"), None);
        assert_eq!(session_id_of_file_name("s1.worktree.json"), None);
        assert_eq!(session_id_of_file_name(".jsonl"), None);
        assert_eq!(session_id_of_file_name(".ledger.jsonl"), None);
        assert_eq!(session_id_of_file_name("s1.lock"), None);
        assert_eq!(session_id_of_file_name("s1.jsonl.bak"), None);
        assert_eq!(session_id_of_file_name("s1.JSONL"), None);
        assert_eq!(session_id_of_file_name(""), None);
    }

    #[test]
    fn both_files_of_a_session_lie_side_by_side() {
        let chats = chats_dir(Path::new("/store"), Path::new("/ws"));
        assert_eq!(transcript_path(&chats, "s1"), Path::new("/store/projects/-ws/chats/s1.jsonl"));
        assert_eq!(ledger_path(&chats, "s1"), Path::new("/store/projects/-ws/chats/s1.ledger.jsonl"));
    }
}
