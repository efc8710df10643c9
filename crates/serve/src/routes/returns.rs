//! Return requests over HTTP (return requests, section 2.13). What is said of one is its receipt; an ended one carries its event.

pub(crate) mod cancel;
pub(crate) mod events;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use request::store::{Entry as Known, List, Tombstone};
use request::{Beside, Canonical, Options, Request, RequestId, State};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::body::{Fields, NotText, text};
use crate::content;
use crate::dispatch::Call;
use crate::limits::{DEADLINE_MS_MAX, JSON_INTEGER_MAX, RETURNS_LIST_DEFAULT, RETURNS_LIST_MAX, RETURNS_WAIT_MS_MAX};
use crate::query;
use crate::refusal::Refusal;
use crate::reply::{Reply, json as reply_json, raw_json};
use crate::requests::number;
use crate::returns::submit::{OWNER, Submission, Submitted};
use crate::returns::{Returns, refusal};

/// Ids that are words of our paths.
const PATH_WORDS: [&str; 4] = ["events", "stream", "consumers", "webhooks"];

/// `POST /session/:id/return-requests`.
pub(crate) async fn submit(call: &Call<'_>) -> Result<Reply, Refusal> {
    let returns = &call.daemon.returns;
    let submission = match submission(call) {
        Ok(submission) => submission,
        Err(refusal) => return Err(returns.malformed(call, refusal).await),
    };
    let submitted = returns.submit(submission).await?;
    answer(returns, submitted).await
}

/// What its caller is told of a submission. There is a request, whether it can be read in that moment or not.
async fn answer(returns: &Arc<Returns>, submitted: Submitted) -> Result<Reply, Refusal> {
    let read = match submitted {
        Submitted::New(request_id) => receipt(returns, StatusCode::ACCEPTED, request_id, false).await,
        Submitted::Replayed(request_id) => receipt(returns, StatusCode::OK, request_id, true).await,
        Submitted::Expired(tombstone) => return Ok(reply_json(StatusCode::OK, &remains(&tombstone))),
    };
    read.map_err(refusal::doubtful)
}

fn submission(call: &Call<'_>) -> Result<Submission, Refusal> {
    let fields = &call.fields;
    let client = call.client_id()?.map(str::to_owned);
    let named = text(fields, "requestId").map_err(|_| invalid_id())?;
    let request_id = match &named {
        Some(id) => RequestId::parse(id).ok().filter(|_| !PATH_WORDS.contains(&id.as_str())).ok_or_else(invalid_id)?,
        None => call.daemon.returns.fresh_id(),
    };
    let prompt: Fields<'_> = fields.get_key_value("prompt").map(|(key, raw)| (key.clone(), *raw)).into_iter().collect();
    let content = content::parse(&prompt)?;
    let canonical = Canonical::of(&content.blocks)
        .map_err(|error| Refusal::bad_request("invalid_prompt", format!("`prompt` cannot be read: {error}")))?;
    let options = Options {
        queue: flag(fields, "queue", "invalid_queue")?,
        cancel_on_timeout: flag(fields, "cancelOnTimeout", "invalid_cancel_on_timeout")?,
        expected_incarnation: text(fields, "expectedIncarnation").map_err(|NotText| {
            Refusal::bad_request("invalid_expected_incarnation", "`expectedIncarnation` must be a string")
        })?,
        ..Options::default()
    };
    let timeout_ms = match fields.get("timeoutMs") {
        None => 0,
        Some(raw) => number(raw, 0..=DEADLINE_MS_MAX).map_err(|()| {
            let message = "`timeoutMs` must be a whole number of milliseconds; 0 is no deadline";
            Refusal::bad_request("invalid_timeout_ms", message)
        })?,
    };
    if options.cancel_on_timeout && timeout_ms == 0 {
        let message = "`cancelOnTimeout` means nothing without `timeoutMs`";
        return Err(Refusal::bad_request("cancel_on_timeout_without_timeout", message));
    }
    let (is_named, session_id) = (named.is_some(), call.session_id());
    Ok(Submission { request_id, is_named, session_id, client, content, canonical, options, timeout_ms })
}

fn flag(fields: &Fields<'_>, key: &'static str, code: &'static str) -> Result<bool, Refusal> {
    match fields.get(key).map(|raw| raw.get()) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Refusal::bad_request(code, format!("`{key}` must be true or false"))),
    }
}

