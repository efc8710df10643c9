//! What an endpoint and the daemon know and nobody else: the key of every signature.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use super::limits::{SECRET_BYTES_MAX, SECRET_BYTES_MIN};

/// What stands before a secret in text (Standard Webhooks).
const PREFIX: &str = "whsec_";

/// A secret: [`SECRET_BYTES_MIN`] to [`SECRET_BYTES_MAX`] bytes. It prints as nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Why a text is no secret. The text is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// Not `whsec_` and base64 behind it.
    #[error("a secret is `whsec_` and base64 behind it")]
    Form,
    /// Too short to be safe, or too long to be used as it is.
    #[error("a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")]
    Length,
}

impl Secret {
    /// The secret of these bytes.
    ///
    /// # Errors
    /// [`SecretError::Length`].
    pub fn new(bytes: Vec<u8>) -> Result<Self, SecretError> {
        let fits = (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len());
        if fits { Ok(Self(bytes)) } else { Err(SecretError::Length) }
    }

    /// The secret that a text is.
    ///
    /// # Errors
    /// See [`SecretError`].
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError::Form)?;
        Self::new(STANDARD.decode(encoded).map_err(|_| SecretError::Form)?)
    }

    /// As text, for the one time at which it is shown.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// The key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_back_from_its_text_and_prints_as_nothing() {
        for length in [24, 32, 64] {
            let secret = Secret::new((0..length).collect()).unwrap();
            assert_eq!(Secret::parse(&secret.reveal()), Ok(secret.clone()));
            assert_eq!(format!("{secret:?}"), "Secret");
        }
    }

    #[test]
    fn what_is_too_short_too_long_or_of_another_form_is_none() {
        let text = |length: usize| format!("whsec_{}", STANDARD.encode(vec![1; length]));
        assert_eq!(Secret::parse(&text(23)), Err(SecretError::Length));
        assert_eq!(Secret::parse(&text(65)), Err(SecretError::Length));
        assert_eq!(Secret::parse(&text(24)[6..]), Err(SecretError::Form));
        assert_eq!(Secret::parse(&text(25).replace('=', "")), Err(SecretError::Form), "without its padding");
        assert_eq!(Secret::parse("whsec_not base64 at all"), Err(SecretError::Form));
    }
}
