//! `POST /session/:id/load` and `/resume` (wire rules, section 7).

use std::borrow::Cow;
use std::sync::Arc;

use bridge::{Recent, Session};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::body::Fields;
use crate::clock::iso;
use crate::desk::{Action, RestoreRequest};
use crate::dispatch::Call;
use crate::history::{self, History};
use crate::journal::{self, Missing};
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
    let request = request(&call.fields, &call.workspace.cwd, action)?;
    let id = call.session_id();
    let joined = restore(call.workspace, &id, request).await?;
    let session = joined.session();
    // The cursor is the one behind what is shown, however long the rest takes.
    let (replay, attached, memory, last_event_id) = match &joined {
        Joined::Restored(restoration) => {
            let replay = (action == Action::Load).then(|| cold(&restoration.history));
            (replay, false, restoration.memory.clone(), restoration.last_event_id)
        }
        Joined::Attached(session) => {
            let recent = session.recent();
            let last_event_id = recent.last_event_id;
            let replay = (action == Action::Load).then(|| attach(call, session, &recent));
            (replay, true, None, last_event_id)
        }
    };
    let prompt_terminals = match action {
        Action::Load => terminals(call, session).await,
        Action::Resume => Vec::new(),
    };
    // An earlier life's prompt stays open until the next cold load, so whoever attaches is told the same.
    let history = match &joined {
        Joined::Restored(restoration) => Some(Arc::clone(&restoration.history)),
        Joined::Attached(session) => call.workspace.restored.get(session.id()),
    };
    let history = history.filter(|_| action == Action::Load);
    let unresolved_prompts = history.iter().flat_map(|history| &history.unresolved).map(wire::Unresolved::new);
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
        memory,
        last_event_id,
        event_epoch: session.epoch(),
        prompt_terminals,
        unresolved_prompts: unresolved_prompts.collect(),
    }))
}

/// Checks a body and keeps what of it changes the answer.
fn request(fields: &Fields<'_>, bound: &str, action: Action) -> Result<RestoreRequest, Refusal> {
    workspace(fields, bound)?;
    let mut records_max = None;
    if action == Action::Load {
        records_max = fields.get("historyPageSize").map(|raw| page_size(raw)).transpose()?;
        replay_mode(fields, "liveReplayMode", "invalid_live_replay_mode")?;
        replay_mode(fields, "compactedReplayMode", "invalid_compacted_replay_mode")?;
    }
    approval_mode(fields)?;
    check_source(fields)?;
    let option = |key: &&str| fields.get(*key).map(|raw| ((*key).to_owned(), raw.get().to_owned()));
    Ok(RestoreRequest { action, records_max, options: OPTION_KEYS.iter().filter_map(option).collect() })
}

fn page_size(raw: &RawValue) -> Result<usize, Refusal> {
    let records = number(raw, 1..=HISTORY_PAGE_MAX).ok().and_then(|records| usize::try_from(records).ok());
    records.ok_or_else(|| {
        Refusal::bad_request("invalid_transcript_limit", "`historyPageSize` must be between 1 and 500")
            .with("maxLimit", HISTORY_PAGE_MAX)
    })
}

/// The history of the load itself. Its frames are not copied: they are most of what a load weighs.
fn cold(history: &History) -> Replay<'_> {
    let frames = history.gap.iter().chain(&history.frames);
    let frames = frames.filter_map(|frame| serde_json::from_str(frame).ok().map(Cow::Borrowed));
    Replay { compacted_replay: frames.collect(), ..described(history) }
}

/// What happened before the caller came: the history of the load, then the events since.
fn attach(call: &Call<'_>, session: &Session, recent: &Recent) -> Replay<'static> {
    let history = call.workspace.restored.get(session.id()).unwrap_or_default();
    let events: Vec<String> = recent.events.iter().filter_map(text).collect();
    let bytes_max = call.workspace.options.limits.compacted_replay_max_bytes;
    let missing = Missing { before: u64::from(history.gap.is_some()), forgotten: recent.forgotten };
    let journal = journal::split(&history.frames, events, missing, bytes_max);
    Replay {
        compacted_replay: journal.compacted.into_iter().filter_map(raw).map(Cow::Owned).collect(),
        live_journal: journal.live.into_iter().filter_map(raw).map(Cow::Owned).collect(),
        ..described(&history)
    }
}

/// All of a replay but its events.
fn described(history: &History) -> Replay<'static> {
    Replay {
        compacted_replay: Vec::new(),
        live_journal: Vec::new(),
        replay_error: history.error.clone(),
        history_has_more: history.page.is_some(),
        history_anchor_record_id: history.page.as_ref().and_then(|page| page.anchor.clone()),
    }
}

fn text(frame: &Bytes) -> Option<String> {
    String::from_utf8(frame.to_vec()).ok()
}

fn raw(frame: String) -> Option<Box<RawValue>> {
    RawValue::from_string(frame).ok()
}

async fn terminals(call: &Call<'_>, session: &Session) -> Vec<Box<RawValue>> {
    let (workspace, id) = (Arc::clone(call.workspace), session.id().to_owned());
    let lines = blocking(move || history::terminals(&workspace, &id)).await.unwrap_or_default();
    lines.into_iter().filter_map(raw).collect()
}

/// The agent's state as clients know it.
fn state(session: &Session) -> Value {
    let mut answer: Map<String, Value> = serde_json::from_str(&session.agent_state()).unwrap_or_default();
    answer.retain(|key, _| STATE_KEYS.contains(&key.as_str()));
    Value::Object(answer)
}
