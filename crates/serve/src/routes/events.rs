//! `GET /session/:id/events` (wire rules, section 10).

use bridge::{Session, Subscribe, SubscribeError};
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use crate::clock::now_ms;
use crate::dispatch::Call;
use crate::identity::fresh_uuid;
use crate::limits::{MAX_QUEUED_DEFAULT, MAX_QUEUED_RANGE};
use crate::query;
use crate::refusal::Refusal;
use crate::reply::{Body, Reply};
use crate::sse::{Stream, open};
use crate::tasks::spawn;
use crate::wire::synthetic_frame;

const EPOCH: HeaderName = HeaderName::from_static("x-qwen-event-epoch");
const STREAM_ID: HeaderName = HeaderName::from_static("x-qwen-sse-stream-id");
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// What stands for an epoch that cannot be read. No stream has it: epochs are UUIDs.
const UNREADABLE: &str = "";

pub(crate) fn subscribe(call: &Call<'_>) -> Result<Reply, Refusal> {
    let session = call.workspace.session(&call.session_id())?;
    let max_queued = max_queued(call)?;
    let cursor = cursor(&call.head.headers);
    let how = Subscribe { cursor, epoch: epoch(&call.head.headers), max_queued };
    let subscription = session.subscribe(&how).map_err(|error| refused(&session, error))?;
    let wants_snapshot = query::value(call.head.uri.query(), "snapshot").as_deref() == Some("1");
    let snapshot = wants_snapshot.then(|| snapshot(call, &session));
    let (chunks, pump) = open(Stream { source: subscription, snapshot, replays: cursor.is_some() });
    spawn(pump);
    let stream_id = fresh_uuid();
    note(call, &session, &stream_id);
    Ok(stream_reply(&session, &stream_id, Body::Stream(chunks)))
}

/// Why the client says that it comes, and which stream it had before: for whoever reads the log, and for nothing else.
fn note(call: &Call<'_>, session: &Session, stream_id: &str) {
    let query = call.head.uri.query();
    let (reason, previous) = (query::value(query, "connectReason"), query::value(query, "previousStreamId"));
    tracing::debug!(session = session.id(), stream = stream_id, ?reason, ?previous, "a stream is opened");
}

fn stream_reply(session: &Session, stream_id: &str, body: Body) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    for (name, value) in [(EPOCH, session.epoch()), (STREAM_ID, stream_id)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    reply
}

/// The last event the client has seen. Anything that is no plain number means that it wants what comes from now on.
fn cursor(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get("last-event-id")?.to_str().ok()?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number beyond any that an event can have is as far ahead as the greatest that one can.
    Some(text.parse().unwrap_or(u64::MAX))
}

/// The life of the stream that the cursor is of; an empty header is none. One that cannot be an epoch is not ours, so the cursor
/// is of another life, where the peer would take its number for one of this.
fn epoch(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(EPOCH).filter(|value| !value.is_empty())?;
    Some(value.to_str().unwrap_or(UNREADABLE).to_owned())
}

fn max_queued(call: &Call<'_>) -> Result<usize, Refusal> {
    let Some(text) = query::value(call.head.uri.query(), "maxQueued") else { return Ok(MAX_QUEUED_DEFAULT) };
    let refusal = |message: &'static str| Refusal::bad_request("invalid_max_queued", message);
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refusal("`maxQueued` must be a decimal integer"));
    }
    let number = text.parse().ok().filter(|number| MAX_QUEUED_RANGE.contains(number));
    number.ok_or_else(|| refusal("`maxQueued` must be in [16, 2048]"))
}

pub(crate) fn refused(session: &Session, error: SubscribeError) -> Refusal {
    match error {
        SubscribeError::Gone => Refusal::session_not_found(session.id()),
        SubscribeError::Limit { limit } => {
            let message = format!("Too many event streams on this session (limit {limit})");
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, "subscriber_limit_exceeded", message)
                .with("limit", limit)
                .retry_later()
        }
    }
}

/// The state a client wants to know when it starts to read.
fn snapshot(call: &Call<'_>, session: &Session) -> String {
    let state: Value = serde_json::from_str(&session.agent_state()).unwrap_or_default();
    let data = json!({
        "sessionId": session.id(),
        "currentModelId": state["models"]["currentModelId"],
        "currentApprovalMode": state["modes"]["currentModeId"],
        "recordingDegraded": call.workspace.sink.degraded() || session.status().recording.is_degraded(),
    });
    synthetic_frame("session_snapshot", &data, now_ms())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn only_a_plain_number_is_a_cursor() {
        let cases =
            [("0", Some(0)), ("42", Some(42)), ("-1", None), ("1.5", None), ("x", None), ("+1", None), (" ", None)];
        for (text, expected) in cases {
            assert_eq!(cursor(&headers(HeaderName::from_static("last-event-id"), text)), expected, "{text}");
        }
        assert_eq!(cursor(&HeaderMap::new()), None);
    }

    #[test]
    fn a_number_beyond_every_event_is_a_cursor_beyond_every_event() {
        for text in ["18446744073709551615", "18446744073709551616", "99999999999999999999", &"9".repeat(400)] {
            assert_eq!(cursor(&headers(HeaderName::from_static("last-event-id"), text)), Some(u64::MAX), "{text}");
        }
        assert_eq!(cursor(&headers(HeaderName::from_static("last-event-id"), "")), None);
    }

    #[test]
    fn an_odd_epoch_is_another_life_and_an_empty_one_none() {
        for text in ["a-b_1", "a b", &"a".repeat(65)] {
            assert_eq!(epoch(&headers(EPOCH, text)).as_deref(), Some(text));
        }
        let unreadable = HeaderMap::from_iter([(EPOCH, HeaderValue::from_bytes(b"\xff").unwrap())]);
        assert_eq!(epoch(&unreadable).as_deref(), Some(UNREADABLE));
        assert_eq!((epoch(&headers(EPOCH, "")), epoch(&HeaderMap::new())), (None, None));
    }
}
