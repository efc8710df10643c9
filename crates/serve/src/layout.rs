//! Where the files of a session lie. Every path of this crate comes from here, so that no route puts a name together itself.

use std::path::{Path, PathBuf};

/// The files of one workspace in one store.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    store: PathBuf,
    chats: PathBuf,
}

impl Layout {
    /// The layout of `workspace` in `store`.
    pub(crate) fn new(store: &Path, workspace: &Path) -> Self {
        Self { store: store.to_owned(), chats: transcript::layout::chats_dir(store, workspace) }
    }

    /// The transcript: written by the host or a native agent, only read here.
    pub(crate) fn transcript(&self, session: &str) -> PathBuf {
        transcript::layout::transcript_path(&self.chats, session)
    }

    /// The ledger: written here.
    pub(crate) fn ledger(&self, session: &str) -> PathBuf {
        transcript::layout::ledger_path(&self.chats, session)
    }

    /// The transcript of a session that was put away.
    pub(crate) fn archived_transcript(&self, session: &str) -> PathBuf {
        transcript::layout::transcript_path(&self.chats.join("archive"), session)
    }

    /// The ids that callers chose for their prompts. It ends unlike a transcript, so that no scan takes it for one.
    pub(crate) fn prompt_ids(&self, session: &str) -> PathBuf {
        self.chats.join(format!("{session}.prompt-ids"))
    }

    /// The folder that tells which session each such id was chosen in.
    pub(crate) fn prompt_id_owners(&self) -> PathBuf {
        self.chats.with_file_name("turnd-prompt-ids")
    }

    /// The lock of the daemon that serves this workspace from this store.
    pub(crate) fn daemon_lock(&self) -> PathBuf {
        self.chats.with_file_name("turnd.lock")
    }

    /// The small file whose growth tells whether the disk still takes bytes.
    pub(crate) fn room_probe(&self) -> PathBuf {
        self.store.join(".turnd-room")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_session_share_a_folder() {
        let layout = Layout::new(Path::new("/store"), Path::new("/ws"));
        assert_eq!(layout.transcript("s"), Path::new("/store/projects/-ws/chats/s.jsonl"));
        assert_eq!(layout.ledger("s"), Path::new("/store/projects/-ws/chats/s.ledger.jsonl"));
        assert_eq!(layout.daemon_lock(), Path::new("/store/projects/-ws/turnd.lock"));
        assert_eq!(layout.archived_transcript("s"), Path::new("/store/projects/-ws/chats/archive/s.jsonl"));
    }
}
