//! Sessions: create, status, heartbeat, detach, close (wire rules, section 6).

use std::sync::Arc;

use bridge::{CloseError, Session};
use serde_json::{Value, json};

use crate::body::text;
use crate::clock::iso;
use crate::create;
use crate::desk::Busy;
use crate::dispatch::{Call, registered};
use crate::glance;
use crate::identity::is_uuid;
use crate::reaper;
use crate::refusal::Refusal;
use crate::reply::{Reply, no_content, ok};
use crate::requests::workspace;
use crate::shelf::{self, CLIENT_CLOSE};
use crate::tasks::spawn;
use crate::wanted::Wanted;
use crate::wire;
use crate::workspace::Workspace;

/// `POST /session`.
pub(crate) async fn create(call: &Call<'_>) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    let fields = &call.fields;
    workspace(fields, &call.workspace.cwd)?;
    let scope = text(fields, "sessionScope").ok().flatten();
    let single = match (fields.contains_key("sessionScope"), scope.as_deref()) {
        (false, _) | (true, Some("single")) => true,
        (true, Some("thread")) => false,
        (true, _) => {
            let message = "`sessionScope` must be \"single\" or \"thread\" when provided";
            return Err(Refusal::bad_request("invalid_session_scope", message));
        }
    };
    let id = session_id(call)?;
    let wanted = Wanted::read(fields)?;
    let created = match id {
        None if single => create::shared(call.workspace, wanted.clone()).await?,
        id => create::thread(call.workspace, id, wanted.clone()).await?,
    };
    let session = &created.session;
    let applied = match created.attached {
        true => wanted.of_attached(session).apply(call.workspace, session, client).await?,
        false => created.applied,
    };
    let source = session.status().source;
    let client_id = session.register(client);
    if let Some(unclaimed) = created.unclaimed {
        unclaimed.claim();
    }
    Ok(ok(&wire::Created {
        session_id: session.id(),
        workspace_cwd: session.workspace_cwd(),
        attached: created.attached,
        client_id: &client_id,
        created_at: iso(session.created_at_ms()),
        has_active_prompt: created.attached.then(|| session.status().has_active_prompt),
        source_type: source.as_ref().map(|source| &*source.kind),
        source_id: source.as_ref().and_then(|source| source.id.as_deref()),
        source_persisted: applied.source,
        model_applied: applied.model,
    }))
}

/// The id that the caller wants, lower-cased.
fn session_id(call: &Call<'_>) -> Result<Option<String>, Refusal> {
    match text(&call.fields, "sessionId") {
        Ok(None) => Ok(None),
        Ok(Some(id)) if is_uuid(&id) => Ok(Some(id.to_ascii_lowercase())),
        _ => Err(Refusal::bad_request(
            "invalid_session_id",
            "`sessionId` must be an RFC UUID v1-v5 (e.g. \"550e8400-e29b-41d4-a716-446655440000\")",
        )),
    }
}

/// `GET /session/:id/status`.
pub(crate) fn status(call: &Call<'_>) -> Result<Reply, Refusal> {
    let session = call.workspace.session(&call.session_id())?;
    Ok(ok(&glance::status(session.id(), session.workspace_cwd(), &session.status())))
}

/// `POST /session/:id/heartbeat`.
pub(crate) fn heartbeat(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.session_and_client()?;
    let seen = session.heartbeat(client);
    let mut body = json!({ "sessionId": session.id(), "lastSeenAt": seen });
    if let (Some(client), Value::Object(fields)) = (client, &mut body) {
        fields.insert("clientId".to_owned(), client.into());
    }
    Ok(ok(&body))
}

/// `POST /session/:id/detach`: always 204. The last one to go takes an idle session with it, and a busy one as soon as it is idle.
pub(crate) fn detach(call: &Call<'_>) -> Result<Reply, Refusal> {
    let Some(session) = call.workspace.bridge.session(&call.session_id()) else { return Ok(no_content()) };
    let Ok(Some(client)) = call.client_id() else { return Ok(no_content()) };
    leave(call.workspace, session, client);
    Ok(no_content())
}

/// Takes one registration of a client back, and lets go of a session that nobody uses any more.
pub(crate) fn leave(workspace: &Arc<Workspace>, session: Session, client: &str) {
    let left = session.detach(Some(client));
    if left.client_count == 0 && left.subscriber_count == 0 {
        reaper::watch(workspace, session);
    }
}

/// `DELETE /session/:id`. It goes on when the caller does not wait.
pub(crate) async fn close(call: &Call<'_>) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    let id = call.session_id();
    if let Some(busy) = call.workspace.desk.busy(&id) {
        return Err(Refusal::in_transition(&id, busy.as_str()));
    }
    let Some(session) = call.workspace.bridge.session(&id) else {
        return shelf::close_lingering(call.workspace, &id).await.map(|()| no_content());
    };
    registered(&session, client)?;
    let closing = spawn_close(call.workspace, &session, CLIENT_CLOSE, client).ok_or_else(|| Refusal::archiving(&id))?;
    match closing.await {
        Ok(Ok(())) => Ok(no_content()),
        Ok(Err(CloseError::Closing)) => Err(Refusal::archiving(&id)),
        Ok(Err(CloseError::NotFound)) => Err(Refusal::session_not_found(&id)),
        Err(_) => Err(Refusal::internal()),
    }
}

/// Closes a session in a task of its own, its id fenced meanwhile. None when its id is in transition already.
fn spawn_close(
    workspace: &Arc<Workspace>,
    session: &Session,
    reason: &'static str,
    by: Option<&str>,
) -> Option<tokio::task::JoinHandle<Result<(), CloseError>>> {
    let fence = workspace.desk.take(session.id(), Busy::Closing).ok()?;
    let (session, by) = (session.clone(), by.map(str::to_owned));
    Some(spawn(async move {
        let outcome = session.close(reason, by.as_deref()).await;
        drop(fence);
        outcome
    }))
}
