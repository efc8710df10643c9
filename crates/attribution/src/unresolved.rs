//! The prompts that stay open after a load, and what can be said of each.

use ledger::Reading;

use crate::admission::open_admissions;
use crate::reconcile::{Plan, Reconciliation};

/// The reason for a prompt whose ending is known and could not be written down.
const LEDGER_UNWRITABLE: &str = "ledger_unwritable";

/// The reason for a prompt that nobody has judged.
const NOT_JUDGED: &str = "not_judged";

/// A prompt that stays open.
#[derive(Debug, Clone, PartialEq)]
pub struct Unresolved {
    /// The prompt.
    pub prompt_id: String,
    /// Why nothing is said of its ending: the name of a [`Withheld`](crate::Withheld), `ledger_unwritable`, or `not_judged`.
    pub reason: &'static str,
    /// When somebody wished it cancelled, in epoch milliseconds; none when nobody did.
    pub wished_at_ms: Option<f64>,
}

/// The prompts that a ledger leaves open, by itself: where a session is brought back without a look at its transcript.
#[must_use]
pub fn unjudged(reading: &Reading) -> Vec<Unresolved> {
    let wishes = reading.open_wishes();
    let wished_at_ms = |id: &str| wishes.iter().find(|wish| wish.prompt_id == id).map(|wish| wish.at_ms);
    let open = open_admissions(&reading.records).into_iter();
    open.map(|open| Unresolved {
        reason: NOT_JUDGED,
        wished_at_ms: wished_at_ms(&open.prompt_id),
        prompt_id: open.prompt_id,
    })
    .collect()
}

impl Plan {
    /// The prompts that stay open after the plan was applied with this outcome, in the order in which they first appear. Of a
    /// ledger that cannot be read nobody knows any.
    #[must_use]
    pub fn unresolved(&self, done: &Reconciliation) -> Vec<Unresolved> {
        let Some(reading) = &self.reading else { return Vec::new() };
        let wishes = reading.open_wishes();
        let reason = match (&done.failure, done.withheld) {
            (Some(_), _) | (None, None) => LEDGER_UNWRITABLE,
            (None, Some(withheld)) => withheld.as_str(),
        };
        let is_settled = |id: &str| done.appended.iter().any(|record| record.prompt_id == id);
        let open = open_admissions(&reading.records).into_iter().filter(|open| !is_settled(&open.prompt_id));
        let unresolved = open.map(|open| {
            let wish = wishes.iter().find(|wish| wish.prompt_id == open.prompt_id);
            let is_known = self.verdict.settled.iter().any(|settled| settled.prompt_id == open.prompt_id);
            // Where the write failed, what the plan withheld keeps its own reason.
            let withheld = self.verdict.withheld.filter(|_| done.failure.is_some() && !is_known);
            Unresolved {
                reason: withheld.map_or(reason, |withheld| withheld.as_str()),
                wished_at_ms: wish.map(|wish| wish.at_ms),
                prompt_id: open.prompt_id,
            }
        });
        unresolved.collect()
    }
}
