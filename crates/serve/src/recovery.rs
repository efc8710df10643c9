//! Whether the last turn of an idle session came to an end (wire rules, section 7.4).

use std::sync::Arc;

use bridge::Session;
use transcript::{Left, how_left};

use crate::refusal::Refusal;
use crate::tasks::blocking;
use crate::workspace::Workspace;

/// How the conversation of a live session was left. While a prompt runs or waits nothing is: what looks open is being worked on.
///
/// # Errors
/// When the transcript cannot be read: that is no word about how it ends.
pub(crate) async fn how_it_was_left(workspace: &Arc<Workspace>, session: &Session) -> Result<Left, Refusal> {
    let is_idle = || !session.status().has_active_prompt;
    let before = session.last_event_id();
    if !is_idle() {
        return Ok(Left::Nothing);
    }
    let path = workspace.layout.transcript(session.id());
    let left = blocking(move || how_left(&path)).await.ok_or_else(Refusal::internal)?;
    let left = left.map_err(|error| {
        tracing::warn!(session = session.id(), %error, "transcript cannot be read");
        Refusal::of_transcript(session.id(), &error)
    })?;
    // What was written meanwhile was written for a prompt that began meanwhile.
    let kept_still = is_idle() && session.last_event_id() == before;
    Ok(if kept_still { left } else { Left::Nothing })
}

/// The word for it on the wire.
pub(crate) fn word(left: Left) -> &'static str {
    match left {
        Left::Nothing => "clean",
        Left::Prompt => "interrupted_prompt",
        Left::Turn => "interrupted_turn",
    }
}
