//! Where a consumer stands in the stream, and whether it may go on from there.

use std::fmt;

use thiserror::Error;

use crate::Hash;

/// How a cursor of ours begins. Callers see one opaque word.
const PREFIX: &str = "c1";
/// Bytes of the chain in a cursor: enough that no other history has them by chance.
const CHAIN_BYTES: usize = 8;

/// A place in one history of one stream: what was read last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The stream.
    pub stream_id: String,
    /// The number of the event; 0 is before the first one.
    pub seq: u64,
    /// The first bytes of its chain: the same number in another history has others.
    pub chain: [u8; CHAIN_BYTES],
}

/// What a consumer may name its place by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// A number alone: it cannot be told from the same number in another history.
    Number(u64),
    /// A cursor.
    Cursor(Cursor),
}

/// A text is neither a number nor a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a number and not a cursor of ours")]
pub struct NotAPosition;

/// Where a stream begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The stream.
    pub stream_id: String,
    /// The highest number; 0 when there was none yet.
    pub head: u64,
    /// The highest number that is gone; 0 when none is.
    pub pruned_through: u64,
}

/// Why a consumer cannot go on from where it stands (return requests, section 2.12). Never a silent wait, never a silent gap.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotThere {
    /// What comes next is gone.
    #[error("events up to {oldest} are gone, of {head}")]
    TooOld {
        /// The lowest number that is kept, or will be.
        oldest: u64,
        /// The highest number.
        head: u64,
    },
    /// The store has not got so far: it was put back, or replaced.
    #[error("the stream has only {head} events")]
    Ahead {
        /// The highest number.
        head: u64,
    },
    /// Another stream.
    #[error("the stream is another one now")]
    Changed {
        /// The stream that is here.
        stream_id: String,
    },
    /// The same stream and number, and another history: the store was put back and went on.
    #[error("the stream has another history at {seq}")]
    Diverged {
        /// The number.
        seq: u64,
    },
}

impl Cursor {
    /// The place of an event whose chain is known.
    #[must_use]
    pub fn new(stream_id: &str, seq: u64, chain: &Hash) -> Self {
        let mut first = [0; CHAIN_BYTES];
        first.copy_from_slice(&chain.0[..CHAIN_BYTES]);
        Self { stream_id: stream_id.to_owned(), seq, chain: first }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}.{}.{}.{:016x}", self.stream_id, self.seq, u64::from_be_bytes(self.chain))
    }
}

impl Position {
    /// The position that a text is: digits, or a cursor.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self, NotAPosition> {
        match text.split_once('.') {
            None => number(text).map(Self::Number),
            Some((PREFIX, rest)) => cursor(rest).map(Self::Cursor),
            Some(_) => None,
        }
        .ok_or(NotAPosition)
    }

    /// The number in it.
    #[must_use]
    pub fn seq(&self) -> u64 {
        match self {
            Self::Number(seq) => *seq,
            Self::Cursor(cursor) => cursor.seq,
        }
    }

    /// The number after which a consumer goes on. `chain_at` is the chain of an event between `pruned_through` (of which it is kept
    /// although the event is gone; at 0 it is [`genesis`](crate::event::genesis)) and the head; where it has none, the histories cannot be
    /// told apart and are taken for two.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn resume(&self, extent: &Extent, chain_at: impl FnOnce(u64) -> Option<Hash>) -> Result<u64, NotThere> {
        let seq = self.seq();
        if let Self::Cursor(cursor) = self
            && cursor.stream_id != extent.stream_id
        {
            return Err(NotThere::Changed { stream_id: extent.stream_id.clone() });
        }
        if seq > extent.head {
            return Err(NotThere::Ahead { head: extent.head });
        }
        if seq < extent.pruned_through {
            return Err(NotThere::TooOld { oldest: extent.pruned_through + 1, head: extent.head });
        }
        match self {
            Self::Cursor(cursor) if chain_at(seq).is_none_or(|chain| chain.0[..CHAIN_BYTES] != cursor.chain) => {
                Err(NotThere::Diverged { seq })
            }
            _ => Ok(seq),
        }
    }
}

/// Digits and nothing else, within what the store can count.
fn number(text: &str) -> Option<u64> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|seq| is_digits && i64::try_from(*seq).is_ok())
}

/// Behind the prefix: stream, number, chain. The stream's id has no dot.
fn cursor(rest: &str) -> Option<Cursor> {
    let (stream_id, rest) = rest.split_once('.')?;
    let (seq, chain) = rest.split_once('.')?;
    let is_hex = chain.len() == 2 * CHAIN_BYTES && chain.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let chain = u64::from_str_radix(chain, 16).ok().filter(|_| is_hex)?;
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_stream = !stream_id.is_empty() && stream_id.bytes().all(is_id);
    is_stream.then_some(Cursor { stream_id: stream_id.to_owned(), seq: number(seq)?, chain: chain.to_be_bytes() })
}

#[cfg(test)]
mod tests;
