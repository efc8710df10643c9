//! Why there is no such request, as its caller is told. What refuses a submission says that nothing was sent under its id;
//! only where the store cannot tell whether another call sent it (`Returns::submit`), it says that too.

use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use request::store::limits::CLOCK_AHEAD_MS;
use request::store::{OpenError, StoreError};
use request::{InputWritten, Request};

use crate::limits::AFTERWARDS_TURNS_MAX;
use crate::refusal::Refusal;
use crate::returns::opening::is_passing;

/// Whether the input was written, as every refusal of a submission says.
pub(crate) const INPUT_WRITTEN: &str = "input_written";

/// The same, as the routes of plain prompts say it.
const OF_PROMPTS: &str = "inputWritten";

/// The same refusal, saying that nothing was sent, unless it says something already. Of what broke nobody knows how far it had come.
pub(crate) fn unsent(refusal: Refusal) -> Refusal {
    if is_told(&refusal) {
        return refusal;
    }
    if is_fault(&refusal) { doubtful(refusal) } else { saying(refusal, InputWritten::No) }
}

/// The same refusal with this word about the input, and no other one.
fn saying(mut refusal: Refusal, written: InputWritten) -> Refusal {
    refusal.fields.retain(|(key, _)| *key != INPUT_WRITTEN && *key != OF_PROMPTS);
    refusal.with(INPUT_WRITTEN, written.as_str())
}

/// The same refusal, saying that the input may have been written.
pub(crate) fn doubtful(refusal: Refusal) -> Refusal {
    saying(refusal, InputWritten::Maybe)
}

/// Whether a refusal says what became of the input.
pub(crate) fn is_told(refusal: &Refusal) -> bool {
    refusal.fields.iter().any(|(key, _)| *key == INPUT_WRITTEN)
}

/// Whether a fault of ours is all that is known.
pub(crate) fn is_fault(refusal: &Refusal) -> bool {
    refusal.status == StatusCode::INTERNAL_SERVER_ERROR
}

/// The same refusal, saying that there is a request of that id, and how it stands. One that is not over yet may still be sent.
pub(crate) fn stored(refusal: Refusal, request: &Request) -> Refusal {
    let written = match request.input_written {
        InputWritten::No if !request.state.is_terminal() => InputWritten::Maybe,
        written => written,
    };
    saying(refusal, written).with("request_id", request.id().as_str()).with("state", request.state.as_str())
}

/// What is refused of a submission says what is known of its input, also before its route has it. Its id is not read then, and another
/// call may have sent it.
pub(crate) fn told(head: &Parts, refusal: Refusal) -> Refusal {
    let path = head.uri.path();
    let is_submission = head.method == Method::POST && path.trim_end_matches('/').ends_with("/return-requests");
    if is_submission && !is_told(&refusal) { doubtful(refusal) } else { refusal }
}

/// 409: a turn runs or waits.
pub(crate) fn busy(session: &str) -> Refusal {
    unsent(Refusal::conflict("busy", "A prompt runs or waits in this session").with("sessionId", session).retry_later())
}

/// 409: the agent has not answered a prompt whose caller does not wait any more.
pub(crate) fn tainted(session: &str) -> Refusal {
    let message = "The agent has not answered an earlier prompt that was released by its deadline";
    unsent(Refusal::conflict("session_tainted", message).with("sessionId", session).retry_later())
}

/// 409: the agent's process is another one than the caller wants.
pub(crate) fn stale(session: &str, incarnation_id: Option<&str>) -> Refusal {
    let refusal =
        Refusal::conflict("stale_incarnation", "The agent's process is another one than the one that is expected");
    unsent(refusal.with("sessionId", session).with("incarnationId", incarnation_id))
}

/// 409: the session is being closed.
pub(crate) fn closed(session: &str) -> Refusal {
    unsent(Refusal::conflict("session_closed", "The session is closed or being closed").with("sessionId", session))
}

/// 422: the id was used for something else, or by somebody else, of which nothing is said. What that was may have been sent.
pub(crate) fn reused(request_id: &str) -> Refusal {
    let message = "This request id was used for other input";
    let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "request_id_reused", message);
    doubtful(refusal.with("request_id", request_id))
}

