//! A session at a glance.

use crate::{Background, PendingPermission, Recording, Source, Title};

/// The state of a live session, for its status page and for whoever decides to close it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What the session is called, if anybody has named it.
    pub title: Option<Title>,
    /// Where it comes from, if anybody has said.
    pub source: Option<Source>,
    /// When this live entry was made, epoch milliseconds.
    pub created_at_ms: u64,
    /// When a running prompt last settled, epoch milliseconds.
    pub updated_at_ms: Option<u64>,
    /// The last creation, registration, heartbeat, admission, dispatch or settling, or the end of the last stream or inquiry, epoch
    /// milliseconds: what idleness counts from.
    pub active_at_ms: u64,
    /// Registered clients.
    pub client_count: usize,
    /// Open streams.
    pub subscriber_count: usize,
    /// Inquiries to the agent or its host that somebody waits for.
    pub inquiry_count: usize,
    /// What the agent said last of its work beside prompts; none of one that tells nothing.
    pub background: Option<Background>,
    /// The agent holds a prompt, or one waits.
    pub has_active_prompt: bool,
    /// Unfinished prompts, the running one included.
    pub pending_prompt_count: usize,
    /// The error of the last turn, until one succeeds.
    pub turn_error: Option<TurnError>,
    /// Open permission requests, oldest first.
    pub pending_permissions: Vec<PendingPermission>,
    /// What of the transcript waits for the disk.
    pub recording: Recording,
    /// The session is being closed.
    pub closing: bool,
    /// Answers of the agent to prompts whose outcome was out already. They changed nothing.
    pub late_answers: u64,
}

/// What the last failed turn said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnError {
    /// For people.
    pub message: String,
    /// For programs.
    pub code: Option<String>,
}
