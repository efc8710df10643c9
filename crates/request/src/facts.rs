//! What a request's turn is held against: the agent's process, the turn before it, and where the session stood at the dispatch.

use sha2::{Digest as _, Sha256};

use crate::Hash;

/// One life of an agent's process, as the store keeps it. In a container the pid is often the same again and ticks start anew with each
/// boot, so that it takes all of these to tell two of them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// All of what tells it apart, as one opaque hash.
    pub incarnation_id: String,
    /// The daemon's life in which it was started.
    pub daemon_epoch: u64,
    /// The system's life.
    pub boot_id: String,
    /// The process.
    pub child_pid: u32,
    /// When the kernel started it, in its own ticks since boot.
    pub child_start_ticks: u64,
    /// Random, chosen for it.
    pub nonce: String,
    /// The agent's word for itself.
    pub agent_name: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The protocol version that was agreed on.
    pub protocol_version: Option<String>,
    /// The workspace it works in.
    pub workspace_key: String,
    /// When it was started, in epoch milliseconds.
    pub spawned_at: u64,
    /// When it was gone, in epoch milliseconds.
    pub ended_at: Option<u64>,
    /// Why it went.
    pub end_reason: Option<String>,
}

/// What tells one life of a process from every other: in one boot pid and start ticks would do, over several and in containers it takes
/// the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process<'a> {
    /// The process.
    pub child_pid: u32,
    /// When the kernel started it, in its own ticks since boot.
    pub child_start_ticks: u64,
    /// The system's life.
    pub boot_id: &'a str,
    /// The daemon's life.
    pub daemon_epoch: u64,
    /// Random, chosen for it.
    pub nonce: &'a str,
}

impl Process<'_> {
    /// All of it as one opaque word, which is what callers see and compare.
    #[must_use]
    pub fn incarnation_id(&self) -> String {
        let mut hash = Sha256::new_with_prefix("turnd-request-incarnation-1\n");
        hash.update(self.child_pid.to_be_bytes());
        hash.update(self.child_start_ticks.to_be_bytes());
        hash.update(self.daemon_epoch.to_be_bytes());
        for text in [self.boot_id, self.nonce] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        Hash(hash.finalize().into()).to_string()
    }
}

/// The turn behind which ours is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The prompt that settled last; none in a fresh session.
    pub prompt_id: Option<String>,
    /// How many turns the session has had.
    pub turn: u64,
}

/// Where the session stood when the prompt was dispatched. What stands before it is not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmedCursor {
    /// The session's last event.
    pub event_id: u64,
    /// The transcript's last record; none when there was none yet.
    pub tail: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_43_the_same_pid_in_another_life_is_another_incarnation() {
        let process = Process { child_pid: 7, child_start_ticks: 9, boot_id: "boot", daemon_epoch: 1, nonce: "n1" };
        let others = [
            Process { child_pid: 8, ..process },
            Process { child_start_ticks: 8, ..process },
            Process { boot_id: "boo", nonce: "tn1", ..process },
            Process { daemon_epoch: 2, ..process },
            Process { nonce: "n2", ..process },
        ];
        assert_eq!(process.incarnation_id(), process.incarnation_id());
        for other in others {
            assert_ne!(process.incarnation_id(), other.incarnation_id(), "{other:?}");
        }
    }
}
