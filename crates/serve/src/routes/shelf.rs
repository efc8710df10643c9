//! `POST /sessions/archive`, `/sessions/unarchive` and `/sessions/delete` (wire rules, section 6.8).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::daemon::Daemon;
use crate::dispatch::Call;
use crate::identity;
use crate::limits::{SHELF_AT_ONCE, SHELF_IDS_MAX};
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::shelf::{Done, Task, perform};
use crate::tasks::{blocking, spawn};
use crate::whereabouts;
use crate::workspace::Workspace;

/// What came of one session: its id, and what is said of it.
type Outcome = (String, Result<Done, Refusal>);

pub(crate) async fn archive(call: &Call<'_>) -> Result<Reply, Refusal> {
    answer(call, Task::Archive).await
}

pub(crate) async fn unarchive(call: &Call<'_>) -> Result<Reply, Refusal> {
    answer(call, Task::Unarchive).await
}

pub(crate) async fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    answer(call, Task::Delete).await
}

async fn answer(call: &Call<'_>, task: Task) -> Result<Reply, Refusal> {
    let (ids, resolve) = (ids(call)?, resolves(call)?);
    // It goes on when the caller does not wait.
    let daemon = Arc::clone(call.daemon);
    let all = spawn(async move { perform_all(&daemon, ids, task, resolve).await });
    Ok(ok(&told(task, &all.await.map_err(|_| Refusal::internal())?)))
}

/// The ids as they are looked up, each once.
fn ids(call: &Call<'_>) -> Result<Vec<String>, Refusal> {
    let given = call.fields.get("sessionIds").and_then(|raw| serde_json::from_str::<Vec<String>>(raw.get()).ok());
    let given = given.filter(|ids| (1..=SHELF_IDS_MAX).contains(&ids.len()) && ids.iter().all(|id| !id.is_empty()));
    let given = given.ok_or_else(|| {
        Refusal::bad_request("invalid_request", "`sessionIds` must be a non-empty string array (max 100)")
    })?;
    let mut ids: Vec<String> = Vec::with_capacity(given.len());
    for id in given.iter().map(|id| identity::session_id(id)) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn resolves(call: &Call<'_>) -> Result<bool, Refusal> {
    let Some(raw) = call.fields.get("resolveConflicts") else { return Ok(false) };
    serde_json::from_str(raw.get())
        .map_err(|_| Refusal::bad_request("invalid_request", "`resolveConflicts` must be a boolean"))
}

async fn perform_all(daemon: &Arc<Daemon>, ids: Vec<String>, task: Task, resolve: bool) -> Vec<Outcome> {
    let mut results = Vec::with_capacity(ids.len());
    for some in ids.chunks(SHELF_AT_ONCE) {
        let mut running = Vec::with_capacity(some.len());
        for id in some {
            let (daemon, owned) = (Arc::clone(daemon), id.clone());
            let one = spawn(async move {
                let workspace = home(&daemon, &owned).await?;
                perform(&workspace, &owned, task, resolve).await
            });
            running.push((id.clone(), one));
        }
        for (id, one) in running {
            let outcome = one.await.unwrap_or_else(|_| Err(Refusal::internal()));
            results.push((id, outcome));
        }
    }
    results
}

/// The workspace that a session lives in or has files in, if only such as a delete that was cut off left behind; the primary one for a
/// session that is nowhere.
async fn home(daemon: &Arc<Daemon>, id: &str) -> Result<Arc<Workspace>, Refusal> {
    if !identity::is_file_id(id) {
        return Ok(Arc::clone(daemon.primary()));
    }
    let lies = match daemon.home(id) {
        Some(home) => Some(home),
        None => whereabouts::of_file(daemon, id).await?,
    };
    if let Some(workspace) = lies {
        return Ok(Arc::clone(workspace));
    }
    let (all, session) = (daemon.workspaces().map(Arc::clone).collect::<Vec<_>>(), id.to_owned());
    let left = blocking(move || all.into_iter().find(|workspace| workspace.layout.has_left(&session)));
    Ok(left.await.ok_or_else(Refusal::internal)?.unwrap_or_else(|| Arc::clone(daemon.primary())))
}

/// The answer's lists: done, done before, not found, and what went wrong.
fn told(task: Task, results: &[Outcome]) -> Value {
    let listed = |wanted: &dyn Fn(Done) -> bool| -> Vec<&str> {
        let matching = results.iter().filter(|(_, outcome)| outcome.as_ref().is_ok_and(|done| wanted(*done)));
        matching.map(|(id, _)| id.as_str()).collect()
    };
    let done = listed(&|done| matches!(done, Done::Now { .. }));
    let already = listed(&|done| done == Done::Already);
    let resolved = listed(&|done| done == Done::Now { resolved: true });
    let not_found = listed(&|done| done == Done::NotFound);
    let failures = results.iter().filter_map(|(id, outcome)| Some((id, outcome.as_ref().err()?)));
    let errors: Vec<Value> = failures.map(|(id, refusal)| entry(id, refusal)).collect();
    match task {
        Task::Archive => json!({
            "archived": done, "alreadyArchived": already, "resolvedConflicts": resolved, "notFound": not_found, "errors": errors,
        }),
        Task::Unarchive => json!({
            "unarchived": done, "alreadyActive": already, "resolvedConflicts": resolved, "notFound": not_found, "errors": errors,
        }),
        Task::Delete => json!({ "removed": done, "notFound": not_found, "errors": errors }),
    }
}

/// What kept one session from its way: the refusal that a request about it alone would get.
fn entry(id: &str, refusal: &Refusal) -> Value {
    let mut entry = Map::new();
    entry.insert("sessionId".to_owned(), id.into());
    entry.insert("error".to_owned(), refusal.message.as_ref().into());
    entry.insert("code".to_owned(), refusal.code.as_ref().into());
    for (key, value) in refusal.fields.iter().filter(|(key, _)| *key != "sessionId") {
        entry.insert((*key).to_owned(), value.clone());
    }
    Value::Object(entry)
}
