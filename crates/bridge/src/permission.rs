//! What the agent asks before it acts, and who decides.

use std::collections::VecDeque;
use std::sync::Arc;

use acp::RequestId;

use crate::incoming::Ask;
use crate::limits::{PERMISSIONS_DECIDED_MAX, PERMISSIONS_OPEN_MAX};
use crate::prompt::PromptId;

/// A client's answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// One of the options offered.
    Selected {
        /// The option's id as it was offered.
        option_id: String,
        /// Answers to questions: raw JSON text, passed on beside the outcome.
        answers: Option<String>,
    },
    /// The request is refused as a whole.
    Cancelled,
}

/// How a permission request was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This option.
    Selected {
        /// The option's id.
        option_id: String,
    },
    /// None: a vote, a cancel, or the end of the turn refused it.
    Cancelled,
}

/// What became of a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VoteOutcome {
    /// It decided the request.
    Recorded,
    /// The option was not offered; the request stays open.
    InvalidOption,
    /// The request was decided before.
    AlreadyResolved(Decision),
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
    pub(crate) request_id: Arc<str>,
    pub(crate) created_at_ms: u64,
    pub(crate) prompt_id: Option<PromptId>,
    pub(crate) ask: Ask,
}

/// What is remembered of a decided request.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) request_id: Arc<str>,
    pub(crate) prompt_id: Option<PromptId>,
    pub(crate) decision: Decision,
}

/// What the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
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
    pub(crate) request_id: Arc<str>,
    pub(crate) prompt_id: Option<PromptId>,
    pub(crate) decision: Decision,
    pub(crate) verdict: Verdict,
}

/// Why a vote decided nothing.
#[derive(Debug)]
pub(crate) enum NotDecided<'a> {
    InvalidOption,
    Already(&'a Decided),
    Unknown,
}

impl Verdict {
    pub(crate) fn cancelled(agent_request: RequestId) -> Self {
        Self { agent_request, option: None, answers: None }
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

    /// Lets a vote decide. The first valid one does.
    pub(crate) fn vote(&mut self, request_id: &str, vote: &Vote) -> Result<Resolved, NotDecided<'_>> {
        let Some(place) = self.open.iter().position(|open| *open.request_id == *request_id) else {
            let decided = self.decided.iter().find(|decided| *decided.request_id == *request_id);
            return Err(decided.map_or(NotDecided::Unknown, NotDecided::Already));
        };
        let (decision, option, answers) = match vote {
            Vote::Cancelled => (Decision::Cancelled, None, None),
            Vote::Selected { option_id, answers } => {
                let offered = self.open[place].ask.option_ids.iter().find(|(id, _)| id == option_id);
                let Some((_, raw)) = offered else { return Err(NotDecided::InvalidOption) };
                (Decision::Selected { option_id: option_id.clone() }, Some(raw.clone()), answers.clone())
            }
        };
        let open = self.open.remove(place);
        Ok(self.decide(open, decision, option, answers))
    }

    /// Refuses every open request that the predicate picks, oldest first.
    pub(crate) fn refuse(&mut self, which: impl Fn(&Open) -> bool) -> Vec<Resolved> {
        let (refused, kept) = self.open.drain(..).partition(which);
        self.open = kept;
        let refused: Vec<Open> = refused;
        refused.into_iter().map(|open| self.decide(open, Decision::Cancelled, None, None)).collect()
    }

    pub(crate) fn pending(&self) -> Vec<PendingPermission> {
        let pending = |open: &Open| PendingPermission {
            request_id: open.request_id.to_string(),
            created_at_ms: open.created_at_ms,
            prompt_id: open.prompt_id.as_ref().map(ToString::to_string),
            tool_call: open.ask.tool_call.clone(),
            options: open.ask.options.clone(),
        };
        self.open.iter().map(pending).collect()
    }

    /// Whether the request is or was one of this session's.
    pub(crate) fn knows(&self, request_id: &str) -> bool {
        self.open.iter().any(|open| *open.request_id == *request_id)
            || self.decided.iter().any(|decided| *decided.request_id == *request_id)
    }

    fn decide(&mut self, open: Open, decision: Decision, option: Option<String>, answers: Option<String>) -> Resolved {
        let Open { request_id, prompt_id, ask, .. } = open;
        if self.decided.len() == PERMISSIONS_DECIDED_MAX {
            self.decided.pop_front();
        }
        self.decided.push_back(Decided {
            request_id: request_id.clone(),
            prompt_id: prompt_id.clone(),
            decision: decision.clone(),
        });
        let verdict = Verdict { agent_request: ask.agent_request, option, answers };
        Resolved { request_id, prompt_id, decision, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(request_id: &str, prompt_id: Option<&str>) -> Open {
        Open {
            request_id: request_id.into(),
            created_at_ms: 0,
            prompt_id: prompt_id.map(PromptId::from),
            ask: Ask {
                agent_request: RequestId::string("r"),
                tool_call: "{}".into(),
                options: "[]".into(),
                option_ids: vec![("yes".into(), r#""y\u0065s""#.into())],
            },
        }
    }

    fn select(option_id: &str) -> Vote {
        Vote::Selected { option_id: option_id.into(), answers: None }
    }

    #[test]
    fn the_first_valid_vote_decides_and_the_second_hears_it() {
        let mut permissions = Permissions::default();
        permissions.open(open("q", None));
        assert!(matches!(permissions.vote("q", &select("no")), Err(NotDecided::InvalidOption)));
        let resolved = permissions.vote("q", &select("yes")).unwrap();
        assert_eq!(resolved.decision, Decision::Selected { option_id: "yes".into() });
        let second = permissions.vote("q", &Vote::Cancelled);
        assert!(matches!(second, Err(NotDecided::Already(decided)) if decided.decision == resolved.decision));
    }

    #[test]
    fn the_agent_gets_the_option_as_it_spelled_it() {
        let mut permissions = Permissions::default();
        permissions.open(open("q", None));
        let resolved = permissions.vote("q", &select("yes")).unwrap();
        assert_eq!(resolved.verdict.option.as_deref(), Some(r#""y\u0065s""#));
    }

    #[test]
    fn an_unknown_request_is_unknown_before_and_after_others() {
        let mut permissions = Permissions::default();
        assert!(matches!(permissions.vote("q", &Vote::Cancelled), Err(NotDecided::Unknown)));
        permissions.open(open("p", None));
        assert!(matches!(permissions.vote("q", &Vote::Cancelled), Err(NotDecided::Unknown)));
    }

    #[test]
    fn refusing_takes_only_what_is_picked() {
        let mut permissions = Permissions::default();
        permissions.open(open("q", Some("A")));
        permissions.open(open("p", None));
        let refused = permissions.refuse(|open| open.prompt_id.is_some());
        assert_eq!(refused.len(), 1);
        assert_eq!(*refused[0].request_id, *"q");
        assert_eq!(permissions.pending().len(), 1);
        assert!(permissions.knows("q") && permissions.knows("p"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut permissions = Permissions::default();
        for number in 0..=PERMISSIONS_DECIDED_MAX {
            permissions.open(open(&number.to_string(), None));
            permissions.refuse(|_| true);
        }
        assert!(!permissions.knows("0"));
        assert!(permissions.knows("1"));
    }
}
