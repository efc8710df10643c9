//! What lies beside a transcript and goes where it goes: the one list of it. A file of a session that stands in no list here would be
//! left behind by an archive and by a delete.

/// Where the files of a session lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In use, or ready for it.
    Active,
    /// Put away.
    Archived,
}

impl Place {
    /// Both, the one in use first.
    pub(crate) const ALL: [Self; 2] = [Self::Active, Self::Archived];
}

/// A file beside a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sidecar {
    /// What became of each prompt.
    Ledger,
    /// The ids that callers chose for their prompts.
    PromptIds,
    /// The host's note of the agent's session.
    HostNote,
    /// The peer's note of a worktree.
    Worktree,
    /// The peer's note of pull requests.
    PullRequests,
    /// A host's note that was being written when its host was killed.
    Draft,
    /// A transcript that was being put together when its daemon was killed.
    Merged,
}

/// What happens to a sidecar of which there is one in both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collision {
    /// They are lines that are only appended to: all of both are kept (ledger seed).
    Append,
    /// The one in use is the later one, since nobody writes the other.
    ActiveWins,
    /// Nobody here knows what they mean. The same bytes are one; different ones stay where they are.
    Keep,
    /// Nobody reads it: it goes.
    Drop,
}

impl Sidecar {
    /// All of them. What tells prompts apart goes last, so that nothing of a session is ever reachable without it.
    pub(crate) const ALL: [Self; 7] =
        [Self::Draft, Self::Merged, Self::HostNote, Self::Worktree, Self::PullRequests, Self::Ledger, Self::PromptIds];

    /// How its name ends, behind the session's id. None ends like a transcript but the ledger, which every scan leaves out.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Ledger => ledger::sidecar::SUFFIX,
            Self::PromptIds => ".prompt-ids",
            Self::HostNote => ".host.json",
            Self::Worktree => ".worktree.json",
            Self::PullRequests => ".pr.json",
            Self::Draft => ".host.json.tmp",
            Self::Merged => ".merged.tmp",
        }
    }

    /// What happens when both places have one.
    pub(crate) fn collision(self) -> Collision {
        match self {
            Self::Ledger | Self::PromptIds => Collision::Append,
            Self::HostNote => Collision::ActiveWins,
            Self::Worktree | Self::PullRequests => Collision::Keep,
            Self::Draft | Self::Merged => Collision::Drop,
        }
    }

    /// Whether it says anything of a prompt, so that its session is not new.
    pub(crate) fn is_evidence(self) -> bool {
        matches!(self, Self::Ledger | Self::PromptIds)
    }
}