/// 410: the id is older than what is remembered, and may have been sent. One that was made at the floor or later is none that is forgotten.
pub(crate) fn expired(request_id: &str, tombstone_floor: u64) -> Refusal {
    let message = "This request id is older than what is remembered; whether it was used is not known any more";
    let refusal = Refusal::new(StatusCode::GONE, "request_id_expired", message);
    doubtful(refusal.with("request_id", request_id).with("tombstone_floor", tombstone_floor))
}

/// 400: the id claims to be made later than any clock that is right shows. None such is ever taken.
pub(crate) fn ahead(request_id: &str) -> Refusal {
    let message = "This request id says that it was made in the future; the clock of whoever made it is wrong";
    let refusal = Refusal::bad_request("request_id_ahead", message);
    unsent(refusal.with("request_id", request_id).with("ahead_ms_max", CLOCK_AHEAD_MS))
}

/// 410: the request ended long ago, and only how is still known.
pub(crate) fn pruned(request_id: &str) -> Refusal {
    let message = "The request ended, and its payload is not kept any more";
    Refusal::new(StatusCode::GONE, "request_payload_expired", message).with("request_id", request_id)
}

/// 404: no such request is known.
pub(crate) fn unknown(request_id: &str) -> Refusal {
    let message = "No request of this id is known here, which does not prove that it never existed";
    Refusal::new(StatusCode::NOT_FOUND, "request_not_found", message).with("request_id", request_id)
}

/// 429: too many have not ended.
pub(crate) fn too_many(scope: &'static str, limit: usize) -> Refusal {
    let message = format!("Too many return requests, or prompts, of this {scope} have not ended (limit {limit})");
    let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message);
    unsent(refusal.with("scope", scope).with("limit", limit).retry_later())
}

/// 429: the request has ended, and nothing tells its agent to stop. What is known of it is beside it.
pub(crate) fn too_many_interrupts(request: &Request) -> Refusal {
    let message =
        "The request has ended, but so many turns are followed behind their ends that its own is not told to stop";
    let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too_many_interrupts", message);
    let refusal = refusal.with("request_id", request.id().as_str()).with("state", request.state.as_str());
    refusal.with("limit", AFTERWARDS_TURNS_MAX).retry_later()
}

/// 503: the daemon is stopping.
pub(crate) fn draining() -> Refusal {
    let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "draining", "The daemon is stopping");
    unsent(refusal.retry_later())
}

/// What is said of a store that cannot do what it was asked.
pub(crate) fn of_store(error: &StoreError) -> Refusal {
    match error {
        StoreError::Busy => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "store_busy", "The request store is busy").retry_later()
        }
        StoreError::Full => {
            let message = "The disk of the request store is full";
            Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "storage_full", message).retry_later()
        }
        StoreError::Io(_) => unusable().retry_later(),
        StoreError::Corrupt(_) => corrupt("The request store is corrupt"),
        _ => unusable(),
    }
}

/// Whether it is the store that says so, which then may not know either what became of an id.
pub(crate) fn is_of_store(refusal: &Refusal) -> bool {
    ["store_busy", "store_unavailable", "store_corrupt", "storage_full"].contains(&&*refusal.code)
}

/// The member that says why there is no store.
pub(crate) const REASON: &str = "reason";

/// What is said while there is no store.
pub(crate) fn of_opening(error: &OpenError) -> Refusal {
    let reason = match error {
        OpenError::Corrupt { .. } => {
            return corrupt("The request store is corrupt; its files were put aside, and an operator must decide");
        }
        OpenError::Locked | OpenError::Store(StoreError::Busy) => "locked",
        OpenError::Store(StoreError::Full) => "full",
        OpenError::Store(StoreError::Io(_)) => "io",
        OpenError::Newer { .. } => "newer_version",
        OpenError::UnknownVersion { .. } => "unknown_version",
        OpenError::Foreign => "foreign",
        OpenError::Remote => "remote",
        OpenError::Exported => "exported",
        _ => "other",
    };
    let refusal = unusable().with(REASON, reason);
    if is_passing(error) { refusal.retry_later() } else { refusal }
}

/// 503: the store is being opened.
pub(crate) fn opening() -> Refusal {
    let message = "The request store is being opened";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "store_busy", message).retry_later()
}

fn corrupt(message: &'static str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "store_corrupt", message)
}

fn unusable() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", "The request store cannot be used")
}
