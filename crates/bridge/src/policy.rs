//! Whose vote counts on what an agent asks, and when the votes decide (wire rules, section 12.3). Names and counts only; no clock.
//!
//! Every vote obeys the policy, one that cancels the request too: refusing what an agent may do is a decision like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The name under which a vote to cancel is counted. No agent can offer an option of that id.
pub(crate) const CANCELLED: &str = "__cancelled__";

/// How the questions of agents are put to the vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mediation {
    /// Who decides.
    pub policy: Policy,
    /// Milliseconds from the question after which it is denied; none lets it wait for as long as its turn runs.
    pub response_timeout_ms: Option<u64>,
}

/// Who decides what an agent asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The first valid vote, whosever it is.
    #[default]
    FirstResponder,
    /// The client whose prompt it is; anybody where the prompt, or the question, is nobody's.
    Designated,
    /// So many of the clients that were registered when the agent asked as must agree.
    Consensus {
        /// Votes for one option that decide; without it more than half of those clients.
        quorum: Option<NonZeroUsize>,
    },
    /// Anybody whose connection comes from this machine.
    LocalOnly,
}

impl Policy {
    /// The word on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstResponder => "first-responder",
            Self::Designated => "designated",
            Self::Consensus { .. } => "consensus",
            Self::LocalOnly => "local-only",
        }
    }
}

/// Whoever votes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Voter {
    /// The client, if it says who it is. It is registered.
    pub client_id: Option<Arc<str>>,
    /// Its connection comes from this machine.
    pub is_local: bool,
}

/// Why a vote does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// It is for other clients to decide.
    DesignatedMismatch,
    /// It is for clients on this machine to decide.
    RemoteNotAllowed,
}

impl Forbidden {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DesignatedMismatch => "designated_mismatch",
            Self::RemoteNotAllowed => "remote_not_allowed",
        }
    }
}

/// How far a vote of several has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) received: usize,
    /// Votes that the foremost option still needs.
    pub(crate) needed: usize,
    pub(crate) quorum: usize,
    /// Votes by option.
    pub(crate) by_option: BTreeMap<String, usize>,
}

/// What a vote does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// It decides for its option.
    Decides,
    /// It counts, and decides nothing yet.
    Counts(Tally),
    /// Its voter has voted before, and nobody votes twice.
    Repeats,
    /// It does not count.
    Forbidden(Forbidden),
}

/// The vote on one question.
#[derive(Debug)]
pub(crate) enum Ballot {
    Anybody,
    Local,
    /// One client; `None` once it is gone.
    Only(Option<Arc<str>>),
    Several(Several),
}

/// A vote of several clients.
#[derive(Debug)]
pub(crate) struct Several {
    quorum: usize,
    /// Clients that have not voted.
    awaited: BTreeSet<Arc<str>>,
    /// Clients that have, and for what.
    cast: BTreeMap<Arc<str>, String>,
}

impl Ballot {
    /// The vote on a question within the prompt of `originator`, while `registered` are the session's clients.
    pub(crate) fn new(policy: Policy, originator: Option<&Arc<str>>, registered: BTreeSet<Arc<str>>) -> Self {
        match (policy, originator) {
            (Policy::FirstResponder, _) | (Policy::Designated, None) => Self::Anybody,
            (Policy::Designated, Some(client)) => Self::Only(registered.contains(client).then(|| client.clone())),
            (Policy::LocalOnly, _) => Self::Local,
            (Policy::Consensus { quorum }, _) => {
                let majority = registered.len() / 2 + 1;
                let quorum = quorum.map_or(majority, NonZeroUsize::get);
                Self::Several(Several { quorum, awaited: registered, cast: BTreeMap::new() })
            }
        }
    }

    /// Takes a vote for an option, or for [`CANCELLED`].
    pub(crate) fn cast(&mut self, voter: &Voter, choice: &str) -> Cast {
        match self {
            Self::Anybody => Cast::Decides,
            Self::Local if voter.is_local => Cast::Decides,
            Self::Local => Cast::Forbidden(Forbidden::RemoteNotAllowed),
            Self::Only(client) if client.is_some() && *client == voter.client_id => Cast::Decides,
            Self::Only(_) => Cast::Forbidden(Forbidden::DesignatedMismatch),
            Self::Several(several) => several.cast(voter.client_id.as_ref(), choice),
        }
    }

    /// A client is gone, and its vote will not come. What it has voted stays.
    pub(crate) fn leave(&mut self, client_id: &str) {
        match self {
            Self::Only(client) if client.as_deref() == Some(client_id) => *client = None,
            Self::Several(several) => {
                several.awaited.remove(client_id);
            }
            Self::Anybody | Self::Local | Self::Only(_) => {}
        }
    }

    /// Whether the votes that may still come can decide.
    pub(crate) fn can_decide(&self) -> bool {
        match self {
            Self::Anybody | Self::Local => true,
            Self::Only(client) => client.is_some(),
            Self::Several(several) => several.foremost() + several.awaited.len() >= several.quorum,
        }
    }
}

impl Several {
    fn cast(&mut self, client: Option<&Arc<str>>, choice: &str) -> Cast {
        let Some(client) = client else { return Cast::Forbidden(Forbidden::DesignatedMismatch) };
        if self.cast.contains_key(client) {
            return Cast::Repeats;
        }
        if !self.awaited.remove(client) {
            return Cast::Forbidden(Forbidden::DesignatedMismatch);
        }
        self.cast.insert(client.clone(), choice.to_owned());
        let votes = self.cast.values().filter(|cast| *cast == choice).count();
        if votes >= self.quorum { Cast::Decides } else { Cast::Counts(self.tally()) }
    }

    fn by_option(&self) -> BTreeMap<String, usize> {
        let mut by_option = BTreeMap::new();
        for choice in self.cast.values() {
            *by_option.entry(choice.clone()).or_default() += 1;
        }
        by_option
    }

    /// Votes for the option that has most.
    fn foremost(&self) -> usize {
        self.by_option().into_values().max().unwrap_or_default()
    }

    fn tally(&self) -> Tally {
        let (quorum, foremost) = (self.quorum, self.foremost());
        Tally {
            received: self.cast.len(),
            needed: quorum.saturating_sub(foremost),
            quorum,
            by_option: self.by_option(),
        }
    }
}
