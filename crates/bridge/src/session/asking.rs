//! What the agent asks, and who answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use acp::RequestId;

use super::{Phase, Session, witnessing};
use crate::effect::{Reply, Step, Tell};
use crate::event::News;
use crate::incoming::Ask;
use crate::permission::{About, Open, Resolved, Ruling, Voted};
use crate::policy::{Ballot, Voter};
use crate::{Reason, Vote, VoteOutcome};

impl Session {
    /// The agent asks, while `registered` are the session's clients.
    pub(super) fn ask(&mut self, ask: Ask, request_id: Arc<str>, registered: BTreeSet<Arc<str>>, step: &mut Step) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        self.hear_sign(step);
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.over && turn.may_be_answered()) {
            turn.hear(&ask.news);
        }
        if let Some(first) = self.permissions.asked(&ask.agent_request) {
            if *first != ask {
                self.refuse_reused_id(&ask.agent_request, step);
            }
            return;
        }
        self.cancel_drained(step);
        let stopping = self.turn.as_ref().is_some_and(|turn| turn.over || turn.cancelled.is_some());
        if stopping || self.is_replacing() || self.open().is_err() || !self.permissions.has_room() {
            return step.tell(Tell::Ruling(Ruling::cancelled(ask.agent_request)));
        }
        let entry = self.turn.as_ref().map(|turn| &turn.entry);
        let prompt_id = entry.map(|entry| entry.prompt_id.clone());
        let originator = entry.and_then(|entry| entry.originator.clone());
        let response_timeout_ms = self.mediation.response_timeout_ms;
        let (tool_call, options) = (ask.tool_call.clone(), ask.options.clone());
        let news = News::PermissionRequest { request_id: request_id.clone(), tool_call, options, response_timeout_ms };
        step.publish(prompt_id.clone(), originator.clone(), news);
        let ballot = Ballot::new(self.mediation.policy, originator.as_ref(), registered);
        let about = About { request_id, prompt_id, originator };
        let expires_at_ms = response_timeout_ms.map(|ms| step.at.at_ms.saturating_add(ms));
        let due = response_timeout_ms.map(|ms| step.at.steady.after(ms));
        self.permissions.open(Open { about, created_at_ms: step.at.at_ms, expires_at_ms, due, ask, ballot });
        self.refuse_undecidable(step);
    }

    /// The agent asks one thing while it waits for the answer to another under the same id. Either answer could be taken for the
    /// other one's, so neither is allowed. The same question once more has one answer, which is to come.
    fn refuse_reused_id(&mut self, agent_request: &RequestId, step: &mut Step) {
        self.refuse_permissions(|open| open.ask.agent_request == *agent_request, Reason::IdReused, step);
        step.tell(Tell::Ruling(Ruling::cancelled(agent_request.clone())));
    }

    pub(super) fn refuse_unknown(&mut self, agent_request: RequestId, method: String, step: &mut Step) {
        if !matches!(self.phase, Phase::Over) {
            self.hear_sign(step);
            step.tell(Tell::Unsupported { agent_request, method });
        }
    }

    pub(super) fn hear_sign(&mut self, step: &mut Step) {
        if let Some(turn) = &mut self.turn {
            witnessing::hear_sign(turn, step);
        }
    }

    pub(super) fn vote(&mut self, request_id: &str, vote: &Vote, voter: &Voter, step: &mut Step) {
        let has_readers = self.has_readers();
        let outcome = match self.permissions.vote(request_id, vote, voter, step.at.at_ms) {
            Voted::Resolved(resolved) => {
                resolve(resolved, step);
                VoteOutcome::Recorded
            }
            Voted::Counted(About { request_id, prompt_id, originator }, tally) => {
                step.publish(prompt_id, originator, News::PermissionPartialVote { request_id, tally });
                self.refuse_undecidable(step);
                VoteOutcome::Recorded
            }
            Voted::Repeated => VoteOutcome::Repeated,
            Voted::Forbidden(About { request_id, prompt_id, originator }, why) => {
                let news = News::PermissionForbidden { request_id, client_id: voter.client_id.clone(), why };
                step.publish(prompt_id, originator, news);
                VoteOutcome::Forbidden(why)
            }
            Voted::InvalidOption => VoteOutcome::InvalidOption,
            Voted::Unknown => VoteOutcome::Unknown,
            Voted::Already(decided) => {
                let (request_id, resolution) = (decided.about.request_id.clone(), decided.resolution.clone());
                let decision = resolution.decision.clone();
                if has_readers {
                    let news = News::PermissionAlreadyResolved { request_id, decision };
                    step.publish(decided.about.prompt_id.clone(), None, news);
                }
                VoteOutcome::AlreadyResolved(resolution)
            }
        };
        step.reply(Reply::Voted(outcome));
    }

    /// Nobody decided in time.
    pub(super) fn expire_permission(&mut self, request_id: &str, step: &mut Step) {
        if let Some(resolved) = self.permissions.expire(request_id, step.at.at_ms) {
            resolve(resolved, step);
        }
    }

    /// A client is gone; what only it could have decided is refused.
    pub(super) fn lose_client(&mut self, client_id: &str, step: &mut Step) {
        self.permissions.leave(client_id);
        self.refuse_undecidable(step);
    }

    /// Nothing waits for votes that cannot come.
    fn refuse_undecidable(&mut self, step: &mut Step) {
        self.refuse_permissions(|open| !open.ballot.can_decide(), Reason::Undecidable, step);
    }

    pub(super) fn refuse_permissions(&mut self, which: impl Fn(&Open) -> bool, reason: Reason, step: &mut Step) {
        for resolved in self.permissions.refuse(which, reason, step.at.at_ms) {
            resolve(resolved, step);
        }
    }
}

/// A decision reaches the agent and the readers.
fn resolve(resolved: Resolved, step: &mut Step) {
    let Resolved { about, resolution, ruling } = resolved;
    step.tell(Tell::Ruling(ruling));
    let voter = resolution.voter.clone();
    step.publish(about.prompt_id, voter, News::PermissionResolved { request_id: about.request_id, resolution });
}
