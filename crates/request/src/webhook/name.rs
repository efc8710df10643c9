//! What an endpoint is called.

use std::fmt;

use thiserror::Error;

use super::limits::NAME_CHARS_MAX;

/// The name of an endpoint: 1 to [`NAME_CHARS_MAX`] characters from letters, digits, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointName(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing in it, or more than fits.
    #[error("an endpoint's name has 1 to {NAME_CHARS_MAX} characters")]
    Length,
    /// A character that is none of those allowed.
    #[error("an endpoint's name consists of letters, digits and '.', '_', '-'")]
    Character,
}

impl EndpointName {
    /// The name that a text is.
    ///
    /// # Errors
    /// See [`NameError`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() || text.len() > NAME_CHARS_MAX {
            return Err(NameError::Length);
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if text.bytes().all(is_allowed) { Ok(Self(text.to_owned())) } else { Err(NameError::Character) }
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EndpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "ops.pager_2-b", &"x".repeat(128)] {
            assert_eq!(EndpointName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", &"x".repeat(129)] {
            assert_eq!(EndpointName::parse(bad), Err(NameError::Length), "{bad}");
        }
        for bad in ["webhook:a", "a b", "a/b", "ä", "a\n"] {
            assert_eq!(EndpointName::parse(bad), Err(NameError::Character), "{bad}");
        }
    }
}
