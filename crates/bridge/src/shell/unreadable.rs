//! What the agent wrote and nobody could read.
//!
//! Its host reads it before the daemon does, says so, and ends the turn whose answer it may have been. A line that only the daemon cannot read, such
//! as one that the host has made longer than a line may be, is judged by the same rules here.

use acp::{FrameError, NotAMessage, RequestId, Unreadable};
use tracing::warn;

use super::live::{Asked, Live, State};
use crate::input::Input;
use crate::limits::UNREADABLE_WARNINGS_MAX;
use crate::outcome::Answer;

/// Takes a line that is no message.
pub(super) fn take(live: &Live, line: &[u8], reason: NotAMessage, at_ms: u64) {
    let mut state = live.state.lock();
    state.oddities.skipped.add(reason);
    if let Some(lost) = Unreadable::of(line, reason) {
        warn_of(live, &mut state, &reason);
        let input = meaning(&mut state, &lost);
        live.step_locked(&mut state, input, at_ms);
    }
}

/// Takes a line that was lost because it is too long.
pub(super) fn take_lost(live: &Live, error: FrameError, at_ms: u64) {
    let FrameError::TooLong { was_answer, .. } = error;
    let mut state = live.state.lock();
    warn_of(live, &mut state, &error);
    let input = meaning(&mut state, &Unreadable::too_long(was_answer));
    live.step_locked(&mut state, input, at_ms);
}

/// The host says that there was something.
pub(super) fn told(live: &Live, state: &mut State) -> Input {
    warn_of(live, state, &"its host says so");
    Input::Unreadable
}

/// The answer to the prompt that the agent has, where it may have been that.
fn meaning(state: &mut State, lost: &Unreadable) -> Input {
    let is_prompt = |about: &Asked| matches!(about, Asked::Prompt(_));
    let answered = state.asked.iter().map(|(number, about)| (RequestId::from(number), about));
    let answered = answered.filter(|(id, about)| is_prompt(about) && lost.may_answer(id)).map(|(id, _)| id).next();
    match answered.and_then(|id| state.asked.take(&id)) {
        Some(Asked::Prompt(prompt_id)) => Input::Settled { prompt_id, answer: Answer::unreadable() },
        _ => Input::Unreadable,
    }
}

/// An agent may write any number of them.
fn warn_of(live: &Live, state: &mut State, why: &dyn std::fmt::Display) {
    state.oddities.unreadable += 1;
    if state.oddities.unreadable <= UNREADABLE_WARNINGS_MAX {
        warn!(session = live.id, %why, "the agent wrote something that cannot be read and may have been words of an answer");
    }
}
