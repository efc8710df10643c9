//! The answer of a load about what happened before: the history that it read, or what a live session is told of (wire rules,
//! section 7.3).

use std::sync::Arc;

use bridge::{Part, Session, Told};
use bytes::Bytes;
use transcript::pages::{Direction, PageRequest, page};

use crate::clock::now_ms;
use crate::history::Replay;
use crate::limits::PAGE_TRIES;
use crate::options::ServeOptions;
use crate::pieces::Array;
use crate::refusal::Refusal;
use crate::summary::reduced;
use crate::tasks::blocking;
use crate::wire::{LeftOut, history_truncated, page_frame};
use crate::workspace::Workspace;

/// What happened before the caller came, in two parts, and up to which event.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    compacted: Vec<Bytes>,
    live: Vec<Bytes>,
    /// The event behind which a stream goes on.
    pub(crate) last_event_id: u64,
    pub(crate) has_active_prompt: bool,
    /// Of a page: whether there are older records.
    pub(crate) has_more: bool,
    /// Of the page of a cold load: the oldest record that was looked at.
    pub(crate) anchor: Option<String>,
}

/// Which parts are wanted in their reduced form.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Summaries {
    pub(crate) compacted: bool,
    pub(crate) live: bool,
}

impl Replayed {
    /// The history that a cold load has read.
    pub(crate) fn cold(replay: &Replay, last_event_id: u64) -> Self {
        Self {
            compacted: replay.gap.iter().chain(&replay.frames).cloned().collect(),
            live: Vec::new(),
            last_event_id,
            // It is answered for as it came back, whoever has found it since.
            has_active_prompt: false,
            has_more: replay.page.is_some(),
            anchor: replay.page.as_ref().and_then(|page| page.anchor.clone()),
        }
    }

    /// What a live session is told of.
    pub(crate) fn attached(told: Told, options: &ServeOptions) -> Self {
        let (limits, at_ms) = (&options.limits, now_ms());
        let turns = LeftOut { bytes_max: limits.compacted_replay_max_bytes, events_max: None };
        let journal = LeftOut { bytes_max: limits.journal_max_bytes, events_max: Some(limits.journal_max_events) };
        Self {
            compacted: complete(told.turns, turns, at_ms),
            live: complete(told.journal, journal, at_ms),
            last_event_id: told.last_event_id,
            has_active_prompt: told.has_active_prompt,
            ..Self::default()
        }
    }

    /// The newest `records_max` records of an idle session instead of what it is told of. None when it runs a prompt, or does not
    /// keep still while its transcript is read: what is written already would be seen once more as an event.
    ///
    /// # Errors
    /// As a page of the transcript.
    pub(crate) async fn page(
        workspace: &Arc<Workspace>,
        session: &Session,
        records_max: usize,
    ) -> Result<Option<Self>, Refusal> {
        for _ in 0..PAGE_TRIES {
            let before = session.last_event_id();
            if session.status().has_active_prompt {
                return Ok(None);
            }
            let path = workspace.layout.transcript(session.id());
            let read = move || page(&path, PageRequest { direction: Direction::Backward, records_max, cursor: None });
            let read = blocking(read).await.ok_or_else(Refusal::internal)?;
            let page = read.map_err(|error| {
                tracing::warn!(session = session.id(), %error, "transcript cannot be paged");
                Refusal::of_transcript(session.id(), &error)
            })?;
            let told = session.told();
            if told.last_event_id == before && !told.has_active_prompt {
                let has_more = page.has_more();
                let compacted = page.frames.into_iter().map(|frame| page_frame(&frame.update).into()).collect();
                let live = Self::attached(told, &workspace.options).live;
                return Ok(Some(Self { compacted, live, last_event_id: before, has_more, ..Self::default() }));
            }
        }
        Ok(None)
    }

    /// The two arrays of the answer.
    pub(crate) async fn arrays(self, summaries: Summaries) -> Option<[Array; 2]> {
        let (compacted, live) = (self.compacted, self.live);
        let shorten = |frames: Vec<Bytes>, is_wanted: bool| {
            if is_wanted { frames.into_iter().map(reduced).collect() } else { frames }
        };
        let work = move || (shorten(compacted, summaries.compacted), shorten(live, summaries.live));
        // To shorten is to read all of it.
        let is_work = summaries.compacted || summaries.live;
        let (compacted, live) = if is_work { blocking(work).await? } else { work() };
        Some([("compactedReplay", compacted), ("liveJournal", live)])
    }
}

/// The frames of a part, and before them what is to be said of those that are left out.
fn complete(part: Part, bounds: LeftOut, at_ms: u64) -> Vec<Bytes> {
    let mut frames = part.frames;
    if part.left_out > 0 {
        let said = history_truncated(part.left_out, part.left_out_turns, frames.len(), bounds, at_ms);
        frames.insert(0, said.into());
    }
    frames
}
