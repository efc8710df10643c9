//! Requests of the daemon that the agent has and the host does not read.
//!
//! The agent answers what it was asked. Daemon and host have requests between them too (`turnd/…`), whose answers the daemon acts upon, and
//! prompts that the host has not taken in yet; an agent that answered one of these would speak in the host's name.

use std::collections::VecDeque;

use acp::RequestId;

use crate::limits::PASSED_MAX;

#[derive(Debug, Default)]
pub(super) struct Passed {
    open: VecDeque<RequestId>,
}

impl Passed {
    /// The agent is handed it. Nobody waits any longer for an answer that so many others have overtaken.
    pub(super) fn note(&mut self, id: RequestId) {
        if self.open.len() == PASSED_MAX {
            self.open.pop_front();
        }
        self.open.push_back(id);
    }

    /// Whether it is open. It is not any more.
    pub(super) fn take(&mut self, id: &RequestId) -> bool {
        let at = self.open.iter().position(|open| open == id);
        at.and_then(|at| self.open.remove(at)).is_some()
    }
}
