//! Where the files of a session lie. Every path of this crate comes from here, so that no route puts a name together itself.

use std::path::{Path, PathBuf};

use crate::sidecar::{Place, Sidecar};

/// How the name of a copy ends that is not whole yet.
const BRANCHING: &str = ".branching";

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
        self.transcript_in(Place::Active, session)
    }

    /// The ledger: written here.
    pub(crate) fn ledger(&self, session: &str) -> PathBuf {
        self.sidecar(Place::Active, Sidecar::Ledger, session)
    }

    /// The transcript of a session that was put away.
    pub(crate) fn archived_transcript(&self, session: &str) -> PathBuf {
        self.transcript_in(Place::Archived, session)
    }

    /// The copy of a conversation that is to be this session's, until it is whole. It ends unlike a transcript, so that no scan takes it
    /// for one.
    pub(crate) fn branching(&self, session: &str) -> PathBuf {
        self.chats.join(format!("{session}{BRANCHING}"))
    }

    /// The sessions that have such a copy.
    pub(crate) fn branchings(&self) -> Vec<String> {
        let named = |name: &str| name.strip_suffix(BRANCHING).map(str::to_owned);
        self.names().filter_map(|name| named(&name)).collect()
    }

    /// The transcripts that were written to last, at most so many.
    pub(crate) fn latest_transcripts(&self, most: usize) -> Vec<PathBuf> {
        let named = self.names().filter_map(|name| {
            let path = self.transcript(transcript::layout::session_id_of_file_name(&name)?);
            let modified = path.metadata().ok()?.modified().ok()?;
            Some((modified, path))
        });
        let mut found: Vec<_> = named.collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.truncate(most);
        found.into_iter().map(|(_, path)| path).collect()
    }

    /// The names of the files of all sessions.
    fn names(&self) -> impl Iterator<Item = String> {
        let entries = std::fs::read_dir(&self.chats).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    }

    /// The ids that callers chose for their prompts. It ends unlike a transcript, so that no scan takes it for one.
    pub(crate) fn prompt_ids(&self, session: &str) -> PathBuf {
        self.sidecar(Place::Active, Sidecar::PromptIds, session)
    }

    /// The transcript in one of the two places.
    pub(crate) fn transcript_in(&self, place: Place, session: &str) -> PathBuf {
        transcript::layout::transcript_path(&self.folder(place), session)
    }

    /// A file beside the transcript in one of the two places.
    pub(crate) fn sidecar(&self, place: Place, sidecar: Sidecar, session: &str) -> PathBuf {
        self.folder(place).join(format!("{session}{}", sidecar.suffix()))
    }

    /// The folder of one of the two places.
    pub(crate) fn folder(&self, place: Place) -> PathBuf {
        match place {
            Place::Active => self.chats.clone(),
            Place::Archived => self.chats.join("archive"),
        }
    }

    /// The lock of a session, wherever its files lie: who holds it may write them.
    pub(crate) fn session_lock(&self, session: &str) -> PathBuf {
        self.chats.join(format!("{session}.lock"))
    }

    /// Whether a session of this id has left anything that tells of it. Blocks.
    pub(crate) fn has_left(&self, session: &str) -> bool {
        let evidence = || Sidecar::ALL.into_iter().filter(|sidecar| sidecar.is_evidence());
        Place::ALL.into_iter().any(|place| {
            self.transcript_in(place, session).exists()
                || evidence().any(|sidecar| self.sidecar(place, sidecar, session).exists())
        })
    }

    /// The folder that tells which session each such id was chosen in.
    pub(crate) fn prompt_id_owners(&self) -> PathBuf {
        self.chats.with_file_name("turnd-prompt-ids")
    }

    /// The lock of the daemon that serves this workspace from this store.
    pub(crate) fn daemon_lock(&self) -> PathBuf {
        self.chats.with_file_name("turnd.lock")
    }

    /// The folder of the return requests of a daemon whose primary workspace this is.
    pub(crate) fn requests(&self) -> PathBuf {
        self.chats.with_file_name("turnd-requests")
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
        assert_eq!(layout.session_lock("s"), Path::new("/store/projects/-ws/chats/s.lock"));
        let note = layout.sidecar(Place::Archived, Sidecar::HostNote, "s");
        assert_eq!(note, Path::new("/store/projects/-ws/chats/archive/s.host.json"));
    }

    proptest::proptest! {
        /// Also for ids that are prefixes of each other, or end like a sidecar.
        #[test]
        fn no_file_is_of_two_sessions(
            ids in proptest::array::uniform2("[a-c]{1,2}([.](jsonl|host|host[.]json|lock|pr|worktree|prompt-ids|ledger|merged|tmp))?")
        ) {
            let layout = Layout::new(Path::new("/store"), Path::new("/ws"));
            let [one, other] = ids;
            proptest::prop_assume!(one != other && [&one, &other].iter().all(|id| crate::identity::is_file_id(id)));
            let files = |id: &str| -> std::collections::HashSet<PathBuf> {
                let sidecars = Place::ALL.into_iter().flat_map(|place| {
                    Sidecar::ALL.map(|sidecar| layout.sidecar(place, sidecar, id)).into_iter().chain([layout.transcript_in(place, id)])
                });
                sidecars.chain([layout.session_lock(id)]).collect()
            };
            proptest::prop_assert!(files(&one).is_disjoint(&files(&other)), "{one} {other}");
        }
    }
}
