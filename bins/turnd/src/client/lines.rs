//! A stream of lines: only what ends with a newline is one. What a broken connection left of a line is not.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::ClientError;

/// The longest line: a final message of a mebibyte, each byte of it escaped as six, and what goes with it.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long a stream may say nothing: three of the daemon's heartbeats.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// One open stream of lines.
pub(crate) struct Lines {
    body: Incoming,
    buffer: Buffer,
}

impl Lines {
    pub(super) fn of(body: Incoming) -> Self {
        Self { body, buffer: Buffer::default() }
    }

    /// The next line without its newline; an empty one is a heartbeat. Nothing when the stream ended in order.
    ///
    /// # Errors
    /// When the connection broke, the stream ended inside a line, fell silent, or tells a line beyond the bound.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            if let Some(line) = self.buffer.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.bytes.len() > LINE_BYTES_MAX {
                return Err(ClientError::Answer(format!("a line of more than {LINE_BYTES_MAX} bytes")));
            }
            let frame = tokio::time::timeout(SILENCE_MAX, self.body.frame())
                .await
                .map_err(|_| ClientError::Silent(SILENCE_MAX))?;
            match frame {
                Some(frame) => {
                    if let Some(data) = frame?.data_ref() {
                        self.buffer.bytes.extend_from_slice(data);
                    }
                }
                None if self.buffer.bytes.is_empty() => return Ok(None),
                None => return Err(ClientError::Torn),
            }
        }
    }
}

/// What has arrived and was not taken yet.
#[derive(Default)]
struct Buffer {
    bytes: BytesMut,
    /// Bytes at the start that hold no newline: they were looked at already.
    looked: usize,
}

impl Buffer {
    /// Takes the bytes up to the first newline, if one has arrived.
    fn take_line(&mut self) -> Option<Bytes> {
        let Some(end) = self.bytes[self.looked..].iter().position(|byte| *byte == b'\n') else {
            self.looked = self.bytes.len();
            return None;
        };
        let mut line = self.bytes.split_to(self.looked + end).freeze();
        self.bytes.advance(1);
        self.looked = 0;
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_only_when_its_newline_has_arrived_however_it_was_cut() {
        let text = b"{\"a\":1}\n\n{\"b\":\"\xc3\xbc\"}\r\n{\"torn\"";
        for cut in 1..text.len() {
            let mut buffer = Buffer::default();
            let mut lines = Vec::new();
            for piece in text.chunks(cut) {
                buffer.bytes.extend_from_slice(piece);
                lines.extend(std::iter::from_fn(|| buffer.take_line()));
            }
            assert_eq!(lines, ["{\"a\":1}", "", "{\"b\":\"\u{fc}\"}"], "pieces of {cut}");
            assert_eq!(&buffer.bytes[..], b"{\"torn\"", "pieces of {cut}");
        }
    }
}
