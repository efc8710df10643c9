//! The end of a stream, and its lines for the log.

use std::collections::VecDeque;

use crate::limits::{LOG_LINE_BYTES_MAX, TAIL_BYTES_MAX};

/// The last [`TAIL_BYTES_MAX`] of what was pushed.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let kept = &chunk[chunk.len().saturating_sub(TAIL_BYTES_MAX)..];
        self.bytes.extend(kept);
        let over = self.bytes.len().saturating_sub(TAIL_BYTES_MAX);
        self.bytes.drain(..over);
    }

    /// What was kept, as text. A beginning cut inside a character shows as U+FFFD.
    pub(crate) fn text(&self) -> String {
        let (head, rest) = self.bytes.as_slices();
        String::from_utf8_lossy(&[head, rest].concat()).into_owned()
    }
}

/// Cuts a stream into lines for the log. The rest of a line that is too long is left out.
#[derive(Debug, Default)]
pub(crate) struct LogLines {
    partial: Vec<u8>,
}

impl LogLines {
    /// Takes a chunk and calls `log` with every line it finishes.
    pub(crate) fn push(&mut self, chunk: &[u8], mut log: impl FnMut(&str)) {
        let mut pieces = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = LOG_LINE_BYTES_MAX - self.partial.len();
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if pieces.peek().is_some() {
                self.end(&mut log);
            }
        }
    }

    /// Takes the end of the stream.
    pub(crate) fn end(&mut self, mut log: impl FnMut(&str)) {
        let line = std::mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            log(text.trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_the_end_and_no_more() {
        let mut tail = Tail::default();
        tail.push(b"begin ");
        tail.push(b"end");
        assert_eq!(tail.text(), "begin end");
        tail.push(&vec![b'x'; 2 * TAIL_BYTES_MAX]);
        tail.push(b"end");
        assert_eq!(tail.text().len(), TAIL_BYTES_MAX);
        assert!(tail.text().ends_with("xend"));
    }

    #[test]
    fn lines_are_logged_when_they_are_whole() {
        let mut lines = LogLines::default();
        let mut logged = Vec::new();
        for chunk in ["one\ntw", "o\n\n", "three"] {
            lines.push(chunk.as_bytes(), |line| logged.push(line.to_owned()));
        }
        assert_eq!(logged, ["one", "two"]);
        lines.end(|line| logged.push(line.to_owned()));
        assert_eq!(logged, ["one", "two", "three"]);
    }

    #[test]
    fn a_line_without_end_takes_no_more_than_its_bound() {
        let mut lines = LogLines::default();
        for _ in 0..10 {
            lines.push(&vec![b'x'; LOG_LINE_BYTES_MAX], |_| panic!("nothing has ended"));
        }
        let mut length = 0;
        lines.end(|line| length = line.len());
        assert_eq!(length, LOG_LINE_BYTES_MAX);
    }
}
