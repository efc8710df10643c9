//! A minimal HTTP/1.1 client: bytes out, bytes in, so that tests see what is really on the wire.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long any answer may take before a test fails. Nothing is timed; this only ends a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until something holds. It is looked at again and again; nothing is timed.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Status and code, as `404 session_not_found`; a whole number alone when there is no code.
    pub(crate) fn verdict(&self) -> String {
        match serde_json::from_slice::<Value>(&self.body).ok().and_then(|body| body["code"].as_str().map(str::to_owned))
        {
            Some(code) => format!("{} {code}", self.status),
            None => self.status.to_string(),
        }
    }
}

/// An open connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// What was read and not used yet.
    buffer: Vec<u8>,
    host: String,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self { stream, buffer: Vec::new(), host: format!("127.0.0.1:{}", address.port()) }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The same, where the other side may have hung up already.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Sends `METHOD path`, header lines and a body. A `Host` header is added unless one is given.
    pub(crate) async fn ask(&mut self, line: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut text = format!("{line} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text += &format!("host: {}\r\n", self.host);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("content-length: {}\r\n", body.len());
        }
        text += "\r\n";
        // A server that refuses early may close while we still send; its answer is what counts.
        let _ = self.stream.write_all(text.as_bytes()).await;
        let _ = self.stream.write_all(body).await;
    }

    /// Reads one answer with its whole body.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.try_answer().await.expect("the connection ended before its answer")
    }

    /// The same; none when the connection ends before.
    pub(crate) async fn try_answer(&mut self) -> Option<Answer> {
        tokio::time::timeout(PATIENCE, self.read_answer()).await.expect("no answer in time")
    }

    /// An answer, if one is there already.
    pub(crate) async fn poll_answer(&mut self) -> Option<Answer> {
        let there = tokio::select! {
            biased;
            _ = self.stream.readable() => true,
            () = tokio::task::yield_now() => !self.buffer.is_empty(),
        };
        if there { self.try_answer().await } else { None }
    }

    async fn read_answer(&mut self) -> Option<Answer> {
        let head = self.head().await?;
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap_or(0);
        while self.buffer.len() < length {
            if !self.fill().await {
                return None;
            }
        }
        let body = self.buffer.drain(..length).collect();
        Some(Answer { status: status_of(&head), head, body })
    }

    /// Reads the head of an answer; what follows stays in the buffer. None when the connection ends before.
    pub(crate) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = self.buffer.drain(..at + 4).collect();
                return Some(String::from_utf8(head).unwrap());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// Reads one chunk of a chunked body; none at its end or when the connection is gone.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let size = usize::from_str_radix(std::str::from_utf8(&self.buffer[..at]).unwrap(), 16).unwrap();
                while self.buffer.len() < at + 4 + size {
                    if !self.fill().await {
                        return None;
                    }
                }
                let chunk = self.buffer[at + 2..at + 2 + size].to_vec();
                self.buffer.drain(..at + 4 + size);
                return (size > 0).then_some(chunk);
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// Whether the other side has closed, with nothing left to read.
    pub(crate) async fn is_closed(&mut self) -> bool {
        tokio::time::timeout(PATIENCE, async { while self.fill().await {} }).await.is_ok()
    }

    async fn fill(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&piece[..count]);
                true
            }
        }
    }
}

pub(crate) fn status_of(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// One event of a stream, or what stands between them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// `retry:` or a comment, as it stands.
    Line(String),
    /// A frame: its number, its type and its envelope.
    Frame { id: Option<u64>, kind: String, envelope: Value },
}

/// An open event stream.
pub(crate) struct Stream {
    connection: Connection,
    head: String,
    text: String,
}

impl Stream {
    /// Opens a stream, which must be granted.
    pub(crate) async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut connection = Connection::open(address).await;
        connection.ask(&format!("GET {path}"), headers, b"").await;
        let head = tokio::time::timeout(PATIENCE, connection.head()).await.expect("no head in time").unwrap();
        assert_eq!(status_of(&head), 200, "{head}");
        Self { connection, head, text: String::new() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The next piece; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(at) = self.text.find("\n\n") {
                let block: String = self.text.drain(..at + 2).collect();
                return Some(piece(block.trim_end()));
            }
            let chunk = tokio::time::timeout(PATIENCE, self.connection.chunk()).await.expect("stream is silent")?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next frame of one of these types; everything before it is skipped.
    pub(crate) async fn until(&mut self, kinds: &[&str]) -> Value {
        loop {
            match self.next().await.expect("stream ended") {
                Piece::Frame { kind, envelope, .. } if kinds.contains(&kind.as_str()) => return envelope,
                _ => {}
            }
        }
    }

    /// The types of all frames up to and with the first of type `last`.
    pub(crate) async fn kinds_until(&mut self, last: &str) -> Vec<String> {
        let mut kinds = Vec::new();
        while kinds.last().map(String::as_str) != Some(last) {
            if let Piece::Frame { kind, .. } = self.next().await.expect("stream ended") {
                kinds.push(kind);
            }
        }
        kinds
    }
}

fn piece(block: &str) -> Piece {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    match field("data: ") {
        None => Piece::Line(block.to_owned()),
        Some(data) => Piece::Frame {
            id: field("id: ").map(|id| id.parse().unwrap()),
            kind: field("event: ").unwrap(),
            envelope: serde_json::from_str(&data).unwrap(),
        },
    }
}
