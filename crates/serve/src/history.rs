//! What a cold load reads from disk: the transcript's fitness, its replay, the ledger's reconciliation and its terminals.
//! Everything here blocks.

use attribution::Unresolved;
use bridge::Seed;
use bytes::Bytes;
use hyper::StatusCode;
use ledger::{RECENT_TERMINALS_MAX, RECENT_WINDOW_BYTES, Reading, Record, Terminal};
use serde_json::value::RawValue;
use transcript::Absent;
use transcript::display::{Bounds, replay_within};

use crate::clock;
use crate::endings::Terminals;
use crate::refusal::Refusal;
use crate::shelf;
use crate::wire::{LeftOut, history_truncated, prompt_terminal, replay_frame};
use crate::workspace::Workspace;

/// The history of a session as a load reads it.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Event envelopes, numbered in a row up to the number behind which the life's own events begin.
    pub(crate) frames: Vec<Bytes>,
    /// What says that older frames were left out; it has no number.
    pub(crate) gap: Option<Bytes>,
    /// Only so many records were asked for, and there are more.
    pub(crate) page: Option<Page>,
    /// Why there is nothing, when the transcript could not be read.
    pub(crate) error: Option<String>,
}

impl Replay {
    /// What those who attach later are shown of it. That there is more is said to them too, whoever asked for less.
    pub(crate) fn seed(&self) -> Seed {
        let is_whole = self.gap.is_none() && self.page.is_none() && self.error.is_none();
        Seed { frames: self.frames.clone(), left_out: u64::from(!is_whole) }
    }
}

/// Where a page of history begins, when older records exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// The uuid of the oldest record that was looked at.
    pub(crate) anchor: Option<String>,
}

/// Whether the transcript of a session is there and belongs to it.
///
/// # Errors
/// 404 without a usable transcript of this workspace, 409 for an archived one, for two of one session and for one of two sessions.
pub(crate) fn check(workspace: &Workspace, session: &str) -> Result<(), Refusal> {
    let checked = transcript::check(&workspace.layout.transcript(session), session, &workspace.folder);
    let is_archived = workspace.layout.archived_transcript(session).exists();
    let refusal = match checked {
        Err(Absent::NoFile) if is_archived => archived(session),
        // Whichever is read, the other one may be the one that was meant.
        _ if shelf::is_in_conflict(&workspace.layout, session) => Refusal::session_conflict(session),
        Ok(()) => return Ok(()),
        Err(Absent::NoFile | Absent::NoRecord | Absent::ForeignWorkspace) => Refusal::session_not_found(session),
        Err(absent @ Absent::TwoSessions) => {
            Refusal::conflict("transcript_snapshot_unavailable", absent.to_string()).with("sessionId", session)
        }
        Err(absent @ Absent::Unreadable(_)) => {
            tracing::warn!(session, error = %absent, "transcript cannot be read");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "transcript_unreadable", absent.to_string())
                .with("sessionId", session)
        }
    };
    Err(refusal)
}

/// Reads the replay of a session: its last `records_max` records, or as many as fit, numbered behind `beyond`.
pub(crate) fn replay(workspace: &Workspace, session: &str, records_max: Option<usize>, beyond: u64) -> Replay {
    let bytes_max = workspace.options.limits.compacted_replay_max_bytes;
    let bounds = Bounds { bytes_max, records_max: records_max.unwrap_or(usize::MAX) };
    let shown = match replay_within(&workspace.layout.transcript(session), bounds) {
        Ok(shown) => shown,
        Err(error) => {
            tracing::warn!(session, %error, "transcript cannot be shown");
            return Replay { error: Some(error.to_string()), ..Replay::default() };
        }
    };
    // Each update is dropped as soon as it stands in its envelope, so that a replay is held once.
    let frames = shown.frames.into_iter().zip(beyond + 1..);
    let frames: Vec<Bytes> =
        frames.map(|(frame, id)| replay_frame(id, session, &frame.update, frame.at_ms).into()).collect();
    let is_page = shown.is_truncated && records_max.is_some();
    let is_cut = shown.is_truncated && records_max.is_none();
    let bounds = LeftOut { bytes_max, events_max: None };
    Replay {
        // How many there are before the first is not known, as they were not read: at least one.
        gap: is_cut.then(|| history_truncated(1, 0, frames.len(), bounds, clock::now_ms()).into()),
        page: is_page.then_some(Page { anchor: shown.first_record_id }),
        frames,
        error: None,
    }
}

