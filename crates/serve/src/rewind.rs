//! Taking a conversation back to before one of its prompts (docs/design/2026-11-30-rewind.md).
//!
//! The session is held from the look that finds it idle to the end of the change, whoever still waits for the answer: prompts that come
//! meanwhile wait. The place is found in the transcript, where it has several names. In recorded mode the host writes and sees to the
//! agent; a native agent does both itself, and is told its own name for the place.

use std::sync::Arc;

use bridge::{Announcement, AskError, Held, Meanwhile, Session};
use hyper::StatusCode;
use serde_json::{Value, json};
use transcript::{RewindPoint, RewindPoints, rewind_points};

use crate::asked::is_method_unknown;
use crate::limits::AGENT_ASK_MS;
use crate::options::Mode;
use crate::places::{Places, Target, turns};
use crate::refusal::Refusal;
use crate::tasks::{blocking, spawn};
use crate::workspace::Workspace;

/// What qwen-code's own names for places have in them.
const SNAPSHOT_MARK: &str = "########";
/// Why no file was put back.
const NO_FILES: &str = "files are not tracked in this session, so none was put back";
/// What an agent that began anew does not know.
const FRESH: &str = "the agent begins anew and remembers nothing of the turns that stay";

/// Where to, and how.
#[derive(Debug, Clone)]
pub(crate) struct Rewind {
    /// Any name of the first prompt that is to go.
    pub(crate) to: String,
    /// Whether files are to be put back too.
    pub(crate) files: bool,
    /// Whether an agent will do that remembers nothing at all.
    pub(crate) fresh_will_do: bool,
    /// The client that wants it.
    pub(crate) by: Option<String>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rewound {
    pub(crate) rewound: bool,
    pub(crate) target_turn_index: u64,
    pub(crate) files_changed: Value,
    pub(crate) files_failed: Value,
    pub(crate) warnings: Vec<String>,
    pub(crate) memory: Option<String>,
}

/// Takes the conversation back. It goes on when the caller does not.
///
/// # Errors
/// 409 while a prompt runs or waits, 400 for a place that is none, 501 where the agent cannot be made to forget just that.
pub(crate) async fn rewind(workspace: &Arc<Workspace>, session: &Session, rewind: Rewind) -> Result<Rewound, Refusal> {
    let not_held = |error| Refusal::not_held(session.id(), error, || busy(session.id()));
    let held = session.hold(Meanwhile::Refuse).map_err(not_held)?;
    let (workspace, session) = (Arc::clone(workspace), session.clone());
    let task = spawn(async move {
        let done = match workspace.options.mode {
            Mode::Recorded => recorded(&workspace, &session, &held, &rewind).await,
            Mode::Native => native(&workspace, &session, &held, &rewind).await,
        };
        workspace.polled.forget(session.id());
        done
    });
    task.await.unwrap_or_else(|_| Err(Refusal::internal()))
}

async fn recorded(
    workspace: &Arc<Workspace>,
    session: &Session,
    held: &Held,
    rewind: &Rewind,
) -> Result<Rewound, Refusal> {
    let (found, point) = place(workspace, session, &rewind.to).await?;
    let mut params = json!({
        "cwd": workspace.cwd,
        "mcpServers": [],
        "promptId": point.prompt_id,
        "kept": point.turn_index,
        "leaf": found.leaf,
        "before": point.before,
        "truncatedCount": point.entries,
        "atMs": held.at_ms(),
    });
    if rewind.fresh_will_do {
        params["memory"] = "fresh".into();
    }
    let answer = match session.ask("turnd/rewind", &params.to_string(), AGENT_ASK_MS).await {
        Ok(answer) => answer,
        Err(error) => {
            if matches!(error, AskError::Timeout { .. }) {
                // The host may still do it, and then nobody here knows which session its agent has.
                session.kill().await;
            }
            return Err(refused(session.id(), error));
        }
    };
    let memory = acp_memory(&answer);
    let mut warnings: Vec<String> = rewind.files.then(|| NO_FILES.to_owned()).into_iter().collect();
    warnings.extend((memory.as_deref() == Some("fresh") && point.turn_index > 0).then(|| FRESH.to_owned()));
    let done = Rewound {
        rewound: true,
        target_turn_index: point.turn_index,
        files_changed: json!([]),
        files_failed: json!([]),
        warnings,
        memory,
    };
    held.rewound(Some(&answer), announcement(rewind, &done), rewind.by.as_deref());
    Ok(done)
}

/// What the host says that the agent remembers.
fn acp_memory(answer: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    answer["_meta"]["turnd/memory"].as_str().map(str::to_owned)
}

async fn native(
    workspace: &Arc<Workspace>,
    session: &Session,
    held: &Held,
    rewind: &Rewind,
) -> Result<Rewound, Refusal> {
    let target = target(workspace, session, rewind).await?;
    let before = last_rewind(workspace, session).await;
    let params = json!({ "promptId": target.name, "rewindFiles": rewind.files }).to_string();
    let asked = session.ask("qwen/control/session/rewind", &params, AGENT_ASK_MS).await;
    // Whatever it is asked next it answers only when all that it had to write is in the file, which decides from here on.
    let _ = session.ask("qwen/control/session/turn_status", "{}", AGENT_ASK_MS).await;
    let answer: Option<Value> = asked.as_ref().ok().and_then(|answer| serde_json::from_str(answer).ok());
    let rewound = answer.as_ref().is_some_and(|answer| answer["success"] == true);
    let array = |key: &str| match &answer {
        Some(answer) if answer[key].is_array() => answer[key].clone(),
        _ => json!([]),
    };
    let warnings =
        array("warnings").as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let done = Rewound {
        rewound,
        target_turn_index: answer.as_ref().and_then(|answer| answer["targetTurnIndex"].as_u64()).unwrap_or_default(),
        files_changed: array("filesChanged"),
        files_failed: array("filesFailed"),
        warnings,
        memory: None,
    };
    // It may have moved the history and say no, or say nothing: then the transcript shows it.
    if rewound || last_rewind(workspace, session).await != before {
        moved(workspace, session, held, rewind, (&target, &done)).await?;
    }
    match asked {
        Ok(_) => Ok(done),
        Err(error) => Err(refused(session.id(), error)),
    }
}

/// Tells of a history that an agent moved, and of where it is now if that is not where it was sent.
async fn moved(
    workspace: &Arc<Workspace>,
    session: &Session,
    held: &Held,
    rewind: &Rewind,
    (target, done): (&Target, &Rewound),
) -> Result<(), Refusal> {
    let stay = points(workspace, session, None).await.map(|found| turns(&found));
    let elsewhere = match (&target.meant, &stay) {
        (Some((points, meant)), Ok(stay)) if stay != meant => Some((points, *stay)),
        _ => None,
    };
    let Some((points, stay)) = elsewhere else {
        held.rewound(None, announcement(rewind, done), rewind.by.as_deref());
        return stay.map(|_| ());
    };
    // If none went there is nothing to tell.
    if let Some(first) = points.iter().find(|point| point.turn_index == stay) {
        let went = Rewind { to: first.prompt_id.as_ref().unwrap_or(&first.record).clone(), ..rewind.clone() };
        let done = Rewound { target_turn_index: stay, ..done.clone() };
        held.rewound(None, announcement(&went, &done), rewind.by.as_deref());
    }
    let message = "The agent took back other turns than those, or none; a load shows what stays";
    Err(Refusal::new(StatusCode::BAD_GATEWAY, "rewind_elsewhere", message)
        .with("sessionId", session.id())
        .with("sideEffectPossible", true)
        .with("targetTurnIndex", stay))
}

fn announcement(rewind: &Rewind, done: &Rewound) -> Announcement {
    Announcement::SessionRewound {
        prompt_id: rewind.to.clone(),
        target_turn_index: done.target_turn_index,
        files_changed: done.files_changed.to_string(),
        files_failed: done.files_failed.to_string(),
        memory: done.memory.clone(),
    }
}

/// When the transcript was last rewound; none also when that cannot be told.
async fn last_rewind(workspace: &Arc<Workspace>, session: &Session) -> Option<u64> {
    let path = workspace.layout.transcript(session.id());
    blocking(move || transcript::last_rewind_at_ms(&path).ok().flatten()).await.flatten()
}

/// The agent's own name for a place.
async fn target(workspace: &Arc<Workspace>, session: &Session, rewind: &Rewind) -> Result<Target, Refusal> {
    if rewind.to.contains(SNAPSHOT_MARK) {
        return Ok(Target { name: rewind.to.clone(), meant: None });
    }
    let found = points(workspace, session, None).await?;
    let Some(point) = found.points.iter().find(|point| point.is_named(&rewind.to)) else {
        return Err(invalid_target(session.id(), "No prompt of that id is on the active branch"));
    };
    if found.is_compressed {
        // The agent finds its snapshots by counting turns of a history that was replaced: it would take back others.
        let details = "the history was compressed, and the agent would take back other turns than those";
        return Err(not_supported(session.id(), details));
    }
    let places = session.ask("qwen/status/session/rewind_snapshots", "{}", AGENT_ASK_MS).await;
    let places = Places::of(&places.map_err(|error| refused(session.id(), error))?);
    let stay = point.turn_index;
    match (places.name(&found, point, rewind.files), places.name(&found, point, false)) {
        (Some(name), _) => Ok(Target { name, meant: Some((found.points, stay)) }),
        (None, Some(_)) => {
            let details = "the agent has other files noted for that place; it can be gone to with `rewindFiles` false";
            Err(not_supported(session.id(), details))
        }
        (None, None) => {
            let details = "the agent counts the turns otherwise, and would take back others than those";
            Err(not_supported(session.id(), details))
        }
    }
}

/// The one place of that name.
async fn place(
    workspace: &Arc<Workspace>,
    session: &Session,
    name: &str,
) -> Result<(RewindPoints, RewindPoint), Refusal> {
    let mut found = points(workspace, session, Some(name.to_owned())).await?;
    match (found.points.pop(), found.points.is_empty()) {
        (Some(point), true) => Ok((found, point)),
        _ => Err(invalid_target(session.id(), "No prompt of that id is on the active branch")),
    }
}

/// The places of a session, or those of one name.
///
/// # Errors
/// When the transcript cannot be read.
pub(crate) async fn points(
    workspace: &Arc<Workspace>,
    session: &Session,
    name: Option<String>,
) -> Result<RewindPoints, Refusal> {
    let path = workspace.layout.transcript(session.id());
    let found = blocking(move || rewind_points(&path, name.as_deref())).await.ok_or_else(Refusal::internal)?;
    found.map_err(|error| {
        tracing::warn!(session = session.id(), %error, "transcript cannot be searched");
        Refusal::of_transcript(session.id(), &error)
    })
}

fn invalid_target(session: &str, message: &'static str) -> Refusal {
    Refusal::bad_request("invalid_rewind_target", message).with("sessionId", session)
}

fn not_supported(session: &str, details: &str) -> Refusal {
    let message = "The agent cannot be made to forget just these turns; nothing has changed";
    Refusal::new(StatusCode::NOT_IMPLEMENTED, "rewind_not_supported", message)
        .with("sessionId", session)
        .with("details", details)
}

fn busy(session: &str) -> Refusal {
    Refusal::busy(session, "Cannot rewind while a prompt is running")
}

/// What a client is told of an inquiry that was not answered well.
pub(crate) fn refused(session: &str, error: AskError) -> Refusal {
    let refused = match error {
        AskError::Refused(refused) => refused,
        AskError::Timeout { timeout_ms, .. } => {
            let message =
                format!("The agent did not answer within {timeout_ms} ms; it may still do what it was asked for");
            return Refusal::new(StatusCode::GATEWAY_TIMEOUT, "rewind_timeout", message)
                .with("sessionId", session)
                .with("sideEffectPossible", true)
                .with("timeoutMs", timeout_ms);
        }
        AskError::Gone => return Refusal::session_not_found(session),
    };
    let data: Value = refused.data.as_deref().and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
    let details = data["details"].as_str().unwrap_or(&refused.message);
    let kind = data["turnd/code"].as_str().or(data["errorKind"].as_str());
    match kind {
        Some("turn_in_progress" | "session_busy") => busy(session),
        Some("rewind_not_supported") => not_supported(session, details),
        Some("invalid_rewind_target") => invalid_target(session, "The agent knows no such place"),
        Some("session_transcript_changed") => {
            Refusal::conflict("session_transcript_changed", "The transcript has grown meanwhile; nothing has changed")
                .with("sessionId", session)
                .with("retryable", true)
                .retry_later()
        }
        Some("transcript_unwritable") => {
            let message = "The rewind cannot be recorded; nothing has changed";
            Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "transcript_unwritable", message)
                .with("sessionId", session)
                .with("details", details)
                .retry_later()
        }
        _ if is_method_unknown(&refused) => not_supported(session, details),
        _ => Refusal::new(StatusCode::BAD_GATEWAY, "agent_refused", refused.message.clone())
            .with("sessionId", session)
            .with("rpcCode", refused.code)
            .with("details", details),
    }
}
