//! What followed from a plan, or cannot follow yet, in the words of the report.

use ledger::Record;
use transcript::Owner;

use super::words::{ending, moment};
use crate::judge::Settled;

/// What is done with the plan that a report tells of.
#[derive(Debug, Default)]
pub(super) enum Sequel {
    /// Nothing: the next load comes to it by itself.
    #[default]
    Planned,
    /// Somebody has the session, so that its files are no last word.
    Live(Option<Owner>),
    /// It was applied, and gave these lines of the ledger.
    Applied(Vec<Record>),
}

impl Sequel {
    /// What stands above everything else.
    pub(super) fn warning(&self) -> Option<String> {
        let Self::Live(owner) = self else { return None };
        let holder = owner.as_ref().map_or_else(
            || "another process".to_owned(),
            |owner| format!("process {} (started {})", owner.pid, moment(owner.started_at as f64)),
        );
        Some(format!("live: {holder} has this session, and nothing of it is settled while that runs"))
    }

    /// Where open prompts stand whose endings the plan gives.
    pub(super) fn settled(&self) -> &'static str {
        match self {
            Self::Applied(appended) if !appended.is_empty() => "resolved",
            Self::Planned | Self::Live(_) | Self::Applied(_) => "resolvable",
        }
    }

    /// A prompt's verdict, as what it is.
    pub(super) fn verdict(&self, verdict: String) -> String {
        match self {
            Self::Live(_) => format!("open; if everything died now, a load would say {verdict}"),
            Self::Planned | Self::Applied(_) => verdict,
        }
    }

    /// What comes of an ending that the plan gives: the label and the text of a row.
    pub(super) fn next(&self, settled: &Settled) -> (&'static str, String) {
        let is_its = |record: &&Record| record.prompt_id == settled.prompt_id;
        match self {
            Self::Planned => ("next", "the next load of the session writes this to the ledger".to_owned()),
            Self::Live(_) => ("next", "nothing, while the session runs: it may yet end otherwise".to_owned()),
            Self::Applied(appended) => match appended.iter().find(is_its) {
                Some(record) => {
                    ("written", format!("to the ledger: {}, at {}", ending(&record.fact), moment(record.at_ms)))
                }
                None => ("next", "it could not be written; the next load of the session tries again".to_owned()),
            },
        }
    }

    /// What to do about a prompt that stays unknown.
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Self::Live(_) => "wait: it may yet end, and be written down by whoever has the session",
            Self::Planned | Self::Applied(_) => {
                "ask whoever sent it, and treat it as unknown: do not send it again without checking what it did"
            }
        }
    }
}
