//! A live session as the crates above hold it.

use bytes::Bytes;
use thiserror::Error;

use super::subscription::{Subscribe, SubscribeError, Subscription};
use crate::{AdmitError, Ended, NotOpen, PendingPrompt, Prompt, Receipt, Status, TurnView, Vote, VoteOutcome};

/// A live session. Clones are the same session; it stays readable while it is being closed.
#[derive(Clone, Debug)]
pub struct Session {
    pub(super) id: String,
}

/// Why a session was not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CloseError {
    /// It is gone already.
    #[error("session is gone")]
    NotFound,
    /// Somebody else is closing it.
    #[error("session is closing")]
    Closing,
}

/// What a detach left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detached {
    /// Registered clients left.
    pub client_count: usize,
    /// Open streams left.
    pub subscriber_count: usize,
    /// A prompt runs or waits.
    pub has_active_prompt: bool,
}

impl Session {
    /// Our id for it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The agent's id for it.
    pub fn agent_session_id(&self) -> &str {
        &self.id
    }

    /// The folder the agent works in.
    pub fn workspace_cwd(&self) -> &str {
        ""
    }

    /// When this live entry was made, epoch milliseconds.
    pub fn created_at_ms(&self) -> u64 {
        0
    }

    /// The agent's answer to the opening request, raw JSON object text.
    pub fn agent_state(&self) -> &str {
        "{}"
    }

    /// The life of its event stream, a UUID.
    pub fn epoch(&self) -> &str {
        ""
    }

    /// The number of the newest event.
    pub fn last_event_id(&self) -> u64 {
        0
    }

    /// The events still in the ring, oldest first, each a whole envelope.
    pub fn recent_events(&self) -> Vec<Bytes> {
        Vec::new()
    }

    /// Registers a client: one registered before is counted again, any other gets a fresh `client_<uuid>`.
    pub fn register(&self, _client_id: Option<&str>) -> String {
        String::new()
    }

    /// Whether the client is registered.
    pub fn is_registered(&self, _client_id: &str) -> bool {
        false
    }

    /// Notes that a client is there and gives the time of that, epoch milliseconds.
    pub fn heartbeat(&self, _client_id: Option<&str>) -> u64 {
        0
    }

    /// Takes one registration of a client back.
    pub fn detach(&self, _client_id: Option<&str>) -> Detached {
        Detached { client_count: 0, subscriber_count: 0, has_active_prompt: false }
    }

    /// Accepts a prompt: it is in the ledger when this returns, and runs when its turn comes.
    ///
    /// # Errors
    /// See [`AdmitError`]; nothing has happened then.
    pub fn admit(&self, _prompt: Prompt) -> Result<Receipt, AdmitError> {
        Err(AdmitError::Gone)
    }

    /// Cancels the running prompt, if there is one. Prompts that wait go on.
    ///
    /// # Errors
    /// When the session is closing or gone.
    pub fn cancel(&self, _by: Option<&str>) -> Result<(), NotOpen> {
        Err(NotOpen::Gone)
    }

    /// The unfinished prompts, the running one first.
    pub fn pending_prompts(&self) -> Vec<PendingPrompt> {
        Vec::new()
    }

    /// Removes a prompt: one that waits is over at once and its slot is free; one that runs is cancelled. False for any other id.
    ///
    /// # Errors
    /// When the session is closing or gone.
    pub fn remove(&self, _prompt_id: &str, _by: Option<&str>) -> Result<bool, NotOpen> {
        Err(NotOpen::Gone)
    }

    /// Opens a stream of events.
    ///
    /// # Errors
    /// See [`SubscribeError`].
    pub fn subscribe(&self, _how: &Subscribe) -> Result<Subscription, SubscribeError> {
        Err(SubscribeError::Gone)
    }

    /// Answers a permission request; the first valid answer decides.
    pub fn vote(&self, _request_id: &str, _vote: &Vote, _voter: Option<&str>) -> VoteOutcome {
        VoteOutcome::Unknown
    }

    /// What is known of a prompt; without an id, of the running one, else the next one, else the newest ended one.
    pub fn turn(&self, _prompt_id: Option<&str>) -> TurnView {
        TurnView::default()
    }

    /// Writes an outcome that the poll combined with the transcript back into the overlay. An unfinished prompt is left alone.
    pub fn absorb(&self, _ended: Ended) {}

    /// The session at a glance.
    pub fn status(&self) -> Status {
        Status {
            title: None,
            created_at_ms: 0,
            updated_at_ms: None,
            active_at_ms: 0,
            client_count: 0,
            subscriber_count: 0,
            has_active_prompt: false,
            pending_prompt_count: 0,
            turn_error: None,
            pending_permissions: Vec::new(),
            closing: false,
        }
    }

    /// Closes the session: prompts that wait are flushed, the running one is cancelled and given time to settle, the agent is
    /// ended, `session_closed` is published and every stream ends. Resolves when all that is done; goes on when dropped.
    ///
    /// # Errors
    /// When it is gone or being closed by somebody else.
    pub async fn close(&self, _reason: &str, _closed_by: Option<&str>) -> Result<(), CloseError> {
        Err(CloseError::NotFound)
    }

    /// Gives the session up at once: every prompt ends as `session_killed`. Resolves when the agent's stream has ended.
    pub async fn kill(&self) {}
}
