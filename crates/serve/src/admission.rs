//! Admission of a prompt to a live session (wire rules, section 8.1), whichever door it came through.

use std::sync::Arc;

use bridge::{AdmitError, Prompt, Receipt, Session};
use hyper::StatusCode;

use crate::chosen::{Once, OnceError, fingerprint};
use crate::content::Content;
use crate::refusal::Refusal;
use crate::tasks::blocking;
use crate::workspace::Workspace;

/// A prompt that is in the ledger.
pub(crate) struct Admission {
    pub(crate) receipt: Receipt,
    /// It was admitted before, under the id that its caller chose, and is not run again.
    pub(crate) replayed: bool,
}

impl Admission {
    fn new(receipt: Receipt, replayed: bool) -> Self {
        Self { receipt, replayed }
    }
}

/// Admits what `client` asks, who must be registered with the session if it says who it is.
///
/// # Errors
/// When it is not admitted; nothing was sent then.
pub(crate) async fn admit(
    workspace: &Arc<Workspace>,
    session: &Session,
    client: Option<&str>,
    content: Content,
) -> Result<Admission, Refusal> {
    let is_closing = workspace.desk.is_closing(session.id());
    let chosen = content.prompt_id.clone();
    let prompt = prompt(workspace, session, client, content);
    if let Some(prompt_id) = &chosen {
        if let Some(admission) = replayed(workspace, session, prompt_id, &prompt).await? {
            // Whatever keeps a new prompt out does not take back what was admitted.
            return Ok(admission);
        }
        workspace.returns.check_chosen(session.id(), prompt_id).await?;
    }
    if is_closing {
        return Err(Refusal::archiving(session.id()));
    }
    match chosen {
        Some(_) if !workspace.sink.has_room(session.id()) => Err(no_room()),
        Some(prompt_id) => admit_once(workspace, session, &prompt_id, prompt),
        None => Ok(Admission::new(admit_new(workspace, session, prompt)?, false)),
    }
}

/// Admits a prompt whose id the daemon makes.
///
/// # Errors
/// When it is not admitted; nothing was sent then.
pub(crate) fn admit_new(workspace: &Workspace, session: &Session, prompt: Prompt) -> Result<Receipt, Refusal> {
    if !workspace.sink.has_room(session.id()) {
        return Err(no_room());
    }
    let receipt = session.admit(prompt).map_err(|error| refused(session.id(), error))?;
    workspace.chosen.note(session.id(), &receipt.prompt_id);
    Ok(receipt)
}

/// Reads the session's ids, if that was not done yet.
pub(crate) async fn load_ids(workspace: &Arc<Workspace>, session: &Session) -> Result<(), Refusal> {
    if workspace.chosen.is_loaded(session.id()) {
        return Ok(());
    }
    let (reader, id) = (Arc::clone(workspace), session.id().to_owned());
    let loaded = blocking(move || reader.chosen.load(&id, &reader.sink.ledger(&id))).await;
    loaded.ok_or_else(Refusal::internal)?.map_err(|error| ids_unreadable(session.id(), &error))
}

/// What was admitted under this id before; none when the id is new to the session. Its ids have been read then.
async fn replayed(
    workspace: &Arc<Workspace>,
    session: &Session,
    prompt_id: &str,
    prompt: &Prompt,
) -> Result<Option<Admission>, Refusal> {
    load_ids(workspace, session).await?;
    match workspace.chosen.known(session.id(), prompt_id, fingerprint_of(prompt)) {
        Ok(once) => Ok(once.map(|once| admission(session, prompt_id, once))),
        Err(error) => Err(not_admitted(session, prompt_id, error)),
    }
}

/// Admission under an id that the caller chose: it runs once, however often it is sent.
fn admit_once(workspace: &Workspace, session: &Session, prompt_id: &str, prompt: Prompt) -> Result<Admission, Refusal> {
    if is_taken_elsewhere(workspace, session, prompt_id) {
        return Err(id_conflict(session.id(), prompt_id));
    }
    let fingerprint = fingerprint_of(&prompt);
    match workspace.chosen.once(session.id(), prompt_id, fingerprint, || session.admit(prompt)) {
        Ok(once) => Ok(admission(session, prompt_id, once)),
        // The bridge knows it from a life of the session that we did not see: from its overlay.
        Err(OnceError::Refused(AdmitError::Known { first, same_content: true })) => Ok(Admission::new(first, true)),
        Err(error) => Err(not_admitted(session, prompt_id, error)),
    }
}

/// What is asked, and not how long its caller waits for it: the limits of the first copy stay.
fn fingerprint_of(prompt: &Prompt) -> u128 {
    fingerprint(&[&prompt.content, prompt.extra.as_deref().unwrap_or_default()])
}

