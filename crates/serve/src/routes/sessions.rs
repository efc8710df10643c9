//! `GET /workspaces/:workspace/sessions` and its older spelling, and `…/live-state` (wire rules, section 6.3).

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use serde_json::{Value, json};

use crate::catalog::{Cursor, Filter, Page, Wanted};
use crate::dispatch::Call;
use crate::limits::{LIST_PAGE_DEFAULT, LIST_PAGE_MAX};
use crate::listed;
use crate::query;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::requests::is_source;
use crate::sidecar::Place;
use crate::tasks::blocking;
use crate::workspace::Workspace;

/// Groups of the organized view that need no groups: everything, what is in none, and what is pinned, which nothing is here.
const GROUPS: [&str; 3] = ["all", "ungrouped", "pinned"];

/// A page of a workspace's sessions.
pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let workspace = named(call)?;
    let is_organized = is_organized(call)?;
    let wanted = wanted(call, is_organized)?;
    let place = wanted.place;
    let reader = Arc::clone(workspace);
    let read =
        blocking(move || reader.catalog.page(&reader, &wanted).map(|page| told(&reader, &page, place, is_organized)));
    match read.await {
        Some(Ok(body)) => Ok(ok(&body)),
        Some(Err(error)) => Err(unreadable(&error)),
        None => Err(Refusal::internal()),
    }
}

/// What the live sessions of a workspace do, and whether its list is worth fetching again.
pub(crate) async fn live_state(call: &Call<'_>) -> Result<Reply, Refusal> {
    let workspace = named(call)?;
    let reader = Arc::clone(workspace);
    let version = blocking(move || reader.catalog.version(&reader)).await.ok_or_else(Refusal::internal)?;
    let version = version.map_err(|error| unreadable(&error))?;
    // Looked at after the version: what comes in between is in this answer, and raises the next one.
    let mut sessions = workspace.bridge.sessions();
    sessions.sort_by(|one, other| (one.created_at_ms(), one.id()).cmp(&(other.created_at_ms(), other.id())));
    let mut reply = ok(&json!({
        "v": 1,
        "catalogVersion": { "generation": version.generation, "revision": version.revision },
        "sessions": sessions.iter().map(listed::live_state).collect::<Vec<_>>(),
    }));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(reply)
}

/// The workspace that the path names: by its id, or as an absolute path in any spelling.
fn named<'a>(call: &Call<'a>) -> Result<&'a Arc<Workspace>, Refusal> {
    let name = call.matched.id();
    let is_id = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_path = name.starts_with('/') && !name.contains('\0');
    if !is_id && !is_path {
        let message = "The workspace must be named by its id or by an absolute path";
        return Err(Refusal::bad_request("invalid_workspace_id", message));
    }
    let found = match is_path {
        true => call.daemon.serving(name),
        false => call.daemon.workspaces().find(|workspace| workspace.id.eq_ignore_ascii_case(name)),
    };
    found.ok_or_else(|| {
        let message = format!("Workspace \"{name}\" is not served here");
        Refusal::new(StatusCode::NOT_FOUND, "workspace_not_found", message)
    })
}

fn value<'a>(call: &Call<'a>, key: &str) -> Option<std::borrow::Cow<'a, str>> {
    query::value(call.head.uri.query(), key)
}

fn is_organized(call: &Call<'_>) -> Result<bool, Refusal> {
    let invalid = |message: &'static str| Refusal::bad_request("invalid_session_view", message);
    match value(call, "view").as_deref() {
        None => Ok(false),
        Some("organized") if value(call, "parentSessionId").is_some() => {
            Err(invalid("`parentSessionId` cannot be combined with `view`"))
        }
        Some("organized") => Ok(true),
        Some(_) => Err(invalid("`view` must be \"organized\" when provided")),
    }
}

fn wanted(call: &Call<'_>, is_organized: bool) -> Result<Wanted, Refusal> {
    let place = match value(call, "archiveState").as_deref() {
        None | Some("active") => Place::Active,
        Some("archived") => Place::Archived,
        Some(_) => {
            let message = "`archiveState` must be \"active\" or \"archived\"";
            return Err(Refusal::bad_request("invalid_archive_state", message));
        }
    };
    let group = value(call, "group");
    if group.as_deref().is_some_and(|group| !is_organized || !GROUPS.contains(&group)) {
        let message = "`group` needs `view=organized` and must be \"all\", \"ungrouped\" or \"pinned\"";
        return Err(Refusal::bad_request("invalid_session_group_filter", message));
    }
    let (source_type, source_id) = source(call)?;
    let filter = Filter {
        parent_session_id: value(call, "parentSessionId").map(Into::into),
        source_type,
        source_id,
        is_none: group.as_deref() == Some("pinned"),
    };
    let cursor = match value(call, "cursor") {
        None => None,
        Some(text) => Some(Cursor::parse(&text, place).ok_or_else(|| {
            Refusal::bad_request("invalid_cursor", "`cursor` is none that was given out for this list")
        })?),
    };
    Ok(Wanted { place, size: size(call)?, cursor, filter })
}

/// Sessions a page. What is larger than a page may be is the largest page, so that a client that asks for everything goes on by cursor.
fn size(call: &Call<'_>) -> Result<usize, Refusal> {
    let Some(text) = value(call, "size") else { return Ok(LIST_PAGE_DEFAULT) };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let size = if is_number { text.parse().unwrap_or(usize::MAX) } else { 0 };
    match size {
        0 => {
            let message = format!("`size` must be a whole number from 1 to {LIST_PAGE_MAX}");
            Err(Refusal::bad_request("invalid_request", message))
        }
        size => Ok(size.min(LIST_PAGE_MAX)),
    }
}

fn source(call: &Call<'_>) -> Result<(Option<String>, Option<String>), Refusal> {
    let invalid = |message: &'static str| Refusal::bad_request("invalid_session_source", message);
    let (kind, id) = (value(call, "sourceType"), value(call, "sourceId"));
    match kind.as_deref() {
        None if id.is_some() => Err(invalid("`sourceId` requires `sourceType`")),
        Some(kind) if !is_source(kind) => Err(invalid("`sourceType` must match [a-z][a-z0-9_-]{0,63} when provided")),
        _ => Ok((kind.map(Into::into), id.map(Into::into))),
    }
}

fn told(workspace: &Workspace, page: &Page, place: Place, is_organized: bool) -> Value {
    let entry = |entry| {
        let mut body = listed::entry(&workspace.cwd, entry, place == Place::Archived);
        if is_organized {
            body["groupId"] = Value::Null;
            body["isPinned"] = false.into();
        }
        body
    };
    let mut body = json!({ "sessions": page.entries.iter().map(entry).collect::<Vec<_>>() });
    if let Some(next) = &page.next {
        body["nextCursor"] = next.to_text().into();
    }
    if page.is_truncated {
        body["truncated"] = true.into();
    }
    body
}

/// 500 for a folder that cannot be read. Paths stay in the log.
fn unreadable(error: &std::io::Error) -> Refusal {
    tracing::warn!(%error, "the folder of the sessions cannot be read");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "session_list_failed", "The sessions cannot be listed")
}
