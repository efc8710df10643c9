//! The secrets of an endpoint, changed while it is served: for a time two of them sign, so that no receiver misses anything.

use hyper::StatusCode;
use request::store::StoreError;
use request::webhook::{Endpoint, Rotation, RotationDenied};

use super::{name, refused, secret, unknown};
use crate::dispatch::Call;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::returns::submit::OWNER;
use crate::webhooks::{fresh_secret, shown};

/// `POST /return-requests/webhooks/:name/secrets`: another secret signs from now on, beside the one until now. One that was made here is in
/// this answer and in no other one.
pub(crate) async fn rotate(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (secret, is_made) = match secret(call)? {
        Some(secret) => (secret, false),
        None => (fresh_secret().ok_or_else(Refusal::internal)?, true),
    };
    let endpoint = rotated(call, Rotation::Begin(secret)).await?;
    let mut shown = shown::endpoint(&endpoint);
    if is_made {
        shown["secret"] = endpoint.secret.reveal().into();
    }
    Ok(ok(&shown))
}

/// `DELETE /return-requests/webhooks/:name/secrets/:which`: `former`, when all receivers know the newer one; `current`, to have it as it was.
pub(crate) async fn end(call: &Call<'_>) -> Result<Reply, Refusal> {
    let rotation = match call.matched.second() {
        "former" => Rotation::End,
        "current" => Rotation::TakeBack,
        _ => {
            let message = "An endpoint has a `current` secret, and may have a `former` one";
            return Err(Refusal::new(StatusCode::NOT_FOUND, "webhook_secret_not_found", message));
        }
    };
    let endpoint = rotated(call, rotation).await?;
    Ok(ok(&shown::endpoint(&endpoint)))
}

async fn rotated(call: &Call<'_>, rotation: Rotation) -> Result<Box<Endpoint>, Refusal> {
    let name = name(call)?;
    let denied = match call.daemon.webhooks()?.rotate(&name, OWNER, rotation).await {
        Ok(Ok(endpoint)) => return Ok(endpoint),
        Ok(Err(denied)) => denied,
        Err(StoreError::Unknown) => return Err(unknown(&name)),
        Err(error) => return Err(refused(&error)),
    };
    let refusal = match denied {
        RotationDenied::Rotating => {
            Refusal::conflict("webhook_rotating", "Two secrets sign already; end the `former` one first")
        }
        RotationDenied::OnlyOne => {
            Refusal::conflict("webhook_not_rotating", "Only one secret signs, and there is no other one to end")
        }
    };
    Err(refusal.with("name", name.as_str()))
}
