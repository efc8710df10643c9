//! How the recording of a session goes, as its host tells it.

use crate::json::Object;

/// What of a session's transcript waits for the disk. All is well while nothing does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Records that the host holds; of a recording that was given up, those that it held.
    pub held_records: u64,
    /// About how much memory they take, in bytes.
    pub held_bytes: u64,
    /// Too much was held: nothing of this session is recorded any more, and it takes no prompt.
    pub given_up: bool,
}

impl Recording {
    /// Something waits for the disk, or was given up.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.held_records > 0 || self.given_up
    }

    /// The type of its event. The peer has no word for the end of it, and its clients take every `session_recording_degraded` for a
    /// beginning.
    pub(crate) fn kind(&self) -> &'static str {
        if self.is_degraded() { "session_recording_degraded" } else { "session_recording_recovered" }
    }

    /// The `data` of its event, added to `session`, which names the session. The reason is the one that the peer's clients know.
    pub(crate) fn data(&self, session: Object) -> String {
        if !self.is_degraded() {
            return session.finish();
        }
        session
            .text("reason", "write_failed")
            .number("heldRecords", self.held_records)
            .number("heldBytes", self.held_bytes)
            .flag("givenUp", self.given_up)
            .finish()
    }
}
