//! How the model's history was left.

use crate::record::{Message, Role};

/// How far back into a history the classifier looks, in entries (evidence rules, section 3).
pub const HISTORY_TAIL_ENTRIES: usize = 50;

/// What was left open at the end of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interruption<'a> {
    /// Nothing.
    None,
    /// The model was asked, and did not answer.
    Prompt {
        /// What it was asked, oldest first.
        entries: &'a [Message],
    },
    /// The model called functions, and nobody answered.
    Turn {
        /// The calls, in order.
        calls: Vec<DanglingCall<'a>>,
    },
}

/// A call that was never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DanglingCall<'a> {
    /// The id its answer would carry.
    pub call_id: &'a str,
    /// The function's name, or `unknown`.
    pub name: &'a str,
}

/// Classifies the end of a history (evidence rules, section 3). Calls without an id are no business of its: nobody could
/// answer them.
#[must_use]
pub fn classify(entries: &[Message]) -> Interruption<'_> {
    match entries.last().map(|last| last.role) {
        Some(Role::User) => classify_prompt(entries),
        Some(Role::Model) => classify_turn(entries),
        Some(Role::Other) | None => Interruption::None,
    }
}

fn classify_prompt(entries: &[Message]) -> Interruption<'_> {
    let is_open = |entry: &&Message| entry.role == Role::User && !entry.is_reminder();
    let count = entries.iter().rev().take_while(is_open).count();
    let entries = &entries[entries.len() - count..];
    if entries.iter().all(|entry| entry.parts == 0) { Interruption::None } else { Interruption::Prompt { entries } }
}

fn classify_turn(entries: &[Message]) -> Interruption<'_> {
    let calls = entries.last().into_iter().flat_map(|last| &last.calls);
    let calls: Vec<_> = calls
        .filter_map(|call| {
            Some(DanglingCall { call_id: call.id.as_deref()?, name: call.name.as_deref().unwrap_or("unknown") })
        })
        .collect();
    if calls.is_empty() { Interruption::None } else { Interruption::Turn { calls } }
}
