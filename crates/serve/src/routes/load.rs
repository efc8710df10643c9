//! `POST /session/:id/load` and `/resume` (wire rules, section 7).

use std::sync::Arc;

use bridge::Session;
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::body::Fields;
use crate::clock::iso;
use crate::desk::{Action, RestoreRequest};
use crate::dispatch::Call;
use crate::history::{self, History};
use crate::journal;
use crate::limits::HISTORY_PAGE_MAX;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::requests::{approval_mode, check_source, number, replay_mode, workspace};
use crate::restore::{Joined, restore};
use crate::tasks::blocking;
use crate::wire::{self, Replay};

/// What of the agent's answer clients are shown.
const STATE_KEYS: [&str; 4] = ["modes", "models", "configOptions", "_meta"];

/// Options that change what a restore gives, so that only identical ones share it.
const OPTION_KEYS: [&str; 5] =
    ["approvalMode", "historyPageSize", "liveReplayMode", "compactedReplayMode", "sourceType"];

pub(crate) async fn load(call: &Call<'_>) -> Result<Reply, Refusal> {
    answer(call, Action::Load).await
}

pub(crate) async fn resume(call: &Call<'_>) -> Result<Reply, Refusal> {
    answer(call, Action::Resume).await
}

async fn answer(call: &Call<'_>, action: Action) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    check(&call.fields, &call.app.workspace, action)?;
    let id = call.session_id();
    let joined = restore(call.app, &id, request(&call.fields, action)).await?;
    let (session, replay, attached) = match (&joined, action) {
        (Joined::Restored(restoration), Action::Load) => {
            (&restoration.session, Some(cold(&restoration.history)), false)
        }
        (Joined::Restored(restoration), Action::Resume) => (&restoration.session, None, false),
        (Joined::Attached(session), Action::Load) => (session, Some(attach(call, session)), true),
        (Joined::Attached(session), Action::Resume) => (session, None, true),
    };
    let prompt_terminals = match action {
        Action::Load => terminals(call, session).await,
        Action::Resume => Vec::new(),
    };
    let client_id = session.register(client);
    Ok(ok(&wire::Restored {
        session_id: session.id(),
        workspace_cwd: session.workspace_cwd(),
        attached,
        client_id: &client_id,
        created_at: iso(session.created_at_ms()),
        state: state(session),
        has_active_prompt: session.status().has_active_prompt,
        replay,
        memory: None,
        last_event_id: session.last_event_id(),
        event_epoch: session.epoch(),
        prompt_terminals,
    }))
}

fn check(fields: &Fields<'_>, bound: &str, action: Action) -> Result<(), Refusal> {
    workspace(fields, bound)?;
    if action == Action::Load {
        if let Some(raw) = fields.get("historyPageSize") {
            number(raw, 1..=HISTORY_PAGE_MAX).map_err(|()| {
                Refusal::bad_request("invalid_transcript_limit", "`historyPageSize` must be between 1 and 500")
                    .with("maxLimit", HISTORY_PAGE_MAX)
            })?;
        }
        replay_mode(fields, "liveReplayMode", "invalid_live_replay_mode")?;
        replay_mode(fields, "compactedReplayMode", "invalid_compacted_replay_mode")?;
    }
    approval_mode(fields)?;
    check_source(fields)
}

fn request(fields: &Fields<'_>, action: Action) -> RestoreRequest {
    let option = |key: &&str| fields.get(*key).map(|raw| ((*key).to_owned(), raw.get().to_owned()));
    RestoreRequest { action, options: OPTION_KEYS.iter().filter_map(option).collect() }
}

fn cold(history: &History) -> Replay {
    Replay {
        compacted_replay: history.frames.iter().filter_map(|frame| raw(frame.clone())).collect(),
        live_journal: Vec::new(),
        replay_error: history.error.clone(),
    }
}

/// What happened before the caller came: the history of the load, then the events since.
fn attach(call: &Call<'_>, session: &Session) -> Replay {
    let history = call.app.restored.get(session.id()).unwrap_or_default();
    let events: Vec<String> = session.recent_events().iter().filter_map(text).collect();
    let bytes_max = call.app.options.limits.compacted_replay_max_bytes;
    let journal = journal::split(&history.frames, events, bytes_max);
    Replay {
        compacted_replay: journal.compacted.into_iter().filter_map(raw).collect(),
        live_journal: journal.live.into_iter().filter_map(raw).collect(),
        replay_error: history.error.clone(),
    }
}

fn text(frame: &Bytes) -> Option<String> {
    String::from_utf8(frame.to_vec()).ok()
}

fn raw(frame: String) -> Option<Box<RawValue>> {
    RawValue::from_string(frame).ok()
}

async fn terminals(call: &Call<'_>, session: &Session) -> Vec<Box<RawValue>> {
    let (app, id) = (Arc::clone(call.app), session.id().to_owned());
    let lines = blocking(move || history::terminals(&app, &id)).await.unwrap_or_default();
    lines.into_iter().filter_map(raw).collect()
}

/// The agent's state as clients know it.
fn state(session: &Session) -> Value {
    let mut answer: Map<String, Value> = serde_json::from_str(session.agent_state()).unwrap_or_default();
    answer.retain(|key, _| STATE_KEYS.contains(&key.as_str()));
    Value::Object(answer)
}
