//! A small HTTP client for the commands that talk to a daemon: one connection a request, so that no request depends on what became of
//! the one before it.

mod asking;
mod backoff;
mod connection;
mod endpoint;
mod error;
mod events;
mod lines;
mod outage;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};
use hyper::http::request::Builder;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

pub(crate) use asking::Asked;
pub(crate) use backoff::{Backoff, dice};
pub(crate) use endpoint::{Endpoint, segment};
pub(crate) use error::ClientError;
pub(crate) use events::Events;
pub(crate) use lines::Lines;
pub(crate) use outage::{Bound, Outage};

/// The longest answer that is read: a page of a thousand final messages of a mebibyte is cut by the daemon long before.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The longest code of a refusal that is repeated, in bytes.
const CODE_BYTES_MAX: usize = 64;

/// How long a daemon may take for what it does at once: it has a disk to flush and an agent's input to fill.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// How often a request is sent again where nobody said how long it is to be tried: together some fifteen seconds, enough for a daemon to be
/// started anew.
const TRIES_MORE: u32 = 8;

/// The longest wait between two tries that a daemon can ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// One daemon. Owns the connections it opened: dropping it ends them.
pub(crate) struct Client {
    endpoint: Endpoint,
    authorization: Option<HeaderValue>,
    tls: Option<TlsConnector>,
    connections: JoinSet<()>,
    was_reached: bool,
    /// How long an outage is borne, where somebody said so.
    patience: Option<Bound>,
    /// Whether it is borne from the beginning.
    is_awaited: bool,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// How long the daemon wants to be left alone, where it said so.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

impl Answer {
    /// An answer that the daemon would have given, had it been asked.
    pub(crate) fn made(status: u16, code: &str, error: &str) -> Self {
        let body = Bytes::from(json!({"code": code, "error": error}).to_string());
        Self { status, retry_after: None, body }
    }

    /// The body; null where it is no JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Status and code, as a part of a line for people.
    pub(crate) fn brief(&self) -> String {
        let body = self.json();
        let is_word = |code: &&str| {
            code.len() <= CODE_BYTES_MAX && code.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        };
        match body["code"].as_str().filter(is_word) {
            Some(code) => format!("the daemon answers {} {code}", self.status),
            None => format!("the daemon answers {}", self.status),
        }
    }

    /// Whether it refuses to say more about a request than that it is on record (return request rules, section 2.13).
    pub(crate) fn is_of_something_stored(&self) -> bool {
        let body = self.json();
        !self.is_success() && body["request_id"].is_string() && body["state"].is_string()
    }

    /// Whether it says that nothing was ever sent of what it refuses (return request rules, section 2.13).
    pub(crate) fn proves_nothing_sent(&self) -> bool {
        self.json()["input_written"] == "no"
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the daemon, or a proxy in front of it, says that the same request may do better in a moment. A request must bear being
    /// sent twice to be sent again: behind a proxy's 502 and 504 nobody knows what became of it.
    pub(crate) fn asks_again(&self) -> bool {
        match self.status {
            502 | 504 => true,
            503 => {
                self.retry_after.is_some() || matches!(self.json()["code"].as_str(), Some("draining" | "store_busy"))
            }
            _ => false,
        }
    }
}

/// What opening a stream of lines comes to.
pub(crate) enum Opened {
    Lines(Lines),
    /// The daemon has something else to say.
    Answer(Answer),
}

impl Client {
    /// # Errors
    /// When no header can carry the token, or there is no certificate to judge a server by.
    pub(crate) fn new(endpoint: Endpoint, token: Option<&str>) -> Result<Self, ClientError> {
        let authorization = token.map(bearer).transpose()?;
        let tls = endpoint.is_https.then(connection::tls).transpose()?;
        Ok(Self {
            endpoint,
            authorization,
            tls,
            connections: JoinSet::new(),
            was_reached: false,
            patience: None,
            is_awaited: false,
        })
    }

    /// Bears an outage for so long, from the beginning: also a daemon that was not there yet is waited for.
    pub(crate) fn awaiting(self, patience: Option<Duration>) -> Self {
        Self { patience: patience.map(Bound::Within), is_awaited: patience.is_some(), ..self }
    }

    /// Bears an outage for so long, where nobody said how long it is to be borne.
    pub(crate) fn bear(&mut self, limit: Duration) {
        self.patience.get_or_insert(Bound::Within(limit));
    }

    /// How long an outage is borne that keeps one request from being answered.
    fn bound(&self) -> Bound {
        self.patience.unwrap_or(Bound::Tries(TRIES_MORE))
    }

    /// How long one is borne by whoever waits anyhow.
    pub(crate) fn bound_of_a_wait(&self) -> Bound {
        self.patience.unwrap_or(Bound::Endless)
    }

    /// Whether there is a daemon to wait for: a connection came about, or the caller wants it waited for. Where neither is so, an address may
    /// be mistyped, and trying again is no use.
    pub(crate) fn may_be_back(&self) -> bool {
        self.was_reached || self.is_awaited
    }