fn invalid_id() -> Refusal {
    let message = "`requestId` must be 1 to 128 of A-Z a-z 0-9 . _ : - and none of `events`, `stream`, `consumers` and `webhooks`";
    Refusal::bad_request("invalid_request_id", message)
}

/// `GET /return-requests/:rid`, with `wait_ms` when it has ended, or then.
pub(crate) async fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    let wait = wait_ms(call)?;
    let returns = &call.daemon.returns;
    let request_id = named(call)?;
    if let Some(wait) = wait {
        // Whether it ended or the time is over, what is so then is the answer.
        let _ = timeout(wait, ended(returns, &request_id)).await;
    }
    receipt(returns, StatusCode::OK, request_id, false).await
}

/// Resolves when a request has ended, as far as this life of the daemon has to do with it.
async fn ended(returns: &Arc<Returns>, request_id: &RequestId) {
    returns.decided(request_id).await;
    if let Some(entry) = returns.tracked.of_request(request_id) {
        let mut follow = entry.follow();
        let _ = follow.wait_for(|standing| standing.is_over()).await;
    }
}

/// `GET /return-requests`.
pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let returns = &call.daemon.returns;
    let list = List {
        owner: Some(OWNER.to_owned()),
        session_id: session(call)?,
        state: state(call)?,
        is_open: false,
        before: whole(call, "page", "invalid_page")?,
        limit: limit(call, RETURNS_LIST_DEFAULT, RETURNS_LIST_MAX)?,
    };
    let looked = returns.read(move |store| {
        let listed = store.list(&list)?;
        let ids = listed.requests.iter().filter_map(|request| request.registration.incarnation_id.as_deref());
        let processes = store.incarnations(ids)?;
        Ok((listed, processes))
    });
    let (listed, processes) = looked.await?;
    let shown = |request: &Request| {
        let waiting_on = waiting_on(returns, request);
        let incarnation = request.registration.incarnation_id.as_ref().and_then(|id| processes.get(id));
        let beside = Beside { stream_id: returns.stream_id(), waiting_on, incarnation, ..Beside::default() };
        RawValue::from_string(request::receipt(request, &beside)).ok()
    };
    let requests: Vec<_> = listed.requests.iter().filter_map(shown).collect();
    let next_page = listed.before.map(|mark| mark.to_string());
    Ok(reply_json(StatusCode::OK, &json!({ "v": 1, "requests": requests, "next_page": next_page })))
}

/// The receipt of a request as it is now, all of it from one look.
async fn receipt(
    returns: &Arc<Returns>,
    status: StatusCode,
    request_id: RequestId,
    is_replayed: bool,
) -> Result<Reply, Refusal> {
    let id = request_id.clone();
    let looked = returns.read(move |store| store.look(&id)).await?;
    let request = request_of(returns, looked.entry, &request_id)?;
    let beside = Beside {
        stream_id: returns.stream_id(),
        is_replayed,
        incarnation: looked.incarnation.as_ref(),
        waiting_on: waiting_on(returns, &request),
        event: looked.event.as_ref(),
        late: &looked.late,
    };
    Ok(raw_json(status, Bytes::from(request::receipt(&request, &beside))))
}

/// What an unfinished request waits for.
fn waiting_on(returns: &Returns, request: &Request) -> Option<&'static str> {
    if request.state.is_terminal() {
        return None;
    }
    if returns.is_recovering(request.id()) {
        return Some("recovery");
    }
    let session = returns.session(&request.registration.session_id)?;
    let live = session.turn(Some(&request.registration.prompt_id)).live?;
    live.waiting.map(|_| "permission")
}

/// What is left of a request whose payload is not kept any more.
fn remains(tombstone: &Tombstone) -> serde_json::Value {
    json!({
        "v": 1,
        "request_id": tombstone.request_id.as_str(),
        "reply_pending": false,
        "replayed": true,
        "expired_payload": true,
        "state": tombstone.state.as_str(),
        "code": tombstone.code.as_ref().map(request::Code::as_str),
        "terminal_event_sequence": tombstone.terminal_seq,
        "ended_at": tombstone.ended_at,
    })
}

