//! What a list and the live state say of a session (wire rules, section 6.3).

use bridge::Session;
use serde_json::{Value, json};

use crate::catalog::Entry;
use crate::clock::iso;
use crate::glance;

/// An entry of a list. What lives is told as its status tells it; of the rest only what lies on disk.
pub(crate) fn entry(workspace: &str, entry: &Entry, is_archived: bool) -> Value {
    let mut body = match &entry.live {
        Some(session) => glance::status(session.id(), session.workspace_cwd(), &session.status()),
        None => json!({
            "sessionId": &*entry.id,
            "workspaceCwd": workspace,
            "clientCount": 0,
            "hasActivePrompt": false,
        }),
    };
    body["isArchived"] = is_archived.into();
    let headline = entry.headline.as_deref();
    let begun_at_ms = headline.and_then(|headline| headline.begun_at_ms).or(match entry.live {
        Some(_) => None,
        None => entry.written_at_ms,
    });
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            body[key] = value.into();
        }
    };
    put("createdAt", begun_at_ms.map(iso));
    put("updatedAt", entry.written_at_ms.map(iso));
    let Some(headline) = headline else { return body };
    put("parentSessionId", headline.parent_session_id.clone());
    put("sourceType", headline.source_type.clone());
    put("sourceId", headline.source_id.clone());
    // What a live session is called is known best by itself.
    if body.get("displayName").is_none() {
        let (name, source) = match &headline.title {
            Some(title) => (Some(title), headline.title_source.as_ref()),
            None => (headline.prompt.as_ref(), None),
        };
        for (key, value) in [("displayName", name), ("titleSource", source)] {
            if let Some(value) = value {
                body[key] = value.as_str().into();
            }
        }
    }
    body
}

/// What changes of a live session without its being listed anew.
pub(crate) fn live_state(session: &Session) -> Value {
    let whole = glance::status(session.id(), session.workspace_cwd(), &session.status());
    let keys = [
        "sessionId",
        "clientCount",
        "hasActivePrompt",
        "activeWorkState",
        "hasRunningBackgroundTasks",
        "isWaitingForPermission",
        "isWaitingForUserQuestion",
        "updatedAt",
    ];
    keys.iter().filter_map(|key| Some(((*key).to_owned(), whole.get(*key)?.clone()))).collect()
}
