//! Which workspace a request is about. A session is looked for where it lives, then where its file lies, and never anywhere else: not
//! in another workspace than the one a caller names, and not in the primary one for want of a better (turn status seed).

use std::path::Path;
use std::sync::Arc;

use transcript::Absent;

use crate::body::Fields;
use crate::daemon::Daemon;
use crate::identity::{self, is_file_id};
use crate::refusal::Refusal;
use crate::requests;
use crate::router::{Matched, Route};
use crate::tasks::blocking;
use crate::workspace::Workspace;

/// The workspace that a request means. For one that names a folder we do not serve it is the primary one, whose route refuses it; for
/// a session that is nowhere too, where it is not found.
///
/// # Errors
/// 409 `session_workspace_conflict` when the session lives elsewhere than the caller says, or lies in several places.
pub(crate) async fn workspace<'d>(
    daemon: &'d Daemon,
    matched: &Matched<'_>,
    fields: &Fields<'_>,
) -> Result<&'d Arc<Workspace>, Refusal> {
    let session = matched.session().map(identity::session_id);
    if takes_cwd(matched.route)
        && let Ok(Some(cwd)) = requests::cwd(fields)
    {
        let Some(named) = daemon.serving(&cwd) else { return Ok(daemon.primary()) };
        let home = session.as_deref().and_then(|session| daemon.home(session).map(|home| (session, home)));
        return match home {
            Some((session, home)) if !Arc::ptr_eq(home, named) => Err(lives_elsewhere(session, home)),
            _ => Ok(named),
        };
    }
    let Some(session) = session else { return Ok(daemon.primary()) };
    if let Some(home) = daemon.home(&session) {
        return Ok(home);
    }
    if daemon.workspaces().nth(1).is_none() || !may_be_cold(matched.route) || !is_file_id(&session) {
        return Ok(daemon.primary());
    }
    Ok(of_file(daemon, &session).await?.unwrap_or_else(|| daemon.primary()))
}

/// Where the files of a session that does not live lie; none when they are nowhere.
///
/// # Errors
/// 409 `session_workspace_conflict` when that is not one place.
pub(crate) async fn of_file<'d>(daemon: &'d Daemon, session: &str) -> Result<Option<&'d Arc<Workspace>>, Refusal> {
    let all: Vec<Arc<Workspace>> = daemon.workspaces().cloned().collect();
    let id = session.to_owned();
    let holders = blocking(move || all.into_iter().filter(|workspace| holds(workspace, &id)).collect::<Vec<_>>());
    let holders = holders.await.ok_or_else(Refusal::internal)?;
    match holders.as_slice() {
        [] => Ok(None),
        [only] => Ok(daemon.workspaces().find(|workspace| Arc::ptr_eq(workspace, only))),
        several => Err(lies_in_several(session, several)),
    }
}

/// Whether a session of this id was begun here and is not deleted. What cannot be read is taken for one: nobody else may be then.
fn holds(workspace: &Workspace, session: &str) -> bool {
    let mine = |path: &Path| {
        let opened = transcript::open(path, session, &workspace.folder);
        !matches!(opened, Err(Absent::NoFile | Absent::NoRecord | Absent::ForeignWorkspace))
    };
    let layout = &workspace.layout;
    mine(&layout.transcript(session)) || mine(&layout.archived_transcript(session))
}

/// Routes whose body may say which workspace is meant.
fn takes_cwd(route: Route) -> bool {
    matches!(route, Route::CreateSession | Route::Load | Route::Resume)
}

/// Routes that are also about sessions which do not live.
fn may_be_cold(route: Route) -> bool {
    // A close may be about a host that lingers.
    matches!(route, Route::Load | Route::Resume | Route::Transcript | Route::CloseSession)
}

/// 409 for a session that lives in another workspace than the one it was asked for.
pub(crate) fn lives_elsewhere(session: &str, home: &Workspace) -> Refusal {
    let message = format!("Session \"{session}\" lives in another workspace, \"{}\"", home.cwd);
    Refusal::conflict("session_workspace_conflict", message)
        .with("sessionId", session)
        .with("liveWorkspaceCwd", home.cwd.as_str())
}

fn lies_in_several(session: &str, workspaces: &[Arc<Workspace>]) -> Refusal {
    let cwds: Vec<&str> = workspaces.iter().map(|workspace| workspace.cwd.as_str()).collect();
    let message = format!("Session \"{session}\" has files in several workspaces; say which one is meant by `cwd`");
    Refusal::conflict("session_workspace_conflict", message).with("sessionId", session).with("workspaceCwds", cwds)
}
