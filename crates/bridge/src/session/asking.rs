//! What the agent asks, and who answers.

use std::sync::Arc;

use acp::RequestId;

use super::{Phase, Session};
use crate::effect::{Reply, Step, Tell};
use crate::event::News;
use crate::incoming::Ask;
use crate::permission::{NotDecided, Open, Resolved, Verdict};
use crate::{Vote, VoteOutcome};

impl Session {
    pub(super) fn ask(&mut self, ask: Ask, request_id: Arc<str>, step: &mut Step) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        if let Some(turn) = &mut self.turn {
            turn.heard_at_ms = Some(step.at_ms);
        }
        let stopping = self.turn.as_ref().is_some_and(|turn| turn.over || turn.cancelled_at_ms.is_some());
        if stopping || self.open().is_err() || !self.permissions.has_room() {
            return step.tell(Tell::Verdict(Verdict::cancelled(ask.agent_request)));
        }
        let entry = self.turn.as_ref().map(|turn| &turn.entry);
        let prompt_id = entry.map(|entry| entry.prompt_id.clone());
        let originator = entry.and_then(|entry| entry.originator.clone());
        let (tool_call, options) = (ask.tool_call.clone(), ask.options.clone());
        let news = News::PermissionRequest { request_id: request_id.clone(), tool_call, options };
        step.publish(prompt_id.clone(), originator, news);
        self.permissions.open(Open { request_id, created_at_ms: step.at_ms, prompt_id, ask });
    }

    pub(super) fn refuse_unknown(&self, agent_request: RequestId, method: String, step: &mut Step) {
        if !matches!(self.phase, Phase::Over) {
            step.tell(Tell::Unsupported { agent_request, method });
        }
    }

    pub(super) fn vote(&mut self, request_id: &str, vote: &Vote, voter: Option<Arc<str>>, step: &mut Step) {
        let has_readers = self.has_readers();
        let outcome = match self.permissions.vote(request_id, vote) {
            Ok(resolved) => {
                resolve(resolved, voter, step);
                VoteOutcome::Recorded
            }
            Err(NotDecided::InvalidOption) => VoteOutcome::InvalidOption,
            Err(NotDecided::Unknown) => VoteOutcome::Unknown,
            Err(NotDecided::Already(decided)) => {
                let (request_id, decision) = (decided.request_id.clone(), decided.decision.clone());
                let news = News::PermissionAlreadyResolved { request_id, decision: decision.clone() };
                if has_readers {
                    step.publish(decided.prompt_id.clone(), None, news);
                }
                VoteOutcome::AlreadyResolved(decision)
            }
        };
        step.reply(Reply::Voted(outcome));
    }

    pub(super) fn refuse_permissions(&mut self, which: impl Fn(&Open) -> bool, step: &mut Step) {
        for resolved in self.permissions.refuse(which) {
            resolve(resolved, None, step);
        }
    }
}

/// A decision reaches the agent and the readers.
fn resolve(resolved: Resolved, voter: Option<Arc<str>>, step: &mut Step) {
    let Resolved { request_id, prompt_id, decision, verdict } = resolved;
    step.tell(Tell::Verdict(verdict));
    step.publish(prompt_id, voter.clone(), News::PermissionResolved { request_id, decision, voter });
}
