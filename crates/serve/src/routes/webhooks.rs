//! The endpoints that terminal events are posted to: named, shown, deleted, and served again.

pub(crate) mod secrets;

use hyper::StatusCode;
use request::store::{Asked, Put, Stepped, StoreError};
use request::webhook::limits::ENDPOINTS_MAX;
use request::webhook::{Denial, Effect, Endpoint, EndpointName, Input, Letter, Secret};
use serde_json::{Value, json};

use crate::body::text;
use crate::dispatch::Call;
use crate::refusal::Refusal;
use crate::reply::{Reply, json, no_content, ok};
use crate::requests::number;
use crate::returns::refusal;
use crate::returns::submit::OWNER;
use crate::webhooks::target::Target;
use crate::webhooks::{fresh_secret, shown};

/// `PUT /return-requests/webhooks/:name`. A secret that was made here is in this answer and in no other one.
pub(crate) async fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let webhooks = call.daemon.webhooks()?;
    match webhooks.put(said(call)?).await.map_err(|error| refused(&error))? {
        Put::Done { endpoint, is_new, is_secret_made } => {
            let mut shown = shown::endpoint(&endpoint);
            if is_secret_made {
                shown["secret"] = endpoint.secret.reveal().into();
            }
            Ok(json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &shown))
        }
        Put::TooMany => {
            let message = format!("There are {ENDPOINTS_MAX} endpoints already");
            Err(Refusal::conflict("too_many_webhooks", message).with("limit", ENDPOINTS_MAX))
        }
        Put::TooOld { oldest, head } => {
            let message = "What is behind this number is not kept any more";
            let refusal = Refusal::new(StatusCode::GONE, "cursor_too_old", message);
            Err(refusal.with("oldest", oldest).with("head", head))
        }
    }
}

fn said(call: &Call<'_>) -> Result<Asked, Refusal> {
    let spare = fresh_secret().ok_or_else(Refusal::internal)?;
    let (name, url, secret, after) = (name(call)?, url(call)?, secret(call)?, after(call)?);
    Ok(Asked { name, owner: OWNER.to_owned(), url, secret, spare, after })
}

fn url(call: &Call<'_>) -> Result<String, Refusal> {
    let invalid = |what: String| Refusal::bad_request("invalid_webhook_url", what);
    let url = text(&call.fields, "url").ok().flatten();
    let url = url.ok_or_else(|| invalid("`url` is required and must be a string".to_owned()))?;
    Target::parse(&url).map_err(|error| invalid(error.to_string()))?;
    Ok(url)
}

fn secret(call: &Call<'_>) -> Result<Option<Secret>, Refusal> {
    let invalid = |what: String| Refusal::bad_request("invalid_webhook_secret", what);
    let secret = text(&call.fields, "secret").map_err(|_| invalid("`secret` must be a string".to_owned()))?;
    secret.map(|secret| Secret::parse(&secret).map_err(|error| invalid(error.to_string()))).transpose()
}

fn after(call: &Call<'_>) -> Result<Option<u64>, Refusal> {
    let after = call.fields.get("after").map(|raw| number(raw, 0..=u64::MAX >> 11)).transpose();
    after.map_err(|()| Refusal::bad_request("invalid_after", "`after` must be the number of an event"))
}

/// `GET /return-requests/webhooks`.
pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let endpoints = call.daemon.webhooks()?.all().await.map_err(|error| refused(&error))?;
    let shown = endpoints.iter().map(|(endpoint, dead_letters)| {
        let mut shown = shown::endpoint(endpoint);
        shown["dead_letter_count"] = (*dead_letters).into();
        shown
    });
    Ok(ok(&json!({ "v": 1, "webhooks": shown.collect::<Vec<_>>() })))
}

/// `GET /return-requests/webhooks/:name`, with its dead letters.
pub(crate) async fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = name(call)?;
    let found = call.daemon.webhooks()?.find(&name).await.map_err(|error| refused(&error))?;
    let (endpoint, letters) = found.ok_or_else(|| unknown(&name))?;
    Ok(ok(&with_letters(&endpoint, &letters)))
}

fn with_letters(endpoint: &Endpoint, letters: &[Letter]) -> Value {
    let mut shown = shown::endpoint(endpoint);
    let dead: Vec<_> = letters.iter().filter_map(shown::dead_letter).collect();
    shown["dead_letter_count"] = dead.len().into();
    shown["dead_letters"] = dead.into();
    shown
}

/// `DELETE /return-requests/webhooks/:name`.
pub(crate) async fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = name(call)?;
    let was_there = call.daemon.webhooks()?.remove(&name, OWNER).await.map_err(|error| refused(&error))?;
    if was_there { Ok(no_content()) } else { Err(unknown(&name)) }
}

/// `POST /return-requests/webhooks/:name/redeliver`: one event once more, as soon as nothing else is on its way.
pub(crate) async fn redeliver(call: &Call<'_>) -> Result<Reply, Refusal> {
    let seq = call.fields.get("seq").ok_or(()).and_then(|raw| number(raw, 1..=u64::MAX >> 11));
    let seq =
        seq.map_err(|()| Refusal::bad_request("invalid_seq", "`seq` is required and must be the number of an event"))?;
    let Stepped { endpoint, effects } = demand(call, Input::Redeliver { seq }).await?;
    match effects[..] {
        [Effect::Deny(denial)] => Err(denied(denial, &endpoint, seq)),
        _ => Ok(json(StatusCode::ACCEPTED, &shown::endpoint(&endpoint))),
    }
}

fn denied(denial: Denial, endpoint: &Endpoint, seq: u64) -> Refusal {
    let refusal = match denial {
        Denial::Disabled => Refusal::conflict("webhook_disabled", "The endpoint wants no more; resume it first"),
        Denial::Ahead => Refusal::conflict("cursor_ahead", "The stream has no such event yet"),
        Denial::Pruned => Refusal::new(StatusCode::GONE, "event_pruned", "The event is not kept any more"),
        Denial::TooMany => {
            let message = "Too many events wait to be sent again";
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too_many_redeliveries", message).retry_later()
        }
    };
    refusal.with("name", endpoint.name.as_str()).with("seq", seq)
}

/// `POST /return-requests/webhooks/:name/resume`: served again, behind a gap, or without waiting for the next try.
pub(crate) async fn resume(call: &Call<'_>) -> Result<Reply, Refusal> {
    let Stepped { endpoint, .. } = demand(call, Input::Resumed).await?;
    Ok(ok(&shown::endpoint(&endpoint)))
}

async fn demand(call: &Call<'_>, demand: Input) -> Result<Stepped, Refusal> {
    let name = name(call)?;
    call.daemon.webhooks()?.demand(&name, demand).await.map_err(|error| match error {
        StoreError::Unknown => unknown(&name),
        error => refused(&error),
    })
}

fn name(call: &Call<'_>) -> Result<EndpointName, Refusal> {
    EndpointName::parse(call.matched.id())
        .map_err(|error| Refusal::bad_request("invalid_webhook_name", error.to_string()))
}

fn unknown(name: &EndpointName) -> Refusal {
    let message = format!("No endpoint with the name \"{name}\"");
    Refusal::new(StatusCode::NOT_FOUND, "webhook_not_found", message).with("name", name.as_str())
}

fn refused(error: &StoreError) -> Refusal {
    match error {
        StoreError::Ahead { asked, head } => {
            let message = format!("The stream has only {head} events, and not {asked}");
            Refusal::conflict("cursor_ahead", message).with("head", *head)
        }
        error => refusal::of_store(error),
    }
}
