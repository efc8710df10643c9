//! Cursors as they are given out: signed, so that nobody makes one up. A cursor says where in a file reading goes on, and what stands
//! there was written by an agent.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// Bytes that a key is filled up to (RFC 2104, for SHA-256).
const BLOCK_BYTES: usize = 64;
/// Bytes of a signature: no number of guesses that a daemon answers in its life finds one.
const SIGNATURE_BYTES: usize = 16;

/// The signer of one workspace's cursors. Its key is of one life: who comes back to the next one begins anew.
pub(crate) struct Cursors {
    key: [u8; BLOCK_BYTES],
}

impl Default for Cursors {
    fn default() -> Self {
        let mut key = [0; BLOCK_BYTES];
        for (bytes, id) in key.chunks_mut(16).take(2).zip([Uuid::new_v4(), Uuid::new_v4()]) {
            bytes.copy_from_slice(id.as_bytes());
        }
        Self { key }
    }
}

impl Cursors {
    /// The text that is given out for a cursor into the transcript of `session`.
    pub(crate) fn sealed(&self, session: &str, cursor: &str) -> String {
        let signature =
            self.signature(session, cursor).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        format!("{cursor}.{signature}")
    }

    /// The cursor in a text; none when it was not given out here, for this session.
    pub(crate) fn opened<'a>(&self, session: &str, text: &'a str) -> Option<&'a str> {
        let (cursor, _) = text.rsplit_once('.')?;
        let is_ours = self.sealed(session, cursor).as_bytes().ct_eq(text.as_bytes());
        bool::from(is_ours).then_some(cursor)
    }

    /// HMAC-SHA256.
    fn signature(&self, session: &str, cursor: &str) -> [u8; SIGNATURE_BYTES] {
        let padded = |pad: u8| self.key.map(|byte| byte ^ pad);
        let inner = Sha256::new()
            .chain_update(padded(0x36))
            .chain_update((session.len() as u64).to_be_bytes())
            .chain_update(session)
            .chain_update(cursor)
            .finalize();
        let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize();
        std::array::from_fn(|at| outer[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_session_and_its_life() {
        let cursors = Cursors::default();
        let text = cursors.sealed("s", "1b42");
        assert_eq!(cursors.opened("s", &text), Some("1b42"));
        assert_eq!(cursors.opened("t", &text), None);
        assert_eq!(Cursors::default().opened("s", &text), None);
    }

    #[test]
    fn a_cursor_that_was_changed_or_made_up_is_none() {
        let cursors = Cursors::default();
        let text = cursors.sealed("s", "1b42");
        for at in 0..text.len() {
            let other = if text.as_bytes()[at] == b'0' { "1" } else { "0" };
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert_eq!(cursors.opened("s", &changed), None, "{changed}");
        }
        for made_up in ["", ".", "1b42", "1b42.", &text[..text.len() - 1], &format!("{text}0")] {
            assert_eq!(cursors.opened("s", made_up), None, "{made_up}");
        }
    }

    #[test]
    fn the_signature_is_the_standard_one() {
        // Of RFC 2104, written out.
        let cursors = Cursors { key: [7; BLOCK_BYTES] };
        let message = [&1_u64.to_be_bytes()[..], b"s", b"c"].concat();
        let inner = Sha256::digest([&[7 ^ 0x36; BLOCK_BYTES][..], &message].concat());
        let outer = Sha256::digest([&[7 ^ 0x5c; BLOCK_BYTES][..], &inner].concat());
        assert_eq!(cursors.signature("s", "c"), outer[..SIGNATURE_BYTES]);
    }
}
