//! `POST /session/:id/branch` (wire rules, section 13.2).

use hyper::StatusCode;
use serde_json::json;

use crate::body::text;
use crate::branch::{Branch, branch, live_branch};
use crate::dispatch::Call;
use crate::refusal::Refusal;
use crate::reply::{Reply, json as reply};
use crate::routes::load;

pub(crate) async fn post(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.open_session_and_client()?;
    // A name that is no text is ignored, as the peer ignores it.
    let name = text(&call.fields, "name").ok().flatten().filter(|name| !name.trim().is_empty());
    let at = text(&call.fields, "atRecordId").map_err(|_| {
        let message = "`atRecordId` must be a string when provided";
        Refusal::conflict("branch_point_invalid", message)
            .with("errorKind", "branch_point_invalid")
            .with("sessionId", session.id())
    })?;
    let on_disk_only = at.is_some();
    let wanted = Branch { name, at };
    if on_disk_only {
        let made = branch(call.workspace, &session, wanted).await?;
        let body = json!({
            "sessionId": made.session_id,
            "displayName": made.display_name,
            "forkedFrom": made.forked_from,
        });
        return Ok(reply(StatusCode::CREATED, &body));
    }
    let (made, joined) = live_branch(call.workspace, &session, wanted).await?;
    let mut told = load::tell(call, &joined, load::Asked::branch(client, made)).await?;
    *told.status_mut() = StatusCode::CREATED;
    Ok(told)
}
