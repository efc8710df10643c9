//! Reading a session's events.

use std::fmt;
use std::sync::{Arc, Weak};

use thiserror::Error;

use super::live::Live;
use crate::Frame;
use crate::bus::Mailbox;

/// How a client wants to read (wire specification, section 10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscribe {
    /// The last event it has seen; without it only what happens from now on is sent.
    pub cursor: Option<u64>,
    /// The life of the stream that cursor belongs to.
    pub epoch: Option<String>,
    /// Frames that may wait for it; 0 means the default of 256.
    pub max_queued: usize,
}

/// Why a stream was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubscribeError {
    /// The session has as many readers as it may.
    #[error("session has {limit} event streams already")]
    Limit {
        /// Streams per session.
        limit: usize,
    },
    /// The session is gone.
    #[error("session is gone")]
    Gone,
}

/// An open stream. Dropping it ends it.
pub struct Subscription {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) live: Weak<Live>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // Whoever reads comes back after a moment, and until then nobody may take the session for one that is not used.
        if let Some(live) = self.live.upgrade() {
            live.note_activity();
        }
    }
}

impl Subscription {
    /// The next frame; `None` once the stream has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            {
                let mut lane = self.mailbox.lane.lock();
                let frame = lane.pop();
                if frame.is_some() || lane.is_ended() {
                    return frame;
                }
            }
            self.mailbox.bell.notified().await;
        }
    }

    /// The next frame if one is there, so that several can be written at once.
    pub fn try_next(&mut self) -> Option<Frame> {
        self.mailbox.lane.lock().pop()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}
