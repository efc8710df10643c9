//! What the agent asks before it acts, and what came of it.

use std::collections::VecDeque;
use std::sync::Arc;

use acp::RequestId;

use crate::incoming::{Ask, Offer};
use crate::limits::{PERMISSIONS_DECIDED_MAX, PERMISSIONS_OPEN_MAX};
use crate::moment::Steady;
use crate::policy::{Ballot, CANCELLED, Cast, Forbidden, Tally, Voter};
use crate::prompt::{PromptId, Waiting};
use crate::{Decision, Reason, Resolution};

#[cfg(test)]
mod tests;

/// A client's answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// One of the options offered.
    Selected {
        /// The option's id as it was offered.
        option_id: String,
        /// Answers to questions: raw JSON text, passed on beside the outcome. Of several votes that agree, those of the last.
        answers: Option<String>,
    },
    /// The request is refused as a whole.
    Cancelled,
}

/// What became of a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VoteOutcome {
    /// It counts: it decided the request, or is one of the several that do.
    Recorded,
    /// Its voter has voted before; the first vote stays.
    Repeated,
    /// The policy gives this voter no vote here; the request stays open.
    Forbidden(Forbidden),
    /// The option was not offered; the request stays open.
    InvalidOption,
    /// The request was decided before, and so.
    AlreadyResolved(Resolution),
    /// No such request is known.
    Unknown,
}

/// An open request as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPermission {
    /// Our id for it, a UUID.
    pub request_id: String,
    /// When it was asked, epoch milliseconds.
    pub created_at_ms: u64,
    /// When it will be denied if nobody decides, epoch milliseconds: the date that the wall clock gave it when it was asked.
    pub expires_at_ms: Option<u64>,
    /// The prompt that was running.
    pub prompt_id: Option<String>,
    /// What the agent wants to do: raw JSON object text.
    pub tool_call: String,
    /// What it offers: raw JSON array text.
    pub options: String,
}

/// The open requests of a session, and the decisions on those that were.
#[derive(Debug, Default)]
pub(crate) struct Permissions {
    open: Vec<Open>,
    decided: VecDeque<Decided>,
}

/// A request that nobody has decided.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) about: About,
    pub(crate) created_at_ms: u64,
    /// The date of its denial, as it looked when it was asked.
    pub(crate) expires_at_ms: Option<u64>,
    /// When it is denied.
    pub(crate) due: Option<Steady>,
    pub(crate) ask: Ask,
    pub(crate) ballot: Ballot,
}

/// What a request is called, and whose prompt it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) request_id: Arc<str>,
    pub(crate) prompt_id: Option<PromptId>,
    /// The prompt's client.
    pub(crate) originator: Option<Arc<str>>,
}

/// What is remembered of a decided request.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) about: About,
    pub(crate) resolution: Resolution,
}

/// What the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// The request it answers.
    pub(crate) agent_request: RequestId,
    /// The option's id as the agent spelled it: raw JSON text. None means cancelled.
    pub(crate) option: Option<String>,
    /// Answers to questions: raw JSON text.
    pub(crate) answers: Option<String>,
}

/// A decided request, for both who asked and who listens.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) about: About,
    pub(crate) resolution: Resolution,
    pub(crate) ruling: Ruling,
}

/// What a vote did.
#[derive(Debug)]
pub(crate) enum Voted<'a> {
    Resolved(Resolved),
    Counted(About, Tally),
    Repeated,
    Forbidden(About, Forbidden),
    InvalidOption,
    Already(&'a Decided),
    Unknown,
}

impl Ruling {
    pub(crate) fn cancelled(agent_request: RequestId) -> Self {
        Self { agent_request, option: None, answers: None }
    }

    fn selected(agent_request: RequestId, offer: &Offer, answers: Option<String>) -> Self {
        Self { agent_request, option: Some(offer.raw.clone()), answers }
    }
}

impl Permissions {
    /// Whether one more can be asked.
    pub(crate) fn has_room(&self) -> bool {
        self.open.len() < PERMISSIONS_OPEN_MAX
    }

    pub(crate) fn open(&mut self, open: Open) {
        self.open.push(open);
    }

    /// The open question that the agent asked under this id.
    pub(crate) fn asked(&self, agent_request: &RequestId) -> Option<&Ask> {
        self.open.iter().map(|open| &open.ask).find(|ask| ask.agent_request == *agent_request)
    }

