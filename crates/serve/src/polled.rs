//! Which ended prompts a poll has already combined with what is on disk, so that the next poll is answered from memory alone.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use bridge::limits::OVERLAY_PROMPTS_MAX;

use crate::sync::lock;

/// How much of the disk an answer already contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The transcript's record of the prompt: nothing more can come.
    Record,
    /// No record, in a transcript of this many bytes: there may be one once it has grown.
    Nothing {
        /// Length of the transcript then.
        transcript_bytes: u64,
    },
}

/// What polls have seen, per session, at most as many prompts as the overlay holds.
#[derive(Debug, Default)]
pub(crate) struct Polled {
    sessions: Mutex<HashMap<String, VecDeque<(String, Seen)>>>,
}

impl Polled {
    /// What was seen of a prompt.
    pub(crate) fn get(&self, session: &str, prompt: &str) -> Option<Seen> {
        let sessions = lock(&self.sessions);
        sessions.get(session)?.iter().rev().find(|(id, _)| id == prompt).map(|(_, seen)| *seen)
    }

    /// Remembers what was seen.
    pub(crate) fn set(&self, session: &str, prompt: &str, seen: Seen) {
        let mut sessions = lock(&self.sessions);
        let prompts = sessions.entry(session.to_owned()).or_default();
        if let Some(entry) = prompts.iter_mut().find(|(id, _)| id == prompt) {
            entry.1 = seen;
            return;
        }
        if prompts.len() == OVERLAY_PROMPTS_MAX {
            prompts.pop_front();
        }
        prompts.push_back((prompt.to_owned(), seen));
    }

    /// Forgets what was seen of a session's prompts.
    pub(crate) fn forget(&self, session: &str) {
        lock(&self.sessions).remove(session);
    }

    /// Forgets sessions that are not live any more.
    pub(crate) fn retain(&self, live: impl Fn(&str) -> bool) {
        lock(&self.sessions).retain(|session, _| live(session));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_prompt_makes_room_for_the_65th() {
        let polled = Polled::default();
        for number in 0..=OVERLAY_PROMPTS_MAX {
            polled.set("s", &format!("p{number}"), Seen::Record);
        }
        assert_eq!(polled.get("s", "p0"), None);
        assert_eq!(polled.get("s", "p1"), Some(Seen::Record));
    }

    #[test]
    fn what_was_seen_last_counts() {
        let polled = Polled::default();
        polled.set("s", "p", Seen::Nothing { transcript_bytes: 1 });
        polled.set("s", "p", Seen::Record);
        assert_eq!(polled.get("s", "p"), Some(Seen::Record));
        polled.set("t", "p", Seen::Record);
        polled.forget("t");
        assert_eq!((polled.get("t", "p"), polled.get("s", "p")), (None, Some(Seen::Record)));
        polled.retain(|_| false);
        assert_eq!(polled.get("s", "p"), None);
    }
}
