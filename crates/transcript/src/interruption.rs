//! How the model's history was left.

use std::io;

use serde_json::Value;

use crate::branch::Transcript;
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

/// The same with the parts themselves, for a person to look at.
#[derive(Debug, Clone, PartialEq)]
pub enum Classified {
    /// Nothing was left open.
    None,
    /// A prompt was left open.
    Prompt {
        /// Its parts, answers of tools first, so that they can be sent again.
        parts: Vec<Value>,
    },
    /// Calls were left open.
    Turn {
        /// The id and the function's name of each.
        calls: Vec<(String, String)>,
    },
}

impl Transcript {
    /// Classifies the end of a history and reads the parts that were left open from the file.
    pub fn classified(&self, entries: &[Message]) -> io::Result<Classified> {
        match classify(entries) {
            Interruption::None => Ok(Classified::None),
            Interruption::Turn { calls } => {
                let owned = |call: DanglingCall<'_>| (call.call_id.to_owned(), call.name.to_owned());
                Ok(Classified::Turn { calls: calls.into_iter().map(owned).collect() })
            }
            Interruption::Prompt { entries } => {
                let mut parts = self.parts(entries)?;
                // The sort is stable, so that within each kind the order stays.
                parts.sort_by_key(|part| part.get("functionResponse").is_none());
                Ok(Classified::Prompt { parts })
            }
        }
    }

    fn parts(&self, entries: &[Message]) -> io::Result<Vec<Value>> {
        let mut parts = Vec::new();
        for span in entries.iter().flat_map(|entry| &entry.spans) {
            let message = self.value(span, u64::MAX)?;
            let found = message.as_ref().and_then(|message| message.get("parts")?.as_array());
            parts.extend(found.into_iter().flatten().cloned());
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests;
