//! `GET /session/:id/rewind/snapshots` and `POST /session/:id/rewind` (wire rules, section 13.1). A place has any of the names that the
//! list shows, and the daemon's own id of the prompt too.

use serde_json::{Value, json};
use transcript::RewindPoint;

use crate::body::{Fields, text};
use crate::clock::iso;
use crate::dispatch::Call;
use crate::limits::AGENT_ASK_MS;
use crate::options::Mode;
use crate::places::Places;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::rewind::{Rewind, points, refused, rewind};

/// `GET /session/:id/rewind/snapshots`.
pub(crate) async fn snapshots(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.session_and_client()?;
    let found = points(call.workspace, &session, None).await?;
    let snapshots = match call.daemon.options.mode {
        Mode::Recorded => found.points.iter().map(snapshot).collect(),
        Mode::Native => {
            let asked = session.ask("qwen/status/session/rewind_snapshots", "{}", AGENT_ASK_MS).await;
            Places::of(&asked.map_err(|error| refused(session.id(), error))?).named(&found)
        }
    };
    Ok(ok(&json!({ "snapshots": Value::Array(snapshots) })))
}

/// A place as the list shows it. No file is tracked.
fn snapshot(point: &RewindPoint) -> Value {
    let name = point.snapshot_id.as_ref().or(point.prompt_id.as_ref()).unwrap_or(&point.record);
    let at_ms = point.at_ms.and_then(|at_ms| u64::try_from(at_ms).ok()).unwrap_or_default();
    let mut snapshot = json!({
        "promptId": name,
        "turnIndex": point.turn_index,
        "timestamp": iso(at_ms),
        "diffStats": { "filesChanged": 0, "insertions": 0, "deletions": 0 },
    });
    if let Some(prompt_id) = &point.prompt_id {
        snapshot["daemonPromptId"] = prompt_id.as_str().into();
    }
    snapshot
}

/// `POST /session/:id/rewind`.
pub(crate) async fn post(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.open_session_and_client()?;
    let asked = asked(&call.fields, client)?;
    let done = rewind(call.workspace, &session, asked).await?;
    let mut body = json!({
        "rewound": done.rewound,
        "targetTurnIndex": done.target_turn_index,
        "filesChanged": done.files_changed,
        "filesFailed": done.files_failed,
    });
    if !done.warnings.is_empty() {
        body["warnings"] = done.warnings.into();
    }
    if let Some(memory) = done.memory {
        body["memory"] = memory.into();
    }
    Ok(ok(&body))
}

fn asked(fields: &Fields<'_>, client: Option<&str>) -> Result<Rewind, Refusal> {
    let missing = || Refusal::bad_request("missing_prompt_id", "`promptId` is required");
    let to = text(fields, "promptId").ok().flatten().filter(|name| !name.is_empty()).ok_or_else(missing)?;
    let files = match fields.get("rewindFiles").map(|raw| raw.get()) {
        None | Some("true") => true,
        Some("false") => false,
        Some(_) => {
            return Err(Refusal::bad_request("invalid_rewind_files_flag", "`rewindFiles` must be a boolean"));
        }
    };
    let fresh_will_do = match text(fields, "memory") {
        Ok(None) => false,
        Ok(Some(memory)) if memory == "fresh" => true,
        _ => return Err(Refusal::bad_request("invalid_rewind_memory", "`memory` must be `fresh` when provided")),
    };
    Ok(Rewind { to, files, fresh_will_do, by: client.map(str::to_owned) })
}
