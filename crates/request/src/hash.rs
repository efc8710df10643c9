//! What tells one prompt, and one caller's request, from another.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use crate::canonical::Canonical;
use crate::id::hex_digit;

/// A SHA-256. As text: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash that a text of 64 hexadecimal digits is.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(value(pair[0])? * 16 + value(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{}{}", hex_digit(byte >> 4), hex_digit(byte & 0x0f)))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not a SHA-256 in hexadecimal digits"))
    }
}

/// The recipe of [`input_hash`]; a later one gets another number, so that old ids can still be told from one another.
pub const HASH_VERSION: u32 = 1;

/// What a caller asks for: all of it, and nothing that was observed (return requests, section 2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The session, as it was given.
    pub session_id: &'a str,
    /// The agent process that the caller wants.
    pub expected_incarnation: Option<&'a str>,
    /// The content blocks.
    pub content: &'a Canonical,
    /// Milliseconds until the deadline; 0 is none.
    pub timeout_ms: u64,
    /// Whether the prompt may wait in the session's queue.
    pub queue: bool,
    /// Whether the deadline also cancels the agent's turn.
    pub cancel_on_timeout: bool,
}

/// What tells two requests under one id apart. Each field is named and has its length before it, so that no two askings have the same
/// bytes.
#[must_use]
pub fn input_hash(asked: &Asked<'_>) -> Hash {
    let mut hash = Sha256::new_with_prefix("turnd-request-input-1\n");
    let mut field = |name: &str, value: Option<&[u8]>| {
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
        // What was not said is not the same as nothing said.
        hash.update([u8::from(value.is_some())]);
        hash.update((value.map_or(0, <[u8]>::len) as u64).to_be_bytes());
        hash.update(value.unwrap_or_default());
    };
    field("session", Some(asked.session_id.as_bytes()));
    field("incarnation", asked.expected_incarnation.map(str::as_bytes));
    field("content", Some(asked.content.as_str().as_bytes()));
    field("timeout_ms", Some(&asked.timeout_ms.to_be_bytes()));
    field("queue", Some(&[u8::from(asked.queue)]));
    field("cancel_on_timeout", Some(&[u8::from(asked.cancel_on_timeout)]));
    Hash(hash.finalize().into())
}

/// What tells one prompt from another: of its content blocks, and of nothing else.
#[must_use]
pub fn prompt_hash(content: &Canonical) -> Hash {
    Hash(Sha256::new_with_prefix("turnd-request-prompt-1\n").chain_update(content.as_str()).finalize().into())
}

#[cfg(test)]
mod tests;
