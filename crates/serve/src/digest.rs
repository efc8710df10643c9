//! What a whole answer is known by: its SHA-256, as an entity tag and as RFC 9530 writes it. To make one is to read the answer, so those
//! of the last answers are kept.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io;
use std::sync::Mutex;

use sha2::{Digest as _, Sha256};
use transcript::Recorded;

use crate::limits::DIGESTS_MAX;
use crate::sync::lock;

/// The SHA-256 of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Of a text in memory.
    pub(crate) fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// As a strong entity tag.
    pub(crate) fn etag(self) -> String {
        let mut tag = "\"sha256-".to_owned();
        for byte in self.0 {
            // Writing to a text cannot fail.
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');
        tag
    }

    /// Its first 16 hexadecimal digits.
    pub(crate) fn short(self) -> String {
        self.0.iter().take(8).fold(String::new(), |mut text, byte| {
            // Writing to a text cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// As the value of `Repr-Digest`.
    pub(crate) fn repr(self) -> String {
        format!("sha-256=:{}:", base64(&self.0))
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().enumerate().fold(0, |bits, (at, byte)| bits | usize::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let letter = LETTERS[bits >> (18 - 6 * at) & 63];
            text.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Which answer: its session, its prompt, and where it stands.
type Place = (String, String, [u64; 4]);

/// The digests of the answers that were read last.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    kept: Mutex<VecDeque<(Place, Digest)>>,
}

impl Digests {
    /// The digest of an answer in a transcript; none when the file is not what it was. Blocks, as long as it takes to read the answer.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(&self, session: &str, prompt: &str, answer: &Recorded) -> io::Result<Option<Digest>> {
        let place = (session.to_owned(), prompt.to_owned(), answer.place()?);
        if let Some((_, digest)) = lock(&self.kept).iter().find(|(known, _)| *known == place) {
            return Ok(Some(*digest));
        }
        let mut hash = Sha256::new();
        let is_whole = answer.read(0..answer.bytes(), |piece| {
            hash.update(piece);
            true
        })?;
        if !is_whole {
            return Ok(None);
        }
        let digest = Digest(hash.finalize().into());
        let mut kept = lock(&self.kept);
        if kept.len() == DIGESTS_MAX {
            kept.pop_front();
        }
        kept.push_back((place, digest));
        Ok(Some(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_as_others_write_it() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.etag(), "\"sha256-ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"");
        assert_eq!(digest.repr(), "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:");
    }

    #[test]
    fn base64_ends_as_long_as_it_should() {
        for (text, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
