//! What was said into a running turn and taken by its agent: part of that turn's record.

use acp::{Message, RequestId};
use transcript::Body;

use super::Machine;
use crate::options::Mode;
use crate::turn::json::PromptText;
use crate::wire;

impl Machine {
    /// The agent asks for what was said into its own session's turn.
    pub(super) fn note_drain(&mut self, id: &RequestId, message: &Message) {
        let is_ours = message.session_id().is_none_or(|named| Some(named) == self.agent_session);
        if self.mode == Mode::Recorded && message.method() == Some(wire::DRAIN) && is_ours {
            self.drains.insert(id.clone());
        }
    }

    /// The daemon's answer to that. It is on record before the agent has it, as a prompt is.
    pub(super) fn record_drained(&mut self, id: &RequestId, message: &Message) {
        if !self.drains.remove(id) || self.running.is_none() {
            return;
        }
        let items = message.result().and_then(|result| acp::lenient_value(acp::raw_at(result, &["items"])?));
        let items = items.as_ref().and_then(|items| items.as_array()).cloned().unwrap_or_default();
        let said = items.iter().map(|item| PromptText::read(&item["content"].to_string()).parts);
        let records = said.filter(|parts| !parts.is_empty()).map(|parts| Body::MidTurn { parts }).collect();
        self.append(records);
    }
}
