//! The whole final answer of a turn as a text: its length, its hash, and any part of it (turn status seed; the poll cuts it).

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bridge::{Ended, LivePrompt, Session, Terminal, TurnView};
use bytes::{Bytes, BytesMut};
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, IF_RANGE,
    RANGE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{HeaderMap, Method, Response, StatusCode};
use tokio::sync::mpsc;
use transcript::{Answered, Recorded};

use crate::digest::Digest;
use crate::dispatch::Call;
use crate::limits::{ANSWER_CHUNK_BYTES, ANSWER_CHUNKS};
use crate::lookup::{AnswerSources, FoundAnswer, whole_answer};
use crate::published::published;
use crate::query;
use crate::range::{self, Asked};
use crate::refusal::Refusal;
use crate::reply::{Body, Reply, refuse};
use crate::routes::turns::read_ledger;
use crate::tasks::{blocking, spawn};
use crate::whole::{Gone, Whole};
use crate::workspace::Workspace;

/// The digest of the whole text (RFC 9530).
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// The turn completed and said nothing at last: the empty body is all there is.
const NO_TEXT: HeaderName = HeaderName::from_static("turnd-no-text");
/// The text was said in a turn that did not complete: it is no answer.
const PARTIAL: HeaderName = HeaderName::from_static("turnd-partial");
/// More was said than is given.
const TRUNCATED: HeaderName = HeaderName::from_static("turnd-truncated");
const TRUE: HeaderValue = HeaderValue::from_static("true");
/// An agent's words are text and nothing else, whatever they look like.
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

/// `GET /session/:id/turns/:promptId/result`.
pub(crate) async fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    let partial = asks_for_partial(call)?;
    let (session, _) = call.session_and_client()?;
    let prompt = call.matched.second();
    let files = Files { workspace: call.workspace, session: &session, prompt };
    let whole = match whole_answer(&files).await? {
        FoundAnswer::Live(live) => return Err(not_settled(&session, &live)),
        FoundAnswer::Nothing => return Err(Refusal::prompt_not_found(session.id(), prompt)),
        FoundAnswer::Whole(whole) => whole,
    };
    match whole {
        Whole::Short(text) => Ok(Text::short(text).reply(call)),
        Whole::Recorded(answer) => Ok(recorded(call, &session, answer).await?.reply(call)),
        Whole::NoText => Ok(marked(Text::short(String::new()).reply(call), NO_TEXT)),
        Whole::Expired(ended, gone) => Err(expired(&session, &ended, gone)),
        Whole::NoResult(ended, said) => match (ended.partial_text.as_ref().filter(|_| partial), said) {
            (Some(_), Some(said)) => Ok(marked(recorded(call, &session, said).await?.reply(call), PARTIAL)),
            (Some(said), None) => {
                let reply = marked(Text::short(said.text.clone()).reply(call), PARTIAL);
                Ok(if is_at_bound(said) { marked(reply, TRUNCATED) } else { reply })
            }
            (None, _) => Err(no_result(&session, &ended)),
        },
    }
}

fn asks_for_partial(call: &Call<'_>) -> Result<bool, Refusal> {
    match query::value(call.head.uri.query(), "partial").as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(_) => Err(Refusal::bad_request("invalid_partial", "`partial` must be 0 or 1")),
    }
}

/// A prompt of a live session, and the session's files.
struct Files<'a> {
    workspace: &'a Arc<Workspace>,
    session: &'a Session,
    prompt: &'a str,
}

impl AnswerSources for Files<'_> {
    fn view(&self) -> TurnView {
        self.session.turn(Some(self.prompt))
    }

    async fn answered(&self) -> Result<Option<Answered>, Refusal> {
        let (workspace, session, prompt) = (Arc::clone(self.workspace), self.session.clone(), self.prompt.to_owned());
        let find = move || {
            let path = workspace.layout.transcript(session.id());
            let found = workspace.recalled.find(session.id(), &prompt, &path)?;
            Ok(found.map(|found| Answered { result: published(&workspace, &session, found.result), ..found }))
        };
        let found = blocking(find).await.ok_or_else(Refusal::internal)?;
        found.map_err(|error| {
            tracing::warn!(session = self.session.id(), %error, "transcript cannot be searched");
            Refusal::of_transcript(self.session.id(), &error)
        })
    }

    async fn ledger(&self) -> Option<Ended> {
        read_ledger(self.workspace, self.session, self.prompt).await
    }
}