    /// Takes a vote. An option that was not offered is no vote, whoever names it.
    pub(crate) fn vote(&mut self, request_id: &str, vote: &Vote, voter: &Voter, at_ms: u64) -> Voted<'_> {
        let Some(place) = self.place(request_id) else {
            let decided = self.decided.iter().find(|decided| *decided.about.request_id == *request_id);
            return decided.map_or(Voted::Unknown, Voted::Already);
        };
        let open = &mut self.open[place];
        let agent_request = open.ask.agent_request.clone();
        let (choice, decision, ruling) = match vote {
            Vote::Cancelled => (CANCELLED, Decision::Cancelled, Ruling::cancelled(agent_request)),
            Vote::Selected { option_id, answers } => {
                let Some(offer) = open.ask.offers.iter().find(|offer| offer.id == *option_id) else {
                    return Voted::InvalidOption;
                };
                let decision = Decision::Selected { option_id: option_id.clone() };
                (option_id.as_str(), decision, Ruling::selected(agent_request, offer, answers.clone()))
            }
        };
        match open.ballot.cast(voter, choice) {
            Cast::Decides => {
                let resolution = Resolution { decision, reason: Reason::Vote, voter: voter.client_id.clone(), at_ms };
                let open = self.open.remove(place);
                Voted::Resolved(self.decide(open.about, resolution, ruling))
            }
            Cast::Counts(tally) => Voted::Counted(open.about.clone(), tally),
            Cast::Repeats => Voted::Repeated,
            Cast::Forbidden(why) => Voted::Forbidden(open.about.clone(), why),
        }
    }

    /// Nobody decided in time: the option that rejects this once, or nothing where the agent offers none.
    pub(crate) fn expire(&mut self, request_id: &str, at_ms: u64) -> Option<Resolved> {
        let Open { about, ask, .. } = self.open.remove(self.place(request_id)?);
        let mut resolution = Resolution::cancelled(Reason::Timeout, at_ms);
        let ruling = match ask.offers.iter().find(|offer| offer.rejects_once) {
            Some(offer) => {
                resolution.decision = Decision::Selected { option_id: offer.id.clone() };
                Ruling::selected(ask.agent_request, offer, None)
            }
            None => Ruling::cancelled(ask.agent_request),
        };
        Some(self.decide(about, resolution, ruling))
    }

    /// A client is gone.
    pub(crate) fn leave(&mut self, client_id: &str) {
        for open in &mut self.open {
            open.ballot.leave(client_id);
        }
    }

    /// Refuses every open request that the predicate picks, oldest first.
    pub(crate) fn refuse(&mut self, which: impl Fn(&Open) -> bool, reason: Reason, at_ms: u64) -> Vec<Resolved> {
        let (refused, kept) = self.open.drain(..).partition(which);
        self.open = kept;
        let refused: Vec<Open> = refused;
        let refused = refused.into_iter().map(|open| {
            let ruling = Ruling::cancelled(open.ask.agent_request);
            self.decide(open.about, Resolution::cancelled(reason, at_ms), ruling)
        });
        refused.collect()
    }

    /// The request that is denied next if nobody decides, and when.
    pub(crate) fn due(&self) -> Option<(Steady, &Arc<str>)> {
        let expiring = self.open.iter().filter_map(|open| Some((open.due?, &open.about.request_id)));
        expiring.min_by_key(|(due, _)| *due)
    }

    /// What a prompt waits for, and since when.
    pub(crate) fn waiting(&self, prompt_id: &PromptId) -> Option<Waiting> {
        let of_prompt = |open: &&Open| open.about.prompt_id.as_ref() == Some(prompt_id);
        let since_ms = self.open.iter().filter(of_prompt).map(|open| open.created_at_ms).min()?;
        let request_ids = self.open.iter().filter(of_prompt).map(|open| open.about.request_id.to_string()).collect();
        Some(Waiting { since_ms, request_ids })
    }

    pub(crate) fn pending(&self) -> Vec<PendingPermission> {
        let pending = |open: &Open| PendingPermission {
            request_id: open.about.request_id.to_string(),
            created_at_ms: open.created_at_ms,
            expires_at_ms: open.expires_at_ms,
            prompt_id: open.about.prompt_id.as_ref().map(ToString::to_string),
            tool_call: open.ask.tool_call.clone(),
            options: open.ask.options.clone(),
        };
        self.open.iter().map(pending).collect()
    }

    /// Whether the request is or was one of this session's.
    pub(crate) fn knows(&self, request_id: &str) -> bool {
        self.place(request_id).is_some() || self.decided.iter().any(|decided| *decided.about.request_id == *request_id)
    }

    fn place(&self, request_id: &str) -> Option<usize> {
        self.open.iter().position(|open| *open.about.request_id == *request_id)
    }

    fn decide(&mut self, about: About, resolution: Resolution, ruling: Ruling) -> Resolved {
        if self.decided.len() == PERMISSIONS_DECIDED_MAX {
            self.decided.pop_front();
        }
        self.decided.push_back(Decided { about: about.clone(), resolution: resolution.clone() });
        Resolved { about, resolution, ruling }
    }
}
