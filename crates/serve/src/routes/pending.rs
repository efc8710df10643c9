//! Unfinished prompts: the list, and removal (wire rules, section 8.6).

use bridge::NotOpen;
use serde_json::json;

use crate::dispatch::Call;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::wire::Pending;

/// `GET /session/:id/pending-prompts`.
pub(crate) fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.session_and_client()?;
    let prompts = session.pending_prompts();
    let entries: Vec<_> = prompts.iter().map(Pending::new).collect();
    Ok(ok(&json!({ "pendingPrompts": entries })))
}

/// `DELETE /session/:id/pending-prompts/:promptId`.
pub(crate) fn remove(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.open_session_and_client()?;
    let removed = session.remove(call.matched.second(), client).map_err(|error| not_open(session.id(), error))?;
    Ok(ok(&json!({ "removed": removed })))
}

/// The answer for a session that takes no more orders.
pub(crate) fn not_open(session: &str, error: NotOpen) -> Refusal {
    match error {
        NotOpen::Closing => Refusal::archiving(session),
        NotOpen::Gone => Refusal::session_not_found(session),
    }
}
