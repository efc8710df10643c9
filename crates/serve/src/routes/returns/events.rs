//! The terminal stream over HTTP: pages of JSON, lines, server-sent events, and named places in it (return requests, sections 2.12, 2.13).

use std::borrow::Cow;
use std::time::Duration;

use hyper::Response;
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use request::Position;
use request::store::{Acknowledgement, Consumer, ENDPOINT_PREFIX, Events, Filter, Head, StoreError};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::clock::now_ms;
use crate::dispatch::Call;
use crate::limits::{RETURNS_LIST_MAX, RETURNS_PAGE_EVENTS};
use crate::query;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::requests::number;
use crate::returns::stream::{Form, Reader, is_at_head, open, refused};
use crate::returns::submit::OWNER;
use crate::returns::{asked, refusal};
use crate::routes::returns::{flag_of, limit, session, state, wait_ms};
use crate::tasks::spawn;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Characters of a consumer's name.
const NAME_CHARS_MAX: usize = 128;

/// `GET /return-requests/events`.
pub(crate) async fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.daemon.returns.store()?;
    let asked = asked_of(call)?;
    match form(call) {
        None => page(call, asked).await,
        Some(form) => stream(call, asked, form).await,
    }
}

/// What a query says. All of it is looked at for each form, also what means nothing there: it is none of the form's that is malformed.
struct Query {
    after: Position,
    filter: Filter,
    /// Of a page.
    limit: usize,
    /// Of a page.
    wait: Option<Duration>,
    /// Whether a stream is to end with what there is now. A page means the same with it and without.
    is_once: bool,
}

fn asked_of(call: &Call<'_>) -> Result<Query, Refusal> {
    Ok(Query {
        is_once: flag_of(call, "once", "invalid_once")?,
        wait: wait_ms(call)?,
        limit: limit(call, RETURNS_PAGE_EVENTS, RETURNS_LIST_MAX)?,
        after: after(call)?,
        filter: Filter { owner: Some(OWNER.to_owned()), session_id: session(call)?, state: state(call)? },
    })
}

/// A page, as soon as there is anything on it, or the time is over.
async fn page(call: &Call<'_>, Query { after, filter, limit, wait, .. }: Query) -> Result<Reply, Refusal> {
    let mut reader = Reader::new(&call.daemon.returns, after, filter, limit);
    let mut events = next(&mut reader).await?;
    if let Some(wait) = wait {
        // Whatever has come by then is the answer; the last page that was read counts.
        let _ = timeout(wait, async {
            let mut is_last = false;
            while events.events.is_empty() && !is_last {
                if is_at_head(&events) {
                    reader.more().await;
                    is_last = reader.is_over();
                }
                match reader.next().await {
                    Ok(read) => events = read,
                    Err(_) => return,
                }
            }
        })
        .await;
    }
    let bodies: Vec<_> =
        events.events.iter().filter_map(|event| RawValue::from_string(event.payload.clone()).ok()).collect();
    Ok(ok(&json!({
        "v": 1,
        "stream_id": events.next_cursor.stream_id,
        "events": bodies,
        "next_after": events.next_after,
        "next_cursor": events.next_cursor.to_string(),
        "oldest": events.oldest,
        "head": events.head,
    })))
}

async fn next(reader: &mut Reader) -> Result<Events, Refusal> {
    reader.next().await.map_err(|error| refused(&error))
}

