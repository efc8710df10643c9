//! Bringing a session back from disk. Concurrent identical requests share one restore, which runs to its end whoever waits.

use std::sync::Arc;

use bridge::{Kind, Seed, Session, Source, Title};
use tokio::sync::watch;
use transcript::Headline;

use crate::clock::now_ms;
use crate::desk::{Action, Busy, Fence, RestoreRequest, outcome};
use crate::history::{self, Replay};
use crate::identity::is_file_id;
use crate::limits::EVENTS_PER_MS_MAX;
use crate::open::{id_conflict, lock_wait_ms, open, undecided};
use crate::refusal::Refusal;
use crate::restored::Found;
use crate::tasks::{blocking, spawn};
use crate::whereabouts::lives_elsewhere;
use crate::workspace::{Slot, Workspace};

/// A session that was brought back.
pub(crate) struct Restoration {
    pub(crate) session: Session,
    /// What the load read; empty after a resume.
    pub(crate) replay: Replay,
    /// How the agent got its memory back, in its host's word.
    pub(crate) memory: Option<String>,
    /// The last event that the answer contains. What the agent said while it was opened comes after it.
    pub(crate) last_event_id: u64,
}

/// How a caller came by its session.
pub(crate) enum Joined {
    /// This request brought it back.
    Restored(Arc<Restoration>),
    /// It lives already, or somebody else's request brought it back.
    Attached(Session),
}

impl Joined {
    /// The session.
    pub(crate) fn session(&self) -> &Session {
        match self {
            Self::Restored(restoration) => &restoration.session,
            Self::Attached(session) => session,
        }
    }
}

/// Gives the live session of that id, restored from disk if need be.
///
/// # Errors
/// See the wire rules, section 7.5.
pub(crate) async fn restore(workspace: &Arc<Workspace>, id: &str, request: RestoreRequest) -> Result<Joined, Refusal> {
    loop {
        let busy = workspace.desk.busy(id);
        let is_abandoned = busy.as_ref().is_some_and(Busy::is_abandoned);
        match busy {
            Some(Busy::Closing | Busy::Shelving(_)) => return Err(Refusal::archiving(id)),
            Some(Busy::Creating) => return Err(id_conflict(workspace, id, "live")),
            Some(Busy::Restoring { request: active, outcome: running, callers: _waiting }) if active == request => {
                return Ok(Joined::Attached(outcome(running).await?.session.clone()));
            }
            Some(Busy::Restoring { request: active, .. }) => {
                return Err(in_progress(id, active.action, request.action, is_abandoned));
            }
            None => {}
        }
        if let Some(session) = workspace.bridge.session(id) {
            return Ok(Joined::Attached(session));
        }
        if !is_file_id(id) {
            return Err(Refusal::session_not_found(id));
        }
        let slot = workspace.slot()?;
        let (sender, running) = watch::channel(None);
        let waiting = Arc::new(());
        let (request, callers) = (request.clone(), Arc::clone(&waiting));
        let busy = Busy::Restoring { request: request.clone(), outcome: running.clone(), callers };
        let Ok(fence) = workspace.desk.take(id, busy) else { continue };
        if workspace.bridge.session(id).is_some() {
            continue;
        }
        if let Some(other) = workspace.elsewhere(id) {
            return Err(lives_elsewhere(id, &other));
        }
        let (workspace, id) = (Arc::clone(workspace), id.to_owned());
        spawn(async move {
            let restored = run(&workspace, &id, &request, slot, fence).await;
            sender.send_replace(Some(restored));
        });
        let restored = outcome(running).await.map(Joined::Restored);
        drop(waiting);
        return restored;
    }
}

/// One cold restore. The agent is there before the ledger is judged, so that nobody else writes the transcript meanwhile; the
/// session is live only afterwards, so that no prompt of ours can slip in between.
async fn run(
    workspace: &Arc<Workspace>,
    id: &str,
    request: &RestoreRequest,
    slot: Slot,
    fence: Fence,
) -> Result<Arc<Restoration>, Refusal> {
    let (reader, session) = (Arc::clone(workspace), id.to_owned());
    blocking(move || history::check(&reader, &session)).await.unwrap_or_else(|| Err(Refusal::internal()))?;
    if !workspace.returns.before_opening(id, lock_wait_ms(workspace.options.restore_timeout_ms)).await {
        return Err(undecided(id));
    }
    let opened = open(workspace, id, Kind::Restore).await?;
    let beyond = beyond_earlier_lives(now_ms());
    let (seed, replay, found) = match request.action {
        Action::Load => {
            let (reader, session, records_max) = (Arc::clone(workspace), id.to_owned(), request.records_max);
            let read = move || {
                let unresolved = history::reconcile(&reader, &session);
                (history::replay(&reader, &session, records_max, beyond), unresolved)
            };
            let (replay, unresolved) = blocking(read).await.ok_or_else(Refusal::internal)?;
            let found = Found { error: replay.error.clone(), unresolved };
            (replay.seed(), replay, found)
        }
        // Nobody has read it, and whoever attaches later is told so.
        Action::Resume => {
            let (reader, session) = (Arc::clone(workspace), id.to_owned());
            let unresolved =
                blocking(move || history::unjudged(&reader, &session)).await.ok_or_else(Refusal::internal)?;
            let found = Found { error: None, unresolved };
            (Seed { left_out: 1, ..Seed::default() }, Replay::default(), found)
        }
    };
    let (last_event_id, memory) = (beyond + replay.frames.len() as u64, opened.memory());
    drop(slot);
    let (reader, named) = (Arc::clone(workspace), id.to_owned());
    let headline = blocking(move || reader.catalog.headline(&reader, &named)).await.flatten();
    let session = opened.activate(last_event_id, seed);
    if let Some(headline) = headline {
        recall(&session, &headline);
    }
    workspace.restored.keep(id, Arc::new(found));
    workspace.watch(&session);
    drop(fence);
    Ok(Arc::new(Restoration { session, replay, memory, last_event_id }))
}

/// Tells the session what its records call it, and where they say that it comes from: whoever brings it back has no word in that.
fn recall(session: &Session, headline: &Headline) {
    if let Some(text) = headline.title.clone() {
        // Who does not say so is a person, as for the peer, whose older records do not.
        let source = headline.title_source.clone().unwrap_or_else(|| Title::MANUAL.to_owned());
        session.entitle(Title { text, source });
    }
    if let Some(kind) = headline.source_type.clone() {
        session.originate(Source { kind, id: headline.source_id.clone() });
    }
}

/// A number that no event of an earlier life of the session reached: each life numbers on, so that a cursor of one that is over never
/// looks valid in this one, with or without its epoch (docs/design/2026-11-30-stream.md).
fn beyond_earlier_lives(now_ms: u64) -> u64 {
    now_ms.saturating_mul(EVENTS_PER_MS_MAX)
}

/// 409 while another restore of this id, with another action or other options, runs. It says whether anybody still waits for that one.
fn in_progress(id: &str, active: Action, requested: Action, is_abandoned: bool) -> Refusal {
    let (active, requested) = (active.as_str(), requested.as_str());
    let message = format!(
        "Session \"{id}\" is already being restored via session/{active}; retry session/{requested} after it completes"
    );
    Refusal::conflict("restore_in_progress", message)
        .with("reason", if is_abandoned { "awaiting_abandoned_cleanup" } else { "restore_in_progress" })
        .with("retryable", true)
        .with("sessionId", id)
        .with("activeAction", active)
        .with("requestedAction", requested)
        .retry_later()
}
