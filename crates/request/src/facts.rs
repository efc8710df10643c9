//! What a request's turn is held against: the agent's process, the turn before it, and where the session stood at the dispatch.

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
