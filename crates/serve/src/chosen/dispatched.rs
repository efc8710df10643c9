//! Whether a prompt whose admission is in no ledger was handed to the agent all the same: its ledger line may have been refused by a
//! disk that took the claim. The transcript says so, as the host stamps what it hands on.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use transcript::{Payload, REWIND_SUBTYPE, Transcript, WINDOW_BYTES};

/// How far back is looked, in bytes of the transcript: a third of a second, once for a session that has such a claim.
const REACH_BYTES: u64 = 64 * 1024 * 1024;

/// What a transcript says of some ids.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dispatched {
    /// Those that it shows to have been handed on.
    pub(super) shown: HashSet<String>,
    /// It was seen whole, so that it shows all.
    pub(super) is_whole: bool,
}

impl Dispatched {
    /// Whether an id may have been handed on. What was not seen whole leaves it open.
    pub(super) fn may_have(&self, prompt_id: &str) -> bool {
        !self.is_whole || self.shown.contains(prompt_id)
    }
}

/// Looks for `ids` on the active branch. Blocks.
///
/// # Errors
/// When the transcript cannot be read.
pub(super) fn dispatched(path: &Path, ids: &HashSet<String>) -> io::Result<Dispatched> {
    let mut found = Dispatched { shown: HashSet::new(), is_whole: true };
    let Some(transcript) = Transcript::open(path)? else { return Ok(found) };
    let mut branch = transcript.branch_within(WINDOW_BYTES, REACH_BYTES)?;
    let mut was_rewound = false;
    while let Some(record) = branch.next_record()? {
        was_rewound |= record.is_note(REWIND_SUBTYPE);
        let named = match record.payload {
            Payload::TurnResult { prompt_id } => prompt_id,
            _ => record.prompt_id,
        };
        found.shown.extend(named.filter(|id| ids.contains(id)));
    }
    // What a rewind has taken back ran all the same, and is not on the branch.
    found.is_whole = !branch.is_cut() && !branch.is_out_of_reach() && !was_rewound;
    Ok(found)
}
