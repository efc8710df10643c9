//! Where the files of one session lie, and in which workspace it was begun.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use attribution::Session;
use ledger::{Durability, Ledger, sidecar};
use transcript::{Transcript, layout};

/// The folder of archived sessions inside the one of their workspace.
const ARCHIVE: &str = "archive";
/// The folder of a workspace's sessions.
const CHATS: &str = "chats";
/// Where the worktrees of a workspace lie, seen from it.
const WORKTREES: &str = ".qwen/worktrees";

/// A session's files.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) session_id: String,
    workspace: PathBuf,
    pub(super) transcript: PathBuf,
    pub(super) ledger: Ledger,
    /// Whoever writes the session holds this, also when it is archived.
    pub(super) lock: PathBuf,
    pub(super) is_archived: bool,
}

impl Files {
    /// Those of a session in a store.
    pub(super) fn in_store(store: &Path, workspace: &Path, session_id: &str) -> Self {
        let chats = layout::chats_dir(store, workspace);
        Self {
            session_id: session_id.to_owned(),
            workspace: workspace.to_owned(),
            transcript: layout::transcript_path(&chats, session_id),
            ledger: Ledger::new(layout::ledger_path(&chats, session_id), Durability::Process),
            lock: chats.join(format!("{session_id}.lock")),
            is_archived: false,
        }
    }

    /// Those beside a ledger or a transcript, wherever it lies; none when the path names neither. Without a workspace the
    /// transcript says which it was begun in.
    pub(super) fn beside(path: &Path, workspace: Option<&Path>) -> Option<Self> {
        let name = path.file_name()?.as_bytes();
        let stem = name.strip_suffix(sidecar::SUFFIX.as_bytes()).or_else(|| name.strip_suffix(b".jsonl"))?;
        let stem = Some(OsStr::from_bytes(stem)).filter(|stem| !stem.is_empty())?;
        let folder = path.parent()?;
        let with = |suffix: &str| {
            let mut name = stem.to_owned();
            name.push(suffix);
            name
        };
        let transcript = folder.join(with(".jsonl"));
        let is_archived = folder.ends_with(ARCHIVE) && folder.parent().is_some_and(|chats| chats.ends_with(CHATS));
        let chats = folder.parent().filter(|_| is_archived).unwrap_or(folder);
        Some(Self {
            session_id: stem.to_string_lossy().into_owned(),
            workspace: workspace.map_or_else(|| begun_in(&transcript, chats), Path::to_owned),
            ledger: Ledger::new(folder.join(with(sidecar::SUFFIX)), Durability::Process),
            lock: chats.join(with(".lock")),
            transcript,
            is_archived,
        })
    }

    /// The workspace, if it is known.
    pub(super) fn known_workspace(&self) -> Option<&Path> {
        Some(self.workspace.as_path()).filter(|workspace| workspace.is_absolute())
    }

    pub(super) fn session(&self) -> Session<'_> {
        Session {
            ledger: &self.ledger,
            transcript: &self.transcript,
            session_id: &self.session_id,
            workspace: &self.workspace,
        }
    }
}

/// The workspace that a daemon must serve to find this transcript in this folder. The folder's name stands for many
/// workspaces and the transcript's first object names one. Where the two do not fit no daemon would load it; then, and
/// where there is no transcript, it is a relative path, in which nothing is begun.
fn begun_in(transcript: &Path, chats: &Path) -> PathBuf {
    let name = chats.parent().filter(|_| chats.ends_with(CHATS)).and_then(Path::file_name);
    let fits = |workspace: &&Path| name.is_none_or(|name| *layout::project_dir_name(workspace) == *name);
    let cwd = first_cwd(transcript);
    let mut candidates = cwd.iter().flat_map(|cwd| [Some(cwd.as_path()), owner_of_worktree(cwd)]).flatten();
    let found = candidates.find(fits);
    found.map_or_else(|| PathBuf::from(name.unwrap_or(OsStr::new("unknown"))), Path::to_owned)
}

