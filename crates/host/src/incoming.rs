//! Bytes that come in, as messages.

use std::io;

use acp::{FrameReader, Message, Skipped};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::limits::READ_BYTES;

/// A reader and the messages it brings.
#[derive(Debug)]
pub(crate) struct Incoming<R> {
    /// Who speaks here, for the log.
    from: &'static str,
    /// None once the stream has ended.
    reader: Option<R>,
    chunk: Box<[u8]>,
    frames: FrameReader,
    skipped: Skipped,
    /// An answer was too long to be held; the limit.
    lost_answer: Option<usize>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(crate) fn new(from: &'static str, reader: Option<R>) -> Self {
        let chunk = vec![0; READ_BYTES].into();
        Self { from, reader, chunk, frames: FrameReader::default(), skipped: Skipped::default(), lost_answer: None }
    }

    /// Whether more may come.
    pub(crate) fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Stops listening.
    pub(crate) fn close(&mut self) {
        self.reader = None;
    }

    /// Reads what comes next; 0 bytes are the end. Waits for ever once the stream has ended; dropping it loses nothing.
    pub(crate) async fn read(&mut self) -> io::Result<usize> {
        match &mut self.reader {
            Some(reader) => reader.read(&mut self.chunk).await,
            None => std::future::pending().await,
        }
    }

    /// The bytes that were read last.
    pub(crate) fn chunk(&self, length: usize) -> &[u8] {
        &self.chunk[..length]
    }

    /// Takes in what was read last. An error is an end, as nothing can come behind it.
    pub(crate) fn take(&mut self, read: &io::Result<usize>) {
        match read {
            Ok(length) if *length > 0 => self.frames.push(&self.chunk[..*length]),
            _ => self.reader = None,
        }
    }

    /// Whether an answer was lost since the last look because it was longer than the limit that is given back, in bytes.
    pub(crate) fn take_lost_answer(&mut self) -> Option<usize> {
        self.lost_answer.take()
    }

    /// The next message, lines that are none skipped and counted. Call it until there is none before reading again.
    pub(crate) fn next_message(&mut self) -> Option<Message> {
        loop {
            let frame = if self.is_open() { self.frames.next_frame() } else { self.frames.finish() };
            let line = match frame? {
                Ok(line) => line,
                Err(error) => {
                    tracing::warn!(from = self.from, %error, "a line was left out");
                    let acp::FrameError::TooLong { limit_bytes, was_answer } = error;
                    self.lost_answer = self.lost_answer.or(was_answer.then_some(limit_bytes));
                    continue;
                }
            };
            match Message::parse(line) {
                Ok(message) => return Some(message),
                Err(reason) => {
                    self.skipped.add(reason);
                    let total = self.skipped.total();
                    tracing::debug!(from = self.from, %reason, total, "a line that is no message was skipped");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_come_out_whole_and_noise_does_not() {
        let text: &[u8] = b"hello\n{\"method\":\"a\"}\n\n[1]\n{\"method\":\"b\"}";
        let mut incoming = Incoming::new("test", Some(text));
        let mut methods = Vec::new();
        while incoming.is_open() {
            let read = incoming.read().await;
            incoming.take(&read);
            while let Some(message) = incoming.next_message() {
                methods.push(message.method().unwrap().to_owned());
            }
        }
        assert_eq!(methods, ["a", "b"]);
        assert_eq!(incoming.skipped.total(), 2);
    }
}
