//! Whether what stands behind the armed tail is our turn, and nothing else.

use super::Loss;
use crate::terminal::NATURAL_END;
use crate::{Cause, Evidence, FinalText, Mismatch, Outcome, Recovered, Request};

/// A record behind the armed tail that says something about a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Somebody asked something, also in the middle of a turn.
    User {
        /// The record.
        record_id: String,
        /// The prompt it is stamped with.
        prompt_id: Option<String>,
        /// Whether it is the request's prompt, by its content.
        prompt: PromptSeen,
    },
    /// A turn ended.
    Turn {
        /// The prompt it is stamped with.
        prompt_id: Option<String>,
        /// How.
        turn: TurnSeen,
    },
    /// The history was replaced or taken back here.
    Replaced,
    /// From here on another process writes.
    NewWriter,
}

/// Whether a user record has the content whose hash the request keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptSeen {
    /// It has.
    Same,
    /// It has another one.
    Other,
    /// That cannot be told from the record.
    Untold,
}

/// A turn record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnSeen {
    /// How the turn ended.
    pub state: TurnState,
    /// The agent's word.
    pub stop_reason: Option<String>,
    /// The answer.
    pub text: TextSeen,
    /// The agent has said words that belong to no turn, before this one or behind it.
    pub is_strayed: bool,
    /// Something that the agent wrote in it could not be read, or not exactly.
    pub is_unreadable: bool,
    /// When, in epoch milliseconds.
    pub ended_at_ms: u64,
}

/// The ways in which a turn record says that a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// The agent answered.
    Completed,
    /// A cancel reached the agent.
    Cancelled,
    /// The agent, or the way to it, failed.
    Error,
    /// The session was ended, and the turn with it.
    Closed(Cause),
    /// The agent's answer could not be read.
    Unread,
    /// The agent's process ended: nobody is left to say how its turn did.
    AgentGone,
}

/// The answer, as far as the transcript has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSeen {
    /// There was none.
    None,
    /// All of it.
    Whole(FinalText),
    /// There was one, and not all of it is on record.
    Lost,
}

/// What the records come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading<'a> {
    /// Our turn, whole, and nobody else's record in it.
    Exact(&'a TurnSeen),
    /// A fact does not hold.
    Mismatch(Mismatch),
    /// A turn that nothing but its place ties to us.
    Unstamped,
    /// Nothing that says how our turn ended.
    Lost(Loss),
}

/// How a turn is called that says that it is done and not why.
const REASON_UNTOLD: &str = "unspecified";

/// Reads until our turn ends, or until something stands there that does not belong to it.
pub(super) fn read<'a>(request: &Request, seen: &'a [Seen]) -> Reading<'a> {
    let ours = request.registration.prompt_id.as_str();
    let is_ours = |id: &Option<String>| id.as_deref() == Some(ours);
    let mut asked = false;
    for (place, record) in seen.iter().enumerate() {
        match record {
            Seen::Replaced => return Reading::Lost(Loss::TakenBack),
            Seen::NewWriter => break,
            Seen::User { .. } if asked => return Reading::Mismatch(Mismatch::ExtraUserMessage),
            Seen::User { prompt_id, prompt, .. } if is_ours(prompt_id) => match prompt {
                PromptSeen::Same => asked = true,
                PromptSeen::Other => return Reading::Mismatch(Mismatch::PromptMismatch),
                PromptSeen::Untold => return Reading::Unstamped,
            },
            Seen::User { prompt_id, .. } => {
                return foreign_question(prompt_id.is_some(), seen[place..].iter().any(|later| asks(later, ours)));
            }
            Seen::Turn { prompt_id, turn } if asked && is_ours(prompt_id) => return Reading::Exact(turn),
            Seen::Turn { prompt_id: Some(_), .. } if asked => return Reading::Mismatch(Mismatch::PromptIdMismatch),
            // A turn record without its question, or a question without a stamped turn record.
            Seen::Turn { prompt_id, .. } if is_ours(prompt_id) || prompt_id.is_none() => return Reading::Unstamped,
            // The turn before ours, put on record late.
            Seen::Turn { prompt_id, .. } if *prompt_id == request.registration.baseline.prompt_id => (),
            Seen::Turn { .. } => return Reading::Mismatch(Mismatch::BaselineMoved),
        }
    }
    Reading::Lost(if asked { Loss::Interrupted } else { Loss::NotShown })
}

/// Somebody else's question stands where ours should be the first.
fn foreign_question(is_stamped: bool, ours_follows: bool) -> Reading<'static> {
    match (ours_follows, is_stamped) {
        (true, _) => Reading::Mismatch(Mismatch::ExtraUserMessage),
        (false, true) => Reading::Mismatch(Mismatch::PromptIdMismatch),
        (false, false) => Reading::Unstamped,
    }
}

fn asks(seen: &Seen, ours: &str) -> bool {
    matches!(seen, Seen::User { prompt_id: Some(id), .. } if id == ours)
}

/// What a turn record says, in the words of whoever would have seen it live.
///
/// # Errors
/// What is to be said where that is no outcome: the text should be there and is not, or there was nobody to give one.
pub(super) fn outcome(turn: &TurnSeen) -> Result<Outcome, Recovered> {
    let evidence = Evidence::TranscriptExact;
    Ok(match (turn.state, &turn.text) {
        (TurnState::AgentGone, _) => return Err(Recovered::DaemonLost(Loss::AgentGone)),
        (TurnState::Closed(cause), _) => stopped(turn, cause),
        (TurnState::Cancelled, _) => stopped(turn, Cause::TurnCancelled),
        (TurnState::Error, _) => Outcome::Failed { category: None, evidence },
        (TurnState::Unread, _) => Outcome::Unread { evidence },
        (TurnState::Completed, _) if turn.is_strayed || turn.is_unreadable => Outcome::Ended {
            stop_reason: turn.stop_reason.clone().unwrap_or_else(|| REASON_UNTOLD.to_owned()),
            final_text: None,
            evidence,
            is_strayed: turn.is_strayed,
            is_unreadable: turn.is_unreadable,
        },
        // A turn that ended early has no final message to be lost.
        (TurnState::Completed, TextSeen::Lost) if turn.stop_reason.as_deref() == Some(NATURAL_END) => {
            return Err(Recovered::FinalTextUnavailable);
        }
        (TurnState::Completed, text) => {
            let stop_reason = turn.stop_reason.clone().unwrap_or_else(|| REASON_UNTOLD.to_owned());
            let final_text = match text {
                TextSeen::Whole(text) => Some(text.clone()),
                TextSeen::None | TextSeen::Lost => None,
            };
            Outcome::Ended { stop_reason, final_text, evidence, is_strayed: false, is_unreadable: false }
        }
    })
}

fn stopped(turn: &TurnSeen, cause: Cause) -> Outcome {
    Outcome::Stopped { cause, stop_reason: turn.stop_reason.clone(), evidence: Some(Evidence::TranscriptExact) }
}
