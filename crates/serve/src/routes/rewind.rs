//! `GET /session/:id/rewind/snapshots` and `POST /session/:id/rewind` (wire rules, section 13.1). A place has any of the names that the
//! list shows, and the daemon's own id of the prompt too.

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::RewindPoint;

use crate::body::{Fields, text};
use crate::clock::iso;
use crate::dispatch::Call;
use crate::limits::AGENT_ASK_MS;
use crate::options::Mode;
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
            named(&asked.map_err(|error| refused(session.id(), error))?, &found.points)
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

/// The agent's own list, with the ids of the prompts as far as the transcript tells them.
fn named(answer: &str, points: &[RewindPoint]) -> Vec<Value> {
    let prompts: HashMap<_, _> =
        points.iter().filter_map(|point| Some((point.snapshot_id.as_deref()?, point.prompt_id.as_deref()?))).collect();
    let mut answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let mut snapshots = answer["snapshots"].as_array_mut().map(std::mem::take).unwrap_or_default();
    for snapshot in &mut snapshots {
        let prompt_id = snapshot["promptId"].as_str().and_then(|name| prompts.get(name));
        if let Some(prompt_id) = prompt_id {
            snapshot["daemonPromptId"] = (*prompt_id).into();
        }
    }
    snapshots
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_list_gets_the_ids_of_the_prompts_that_the_transcript_knows() {
        let point = RewindPoint {
            record: "r".into(),
            prompt_id: Some("p1".into()),
            snapshot_id: Some("s########1".into()),
            at_ms: None,
            turn_index: 0,
            before: None,
            last: "r".into(),
            entries: 1,
        };
        let answer = r#"{"snapshots":[{"promptId":"s########1"},{"promptId":"s########2"},7]}"#;
        let expected = json!([{"promptId": "s########1", "daemonPromptId": "p1"}, {"promptId": "s########2"}, 7]);
        assert_eq!(Value::Array(named(answer, &[point])), expected);
        assert!(named("null", &[]).is_empty());
    }
}
