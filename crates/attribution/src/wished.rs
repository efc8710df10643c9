//! What a wish to cancel says of an open prompt (design page of 2026-11-30 on wishes).
//!
//! The wish is on disk before the agent hears of it. So a turn that a crash left open behind a wish is one that nobody waits
//! for any more, and says so; an answer behind a wish may have come before the agent heard, and nothing is said of it.

use ledger::{Record, Wish};

use crate::admission::Admission;
use crate::evidence::Evidence;
use crate::judge::{Basis, Settled, infer_turn};
use crate::withheld::Withheld;

/// The ending of a prompt, once it is known whether its cancel was wished.
pub(crate) fn heeded(inferred: Settled, wishes: &[&Wish]) -> Result<Settled, Withheld> {
    match inferred.basis {
        _ if !is_wished(&inferred.prompt_id, wishes) => Ok(inferred),
        Basis::Answer => Err(Withheld::AnsweredOrCancelled),
        _ => Ok(Settled { fact: Basis::Wish.fact(), basis: Basis::Wish, ..inferred }),
    }
}

/// Of several open prompts the one that ran last, where that is sure and its cancel was wished: its place and its ending. Its
/// stamp is on the last question of the branch, so that what the end of the transcript leaves open is its own turn, whichever
/// prompts wait behind it. Of those nothing is said.
pub(crate) fn among_several(
    records: &[Record],
    wishes: &[&Wish],
    open: &[&Admission],
    evidence: Option<&Evidence>,
    settled: &[Settled],
) -> Option<(usize, Settled)> {
    let asked = |target: &Admission| evidence.is_some_and(|evidence| evidence.asks_last(target));
    let ran = |target: &Admission| is_wished(&target.prompt_id, wishes) && asked(target) && !target.is_readmission;
    let place = open.iter().position(|target| ran(target))?;
    let inferred = infer_turn(records, open[place], evidence, settled).ok()?;
    Some((place, heeded(inferred, wishes).ok()?))
}

fn is_wished(prompt_id: &str, wishes: &[&Wish]) -> bool {
    wishes.iter().any(|wish| wish.prompt_id == prompt_id)
}
