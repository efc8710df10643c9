//! How a session was left: whether its last turn came to an end.

use std::path::Path;

use crate::branch::{Transcript, WINDOW_BYTES};
use crate::interruption::{Interruption, classify};
use crate::projection::HistoryTail;
use crate::snapshot::{PageError, Unavailable};
use crate::turn_result::TURN_RESULT_SUBTYPE;

/// How far back the end of a history is looked for, in bytes from the end of the file. Fifty entries have a few megabytes.
const REACH_BYTES: u64 = 64 * 1024 * 1024;

/// What was open when the last record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Nothing: the last turn ended, well or not, or there is none.
    Nothing,
    /// The model was asked, and did not answer.
    Prompt,
    /// The model called functions, and nobody answered.
    Turn,
}

/// Looks at the end of the active branch. A turn whose result is on record is over, whatever its end looks like: one that was
/// cancelled or failed ends in a question too. Without a transcript nothing is open.
///
/// # Errors
/// When the system refuses, when the file holds records of several sessions or was cut meanwhile, and when its history cannot be read.
pub fn how_left(path: &Path) -> Result<Left, PageError> {
    let failed = |cause| PageError::of(path, cause);
    let Some(transcript) = Transcript::open(path).map_err(failed)? else { return Ok(Left::Nothing) };
    let mut branch = transcript.branch_within(WINDOW_BYTES, REACH_BYTES).map_err(failed)?;
    let mut history = HistoryTail::default();
    let (mut is_over, mut has_said) = (false, false);
    while !history.is_complete() && !is_over {
        let Some(record) = branch.next_record().map_err(failed)? else {
            history.reach_the_beginning();
            break;
        };
        has_said |= record.is_material();
        is_over = !has_said && record.is(TURN_RESULT_SUBTYPE);
        history.push(&record);
    }
    if branch.is_mixed() {
        return Err(PageError::unavailable(path, Unavailable::TwoSessions));
    }
    if is_over {
        return Ok(Left::Nothing);
    }
    let unreadable = || failed(std::io::Error::new(std::io::ErrorKind::InvalidData, "its history cannot be read"));
    let history = history.finish().map_err(|_| unreadable())?;
    // What the end of a turn for a goal has closed is open no more.
    let open = &history.entries[history.closed_by_goal.min(history.entries.len())..];
    Ok(match classify(open) {
        Interruption::None => Left::Nothing,
        Interruption::Prompt { .. } => Left::Prompt,
        Interruption::Turn { .. } => Left::Turn,
    })
}
