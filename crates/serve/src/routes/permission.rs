//! Votes on what an agent asks (wire rules, section 12.2).

use bridge::{Session, Vote, VoteOutcome};
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::dispatch::{Call, registered};
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};

/// The body of a vote, as far as it decides.
#[derive(Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
enum Outcome {
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: String,
    },
    Cancelled,
}

/// `POST /permission/:requestId`, which the peer's own client uses.
pub(crate) fn vote(call: &Call<'_>) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    let vote = parsed(call)?;
    let request = call.matched.id();
    let unknown = || not_pending("No pending permission request", None, request);
    let session = call.app.bridge.session_of_permission(request).ok_or_else(unknown)?;
    registered(&session, client)?;
    cast(&session, request, &vote, client).unwrap_or_else(|| Err(unknown()))
}

/// `POST /session/:id/permission/:requestId`.
pub(crate) fn session_vote(call: &Call<'_>) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    let vote = parsed(call)?;
    let session = call.app.session(&call.session_id())?;
    registered(&session, client)?;
    let request = call.matched.second();
    let unknown = || not_pending("No pending permission request for session", Some(session.id()), request);
    cast(&session, request, &vote, client).unwrap_or_else(|| Err(unknown()))
}

fn parsed(call: &Call<'_>) -> Result<Vote, Refusal> {
    let outcome = call.fields.get("outcome").and_then(|raw| serde_json::from_str(raw.get()).ok());
    match outcome {
        Some(Outcome::Selected { option_id }) => {
            let answers = call.fields.get("answers").map(|raw| raw.get().to_owned());
            Ok(Vote::Selected { option_id, answers })
        }
        Some(Outcome::Cancelled) => Ok(Vote::Cancelled),
        None => Err(Refusal::bad_request(
            "invalid_outcome",
            "`outcome` must be `{ outcome: \"cancelled\" }` or `{ outcome: \"selected\", optionId: string }`",
        )),
    }
}

/// None when there is nothing to vote on.
fn cast(session: &Session, request: &str, vote: &Vote, client: Option<&str>) -> Option<Result<Reply, Refusal>> {
    match session.vote(request, vote, client) {
        VoteOutcome::Recorded => Some(Ok(ok(&json!({})))),
        VoteOutcome::InvalidOption => Some(Err(invalid_option(request, vote))),
        VoteOutcome::AlreadyResolved(_) | VoteOutcome::Unknown => None,
    }
}

fn invalid_option(request: &str, vote: &Vote) -> Refusal {
    let option = match vote {
        Vote::Selected { option_id, .. } => option_id.as_str(),
        Vote::Cancelled => "__cancelled__",
    };
    let message = format!("Option \"{option}\" was not offered by permission request \"{request}\"");
    Refusal::bad_request("invalid_option_id", message).with("requestId", request).with("optionId", option)
}

fn not_pending(message: &'static str, session: Option<&str>, request: &str) -> Refusal {
    let refusal = Refusal::new(StatusCode::NOT_FOUND, "permission_not_found", message);
    let refusal = match session {
        Some(session) => refusal.with("sessionId", session),
        None => refusal,
    };
    refusal.with("requestId", request)
}
