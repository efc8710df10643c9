//! Bringing an editor the session it asks for, by the ways that HTTP takes: the same limits, the same fences, the same reconciliation.

use std::sync::Arc;

use bridge::{Session, Subscribe};
use bytes::Bytes;

use super::{Entrance, Opening, Question, Which};
use crate::create::{self, Unclaimed};
use crate::daemon::Daemon;
use crate::desk::{Action, RestoreRequest};
use crate::identity::{self, is_uuid};
use crate::limits::MAX_QUEUED_DEFAULT;
use crate::refusal::Refusal;
use crate::requests::mismatch;
use crate::restore::{Joined, restore};
use crate::wanted::Wanted;
use crate::whereabouts::lives_elsewhere;
use crate::workspace::Workspace;

/// A session on its way to the editor.
pub(super) struct Arrival {
    pub(super) workspace: Arc<Workspace>,
    pub(super) session: Session,
    /// Its client is not registered yet.
    pub(super) entrance: Entrance,
    /// Where to read on.
    pub(super) cursor: Subscribe,
    /// Gives a new session up that the editor never hears of.
    pub(super) unclaimed: Option<Unclaimed>,
}

/// Opens what is asked for.
///
/// # Errors
/// As the HTTP routes refuse it.
pub(super) async fn open(daemon: &Daemon, opening: &Opening) -> Result<Arrival, Refusal> {
    let Some(workspace) = daemon.serving(&opening.cwd) else {
        return Err(mismatch(&daemon.primary().cwd, &opening.cwd));
    };
    match &opening.which {
        Which::New { id } => made(workspace, id.as_deref()).await,
        Which::Load { id } => brought(daemon, workspace, id, Action::Load).await,
        Which::Resume { id } => brought(daemon, workspace, id, Action::Resume).await,
    }
}

async fn made(workspace: &Arc<Workspace>, id: Option<&str>) -> Result<Arrival, Refusal> {
    if id.is_some_and(|id| !is_uuid(id)) {
        let message = "`_meta[\"qwen-code/sessionId\"]` must be an RFC UUID v1-v5 when provided";
        return Err(Refusal::bad_request("invalid_session_id", message));
    }
    let created = create::thread(workspace, id.map(identity::session_id), Wanted::default()).await?;
    let entrance = Entrance { fresh: true, ..entrance(&created.session) };
    Ok(arrival(workspace, created.session, entrance, created.unclaimed))
}

/// A session that lives, or one from disk: only the latter is reconciled, and only by a load.
async fn brought(daemon: &Daemon, workspace: &Arc<Workspace>, id: &str, action: Action) -> Result<Arrival, Refusal> {
    if let Some(home) = daemon.home(id)
        && !Arc::ptr_eq(home, workspace)
    {
        return Err(lives_elsewhere(id, home));
    }
    let request = RestoreRequest { action, records_max: None, options: Vec::new() };
    let (session, mut entrance) = match restore(workspace, id, request).await? {
        Joined::Restored(restoration) => {
            let (replay, shown) = (&restoration.replay, restoration.last_event_id);
            let (session, cut) = (restoration.session.clone(), replay.gap.is_some() || replay.error.is_some());
            let entrance = Entrance { replay: updates(&replay.frames), cut, shown, ..entrance(&session) };
            (session, entrance)
        }
        Joined::Attached(session) => {
            let entrance = attached(&session);
            (session, entrance)
        }
    };
    if action == Action::Resume {
        entrance.replay = session.state_updates();
        entrance.cut = false;
    }
    Ok(arrival(workspace, session, entrance, None))
}

/// What happened before, as a late client is shown it, and the newest of what is state.
fn attached(session: &Session) -> Entrance {
    let told = session.told();
    let (turns, journal) = (told.turns, told.journal);
    let cut = turns.left_out + journal.left_out > 0;
    let replay = [updates(&turns.frames), updates(&journal.frames), session.state_updates()].concat();
    Entrance { replay, cut, shown: told.last_event_id, ..entrance(session) }
}

/// The updates among events, raw.
fn updates(frames: &[Bytes]) -> Vec<String> {
    let texts = frames.iter().filter_map(|frame| std::str::from_utf8(frame).ok());
    texts.filter_map(|frame| acp::raw_at(frame, &["data", "update"])).map(str::to_owned).collect()
}

/// A session as it is now, with nothing to show.
fn entrance(session: &Session) -> Entrance {
    let open = session.status().pending_permissions.into_iter();
    let questions = open.map(|one| Question { id: one.request_id, tool_call: one.tool_call, options: one.options });
    Entrance {
        session: session.id().to_owned(),
        state: session.agent_state(),
        questions: questions.collect(),
        ..Entrance::default()
    }
}

fn arrival(workspace: &Arc<Workspace>, session: Session, entrance: Entrance, unclaimed: Option<Unclaimed>) -> Arrival {
    let cursor = Subscribe {
        cursor: Some(entrance.shown),
        epoch: Some(session.epoch().to_owned()),
        max_queued: MAX_QUEUED_DEFAULT,
    };
    Arrival { workspace: Arc::clone(workspace), session, entrance, cursor, unclaimed }
}
