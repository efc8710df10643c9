//! Where an endpoint is: a URL, taken apart.

use hyper::Uri;
use request::webhook::limits::URL_BYTES_MAX;
use thiserror::Error;

/// The parts of an endpoint's URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) is_https: bool,
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as the `Host` header says them.
    pub(crate) authority: String,
    /// Path and query.
    pub(crate) path: String,
}

/// Why a text is no endpoint's URL. None of these repeats the text: it may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum TargetError {
    /// It is no absolute URL of a scheme that we speak, or a very long one.
    #[error("`url` must be an http:// or https:// URL of at most {URL_BYTES_MAX} bytes")]
    Form,
    /// It holds a user's name or a password.
    #[error("`url` holds a name or a password; what is sent is signed instead")]
    Credentials,
    /// A part that is not sent.
    #[error("`url` has a fragment, which is never sent")]
    Fragment,
}

impl Target {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub(crate) fn parse(text: &str) -> Result<Self, TargetError> {
        if text.len() > URL_BYTES_MAX {
            return Err(TargetError::Form);
        }
        if text.contains('#') {
            return Err(TargetError::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| TargetError::Form)?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(TargetError::Form),
        };
        let authority = uri.authority().ok_or(TargetError::Form)?;
        if authority.as_str().contains('@') {
            return Err(TargetError::Credentials);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        // The library takes a port that is none for one that was not given.
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") if is_https => 443,
            Some("") => 80,
            _ => authority.port_u16().ok_or(TargetError::Form)?,
        };
        if host.is_empty() {
            return Err(TargetError::Form);
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { is_https, host, port, authority: authority.as_str().to_owned(), path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_an_endpoint_is() {
        for (text, is_https, host, port, path) in [
            ("http://127.0.0.1:4170", false, "127.0.0.1", 4170, "/"),
            ("https://hooks.example.org/in?key=7", true, "hooks.example.org", 443, "/in?key=7"),
            ("http://localhost/a/b/", false, "localhost", 80, "/a/b/"),
            ("https://[::1]:8443/x", true, "::1", 8443, "/x"),
        ] {
            let target = Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((target.is_https, &*target.host, target.port, &*target.path), (is_https, host, port, path));
        }
        assert_eq!(Target::parse("http://[::1]:4170").unwrap().authority, "[::1]:4170");
    }

    #[test]
    fn what_is_no_endpoint_is_said_without_repeating_it() {
        let long = format!("http://localhost/{}", "x".repeat(URL_BYTES_MAX));
        for (text, expected) in [
            ("", TargetError::Form),
            ("localhost:4170", TargetError::Form),
            ("/hook", TargetError::Form),
            ("ftp://localhost", TargetError::Form),
            ("http://", TargetError::Form),
            ("http://:4170", TargetError::Form),
            ("http://localhost:99999", TargetError::Form),
            (&long, TargetError::Form),
            ("http://me:s3cret@localhost", TargetError::Credentials),
            ("http://localhost/#s3cret", TargetError::Fragment),
        ] {
            let error = Target::parse(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{text}");
        }
    }
}
