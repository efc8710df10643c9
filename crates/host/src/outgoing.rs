//! Lines that wait to be written.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::task::{Context, Waker};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Lines that are written with one call: more than a turn has beside a flood of its updates, and few enough for a list of them that costs
/// nothing.
const LINES_AT_ONCE: usize = 32;

/// How much of a line is in the reader's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Not the whole of its text, so that nobody can take what there is for the line.
    Nothing,
    /// The text, but not the end of the line. Some readers take that for a line when nothing follows.
    Text,
    /// All of it.
    Whole,
}

/// A line, or what is left of it.
#[derive(Debug)]
struct Line {
    left: Bytes,
    /// Of one that is watched: the blanks behind its text, in bytes.
    blanks: Option<usize>,
}

impl Line {
    /// How much of a watched line is written.
    fn reach(&self) -> Option<Reach> {
        let blanks = self.blanks?;
        Some(match self.left.len() {
            0 => Reach::Whole,
            left if left <= blanks => Reach::Text,
            _ => Reach::Nothing,
        })
    }
}

/// A queue in front of a writer that may be slow.
#[derive(Debug)]
pub(crate) struct Outgoing<W> {
    /// None once the reader at the other end is gone.
    writer: Option<W>,
    queue: VecDeque<Line>,
    bytes: usize,
    /// How much of the line that is watched is written, and how much was when that was asked for last.
    reach: Reach,
    told: Reach,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    pub(crate) fn new(writer: Option<W>) -> Self {
        Self { writer, queue: VecDeque::new(), bytes: 0, reach: Reach::Nothing, told: Reach::Nothing }
    }

    /// Puts a line at the end. Without a writer it is dropped.
    pub(crate) fn push(&mut self, line: Bytes) {
        self.put(Line { left: line, blanks: None });
    }

    /// The same with a line that is watched, in the place of the one before.
    pub(crate) fn push_watched(&mut self, line: Bytes) {
        self.queue.iter_mut().for_each(|before| before.blanks = None);
        (self.reach, self.told) = (Reach::Nothing, Reach::Nothing);
        let blanks = line.len() - line.trim_ascii_end().len();
        self.put(Line { left: line, blanks: Some(blanks) });
    }

    fn put(&mut self, line: Line) {
        if self.writer.is_some() {
            self.bytes += line.left.len();
            self.queue.push_back(line);
        }
    }

    /// How much of the watched line is written, if that is more than when this was asked for last.
    pub(crate) fn take_reach(&mut self) -> Option<Reach> {
        (self.reach > self.told).then(|| {
            self.told = self.reach;
            self.reach
        })
    }

    /// Whether the line that was watched last is written, and somebody has been told.
    pub(crate) fn is_whole(&self) -> bool {
        self.told == Reach::Whole
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
        let Some(writer) = self.writer.as_mut().filter(|_| !self.queue.is_empty()) else {
            return std::future::pending().await;
        };
        let slices: Vec<_> = self.queue.iter().take(LINES_AT_ONCE).map(|line| IoSlice::new(&line.left)).collect();
        let written = writer.write_vectored(&slices).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.advance(written);
        if self.queue.is_empty()
            && let Some(writer) = &mut self.writer
        {
            writer.flush().await?;
        }
        Ok(())
    }

    /// Writes what can be written without waiting. What goes wrong shows at the next write.
    pub(crate) fn write_now(&mut self) {
        let _ = pin!(self.write_some()).poll(&mut Context::from_waker(Waker::noop()));
    }

    /// So many bytes of what waits are written.
    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(line) = self.queue.front_mut() {
            let length = written.min(line.left.len());
            line.left.advance(length);
            written -= length;
            self.reach = line.reach().unwrap_or(self.reach);
            if !line.left.is_empty() {
                return;
            }
            self.queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

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
    async fn what_there_is_room_for_is_written_at_once_and_the_rest_waits() {
        let (writer, mut reader) = tokio::io::duplex(6);
        let mut outgoing = Outgoing::new(Some(writer));
        outgoing.write_now();
        outgoing.push(Bytes::from_static(b"one\n"));
        outgoing.push(Bytes::from_static(b"two\n"));
        outgoing.write_now();
        outgoing.write_now();
        assert_eq!(outgoing.bytes(), 2);
        let mut read = [0; 6];
        reader.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"one\ntw");
        outgoing.write_some().await.unwrap();
        assert!(outgoing.is_empty());
        drop(reader);
        outgoing.push(Bytes::from_static(b"three\n"));
        outgoing.write_now();
        assert!(outgoing.write_some().await.is_err(), "it shows at the next write");
    }

    #[tokio::test]
    async fn of_a_watched_line_it_is_known_how_much_its_reader_can_have() {
        // A reader that takes so many bytes and no more.
        for (room, reach) in [
            (4, None),
            (12, None),
            (13, Some(Reach::Text)),
            (14, Some(Reach::Text)),
            (15, Some(Reach::Whole)),
            (99, Some(Reach::Whole)),
        ] {
            let (writer, _reader) = tokio::io::duplex(room);
            let mut outgoing = Outgoing::new(Some(writer));
            outgoing.push(Bytes::from_static(b"one\n"));
            outgoing.push_watched(Bytes::from_static(b"{\"two\":2} \n"));
            outgoing.push(Bytes::from_static(b"three\n"));
            assert_eq!(outgoing.take_reach(), None);
            while !outgoing.is_empty() {
                let blocked = pin!(outgoing.write_some());
                if at_once(blocked).is_none() {
                    break;
                }
            }
            assert_eq!(outgoing.take_reach(), reach, "{room}");
            assert_eq!(outgoing.take_reach(), None, "told once");
            outgoing.close();
            assert_eq!(outgoing.take_reach(), None, "what is dropped goes nowhere");
        }
    }

    /// What a future comes to without waiting.
    fn at_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = Context::from_waker(Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn lines_that_wait_together_are_written_together_however_much_of_them_is_taken_at_once() {
        let lines: Vec<String> = (0..3 * LINES_AT_ONCE).map(|number| format!("{}\n", "x".repeat(number))).collect();
        for room in [1, 7, 64, 100_000] {
            let (writer, mut reader) = tokio::io::duplex(room);
            let mut outgoing = Outgoing::new(Some(writer));
            lines.iter().for_each(|line| outgoing.push(Bytes::from(line.clone())));
            let writing = async {
                let mut writes = 0;
                while !outgoing.is_empty() {
                    outgoing.write_some().await.unwrap();
                    writes += 1;
                }
                assert_eq!(outgoing.bytes(), 0);
                outgoing.close();
                writes
            };
            let mut read = String::new();
            let (writes, length) = tokio::join!(writing, reader.read_to_string(&mut read));
            assert_eq!((length.unwrap(), &read), (read.len(), &lines.concat()));
            assert!(room < 100_000 || writes == 3, "{writes} writes");
        }
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
