//! What identifies a return request: chosen by the caller, or a version-7 UUID.

use std::fmt;

use thiserror::Error;

use crate::limits::ID_CHARS_MAX;

/// The id of a return request: 1 to [`ID_CHARS_MAX`] characters from letters, digits, `.`, `_`, `:` and `-`, unique in the whole store
/// (return requests, section 2.9).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(String);

/// Why a text is no request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IdError {
    /// Nothing in it.
    #[error("request id is empty")]
    Empty,
    /// More than [`ID_CHARS_MAX`] characters.
    #[error("request id is longer than {ID_CHARS_MAX} characters")]
    TooLong,
    /// A character that is none of those allowed.
    #[error("request id has a character other than letters, digits and '.', '_', ':', '-'")]
    Character,
}

impl RequestId {
    /// The id that a text is.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        if text.is_empty() {
            return Err(IdError::Empty);
        }
        if text.len() > ID_CHARS_MAX {
            return Err(IdError::TooLong);
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
        if text.bytes().all(is_allowed) { Ok(Self(text.to_owned())) } else { Err(IdError::Character) }
    }

    /// A version-7 UUID of a time in epoch milliseconds (its lower 48 bits) and ten random bytes, of which 74 bits are used.
    #[must_use]
    pub fn version_7(at_ms: u64, random: [u8; 10]) -> Self {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&at_ms.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&random);
        bytes[6] = 0x70 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        let mut text = String::with_capacity(36);
        for (place, byte) in bytes.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.push(hex_digit(byte >> 4));
            text.push(hex_digit(byte & 0x0f));
        }
        Self(text)
    }

    /// When a version-7 UUID was made, in epoch milliseconds; none for any other id. A caller makes its own ids, so that this is the
    /// caller's word and its clock's.
    #[must_use]
    pub fn born_ms(&self) -> Option<u64> {
        let bytes = self.0.as_bytes();
        let is_uuid = bytes.len() == 36
            && bytes.iter().enumerate().all(|(place, byte)| match place {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        if !is_uuid || bytes[14] != b'7' || !matches!(bytes[19], b'8' | b'9' | b'a' | b'b' | b'A' | b'B') {
            return None;
        }
        let digits = [&self.0[..8], &self.0[9..13]].concat();
        u64::from_str_radix(&digits, 16).ok()
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The hexadecimal digit of a value below 16.
pub(crate) fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_1_to_128_of_the_characters_allowed() {
        for text in ["a", "A-1_b:c.d", &"x".repeat(128)] {
            assert_eq!(RequestId::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(RequestId::parse(""), Err(IdError::Empty));
        assert_eq!(RequestId::parse(&"x".repeat(129)), Err(IdError::TooLong));
        for text in ["a b", "a/b", "ä", "a\n", "a\0"] {
            assert_eq!(RequestId::parse(text), Err(IdError::Character), "{text:?}");
        }
    }

    #[test]
    fn a_version_7_id_says_when_it_was_made() {
        let id = RequestId::version_7(0x0192_3456_789a, [0xff; 10]);
        assert_eq!(id.as_str(), "01923456-789a-7fff-bfff-ffffffffffff");
        assert_eq!(id.born_ms(), Some(0x0192_3456_789a));
        assert_eq!(RequestId::parse(&id.as_str().to_uppercase()).unwrap().born_ms(), Some(0x0192_3456_789a));
        assert_eq!(RequestId::version_7(7, [0; 10]).as_str(), "00000000-0007-7000-8000-000000000000");
    }

    #[test]
    fn another_id_says_nothing_of_its_age() {
        for text in [
            "fe57dc90-994e-4e73-b09c-fac483d9f05b",
            "01923456-789a-7fff-cfff-ffffffffffff",
            "01923456-789a-7fff-bfff-fffffffffff",
            "01923456:789a-7fff-bfff-ffffffffffff",
            "g1923456-789a-7fff-bfff-ffffffffffff",
            "mine",
        ] {
            assert_eq!(RequestId::parse(text).unwrap().born_ms(), None, "{text}");
        }
    }
}
