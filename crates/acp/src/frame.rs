//! Cutting a byte stream into lines, within a limit.

use std::collections::VecDeque;

use bytes::Bytes;

/// Longest line in bytes, line feed not counted. Real agents send 1.1 MB, and tool output inside
/// one message has no limit of its own; far above that, yet small enough to hold once a session.
pub const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Buffer in bytes kept between lines. Nearly all lines are shorter; what a long one needed is
/// given back.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a line that is too long in which the member that tells what it is must begin.
const HEAD_BYTES: usize = 4 * 1024;

/// Why a line was lost. Reading goes on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The line is longer than the limit; what follows up to the next line feed is discarded.
    TooLong {
        /// The limit in bytes.
        limit_bytes: usize,
        /// Whether the line began as an answer does, so that somebody waits for what was lost.
        was_answer: bool,
    },
}

/// What a reader has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Lines given out.
    pub frames: u64,
    /// Lines with nothing on them, not given out.
    pub empty_lines: u64,
    /// Lines over the limit.
    pub too_long: u64,
}

/// Collects bytes as they come and gives them out line by line.
///
/// It holds at most one unfinished line, never more than the limit of it, and the finished lines of
/// what was pushed last; so push chunks of a bounded size and take every frame before the next.
#[derive(Debug)]
pub struct FrameReader {
    limit_bytes: usize,
    partial: Vec<u8>,
    /// Inside a line that was too long: everything up to its end is dropped unseen.
    discarding: bool,
    ready: VecDeque<Result<Bytes, FrameError>>,
    counts: FrameCounts,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new(FRAME_BYTES_MAX)
    }
}

impl FrameReader {
    /// A reader with a limit of its own.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            partial: Vec::new(),
            discarding: false,
            ready: VecDeque::new(),
            counts: FrameCounts::default(),
        }
    }

    /// Takes the bytes that came next.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// The next line, without its line feed and a carriage return before it.
    pub fn next_frame(&mut self) -> Option<Result<Bytes, FrameError>> {
        self.ready.pop_front()
    }

    /// Takes the end of the stream and gives the next line; a last line without a line feed is one.
    pub fn finish(&mut self) -> Option<Result<Bytes, FrameError>> {
        if self.discarding || !self.partial.is_empty() {
            self.end_line();
        }
        self.next_frame()
    }

    /// What has been seen so far.
    #[must_use]
    pub fn counts(&self) -> FrameCounts {
        self.counts
    }

    /// Memory in bytes held for the unfinished line.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.partial.capacity()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.discarding || bytes.is_empty() {
            return;
        }
        let needed = self.partial.len() + bytes.len();
        if needed > self.limit_bytes {
            self.discarding = true;
            let partial = std::mem::take(&mut self.partial);
            let was_answer = begins_an_answer(if partial.is_empty() { bytes } else { &partial });
            self.counts.too_long += 1;
            self.ready.push_back(Err(FrameError::TooLong { limit_bytes: self.limit_bytes, was_answer }));
            return;
        }
        if needed > self.partial.capacity() {
            // Doubling as usual, but never past the limit.
            let target = needed.max((self.partial.capacity() * 2).min(self.limit_bytes));
            self.partial.reserve_exact(target - self.partial.len());
        }
        self.partial.extend_from_slice(bytes);
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.discarding) {
            return;
        }
        if self.partial.last() == Some(&b'\r') {
            self.partial.pop();
        }
        if self.partial.is_empty() {
            self.counts.empty_lines += 1;
            return;
        }
        self.counts.frames += 1;
        let frame = self.take_line();
        self.ready.push_back(Ok(frame));
    }

    /// The line in memory of exactly its size: frames are kept for long, and slack adds up.
    fn take_line(&mut self) -> Bytes {
        if self.partial.capacity() > KEPT_BYTES_MAX {
            return std::mem::take(&mut self.partial).into_boxed_slice().into();
        }
        let frame = Bytes::copy_from_slice(&self.partial);
        self.partial.clear();
        frame
    }
}

/// Whether a line that begins like this is an answer: of the members that tell, the first is a result or an error. What
/// stands before it, version and id, is short and holds no other names.
fn begins_an_answer(line: &[u8]) -> bool {
    let first = |name: &[u8]| line.windows(name.len()).take(HEAD_BYTES).position(|window| window == name);
    let answers = [first(b"\"result\""), first(b"\"error\"")].into_iter().flatten().min();
    let others = [first(b"\"method\""), first(b"\"params\"")].into_iter().flatten().min();
    answers.is_some_and(|answer| others.is_none_or(|other| answer < other))
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong { limit_bytes, .. } => {
                write!(f, "a line is longer than the limit of {limit_bytes} bytes")
            }
        }
    }
}

impl std::error::Error for FrameError {}

#[cfg(test)]
mod tests;
