//! The first words with a fresh agent, before its session has a machine.

use std::time::Duration;

use acp::{FrameReader, Kind, Message, Pending, RequestId, RpcError};
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing::debug;

use super::live::Asked;
use super::open::{OpenError, Streams};
use crate::event::Exit;
use crate::limits::{EARLY_BYTES_MAX, EARLY_MESSAGES_MAX};
use crate::{incoming, outgoing};

/// Bytes read at once; an agent's first words are short.
const READ_BYTES: usize = 16 * 1024;

/// A conversation that waits for one answer at a time and keeps whatever else is said.
pub(super) struct Greeting {
    pub(super) streams: Streams,
    pub(super) frames: FrameReader,
    /// Carries on the numbers of our requests.
    pub(super) asked: Pending<Asked>,
    /// What the agent said before it was asked: agents announce their commands whenever they like.
    pub(super) early: Vec<Message>,
    pub(super) exit: Option<Exit>,
    early_bytes: usize,
    stderr_tail: Option<String>,
}

impl Greeting {
    pub(super) fn new(streams: Streams) -> Self {
        Self {
            streams,
            frames: FrameReader::default(),
            asked: Pending::new(),
            early: Vec::new(),
            exit: None,
            early_bytes: 0,
            stderr_tail: None,
        }
    }

    /// Asks and waits for the answer: the raw JSON text of its result.
    pub(super) async fn ask(
        &mut self,
        method: &'static str,
        timeout_ms: u64,
        request: impl FnOnce(u64) -> Bytes,
    ) -> Result<String, OpenError> {
        // The number is taken and nothing kept under it: the answer is awaited here.
        let number = self.asked.insert(Asked::Prompt(method.into()));
        let id = RequestId::from(number);
        self.asked.take(&id);
        let exchange = self.exchange(method, id, request(number));
        let answer = tokio::time::timeout(Duration::from_millis(timeout_ms), exchange).await;
        answer.map_err(|_| OpenError::Timeout { method, timeout_ms })?
    }

    async fn exchange(&mut self, method: &'static str, id: RequestId, request: Bytes) -> Result<String, OpenError> {
        self.say(&request).await;
        loop {
            let message = self.next().await?;
            match message.kind() {
                Kind::Response { id: Some(answered) } if answered.as_u64() == id.as_u64() => {
                    return match message.rpc_error() {
                        Some(error) => Err(refused(method, error)),
                        None => Ok(message.result().unwrap_or("null").to_owned()),
                    };
                }
                Kind::Response { .. } => {}
                Kind::Request { id, method } if method != "session/request_permission" => {
                    self.say(&outgoing::unsupported(id, method)).await;
                }
                Kind::Notification { method } if method == "turnd/agent_exited" => {
                    let params = message.params().unwrap_or("{}");
                    self.exit = Some(incoming::exit(params));
                    self.stderr_tail = acp::string_at(params, &["stderrTail"]);
                }
                Kind::Request { .. } | Kind::Notification { .. } => self.keep(message)?,
            }
        }
    }

    /// The next message; lines that are none are passed over.
    async fn next(&mut self) -> Result<Message, OpenError> {
        let mut buffer = [0; READ_BYTES];
        loop {
            while let Some(frame) = self.frames.next_frame() {
                if let Some(message) = frame.ok().and_then(|frame| Message::parse(frame).ok()) {
                    return Ok(message);
                }
            }
            match self.streams.reader.read(&mut buffer).await {
                Ok(length) if length > 0 => self.frames.push(&buffer[..length]),
                Ok(_) | Err(_) => return Err(self.channel_closed()),
            }
        }
    }

    /// A host that fails to start closes its input first, and what it has to say about that is still to be read: so a message
    /// that cannot be written is no end yet.
    async fn say(&mut self, message: &Bytes) {
        let writer = &mut self.streams.writer;
        let written = match writer.write_all(message).await {
            Ok(()) => writer.flush().await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            debug!(%error, "agent's input is closed");
        }
    }

    fn keep(&mut self, message: Message) -> Result<(), OpenError> {
        self.early_bytes += message.raw().len();
        if self.early.len() >= EARLY_MESSAGES_MAX || self.early_bytes > EARLY_BYTES_MAX {
            return Err(OpenError::TooMuchEarly);
        }
        self.early.push(message);
        Ok(())
    }

    fn channel_closed(&mut self) -> OpenError {
        OpenError::ChannelClosed { stderr_tail: self.stderr_tail.take() }
    }
}

fn refused(method: &'static str, error: RpcError) -> OpenError {
    OpenError::Refused {
        method,
        host_code: error.data.as_deref().and_then(|data| acp::string_at(data, &["turnd/code"])),
        rpc_code: error.code,
        message: error.details().unwrap_or_else(|| error.message.clone()),
        data: error.data,
    }
}