/// A partial text as long as the bound may have been cut there; its record does not say.
fn is_at_bound(said: &bridge::Clipped) -> bool {
    said.truncated || said.text.encode_utf16().count() + 1 >= transcript::text::TEXT_UNITS_MAX
}

/// A text with its digest, ready to be sent.
struct Text {
    source: Source,
    bytes: u64,
    digest: Digest,
}

enum Source {
    Memory(Bytes),
    Transcript(Recorded),
}

async fn recorded(call: &Call<'_>, session: &Session, answer: Recorded) -> Result<Text, Refusal> {
    let (workspace, id, prompt) =
        (Arc::clone(call.workspace), session.id().to_owned(), call.matched.second().to_owned());
    let work = move || workspace.digests.of(&id, &prompt, &answer).map(|digest| (answer, digest));
    match blocking(work).await.ok_or_else(Refusal::internal)? {
        Ok((answer, Some(digest))) => Ok(Text { bytes: answer.bytes(), source: Source::Transcript(answer), digest }),
        Ok((_, None)) => Err(changed(session)),
        Err(error) => Err(unreadable(session, &error)),
    }
}

impl Text {
    fn short(text: String) -> Self {
        Self { bytes: text.len() as u64, digest: Digest::of(text.as_bytes()), source: Source::Memory(text.into()) }
    }

    /// The whole text, or the part that the request asks for, or only that it has not changed.
    fn reply(self, call: &Call<'_>) -> Reply {
        let (etag, bytes, headers) = (self.digest.etag(), self.bytes, &call.head.headers);
        if headers.get_all(IF_NONE_MATCH).iter().any(|value| names(value, &etag)) {
            return self.headed(StatusCode::NOT_MODIFIED, Body::Empty);
        }
        // A part is no use to a client that has the rest of another text.
        let is_same = headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == etag.as_bytes());
        let range = headers.get(RANGE).filter(|_| is_same && call.head.method == Method::GET);
        let (status, part) = match range::asked(range.map(HeaderValue::as_bytes), bytes) {
            Asked::Whole => (StatusCode::OK, 0..bytes),
            Asked::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
            Asked::Unsatisfiable => return unsatisfiable(bytes),
        };
        let mut reply = self.headed(status, Body::Empty);
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, PLAIN);
        headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        headers.insert(CONTENT_LENGTH, (part.end - part.start).into());
        if status == StatusCode::PARTIAL_CONTENT {
            insert(headers, CONTENT_RANGE, &format!("bytes {}-{}/{bytes}", part.start, part.end - 1));
        }
        if call.head.method != Method::HEAD {
            *reply.body_mut() = self.source.body(part);
        }
        reply
    }

    /// A head that says which text it is about.
    fn headed(&self, status: StatusCode, body: Body) -> Reply {
        let mut reply = Response::new(body);
        *reply.status_mut() = status;
        let headers = reply.headers_mut();
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        insert(headers, ETAG, &self.digest.etag());
        insert(headers, REPR_DIGEST, &self.digest.repr());
        reply
    }
}

impl Source {
    fn body(self, part: Range<u64>) -> Body {
        match self {
            Self::Memory(text) => {
                let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
                Body::Whole(text.slice(at(part.start)..at(part.end)))
            }
            Self::Transcript(answer) => {
                let (sender, chunks) = mpsc::channel(ANSWER_CHUNKS);
                let left = part.end - part.start;
                // A body that ends too early breaks the connection, so that nobody takes a part for the whole.
                spawn(async move { blocking(move || send(&answer, part, &sender)).await });
                Body::Sized { chunks, left }
            }
        }
    }
}