async fn row(returns: &Arc<Returns>, request_id: &RequestId) -> Result<Box<Request>, Refusal> {
    request_of(returns, returns.known(request_id).await?, request_id)
}

/// The whole of what is known under an id.
fn request_of(returns: &Returns, known: Option<Known>, request_id: &RequestId) -> Result<Box<Request>, Refusal> {
    match known {
        Some(Known::Request(request)) => Ok(request),
        Some(Known::Tombstone(tombstone)) => {
            let refusal = refusal::pruned(request_id.as_str());
            Err(refusal.with("state", tombstone.state.as_str()).with("terminal_event_sequence", tombstone.terminal_seq))
        }
        Some(Known::Expired) => Err(returns.expired(request_id)),
        None => Err(refusal::unknown(request_id.as_str())),
    }
}

/// The request that a path names. What is no id is nobody's.
fn named(call: &Call<'_>) -> Result<RequestId, Refusal> {
    RequestId::parse(call.matched.id()).map_err(|_| refusal::unknown(call.matched.id()))
}

/// How long the caller waits at most; none when it wants an answer now.
fn wait_ms(call: &Call<'_>) -> Result<Option<Duration>, Refusal> {
    let wait_ms: Option<u64> = whole(call, "wait_ms", "invalid_wait_ms")?;
    match wait_ms {
        None | Some(0) => Ok(None),
        Some(wait_ms) if wait_ms <= RETURNS_WAIT_MS_MAX => Ok(Some(Duration::from_millis(wait_ms))),
        Some(_) => {
            let message = format!("`wait_ms` must be a whole number of milliseconds from 0 to {RETURNS_WAIT_MS_MAX}");
            Err(Refusal::bad_request("invalid_wait_ms", message).with("max", RETURNS_WAIT_MS_MAX))
        }
    }
}

/// The state that is asked for.
fn state(call: &Call<'_>) -> Result<Option<State>, Refusal> {
    let Some(word) = query::value(call.head.uri.query(), "state") else { return Ok(None) };
    let invalid = || Refusal::bad_request("invalid_state", "`state` is none of the states of a return request");
    State::parse(&word).map(Some).ok_or_else(invalid)
}

/// The session that is asked for. None is called nothing, so that nothing is a name that was left out.
fn session(call: &Call<'_>) -> Result<Option<String>, Refusal> {
    let named = query::value(call.head.uri.query(), "session").map(std::borrow::Cow::into_owned);
    if named.as_deref() == Some("") {
        return Err(Refusal::bad_request("invalid_session", "`session` must be the id of a session"));
    }
    Ok(named)
}

/// Whether a query says that something is so.
fn flag_of(call: &Call<'_>, key: &'static str, code: &'static str) -> Result<bool, Refusal> {
    match query::value(call.head.uri.query(), key).as_deref() {
        None | Some("0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(_) => Err(Refusal::bad_request(code, format!("`{key}` must be true or false"))),
    }
}

/// How many are asked for.
fn limit(call: &Call<'_>, default: usize, most: usize) -> Result<usize, Refusal> {
    let asked: Option<u64> = whole(call, "limit", "invalid_limit")?;
    let asked = asked.map_or(Some(default), |asked| usize::try_from(asked).ok());
    asked.filter(|asked| (1..=most).contains(asked)).ok_or_else(|| {
        Refusal::bad_request("invalid_limit", format!("`limit` must be a whole number from 1 to {most}"))
    })
}

/// A whole number of a query.
fn whole(call: &Call<'_>, key: &'static str, code: &'static str) -> Result<Option<u64>, Refusal> {
    let Some(text) = query::value(call.head.uri.query(), key) else { return Ok(None) };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_number && *number <= JSON_INTEGER_MAX);
    number.map(Some).ok_or_else(|| Refusal::bad_request(code, format!("`{key}` must be a whole number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_a_request_that_cannot_be_read_nobody_says_that_it_was_not_sent() {
        let without_store = Returns::new(Arc::default());
        let id = RequestId::parse("X").unwrap();
        for submitted in [Submitted::New(id.clone()), Submitted::Replayed(id)] {
            let refusal = refusal::unsent(answer(&without_store, submitted).await.unwrap_err());
            assert_eq!(refusal.fields, [(refusal::INPUT_WRITTEN, "maybe".into())], "{refusal:?}");
        }
    }
}
