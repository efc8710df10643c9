//! How a poll finds its answer: memory first, then the disk, and memory again after every look at the disk, as the state may have
//! moved meanwhile and a look that failed must not answer for it either (turn status seed).

use bridge::{Ended, LivePrompt, TurnView};
use transcript::TurnResult;

use crate::polled::Seen;
use crate::refusal::Refusal;
use crate::turn_status::{Newest, merged, newest};

#[cfg(test)]
mod tests;
mod whole;

pub(crate) use whole::{AnswerSources, FoundAnswer, whole_answer};

/// Where answers come from.
pub(crate) trait Sources {
    /// What the session knows of a prompt, or of the current one.
    fn view(&self, prompt: Option<&str>) -> TurnView;
    /// Whether the session's answer contains all that the transcript has to say about it.
    fn is_settled(&self, ended: &Ended) -> bool;
    /// What the transcript holds of a prompt, or of the newest one.
    async fn record(&self, prompt: Option<&str>) -> Result<Scanned, Refusal>;
    /// What the ledger holds of a prompt.
    async fn ledger(&self, prompt: &str) -> Option<Ended>;
    /// Takes back into memory what was found, `changed` if the transcript had a part in it.
    fn keep(&self, ended: &Ended, seen: Seen, changed: bool);
}

/// What a look at the transcript gave.
#[derive(Default)]
pub(crate) struct Scanned {
    pub(crate) found: Option<TurnResult>,
    /// Its length before it was read.
    pub(crate) transcript_bytes: u64,
}

/// What a poll found.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// The prompt is unfinished.
    Live(LivePrompt),
    /// It is over.
    Ended(Ended),
    /// It is over, and only the ledger still knows.
    Ledger(Ended),
    /// It is not known.
    Nothing,
}

/// What is known of one prompt now.
///
/// # Errors
/// When the transcript cannot be searched and nothing else knows the prompt: that does not show that there is nothing.
pub(crate) async fn of_prompt(sources: &impl Sources, prompt: &str) -> Result<Found, Refusal> {
    if let Some(found) = from_memory(sources, sources.view(Some(prompt))) {
        return Ok(found);
    }
    let (record, refusal) = match sources.record(Some(prompt)).await {
        Ok(record) => (record, None),
        Err(refusal) => (Scanned::default(), Some(refusal)),
    };
    let view = sources.view(Some(prompt));
    if let Some(live) = view.live {
        return Ok(Found::Live(live));
    }
    if let Some(ended) = combine(sources, view.overlay, record) {
        return Ok(Found::Ended(ended));
    }
    let from_ledger = sources.ledger(prompt).await;
    let view = sources.view(Some(prompt));
    match (view.live, view.overlay, from_ledger, refusal) {
        (Some(live), ..) => Ok(Found::Live(live)),
        (None, Some(ended), ..) => Ok(Found::Ended(ended)),
        (None, None, Some(ended), _) => Ok(Found::Ledger(ended)),
        (None, None, None, Some(refusal)) => Err(refusal),
        (None, None, None, None) => Ok(Found::Nothing),
    }
}

/// What is known of the running prompt, else the next one, else the one that ended last.
///
/// # Errors
/// When the transcript cannot be searched and the session remembers no prompt.
pub(crate) async fn of_current(sources: &impl Sources) -> Result<Found, Refusal> {
    if let Some(found) = from_memory(sources, sources.view(None)) {
        return Ok(found);
    }
    let read = sources.record(None).await;
    let TurnView { live, overlay } = sources.view(None);
    if let Some(live) = live {
        return Ok(Found::Live(live));
    }
    let last = match read {
        Err(refusal) if overlay.is_none() => return Err(refusal),
        read => read.unwrap_or_default(),
    };
    let ended = match newest(overlay.as_ref(), last.found.as_ref()) {
        Newest::Agreed => combine(sources, overlay, last),
        Newest::Recorded => {
            let prompt = last.found.as_ref().map(|record| record.prompt_id.clone());
            combine(sources, sources.view(prompt.as_deref()).overlay, last)
        }
        Newest::Remembered => return Ok(of_remembered(sources, overlay).await),
    };
    Ok(ended.map_or(Found::Nothing, Found::Ended))
}

/// The same once it is the session that remembers the newest prompt: the transcript may know more of that one.
async fn of_remembered(sources: &impl Sources, overlay: Option<Ended>) -> Found {
    let Some(prompt) = overlay.map(|ended| ended.prompt_id) else { return Found::Nothing };
    let record = sources.record(Some(&prompt)).await.unwrap_or_default();
    let TurnView { live, overlay } = sources.view(None);
    if let Some(live) = live {
        return Found::Live(live);
    }
    // Another one may have ended meanwhile, of which nothing was read; the next poll reads that.
    let is_its = overlay.as_ref().is_some_and(|ended| ended.prompt_id == prompt);
    let record = if is_its { record } else { Scanned::default() };
    combine(sources, overlay, record).map_or(Found::Nothing, Found::Ended)
}

/// The answer if no disk can add to it.
fn from_memory(sources: &impl Sources, view: TurnView) -> Option<Found> {
    if let Some(live) = view.live {
        return Some(Found::Live(live));
    }
    let ended = view.overlay?;
    let settled = ended.started_at_ms.is_none() || sources.is_settled(&ended);
    settled.then_some(Found::Ended(ended))
}

/// Merges what memory and disk know, and writes the answer back into memory.
fn combine(sources: &impl Sources, overlay: Option<Ended>, record: Scanned) -> Option<Ended> {
    let (seen, changed) = match record.found {
        Some(_) => (Seen::Record, true),
        None => (Seen::Nothing { transcript_bytes: record.transcript_bytes }, false),
    };
    let ended = merged(overlay, record.found)?;
    sources.keep(&ended, seen, changed);
    Some(ended)
}
