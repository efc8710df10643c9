//! Keeping a session still while what its agent remembers is changed.

use std::fmt;
use std::sync::Arc;

use super::live::Live;
use super::session::Session;
use super::settings;
use crate::effect::Reply;
use crate::input::Input;
use crate::{Announcement, HoldError, Meanwhile};

/// What of an answer tells the state of a session. One that tells nothing of it leaves what was told before.
const STATE_KEYS: [&str; 3] = ["modes", "models", "configOptions"];

/// A session to whose agent nothing is handed. Dropping this lets it go on.
pub struct Held {
    live: Arc<Live>,
    at_ms: u64,
}

impl Session {
    /// Keeps the session still, if it is idle.
    ///
    /// # Errors
    /// See [`HoldError`].
    pub fn hold(&self, meanwhile: Meanwhile) -> Result<Held, HoldError> {
        match self.live.step(|_| Input::Hold { meanwhile }) {
            Some(Reply::Held { at_ms }) => Ok(Held { live: Arc::clone(&self.live), at_ms }),
            Some(Reply::NotHeld(error)) => Err(error),
            _ => Err(HoldError::Gone),
        }
    }
}

impl Held {
    /// The time, epoch milliseconds, with which the change is to be dated: everything on record before it is older, and everything after it
    /// is younger.
    pub fn at_ms(&self) -> u64 {
        self.at_ms
    }

    /// The conversation was taken back: what ended before is forgotten here, and the readers are told of it by `announcement`. `agent` is the
    /// host's answer when the agent has another session now: raw JSON object text with its id.
    pub fn rewound(&self, agent: Option<&str>, announcement: Announcement, by: Option<&str>) {
        let now_ms = self.live.clock.now_ms();
        let mut state = self.live.state.lock();
        if let Some(answer) = agent
            && let Some(id) = acp::string_at(answer, &["sessionId"])
        {
            state.agent.id = id;
            if STATE_KEYS.iter().any(|key| acp::raw_at(answer, &[key]).is_some()) {
                settings::succeed(&self.live, &mut state, answer, now_ms);
            }
        }
        let input = Input::Rewound { announcement, by: by.map(Into::into) };
        self.live.step_locked(&mut state, input, now_ms);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.live.step(|_| Input::Release);
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("session", &self.live.id).field("at_ms", &self.at_ms).finish_non_exhaustive()
    }
}
