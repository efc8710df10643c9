//! What was said into a running turn and taken by its agent: part of that turn's record.

use acp::Message;
use transcript::Body;

use super::Machine;
use crate::options::Mode;
use crate::turn::json::PromptText;

impl Machine {
    /// Whether what the agent asks for is of its own session's turn, and to be recorded.
    pub(super) fn drains(&self, message: &Message) -> bool {
        let is_ours = message.session_id().is_none_or(|named| Some(named) == self.agent_session);
        self.mode == Mode::Recorded && is_ours
    }

    /// The daemon's answer to that. It is on record before the agent has it, as a prompt is.
    pub(super) fn record_drained(&mut self, message: &Message) {
        if self.running.is_none() {
            return;
        }
        let items = message.result().and_then(|result| acp::lenient_value(acp::raw_at(result, &["items"])?));
        let items = items.as_ref().and_then(|items| items.as_array()).cloned().unwrap_or_default();
        let said = items.iter().map(|item| PromptText::read(&item["content"].to_string()).parts);
        let records = said.filter(|parts| !parts.is_empty()).map(|parts| Body::MidTurn { parts }).collect();
        self.append(records);
    }
}