fn first_cwd(transcript: &Path) -> Option<PathBuf> {
    let cwd = Transcript::open(transcript).ok()??.begun_in().ok()??;
    Some(PathBuf::from(cwd)).filter(|cwd| cwd.is_absolute())
}

/// The workspace that a folder is a worktree of, by its place.
fn owner_of_worktree(cwd: &Path) -> Option<&Path> {
    cwd.ancestors().skip(1).find(|folder| folder.ends_with(WORKTREES))?.ancestors().nth(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(folder: &str, cwd: &str) -> PathBuf {
        begun_with(folder, &record(cwd))
    }

    fn record(cwd: &str) -> String {
        format!("{{\"uuid\":\"r\",\"parentUuid\":null,\"sessionId\":\"s\",\"type\":\"user\",\"cwd\":\"{cwd}\"}}\n")
    }

    fn begun_with(folder: &str, transcript: &str) -> PathBuf {
        let base = tempfile::tempdir().unwrap();
        let chats = base.path().join(folder);
        std::fs::create_dir_all(&chats).unwrap();
        std::fs::write(chats.join("s.jsonl"), transcript).unwrap();
        Files::beside(&chats.join("s.ledger.jsonl"), None).unwrap().workspace
    }

    #[test]
    fn a_transcript_says_in_which_workspace_it_was_begun() {
        assert_eq!(begun("projects/-ws/chats", "/ws"), Path::new("/ws"));
        assert_eq!(begun("projects/-ws/chats/archive", "/ws"), Path::new("/ws"));
        assert_eq!(begun("projects/-a-b/chats", "/a/b"), Path::new("/a/b"));
        assert_eq!(begun("projects/-a-b/chats", "/a.b"), Path::new("/a.b"), "the name of the folder is lossy");
        assert_eq!(begun("a/copy", "/ws"), Path::new("/ws"), "nothing contradicts it");
    }

    #[test]
    fn the_first_object_says_it_as_it_does_to_a_load_though_it_be_no_record() {
        let first = record("/ws").replace("\"uuid\"", "\"id\"");
        assert_eq!(begun_with("projects/-ws/chats", &format!("{first}{}", record("/ws/src"))), Path::new("/ws"));
    }

    #[test]
    fn a_worktree_belongs_to_the_workspace_that_the_folder_is_named_for() {
        assert_eq!(begun("projects/-ws/chats", "/ws/.qwen/worktrees/a/src"), Path::new("/ws"));
        assert_eq!(
            begun("projects/-ws--qwen-worktrees-a/chats", "/ws/.qwen/worktrees/a"),
            Path::new("/ws/.qwen/worktrees/a")
        );
        assert_eq!(owner_of_worktree(Path::new("/ws/.qwen/worktrees")), None);
        assert_eq!(owner_of_worktree(Path::new("/ws/src")), None);
    }

    #[test]
    fn a_transcript_in_the_folder_of_another_workspace_is_nobodys() {
        assert_eq!(begun("projects/-ws/chats", "/other"), Path::new("-ws"));
        assert_eq!(begun("a/copy", "other"), Path::new("unknown"), "a workspace is a whole path");
        assert_eq!(begun("a/copy", ""), Path::new("unknown"));
    }

    #[test]
    fn an_archived_session_is_locked_where_it_was_live() {
        let files = Files::beside(Path::new("/p/chats/archive/s.ledger.jsonl"), None).unwrap();
        assert_eq!((files.lock.as_path(), files.is_archived), (Path::new("/p/chats/s.lock"), true));
        assert_eq!(files.transcript, Path::new("/p/chats/archive/s.jsonl"));
        let files = Files::beside(Path::new("/p/archive/s.jsonl"), None).unwrap();
        assert_eq!((files.lock.as_path(), files.is_archived), (Path::new("/p/archive/s.lock"), false));
        assert_eq!(files.ledger.path(), Path::new("/p/archive/s.ledger.jsonl"));
    }

    #[test]
    fn a_name_without_a_session_names_no_files() {
        for path in ["/p/.jsonl", "/p/.ledger.jsonl", "/p/s.lock", "/p/s", "/"] {
            assert!(Files::beside(Path::new(path), None).is_none(), "{path}");
        }
    }
}
