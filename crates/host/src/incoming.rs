//! Bytes that come in, as messages.

use std::io;

use acp::{FrameError, FrameReader, Message, NotAMessage, Skipped, Unreadable};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::limits::{READ_BYTES, UNREADABLE_WARNINGS_MAX};

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
    /// Lines that could not be read and may have been messages.
    unreadable: u64,
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Heard {
    Message(Message),
    /// An answer that is longer than a line may be.
    AnswerLost {
        /// The longest a line may be.
        limit_bytes: usize,
    },
    /// What cannot be read and may have been a message.
    Unreadable(Unreadable),
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    pub(crate) fn new(from: &'static str, reader: Option<R>) -> Self {
        let chunk = vec![0; READ_BYTES].into();
        Self { from, reader, chunk, frames: FrameReader::default(), skipped: Skipped::default(), unreadable: 0 }
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

    /// The next message, everything else left out. Call it until there is none before reading again.
    pub(crate) fn next_message(&mut self) -> Option<Message> {
        loop {
            if let Heard::Message(message) = self.next_heard()? {
                return Some(message);
            }
        }
    }

    /// What comes next, lines that were not meant for messages skipped and counted. Call it until there is none before reading again.
    pub(crate) fn next_heard(&mut self) -> Option<Heard> {
        loop {
            let frame = if self.is_open() { self.frames.next_frame() } else { self.frames.finish() };
            let line = match frame? {
                Ok(line) => line,
                Err(error) => return Some(self.left_out(error)),
            };
            match Message::parse(line.clone()) {
                Ok(message) => return Some(Heard::Message(message)),
                Err(reason) => {
                    if let Some(lost) = self.skip(&line, reason) {
                        return Some(Heard::Unreadable(lost));
                    }
                }
            }
        }
    }

    fn left_out(&mut self, error: FrameError) -> Heard {
        tracing::warn!(from = self.from, %error, "a line was left out");
        let FrameError::TooLong { limit_bytes, was_answer } = error;
        if was_answer { Heard::AnswerLost { limit_bytes } } else { Heard::Unreadable(Unreadable::too_long(false)) }
    }

    fn skip(&mut self, line: &[u8], reason: NotAMessage) -> Option<Unreadable> {
        self.skipped.add(reason);
        let (from, total, bytes) = (self.from, self.skipped.total(), line.len());
        let Some(lost) = Unreadable::of(line, reason) else {
            tracing::debug!(from, %reason, total, "a line that is no message was skipped");
            return None;
        };
        self.unreadable += 1;
        if self.unreadable <= UNREADABLE_WARNINGS_MAX {
            tracing::warn!(from, %reason, bytes, "a line that may have been a message cannot be read");
        }
        Some(lost)
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

    #[tokio::test]
    async fn what_may_have_been_a_message_is_heard_of_in_its_place() {
        let lines = [
            r#"{"method":"a"}"#,
            r#"{"method":"session/update","params":NaN}"#,
            "log",
            r#"[{"id":7,"result":{}}]"#,
            r#"{"method":"b"}"#,
        ];
        let text = lines.join("\n");
        let mut incoming = Incoming::new("test", Some(text.as_bytes()));
        let mut heard = Vec::new();
        while incoming.is_open() {
            let read = incoming.read().await;
            incoming.take(&read);
            while let Some(next) = incoming.next_heard() {
                heard.push(match next {
                    Heard::Message(message) => message.method().unwrap().to_owned(),
                    Heard::AnswerLost { limit_bytes } => limit_bytes.to_string(),
                    Heard::Unreadable(lost) => format!("answers 7: {}", lost.may_answer(&7.into())),
                });
            }
        }
        assert_eq!(heard, ["a", "answers 7: false", "answers 7: true", "b"]);
    }
}