/// Judges what a daemon before us left open, once per cold load, and appends what is certain (ledger seed); gives what stays open.
/// A failure leaves the prompt unknown and the load untouched.
pub(crate) fn reconcile(workspace: &Workspace, session_id: &str) -> Vec<Unresolved> {
    let ledger = workspace.sink.ledger(session_id);
    let transcript = workspace.layout.transcript(session_id);
    let workspace = &workspace.folder;
    let session = attribution::Session { ledger: &ledger, transcript: &transcript, session_id, workspace };
    let plan = attribution::plan(&session);
    let outcome = plan.apply(&ledger, clock::now_ms());
    let unresolved = plan.unresolved(&outcome);
    for record in &outcome.appended {
        tracing::info!(
            session = session_id,
            prompt = record.prompt_id,
            line = record.to_line(),
            "open prompt is settled"
        );
    }
    match outcome.withheld {
        None | Some(attribution::Withheld::NoDangling) => {}
        Some(reason) => tracing::info!(session = session_id, reason = reason.as_str(), "open prompt stays unknown"),
    }
    if let Some(error) = outcome.failure {
        tracing::warn!(session = session_id, %error, "verdict cannot be appended; the prompt stays unknown");
    }
    unresolved
}

/// What a daemon before us left open in a session that is brought back without being judged: a resume judges nothing, and whoever loads
/// the session later is not to take that for nothing being open. Of a ledger that cannot be read nobody knows any.
pub(crate) fn unjudged(workspace: &Workspace, session: &str) -> Vec<Unresolved> {
    match workspace.sink.ledger(session).read() {
        Ok(reading) => attribution::unjudged(&reading),
        Err(error) => {
            tracing::warn!(session, %error, "ledger cannot be read; what it leaves open is not told");
            Vec::new()
        }
    }
}

/// The ledger's last terminals, in file order. Blocks.
pub(crate) fn terminals(workspace: &Workspace, session: &str) -> Terminals {
    let ledger = workspace.layout.ledger(session);
    workspace.endings.of(session, &ledger, || read_terminals(workspace, session))
}

fn read_terminals(workspace: &Workspace, session: &str) -> Vec<Box<RawValue>> {
    match workspace.sink.ledger(session).read_tail(RECENT_WINDOW_BYTES) {
        Ok(reading) => recent(&reading).into_iter().filter_map(|line| RawValue::from_string(line).ok()).collect(),
        Err(error) => {
            tracing::warn!(session, %error, "ledger cannot be read; its terminals are left out");
            Vec::new()
        }
    }
}

/// The last terminals of a reading as a load gives them out. One that is not `cancelled` although a client had wished it so says
/// since when: the wish came too late, or the daemon died before it reached the agent.
fn recent(reading: &Reading) -> Vec<String> {
    let terminals = reading.records.iter().enumerate().rev().filter(|(_, record)| !record.is_in_flight());
    let line = |(place, record): (usize, &Record)| {
        let wish = reading.wish_before(place).filter(|_| record.terminal() != Some(Terminal::Cancelled));
        prompt_terminal(record, wish.map(|wish| wish.at_ms))
    };
    let mut lines: Vec<_> = terminals.take(RECENT_TERMINALS_MAX).map(line).collect();
    lines.reverse();
    lines
}

fn archived(session: &str) -> Refusal {
    let message = format!("Session \"{session}\" is archived. Unarchive it before loading.");
    Refusal::conflict("session_archived", message).with("sessionId", session)
}
