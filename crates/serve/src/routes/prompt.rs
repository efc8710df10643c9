//! Admission and cancel (wire rules, sections 8.1 and 8.5). An admission is answered at once; what becomes of it is an event.

use bridge::{AdmitError, Prompt, Session};
use hyper::StatusCode;

use crate::content::{self, Content};
use crate::dispatch::{Call, registered};
use crate::refusal::Refusal;
use crate::reply::{Reply, json, no_content};
use crate::routes::pending::not_open;
use crate::wire::Admitted;

/// `POST /session/:id/prompt`.
pub(crate) fn admit(call: &Call<'_>) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    let content = content::parse(&call.fields)?;
    let id = call.session_id();
    if call.app.desk.is_closing(&id) {
        return Err(Refusal::archiving(&id));
    }
    let session = call.app.session(&id)?;
    registered(&session, client)?;
    if !call.app.sink.has_room() {
        return Err(no_room());
    }
    let prompt = prompt(call, &session, client, content);
    match session.admit(prompt) {
        Ok(receipt) => Ok(json(StatusCode::ACCEPTED, &Admitted::new(&receipt, false))),
        Err(AdmitError::Known { first, same_content: true }) => {
            Ok(json(StatusCode::ACCEPTED, &Admitted::new(&first, true)))
        }
        Err(error) => Err(refused(session.id(), error)),
    }
}

/// `POST /session/:id/cancel`.
pub(crate) fn cancel(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.open_session_and_client()?;
    session.cancel(client).map_err(|error| not_open(session.id(), error))?;
    Ok(no_content())
}

fn prompt(call: &Call<'_>, session: &Session, client: Option<&str>, content: Content) -> Prompt {
    // A retry is one only behind a failed turn; anywhere else its text is not in the history yet.
    let retry = content.retry && session.status().turn_error.is_some();
    Prompt {
        content: content.blocks,
        text: content.text,
        prompt_id: content.prompt_id,
        originator: client.map(str::to_owned),
        extra: content.extra,
        retry,
        // Without the daemon's own limit the request's is checked and then ignored (wire rules, section 8.7).
        deadline_ms: call
            .app
            .options
            .prompt_deadline_ms
            .map(|most| content.deadline_ms.map_or(most, |asked| asked.min(most))),
    }
}

fn refused(session: &str, error: AdmitError) -> Refusal {
    match error {
        AdmitError::QueueFull { limit, pending } => {
            let message = format!("Prompt queue full for session \"{session}\" ({pending}/{limit} pending)");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "prompt_queue_full", message)
                .with("sessionId", session)
                .with("limit", limit)
                .with("pendingCount", pending)
                .retry_later()
        }
        AdmitError::Known { first, .. } => {
            let message = format!("Prompt id \"{}\" is already in use with other content", first.prompt_id);
            Refusal::conflict("prompt_id_conflict", message)
                .with("sessionId", session)
                .with("promptId", first.prompt_id)
        }
        AdmitError::NotContent => Refusal::bad_request("invalid_prompt", error.to_string()),
        AdmitError::Closing => Refusal::archiving(session),
        AdmitError::Gone => Refusal::session_not_found(session),
    }
}

/// 507: the admission could not be recorded, so it is not given. Nothing was sent.
fn no_room() -> Refusal {
    Refusal::new(
        StatusCode::INSUFFICIENT_STORAGE,
        "ledger_unwritable",
        "The prompt cannot be recorded; nothing was sent",
    )
    .with("inputWritten", "no")
    .retry_later()
}
