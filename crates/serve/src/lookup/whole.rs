//! How the whole answer of a prompt is found: by the order of the poll, with more to read.

use bridge::{Ended, LivePrompt, Terminal, TurnView};
use transcript::Answered;

use crate::refusal::Refusal;
use crate::whole::{Gone, Whole, whole};

#[cfg(test)]
mod tests;

/// Where whole answers come from.
pub(crate) trait AnswerSources {
    /// What the session knows of the prompt.
    fn view(&self) -> TurnView;
    /// What the transcript holds of its end and its answer.
    async fn answered(&self) -> Result<Option<Answered>, Refusal>;
    /// What the ledger holds of it.
    async fn ledger(&self) -> Option<Ended>;
}

/// What was found.
#[derive(Debug)]
pub(crate) enum FoundAnswer {
    /// The prompt is unfinished.
    Live(LivePrompt),
    /// It is over, and this is what there is to give.
    Whole(Whole),
    /// It is not known.
    Nothing,
}

/// What there is of one prompt's answer now. A prompt that ended while the disk was read is looked for once more: what was read is
/// older than its end.
///
/// # Errors
/// When the transcript cannot be searched, and an answer may be in it: that does not show that there is none.
pub(crate) async fn whole_answer(sources: &impl AnswerSources) -> Result<FoundAnswer, Refusal> {
    loop {
        let before = sources.view();
        if let Some(live) = before.live {
            return Ok(FoundAnswer::Live(live));
        }
        let read = sources.answered().await;
        let view = sources.view();
        if let Some(live) = view.live {
            return Ok(FoundAnswer::Live(live));
        }
        if before.overlay.is_none() && view.overlay.is_some() {
            continue;
        }
        let (found, refusal) = match read {
            Ok(found) => (found, None),
            Err(refusal) => (None, Some(refusal)),
        };
        if let Some(whole) = whole(view.overlay, found) {
            return given(whole, refusal);
        }
        let ended = sources.ledger().await;
        let view = sources.view();
        if let Some(live) = view.live {
            return Ok(FoundAnswer::Live(live));
        }
        match (view.overlay, ended, refusal) {
            (Some(_), ..) => {}
            (None, Some(ended), refusal) => return given(from_ledger(ended), refusal),
            (None, None, Some(refusal)) => return Err(refusal),
            (None, None, None) => return Ok(FoundAnswer::Nothing),
        }
    }
}

/// Only a transcript that was searched can show that a text is gone.
fn given(whole: Whole, refusal: Option<Refusal>) -> Result<FoundAnswer, Refusal> {
    match (whole, refusal) {
        (Whole::Expired(..), Some(refusal)) => Err(refusal),
        (whole, _) => Ok(FoundAnswer::Whole(whole)),
    }
}

/// Of the ledger's word the outcome remains, and no text.
fn from_ledger(ended: Ended) -> Whole {
    match ended.terminal {
        Terminal::Completed { .. } => Whole::Expired(ended, Gone::OutOfReach),
        Terminal::Cancelled { .. } | Terminal::Error { .. } => Whole::NoResult(ended, None),
    }
}
