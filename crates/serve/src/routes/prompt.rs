//! Admission and cancel (wire rules, sections 8.1 and 8.5). An admission is answered at once; what becomes of it is an event.

use hyper::StatusCode;

use crate::admission::admit as admitted;
use crate::content;
use crate::dispatch::{Call, registered};
use crate::idempotency;
use crate::refusal::Refusal;
use crate::reply::{Reply, json, no_content};
use crate::routes::pending::not_open;
use crate::wire::Admitted;

/// `POST /session/:id/prompt`.
pub(crate) async fn admit(call: &Call<'_>) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    let mut content = content::parse(&call.fields)?;
    content.prompt_id = idempotency::chosen_id(content.prompt_id, &call.head.headers)?;
    let id = call.session_id();
    let session = match call.workspace.session(&id) {
        Err(_) if call.workspace.desk.is_closing(&id) => return Err(Refusal::archiving(&id)),
        session => session?,
    };
    registered(&session, client)?;
    let admission = admitted(call.workspace, &session, client, content).await?;
    Ok(json(StatusCode::ACCEPTED, &Admitted::new(&admission.receipt, admission.replayed)))
}

/// `POST /session/:id/cancel`. A body that names a prompt fences the cancel: it means that one and no other.
pub(crate) fn cancel(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.open_session_and_client()?;
    let prompt_id = content::prompt_id(&call.fields)?;
    session.cancel(prompt_id.as_deref(), client).map_err(|error| not_open(session.id(), error))?;
    Ok(no_content())
}
