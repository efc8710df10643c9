//! Votes on what an agent asks (wire rules, section 12.2).

use std::sync::Arc;

use bridge::{Forbidden, Resolution, Session, Vote, VoteOutcome};
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::dispatch::{Call, registered};
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::wire;
use crate::workspace::Workspace;

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
    let about = About { session: None, request };
    let asked = |workspace: &Arc<Workspace>| workspace.bridge.session_of_permission(request);
    let session = call.daemon.workspaces().find_map(asked).ok_or_else(|| about.unknown())?;
    registered(&session, client)?;
    about.answer(session.vote(request, &vote, &call.voter(client)), &session, &vote)
}

/// `POST /session/:id/permission/:requestId`.
pub(crate) fn session_vote(call: &Call<'_>) -> Result<Reply, Refusal> {
    let client = call.client_id()?;
    let vote = parsed(call)?;
    let session = call.workspace.session(&call.session_id())?;
    registered(&session, client)?;
    let request = call.matched.second();
    let about = About { session: Some(session.id()), request };
    about.answer(session.vote(request, &vote, &call.voter(client)), &session, &vote)
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

/// What was voted on, and the session if the caller named it: the older route's answers name none.
struct About<'a> {
    session: Option<&'a str>,
    request: &'a str,
}

impl About<'_> {
    fn answer(&self, outcome: VoteOutcome, session: &Session, vote: &Vote) -> Result<Reply, Refusal> {
        match outcome {
            VoteOutcome::Recorded | VoteOutcome::Repeated => Ok(ok(&json!({}))),
            VoteOutcome::InvalidOption => Err(self.invalid_option(vote)),
            VoteOutcome::Forbidden(why) => Err(self.forbidden(session, why)),
            VoteOutcome::AlreadyResolved(resolution) => Err(self.decided(&resolution)),
            VoteOutcome::Unknown => Err(self.unknown()),
        }
    }

    fn invalid_option(&self, vote: &Vote) -> Refusal {
        let option = match vote {
            Vote::Selected { option_id, .. } => option_id.as_str(),
            Vote::Cancelled => "__cancelled__",
        };
        let message = format!("Option \"{option}\" was not offered by permission request \"{}\"", self.request);
        Refusal::bad_request("invalid_option_id", message).with("requestId", self.request).with("optionId", option)
    }

    fn forbidden(&self, session: &Session, why: Forbidden) -> Refusal {
        let (request, session, why) = (self.request, session.id(), why.as_str());
        let message = format!("Permission {request} on session {session}: vote rejected by policy ({why})");
        Refusal::new(StatusCode::FORBIDDEN, "permission_forbidden", message)
            .with("requestId", request)
            .with("sessionId", session)
            .with("reason", why)
    }

    /// The request is decided. The peer's own client takes any 404 for that.
    fn decided(&self, resolution: &Resolution) -> Refusal {
        let message = "The permission request was already decided";
        self.not_found("permission_already_decided", message).with("decision", wire::resolution(resolution))
    }

    fn unknown(&self) -> Refusal {
        let message = match self.session {
            Some(_) => "No pending permission request for session",
            None => "No pending permission request",
        };
        self.not_found("permission_not_found", message)
    }

    fn not_found(&self, code: &'static str, message: &'static str) -> Refusal {
        let refusal = Refusal::new(StatusCode::NOT_FOUND, code, message);
        let refusal = match self.session {
            Some(session) => refusal.with("sessionId", session),
            None => refusal,
        };
        refusal.with("requestId", self.request)
    }
}