/// The same for words into a running turn. They are no prompt yet, so that a prompt of their id is never taken for their repetition.
pub(crate) fn fingerprint_of_words(prompt: &Prompt) -> u128 {
    fingerprint(&["mid-turn", &prompt.content])
}

fn admission(session: &Session, prompt_id: &str, once: Once) -> Admission {
    match once {
        Once::Admitted(receipt) => Admission::new(receipt, false),
        Once::Repeated(Some(receipt)) => Admission::new(receipt, true),
        Once::Repeated(None) => Admission::new(receipt_now(session, prompt_id), true),
    }
}

pub(crate) fn not_admitted(session: &Session, prompt_id: &str, error: OnceError) -> Refusal {
    match error {
        OnceError::Taken | OnceError::Refused(AdmitError::Known { .. }) => id_conflict(session.id(), prompt_id),
        OnceError::Refused(error) => refused(session.id(), error),
        OnceError::Unwritable(error) => {
            tracing::error!(session = session.id(), %error, "a chosen prompt id cannot be recorded");
            no_room()
        }
    }
}

/// Whether another live session of the workspace knows a prompt of this id, also one whose id the daemon made.
pub(crate) fn is_taken_elsewhere(workspace: &Workspace, session: &Session, prompt_id: &str) -> bool {
    workspace.bridge.sessions().iter().filter(|other| other.id() != session.id()).any(|other| {
        let view = other.turn(Some(prompt_id));
        view.live.is_some() || view.overlay.is_some() || workspace.chosen.is_taken(other.id(), prompt_id)
    })
}

/// The receipt for a prompt of an earlier life: from here on, everything that still comes is seen.
fn receipt_now(session: &Session, prompt_id: &str) -> Receipt {
    Receipt {
        prompt_id: prompt_id.to_owned(),
        last_event_id: session.last_event_id(),
        event_epoch: session.epoch().to_owned(),
    }
}

pub(crate) fn prompt(workspace: &Workspace, session: &Session, client: Option<&str>, content: Content) -> Prompt {
    // A retry is one only behind a failed turn; anywhere else its text is not in the history yet.
    let retry = content.retry && session.status().turn_error.is_some();
    Prompt {
        content: content.blocks,
        text: content.text,
        prompt_id: content.prompt_id,
        originator: client.map(str::to_owned),
        extra: content.extra,
        retry,
        alone: false,
        witnessed: false,
        deadline_ms: shorter(content.deadline_ms, workspace.options.prompt_deadline_ms),
        run_deadline_ms: shorter(content.run_deadline_ms, workspace.options.prompt_run_deadline_ms),
    }
}

/// The caller's limit or the daemon's, whichever is the shorter; either counts alone.
fn shorter(asked_ms: Option<u64>, own_ms: Option<u64>) -> Option<u64> {
    asked_ms.into_iter().chain(own_ms).min()
}

pub(crate) fn refused(session: &str, error: AdmitError) -> Refusal {
    match error {
        AdmitError::QueueFull { limit, pending } => {
            let message = format!("Prompt queue full for session \"{session}\" ({pending}/{limit} pending)");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "prompt_queue_full", message)
                .with("sessionId", session)
                .with("limit", limit)
                .with("pendingCount", pending)
                .retry_later()
        }
        AdmitError::Known { first, .. } => id_conflict(session, &first.prompt_id),
        AdmitError::Busy => Refusal::busy(session, "A prompt runs or waits, or the conversation is being taken back"),
        AdmitError::NotContent => Refusal::bad_request("invalid_prompt", error.to_string()),
        AdmitError::Closing => Refusal::archiving(session),
        AdmitError::Gone => Refusal::session_not_found(session),
    }
}

/// 409: the id belongs to another prompt.
pub(crate) fn id_conflict(session: &str, prompt_id: &str) -> Refusal {
    let message = format!("Prompt id \"{prompt_id}\" is already in use by another prompt");
    Refusal::conflict("prompt_id_conflict", message).with("sessionId", session).with("promptId", prompt_id)
}

/// 500: whether the id is new cannot be told, so nothing was run.
pub(crate) fn ids_unreadable(session: &str, error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(session, %error, "the session's prompt ids cannot be read");
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "prompt_ids_unreadable",
        "Whether the prompt id is new cannot be told",
    )
    .with("sessionId", session)
    .with("inputWritten", "no")
}

/// 507: the admission could not be recorded, so it is not given. Nothing was sent.
pub(crate) fn no_room() -> Refusal {
    Refusal::new(
        StatusCode::INSUFFICIENT_STORAGE,
        "ledger_unwritable",
        "The prompt cannot be recorded; nothing was sent",
    )
    .with("inputWritten", "no")
    .retry_later()
}
