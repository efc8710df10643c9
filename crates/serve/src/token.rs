//! The bearer token: which texts may be one, and the only two things done with it, neither of which shows it.

use std::fmt;

use subtle::ConstantTimeEq;
use thiserror::Error;

/// What callers must know. It is compared and never shown: not by `Debug`, and there is no other way to its text.
#[derive(Clone)]
pub struct Token(Box<[u8]>);

/// Why a text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenError {
    /// There is nothing to know.
    #[error("the token is empty")]
    Empty,
    /// A header cannot carry it, or not so that both sides read the same.
    #[error("the token holds white space, or a character that is not plain printable ASCII")]
    Unprintable,
}

impl Token {
    /// Takes `text` as the token.
    ///
    /// # Errors
    /// When it is empty, or holds anything but printable ASCII without spaces: what a header cannot carry as it is could never be
    /// sent, and a token that is nothing but a stray line end would guard nothing.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        match text.as_bytes() {
            [] => Err(TokenError::Empty),
            bytes if bytes.iter().all(u8::is_ascii_graphic) => Ok(Self(bytes.into())),
            _ => Err(TokenError::Unprintable),
        }
    }

    /// Whether `given` is the token, in a time that tells nothing about where it differs, nor whether its length is right.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        // Every byte of ours is met by one of theirs, a made-up one where theirs end, so the work is the same for every length.
        let pairs = self.0.iter().enumerate();
        let same = pairs
            .fold(given.len().ct_eq(&self.0.len()), |same, (at, ours)| same & ours.ct_eq(given.get(at).unwrap_or(&0)));
        same.into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_printable_text_without_spaces() {
        for (text, why) in [
            ("", TokenError::Empty),
            (" ", TokenError::Unprintable),
            ("\n", TokenError::Unprintable),
            ("secret\n", TokenError::Unprintable),
            ("two words", TokenError::Unprintable),
            ("a\tb", TokenError::Unprintable),
            ("a\0b", TokenError::Unprintable),
            ("\u{7f}", TokenError::Unprintable),
            ("schlüssel", TokenError::Unprintable),
        ] {
            assert_eq!(Token::new(text).err(), Some(why), "{text:?}");
        }
        assert!(Token::new("a-B_9.~+/=!").is_ok());
    }

    #[test]
    fn only_the_very_token_is_the_token() {
        let token = Token::new("secret").unwrap();
        assert!(token.is(b"secret"));
        for other in [&b""[..], b"s", b"secre", b"secrets", b"Secret", b"terces", b"secret\0", b"\0\0\0\0\0\0"] {
            assert!(!token.is(other), "{other:?}");
        }
    }

    #[test]
    fn a_token_does_not_show_itself() {
        assert_eq!(format!("{:?}", Token::new("secret").unwrap()), "Token(…)");
    }
}
