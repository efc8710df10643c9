//! `POST /session/:id/load` and `/resume` (wire rules, section 7).

use std::sync::Arc;

use bridge::Session;
use serde_json::value::RawValue;

use crate::agent_state::agent_state;
use crate::body::Fields;
use crate::branch::Branched;
use crate::clock::iso;
use crate::desk::{Action, RestoreRequest};
use crate::dispatch::Call;
use crate::history;
use crate::limits::HISTORY_PAGE_MAX;
use crate::pieces::ok_with;
use crate::refusal::Refusal;
use crate::replayed::{Replayed, Summaries};
use crate::reply::{Reply, ok};
use crate::requests::{approval_mode, check_source, is_summary, number, workspace};
use crate::restore::{Joined, restore};
use crate::tasks::blocking;
use crate::wanted::{NOT_AS_WANTED, Wanted};
use crate::wire;

/// Options that change what a restore gives, so that only identical ones share it.
const OPTION_KEYS: [&str; 6] =
    ["approvalMode", "historyPageSize", "liveReplayMode", "compactedReplayMode", "sourceType", "sourceId"];

pub(crate) async fn load(call: &Call<'_>) -> Result<Reply, Refusal> {
    answer(call, Action::Load).await
}

pub(crate) async fn resume(call: &Call<'_>) -> Result<Reply, Refusal> {
    answer(call, Action::Resume).await
}

async fn answer(call: &Call<'_>, action: Action) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    let request = request(&call.fields, &call.workspace.cwd, action)?;
    let wanted = Wanted { model: None, ..Wanted::read(&call.fields)? };
    let records_max = request.records_max;
    let joined = restore(call.workspace, &call.session_id(), request).await?;
    let session = joined.session();
    if let Err(refusal) = wanted.of_attached(session).apply(call.workspace, session, client).await {
        if matches!(joined, Joined::Restored(_)) && session.status().client_count == 0 {
            // Somebody else may be closing it, which is as good.
            let _ = session.close(NOT_AS_WANTED, None).await;
        }
        return Err(refusal);
    }
    tell(call, &joined, Asked { action, client, records_max, branched: None }).await
}

/// What the caller of a load, or of what ends like one, is told of.
pub(crate) struct Asked<'a> {
    action: Action,
    client: Option<&'a str>,
    records_max: Option<usize>,
    /// The session was made of another one just now.
    branched: Option<Branched>,
}

impl<'a> Asked<'a> {
    /// By a client that has made the session of another one.
    pub(crate) fn branch(client: Option<&'a str>, branched: Branched) -> Self {
        Self { action: Action::Load, client, records_max: None, branched: Some(branched) }
    }
}

/// The answer for whoever has come by a session.
///
/// # Errors
/// When what happened before cannot be told.
pub(crate) async fn tell(call: &Call<'_>, joined: &Joined, asked: Asked<'_>) -> Result<Reply, Refusal> {
    let Asked { action, client, records_max, branched } = asked;
    let session = joined.session();
    let mut head = wire::Restored {
        session_id: session.id(),
        workspace_cwd: session.workspace_cwd(),
        attached: matches!(joined, Joined::Attached(_)),
        client_id: String::new(),
        created_at: iso(session.created_at_ms()),
        state: agent_state(session),
        has_active_prompt: session.status().has_active_prompt,
        replay: None,
        memory: None,
        last_event_id: session.last_event_id(),
        event_epoch: session.epoch(),
        prompt_terminals: Vec::new(),
        unresolved_prompts: Vec::new(),
        display_name: None,
        forked_from: None,
    };
    if let Some(branched) = branched {
        head.display_name = Some(branched.display_name);
        head.forked_from = Some(branched.forked_from);
    }
    if let Joined::Restored(restoration) = joined {
        head.memory.clone_from(&restoration.memory);
        head.last_event_id = restoration.last_event_id;
    }
    if action == Action::Resume {
        head.client_id = session.register(client);
        return Ok(ok(&head));
    }
    // The cursor is the one behind what is shown, however long the rest takes.
    let replayed = replayed(call, joined, records_max).await?;
    head.last_event_id = replayed.last_event_id;
    head.has_active_prompt = replayed.has_active_prompt;
    // An earlier life's prompt stays open until the next cold load, so whoever attaches is told the same.
    let found = call.workspace.restored.get(session.id()).unwrap_or_default();
    head.unresolved_prompts = found.unresolved.iter().map(wire::Unresolved::new).collect();
    head.replay = Some(wire::Replay {
        replay_error: found.error.clone(),
        history_has_more: replayed.has_more,
        history_anchor_record_id: replayed.anchor.clone(),
    });
    head.prompt_terminals = terminals(call, session).await;
    let arrays = replayed.arrays(summaries(&call.fields)?).await.ok_or_else(Refusal::internal)?;
    head.client_id = session.register(client);
    Ok(ok_with(&head, arrays))
}

/// What happened before the caller came.
async fn replayed(call: &Call<'_>, joined: &Joined, records_max: Option<usize>) -> Result<Replayed, Refusal> {
    let session = match joined {
        Joined::Restored(restoration) => return Ok(Replayed::cold(&restoration.replay, restoration.last_event_id)),
        Joined::Attached(session) => session,
    };
    let page = match records_max {
        Some(records_max) => Replayed::page(call.workspace, session, records_max).await?,
        None => None,
    };
    Ok(page.unwrap_or_else(|| Replayed::attached(session.told(), &call.workspace.options)))
}

/// Which parts of a replay are wanted in their reduced form.
fn summaries(fields: &Fields<'_>) -> Result<Summaries, Refusal> {
    Ok(Summaries {
        compacted: is_summary(fields, "compactedReplayMode", "invalid_compacted_replay_mode")?,
        live: is_summary(fields, "liveReplayMode", "invalid_live_replay_mode")?,
    })
}

/// Checks a body and keeps what of it changes the answer.
fn request(fields: &Fields<'_>, bound: &str, action: Action) -> Result<RestoreRequest, Refusal> {
    workspace(fields, bound)?;
    let mut records_max = None;
    if action == Action::Load {
        records_max = fields.get("historyPageSize").map(|raw| page_size(raw)).transpose()?;
        summaries(fields)?;
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

async fn terminals(call: &Call<'_>, session: &Session) -> Vec<Box<RawValue>> {
    let (workspace, id) = (Arc::clone(call.workspace), session.id().to_owned());
    blocking(move || history::terminals(&workspace, &id)).await.unwrap_or_default().to_vec()
}
