//! How the recording of a session goes: what the daemon is told when the disk refuses records, and when it takes them again.

/// What waits for the disk. Nothing waits in a session that is well recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Recording {
    /// Records that are held; of a recording that was given up, those that were.
    pub(crate) held_records: usize,
    /// About how much memory they take.
    pub(crate) held_bytes: usize,
    /// Too much was held: nothing of this session is recorded any more.
    pub(crate) given_up: bool,
}

impl Recording {
    /// Whether this is worth telling to whoever was told of `other`. How much is held grows with every record, and is not.
    pub(crate) fn differs_from(self, other: Self) -> bool {
        self.is_well() != other.is_well() || self.given_up != other.given_up
    }

    /// Everything is on disk.
    pub(crate) fn is_well(self) -> bool {
        self.held_records == 0 && !self.given_up
    }
}