/// Sends a part of an answer in chunks, as fast as they are taken, until nobody takes them any more. Blocks.
fn send(answer: &Recorded, part: Range<u64>, chunks: &mpsc::Sender<Bytes>) {
    let mut chunk = BytesMut::with_capacity(ANSWER_CHUNK_BYTES);
    let outcome = answer.read(part, |mut piece| {
        while chunk.len() + piece.len() >= ANSWER_CHUNK_BYTES {
            let (fits, rest) = piece.split_at(ANSWER_CHUNK_BYTES - chunk.len());
            chunk.extend_from_slice(fits);
            piece = rest;
            if chunks.blocking_send(chunk.split().freeze()).is_err() {
                return false;
            }
        }
        chunk.extend_from_slice(piece);
        true
    });
    match outcome {
        Ok(true) if !chunk.is_empty() => drop(chunks.blocking_send(chunk.freeze())),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "an answer could not be read to its end"),
    }
}

/// Whether a list of entity tags names this one, or any.
fn names(list: &HeaderValue, etag: &str) -> bool {
    let tags = list.to_str().unwrap_or_default().split(',').map(|tag| tag.trim().trim_start_matches("W/"));
    tags.into_iter().any(|tag| tag == etag || tag == "*")
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    // What we write is plain text.
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

fn marked(mut reply: Reply, name: HeaderName) -> Reply {
    reply.headers_mut().insert(name, TRUE);
    reply
}

/// 416, with the size of what is there.
fn unsatisfiable(bytes: u64) -> Reply {
    let message = format!("The answer has {bytes} bytes");
    let refusal = Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", message);
    let mut reply = refuse(&refusal.with("size", bytes));
    insert(reply.headers_mut(), CONTENT_RANGE, &format!("bytes */{bytes}"));
    reply
}

/// 409: there is no outcome yet.
fn not_settled(session: &Session, live: &LivePrompt) -> Refusal {
    let message = format!("Prompt {} is {}", live.prompt_id, live.state.as_str());
    Refusal::conflict("turn_not_settled", message)
        .with("sessionId", session.id())
        .with("promptId", live.prompt_id.as_str())
        .with("state", live.state.as_str())
        .retry_later()
}

/// 410: the turn completed, and its text cannot be given.
fn expired(session: &Session, ended: &Ended, gone: Gone) -> Refusal {
    let message = format!("The answer of prompt {} is not there any more, or never was", ended.prompt_id);
    let refusal = outcome(Refusal::new(StatusCode::GONE, "result_expired", message), session, ended);
    refusal.with("reason", gone.as_str())
}

/// 404: there is an outcome, and no answer in it.
fn no_result(session: &Session, ended: &Ended) -> Refusal {
    let message = format!("Prompt {} ended without an answer", ended.prompt_id);
    let refusal = outcome(Refusal::new(StatusCode::NOT_FOUND, "no_result", message), session, ended);
    refusal.with("hasPartial", ended.partial_text.is_some())
}

/// What is known of the outcome, in the words of the poll.
fn outcome(refusal: Refusal, session: &Session, ended: &Ended) -> Refusal {
    let refusal = refusal
        .with("sessionId", session.id())
        .with("promptId", ended.prompt_id.as_str())
        .with("state", ended.terminal.state())
        .with("endedAt", ended.ended_at_ms);
    match (&ended.terminal, ended.terminal.code()) {
        (Terminal::Error { .. }, Some(code)) => refusal.with("errorCode", code),
        _ => refusal,
    }
}

/// 409: the file was changed while it was read.
fn changed(session: &Session) -> Refusal {
    let message = "The transcript cannot be read as one snapshot";
    Refusal::conflict("transcript_snapshot_unavailable", message).with("sessionId", session.id())
}

fn unreadable(session: &Session, error: &io::Error) -> Refusal {
    tracing::warn!(session = session.id(), %error, "an answer cannot be read");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "transcript_unreadable", "The transcript cannot be read")
        .with("sessionId", session.id())
}