async fn stream(call: &Call<'_>, Query { after, filter, is_once, .. }: Query, form: Form) -> Result<Reply, Refusal> {
    let mut reader = Reader::staying(&call.daemon.returns, after, filter)?;
    // What is wrong with the place is said before anything else is.
    let first = next(&mut reader).await?;
    let until = is_once.then_some(first.head);
    let (body, sending) = open(reader, first, form, until);
    spawn(sending);
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    let media = match form {
        Form::Lines => "application/x-ndjson",
        Form::Events => "text/event-stream",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    Ok(reply)
}

/// How the caller wants to read; none for a page of JSON.
fn form(call: &Call<'_>) -> Option<Form> {
    let accepts = |media: &str| {
        let mut values = call.head.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        values.any(|value| value.split(',').any(|one| one.split(';').next().unwrap_or_default().trim() == media))
    };
    if accepts("text/event-stream") {
        return Some(Form::Events);
    }
    let is_lines = accepts("application/x-ndjson") || accepts("application/ndjson");
    is_lines.then_some(Form::Lines)
}

/// The place to go on behind: that of the last event a browser has seen, a cursor, or a number; the beginning without any.
fn after(call: &Call<'_>) -> Result<Position, Refusal> {
    let query = call.head.uri.query();
    let (cursor, after) = (query::value(query, "cursor"), query::value(query, "after"));
    if cursor.is_some() && after.is_some() {
        let message = "`cursor` and `after` both say where to go on; one of them is enough";
        return Err(Refusal::bad_request("cursor_beside_after", message));
    }
    // A browser that has seen nothing says nothing.
    let last = call.head.headers.get(LAST_EVENT_ID).map(HeaderValue::as_bytes).filter(|id| !id.is_empty());
    let last = last.map(String::from_utf8_lossy);
    let message = "`after` must be a number, and `cursor` one that was given out here";
    let parsed =
        |text: Cow<'_, str>| Position::parse(&text).map_err(|_| Refusal::bad_request("invalid_cursor", message));
    // One that is not gone by is as malformed as the other.
    let (last, other) = (last.map(parsed).transpose()?, cursor.or(after).map(parsed).transpose()?);
    Ok(last.or(other).unwrap_or(Position::Number(0)))
}

/// `GET /return-requests/stream`.
pub(crate) async fn head(call: &Call<'_>) -> Result<Reply, Refusal> {
    let returns = &call.daemon.returns;
    let Head { stream_id, cursor, head, oldest, pruned_through, tombstone_floor, trouble } =
        returns.read(request::store::Store::head).await?;
    Ok(ok(&json!({
        "v": 1,
        "stream_id": stream_id,
        "head": head,
        "head_cursor": cursor.to_string(),
        "oldest": oldest,
        "pruned_through": pruned_through,
        "tombstone_floor": tombstone_floor,
        "degraded": returns.trouble(trouble.as_ref()).map(|refusal| refusal.code),
        "draining": returns.is_draining(),
    })))
}

/// `PUT /return-requests/consumers/:name`.
pub(crate) async fn consumer(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = call.matched.id();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.bytes().all(is_name) {
        let message = "A consumer's name must be 1 to 128 of A-Z a-z 0-9 . _ : -";
        return Err(Refusal::bad_request("invalid_consumer", message));
    }
    if name.starts_with(ENDPOINT_PREFIX) {
        let message = "What an endpoint of webhooks has had is said by nobody but the daemon";
        return Err(Refusal::bad_request("invalid_consumer", message));
    }
    let acked = match call.fields.get("acked") {
        None => 0,
        Some(raw) => number(raw, 0..=u64::MAX >> 11)
            .map_err(|()| Refusal::bad_request("invalid_acked", "`acked` must be the number of an event"))?,
    };
    let protect = match call.fields.get("protect").map(|raw| raw.get()) {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Refusal::bad_request("invalid_protect", "`protect` must be true or false")),
    };
    let store = call.daemon.returns.store()?;
    let ack = Acknowledgement { name: name.to_owned(), owner: OWNER.to_owned(), acked, protect };
    let Consumer { name, acked_seq, protect, created_at, updated_at, .. } =
        asked(|reply| store.consumer(ack, now_ms(), reply)).await.map_err(|error| match error {
            StoreError::Ahead { asked, head } => {
                let message = format!("The stream has only {head} events, and not {asked}");
                Refusal::conflict("cursor_ahead", message).with("head", head)
            }
            error => refusal::of_store(&error),
        })?;
    Ok(ok(&json!({
        "v": 1,
        "name": name,
        "acked": acked_seq,
        "protect": protect,
        "created_at": created_at,
        "updated_at": updated_at,
    })))
}
