//! Who is posted to: reads a request as bytes, and answers what the test says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;

use super::world::KEY;

pub(super) struct Receiver {
    pub(super) connections: mpsc::UnboundedReceiver<DuplexStream>,
}

impl Receiver {
    /// The next connection, before anything is read of it.
    pub(super) async fn connection(&mut self) -> DuplexStream {
        self.connections.recv().await.unwrap()
    }

    /// The next request, whole.
    pub(super) async fn next(&mut self) -> Delivery<DuplexStream> {
        Delivery::read(self.connection().await).await
    }

    /// The same, answered with 200; the event's number.
    pub(super) async fn take(&mut self) -> u64 {
        let delivery = self.next().await;
        let seq = delivery.seq();
        delivery.answer(200).await;
        seq
    }

    /// Whether nobody else has connected by now.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.connections.try_recv().is_err()
    }
}

/// A request that waits for its answer.
pub(super) struct Delivery<S> {
    stream: S,
    head: String,
    pub(super) body: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Delivery<S> {
    pub(super) async fn read(mut stream: S) -> Self {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let mut delivery = Self { stream, head: String::from_utf8(head).unwrap(), body: String::new() };
        let mut body = vec![0; delivery.header("content-length").parse().unwrap()];
        delivery.stream.read_exact(&mut body).await.unwrap();
        delivery.body = String::from_utf8(body).unwrap();
        delivery
    }

    /// The line above the headers.
    pub(super) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    /// The number that the body says.
    pub(super) fn seq(&self) -> u64 {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body["terminal_event_sequence"].as_u64().unwrap()
    }

    /// Whether the signature is that of id, time and body, reckoned here from the definition of HMAC and nothing of ours.
    pub(super) fn is_signed(&self) -> bool {
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let pad =
            |with: u8| -> Vec<u8> { (0..64).map(|place| KEY.get(place).copied().unwrap_or_default() ^ with).collect() };
        let inner = Sha256::digest([pad(0x36), signed.into_bytes()].concat());
        let mac = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
        self.header("webhook-signature") == format!("v1,{}", STANDARD.encode(mac))
    }

    /// Answers with a status and nothing else.
    pub(super) async fn answer(self, status: u16) {
        self.answer_with(status, "").await;
    }

    /// Answers with a status and further lines of the head.
    pub(super) async fn answer_with(self, status: u16, lines: &str) {
        self.say(&format!("HTTP/1.1 {status} Whatever\r\ncontent-length: 0\r\n{lines}\r\n")).await;
    }

    /// Says something, and closes the connection.
    pub(super) async fn say(self, text: &str) {
        drop(self.say_and_stay(text).await);
    }

    /// Says something; the connection stays.
    pub(super) async fn say_and_stay(mut self, text: &str) -> S {
        // The other side may have had enough.
        let _ = self.stream.write_all(text.as_bytes()).await;
        let _ = self.stream.flush().await;
        self.stream
    }
}
