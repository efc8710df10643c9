//! A small HTTP client for the commands that talk to a daemon: one connection a request, and event streams.

use std::net::SocketAddr;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// Nobody listens, or the connection broke.
    Connection(std::io::Error),
    /// The peer does not speak HTTP, or hung up in the middle.
    Http(hyper::Error),
    /// The answer is not what this client asked for.
    Answer(String),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "cannot reach the daemon: {error}"),
            Self::Http(error) => write!(f, "the exchange with the daemon broke off: {error}"),
            Self::Answer(text) => write!(f, "unexpected answer: {text}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<std::io::Error> for ClientError {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error)
    }
}

impl From<hyper::Error> for ClientError {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}

/// One daemon, by address. Owns the connections it opened: dropping it ends them.
pub(crate) struct Client {
    address: SocketAddr,
    connections: JoinSet<()>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, connections: JoinSet::new() }
    }

    /// Sends one request and reads the whole answer; a body that is not JSON reads as null.
    pub(crate) async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), ClientError> {
        let response = self.send(method, path, body).await?;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    /// As [`Self::call`], but any status other than the required one is an error that carries the answer.
    pub(crate) async fn require(
        &mut self,
        status: u16,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let (got, answer) = self.call(method.clone(), path, body).await?;
        if got == status {
            Ok(answer)
        } else {
            Err(ClientError::Answer(format!("{method} {path} answered {got} {answer}")))
        }
    }

    /// Opens a session's event stream behind the event with the id `after`.
    pub(crate) async fn events(&mut self, session_id: &str, after: u64) -> Result<Events, ClientError> {
        let path = format!("/session/{session_id}/events");
        let request = Request::builder()
            .method(Method::GET)
            .uri(path)
            .header("accept", "text/event-stream")
            .header("last-event-id", after.to_string());
        let response = self.exchange(request, Bytes::new()).await?;
        if response.status() != 200 {
            return Err(ClientError::Answer(format!("the event stream answered {}", response.status())));
        }
        Ok(Events { body: response.into_body(), buffer: BytesMut::new() })
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut request = Request::builder().method(method).uri(path);
        let bytes = body.map(|value| Bytes::from(value.to_string())).unwrap_or_default();
        if !bytes.is_empty() {
            request = request.header("content-type", "application/json");
        }
        self.exchange(request, bytes).await
    }

    async fn exchange(
        &mut self,
        request: hyper::http::request::Builder,
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // The connection drives itself; its errors surface in the request that uses it.
        self.connections.spawn(async move { drop(connection.await) });
        while self.connections.try_join_next().is_some() {}
        let request = request
            .header("host", self.address.to_string())
            .body(Full::new(body))
            .map_err(|error| ClientError::Answer(error.to_string()))?;
        Ok(sender.send_request(request).await?)
    }
}

/// One open event stream.
pub(crate) struct Events {
    body: Incoming,
    buffer: BytesMut,
}

impl Events {
    /// The next event's envelope, or nothing when the stream ended, be it in order or by a cut.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(frame) = take_frame(&mut self.buffer) {
                if let Some(envelope) = frame.lines().find_map(|line| line.strip_prefix("data: ")) {
                    return serde_json::from_str(envelope).ok();
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
    }
}

/// Takes the text up to the first blank line, if one has arrived.
fn take_frame(buffer: &mut BytesMut) -> Option<String> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let frame = buffer.split_to(end);
    buffer.advance(2);
    Some(String::from_utf8_lossy(&frame).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_only_when_its_blank_line_has_arrived() {
        let mut buffer = BytesMut::from("event: x\ndata: {}\n");
        assert_eq!(take_frame(&mut buffer), None);
        buffer.extend_from_slice(b"\nretry");
        assert_eq!(take_frame(&mut buffer).as_deref(), Some("event: x\ndata: {}"));
        assert_eq!(&buffer[..], b"retry");
    }
}
