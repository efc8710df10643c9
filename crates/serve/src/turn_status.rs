//! What a poll says: live entry, overlay, persisted record and ledger merged into one answer. Pure; the sources are handed in.
//!
//! Precedence (turn status seed; evidence rules, section 7): a live entry whose outcome is not published; else the overlay merged
//! with the transcript's record; else the record; else the ledger's terminal; else nothing is known.

use bridge::limits::{CODE_UNITS_MAX, MESSAGE_UNITS_MAX};
use bridge::{Clipped, Ended, FlushOrigin, InputWritten, Terminal};
use transcript::{TurnResult, TurnState};

/// The code of a turn that went down with its daemon (ledger seed).
const DAEMON_LOST: &str = "daemon_lost";

/// Merges what the overlay and the transcript know of one prompt.
///
/// The overlay's outcome stays and takes the record's texts; only when the overlay holds an error and the record does not, the
/// record's outcome supersedes: the agent settled after its caller had been released.
pub(crate) fn merged(overlay: Option<Ended>, record: Option<TurnResult>) -> Option<Ended> {
    match (overlay, record.map(persisted)) {
        (None, record) => record,
        (overlay, None) => overlay,
        (Some(overlay), Some(record)) if is_error(&overlay) && !is_error(&record) => {
            Some(Ended { prompt_text: overlay.prompt_text.or(record.prompt_text.clone()), ..record })
        }
        (Some(overlay), Some(record)) => Some(Ended {
            prompt_text: overlay.prompt_text.or(record.prompt_text),
            result_text: record.result_text.or(overlay.result_text),
            partial_text: record.partial_text.or(overlay.partial_text),
            originator: overlay.originator.or(record.originator),
            ..overlay
        }),
    }
}

fn is_error(ended: &Ended) -> bool {
    matches!(ended.terminal, Terminal::Error { .. })
}

/// Which prompt is the current one when none is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Newest {
    /// The one that overlay and transcript both name, or there is only one of them.
    Agreed,
    /// The transcript's, another one than the overlay's and later.
    Recorded,
    /// The overlay's, another one than the transcript's and not earlier.
    Remembered,
}

/// Of the overlay's newest and the transcript's newest the one that ended last.
pub(crate) fn newest(overlay: Option<&Ended>, record: Option<&TurnResult>) -> Newest {
    match (overlay, record) {
        (Some(overlay), Some(record)) if overlay.prompt_id != record.prompt_id => {
            if record.ended_at > overlay.ended_at_ms { Newest::Recorded } else { Newest::Remembered }
        }
        (Some(_), None) => Newest::Remembered,
        _ => Newest::Agreed,
    }
}

/// A transcript's record as an ended prompt. It ran, so the agent had its input; when it was admitted is not recorded.
fn persisted(record: TurnResult) -> Ended {
    let text = |text: Option<String>, truncated| text.map(|text| Clipped { text, truncated });
    let terminal = match record.state {
        TurnState::Completed => Terminal::Completed { stop_reason: record.stop_reason.unwrap_or_default() },
        TurnState::Cancelled => Terminal::Cancelled { agent_stop_reason: record.agent_stop_reason },
        TurnState::Error => {
            let (message, code) = record.error.map_or_else(Default::default, |error| (error.message, error.code));
            Terminal::Error { message, code }
        }
    };
    Ended {
        prompt_id: record.prompt_id,
        prompt_text: text(record.prompt_text, record.prompt_text_truncated),
        result_text: text(record.result_text, record.result_truncated),
        partial_text: text(record.partial_text, false),
        queued_at_ms: None,
        started_at_ms: record.started_at,
        ended_at_ms: record.ended_at,
        originator: record.originator_client_id,
        terminal,
        input_written: record.started_at.map(|_| InputWritten::Yes),
        expiry: None,
    }
}

/// The newest terminal of a prompt among a ledger's records, as an ended prompt. None after a rewind: what was written at or before
/// it is on a branch that is gone.
pub(crate) fn from_ledger(records: &[ledger::Record], prompt_id: &str, rewound_at_ms: Option<u64>) -> Option<Ended> {
    let latest = records.iter().rev().find(|record| record.prompt_id == prompt_id)?;
    let ledger::Fact::Terminal { terminal, code, stop_reason } = &latest.fact else { return None };
    let ended_at_ms = millis(latest.at_ms)?;
    if rewound_at_ms.is_some_and(|rewound| ended_at_ms <= rewound) {
        return None;
    }
    let error = |code: Option<&str>, message: &str| Terminal::Error {
        message: message.to_owned(),
        code: code.map(|code| Clipped::new(code, CODE_UNITS_MAX).text),
    };
    let terminal = match terminal {
        ledger::Terminal::Completed => Terminal::Completed { stop_reason: stop_reason.clone().unwrap_or_default() },
        ledger::Terminal::Cancelled => Terminal::Cancelled { agent_stop_reason: None },
        ledger::Terminal::Error => error(code.as_deref(), message_of(code.as_deref())),
        ledger::Terminal::Interrupted => {
            error(code.as_deref().or(Some(DAEMON_LOST)), "the daemon was lost before the prompt completed")
        }
    };
    Some(Ended {
        prompt_id: prompt_id.to_owned(),
        prompt_text: None,
        result_text: None,
        partial_text: None,
        queued_at_ms: None,
        started_at_ms: None,
        ended_at_ms,
        originator: None,
        terminal,
        input_written: None,
        expiry: None,
    })
}

/// The message of an error of which the ledger kept the code. What ends all prompts of a session at once is described as it was
/// then; of anything else the message is not kept, and another one in its place would be a second description.
pub(crate) fn message_of(code: Option<&str>) -> &'static str {
    let origin = code.and_then(FlushOrigin::of_code);
    origin.map_or("the prompt ended with an error whose message is not kept", FlushOrigin::message)
}

/// A finite time of the ledger as whole milliseconds.
fn millis(at_ms: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie within the range")]
    (0.0..9.0e15).contains(&at_ms).then_some(at_ms as u64)
}

/// An error's message and code within their bounds.
pub(crate) fn bounded_error(message: &str, code: Option<&str>) -> (Clipped, Option<Clipped>) {
    (Clipped::new(message, MESSAGE_UNITS_MAX), code.map(|code| Clipped::new(code, CODE_UNITS_MAX)))
}

#[cfg(test)]
mod tests;