    /// Whether the caller wants a daemon waited for that was not there yet.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Sends one request and reads the whole answer.
    pub(crate) async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ClientError> {
        self.call_within(ANSWER_LIMIT, method, path, body).await
    }

    /// The same for an answer that may take its time.
    pub(crate) async fn call_within(
        &mut self,
        limit: Duration,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ClientError> {
        let whole = async {
            let response = self.send(method, path, body).await?;
            whole(response).await
        };
        tokio::time::timeout(limit, whole).await.map_err(|_| ClientError::Silent(limit))?
    }

    /// As [`Self::call`], but any status other than the required one is an error that carries the answer.
    pub(crate) async fn require(
        &mut self,
        status: u16,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let answer = self.call(method.clone(), path, body).await?;
        let (got, json) = (answer.status, answer.json());
        if got == status {
            Ok(json)
        } else {
            Err(ClientError::Answer(format!("{method} {path} answered {got} {json}")))
        }
    }

    /// Opens a session's event stream behind the event with the id `after`.
    pub(crate) async fn events(&mut self, session_id: &str, after: u64) -> Result<Events, ClientError> {
        let request = Request::get(self.endpoint.target(&format!("/session/{}/events", segment(session_id))))
            .header("accept", "text/event-stream")
            .header("last-event-id", after.to_string());
        let response = self.exchange(request, Bytes::new()).await?;
        if response.status() != 200 {
            return Err(ClientError::Answer(format!("the event stream answered {}", response.status())));
        }
        Ok(Events::of(response.into_body()))
    }

    /// Opens a stream that tells one JSON object a line.
    pub(crate) async fn lines(&mut self, path: &str) -> Result<Opened, ClientError> {
        let opening = async {
            let request = Request::get(self.endpoint.target(path)).header("accept", "application/x-ndjson");
            let response = self.exchange(request, Bytes::new()).await?;
            if response.status() != 200 {
                return whole(response).await.map(Opened::Answer);
            }
            Ok(Opened::Lines(Lines::of(response.into_body())))
        };
        tokio::time::timeout(ANSWER_LIMIT, opening).await.map_err(|_| ClientError::Silent(ANSWER_LIMIT))?
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut request = Request::builder().method(method).uri(self.endpoint.target(path));
        let bytes = body.map(|value| Bytes::from(value.to_string())).unwrap_or_default();
        if !bytes.is_empty() {
            request = request.header("content-type", "application/json");
        }
        self.exchange(request, bytes).await
    }

    async fn exchange(&mut self, request: Builder, body: Bytes) -> Result<Response<Incoming>, ClientError> {
        let mut request = request
            .header("host", &self.endpoint.authority)
            .body(Full::new(body))
            .map_err(|error| ClientError::Request(error.to_string()))?;
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let stream = connection::open(&self.endpoint, self.tls.as_ref()).await?;
        self.was_reached = true;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // The connection drives itself; its errors surface in the request that uses it.
        self.connections.spawn(async move { drop(connection.await) });
        while self.connections.try_join_next().is_some() {}
        Ok(sender.send_request(request).await?)
    }
}

/// Reads an answer to its end.
async fn whole(response: Response<Incoming>) -> Result<Answer, ClientError> {
    let status = response.status().as_u16();
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => ClientError::Lost(*error),
        Err(error) => ClientError::Answer(error.to_string()),
    })?;
    let retry_after = seconds.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
    Ok(Answer { status, retry_after, body: body.to_bytes() })
}

/// The header that carries the token, which no debug output shows.
fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| ClientError::Request("the token holds characters that no header can carry".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<u64>, body: &'static str) -> Answer {
        Answer { status, retry_after: retry_after.map(Duration::from_secs), body: Bytes::from(body) }
    }

    #[test]
    fn only_an_answer_that_says_so_asks_for_the_same_request_again() {
        for (answer, expected) in [
            (answer(503, Some(5), r#"{"code":"too_many_subscribers"}"#), true),
            (answer(503, None, r#"{"code":"draining"}"#), true),
            (answer(503, None, r#"{"code":"store_busy"}"#), true),
            (answer(503, None, r#"{"code":"store_corrupt"}"#), false),
            (answer(502, None, "<html>"), true),
            (answer(504, None, ""), true),
            (answer(500, Some(1), "{}"), false),
            (answer(507, Some(5), r#"{"code":"storage_full"}"#), false),
            (answer(429, Some(5), "{}"), false),
            (answer(409, Some(5), r#"{"code":"busy"}"#), false),
            (answer(200, Some(5), "{}"), false),
        ] {
            assert_eq!(answer.asks_again(), expected, "{answer:?}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        let header = bearer("s3cret").unwrap();
        assert!(!format!("{header:?}").contains("s3cret"));
        let refused = bearer("s3cret\nx: y").unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("s3cret"));
    }
}
