//! Lines that wait to be written.

use std::collections::VecDeque;
use std::io;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// A queue in front of a writer that may be slow.
#[derive(Debug)]
pub(crate) struct Outgoing<W> {
    /// None once the reader at the other end is gone.
    writer: Option<W>,
    queue: VecDeque<Bytes>,
    bytes: usize,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    pub(crate) fn new(writer: Option<W>) -> Self {
        Self { writer, queue: VecDeque::new(), bytes: 0 }
    }

    /// Puts a line at the end. Without a writer it is dropped.
    pub(crate) fn push(&mut self, line: Bytes) {
        if self.writer.is_some() {
            self.bytes += line.len();
            self.queue.push_back(line);
        }
    }

    /// How many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Closes the writer and drops what waits for it.
    pub(crate) fn close(&mut self) {
        self.writer = None;
        self.queue.clear();
        self.bytes = 0;
    }

    /// Writes some of what waits. Waits for ever when there is nothing to do; dropping it loses nothing.
    pub(crate) async fn write_some(&mut self) -> io::Result<()> {
        let (Some(writer), Some(line)) = (&mut self.writer, self.queue.front_mut()) else {
            return std::future::pending().await;
        };
        let written = writer.write(line).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        line.advance(written);
        self.bytes -= written;
        if line.is_empty() {
            self.queue.pop_front();
        }
        if self.queue.is_empty() {
            writer.flush().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_written_in_order_and_counted_until_they_are() {
        let mut written = Vec::new();
        let mut outgoing = Outgoing::new(Some(&mut written));
        outgoing.push(Bytes::from_static(b"one\n"));
        outgoing.push(Bytes::from_static(b"two\n"));
        assert_eq!(outgoing.bytes(), 8);
        while !outgoing.is_empty() {
            outgoing.write_some().await.unwrap();
        }
        assert_eq!(outgoing.bytes(), 0);
        assert_eq!(written, b"one\ntwo\n");
    }

    #[tokio::test]
    async fn without_a_reader_nothing_waits() {
        let mut outgoing = Outgoing::new(Some(Vec::new()));
        outgoing.push(Bytes::from_static(b"one\n"));
        outgoing.close();
        outgoing.push(Bytes::from_static(b"two\n"));
        assert!(outgoing.is_empty());
        assert_eq!(outgoing.bytes(), 0);
    }
}
