//! Where a daemon is: a URL, taken apart once.

use std::net::SocketAddr;

use hyper::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Whatever a path segment or a query value may not hold as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Where a daemon is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) is_https: bool,
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as the `Host` header says them.
    pub(crate) authority: String,
    /// What stands before every path, without a slash at its end.
    prefix: String,
}

/// Why a text is no daemon's URL. None of these repeats the text: it may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointError {
    /// It is no absolute URL of a scheme that we speak.
    Form,
    /// It holds a user's name or a password.
    Credentials,
    /// Something stands behind the path.
    Query,
}

impl std::fmt::Display for EndpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Form => "--url is no http://HOST[:PORT] and no https://HOST[:PORT]",
            Self::Credentials => "--url holds a name or a password; the token goes into TURND_TOKEN",
            Self::Query => "--url has something behind its path",
        })
    }
}

impl Endpoint {
    /// Takes a URL apart.
    pub(crate) fn parse(text: &str) -> Result<Self, EndpointError> {
        let uri: Uri = text.parse().map_err(|_| EndpointError::Form)?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(EndpointError::Form),
        };
        let authority = uri.authority().ok_or(EndpointError::Form)?;
        if authority.as_str().contains('@') {
            return Err(EndpointError::Credentials);
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(EndpointError::Query);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        // The library takes a port that is none for one that was not given.
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") if is_https => 443,
            Some("") => 80,
            _ => authority.port_u16().ok_or(EndpointError::Form)?,
        };
        if host.is_empty() {
            return Err(EndpointError::Form);
        }
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { is_https, host, port, authority: authority.as_str().to_owned(), prefix })
    }

    /// The request target of a path of the daemon.
    pub(crate) fn target(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        let (host, port) = (address.ip().to_string(), address.port());
        Self { is_https: false, host, port, authority: address.to_string(), prefix: String::new() }
    }
}

/// A text as one segment of a path or one value of a query.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_a_daemon_is() {
        for (text, is_https, host, port, target) in [
            ("http://127.0.0.1:4170", false, "127.0.0.1", 4170, "/x"),
            ("http://127.0.0.1:4170/", false, "127.0.0.1", 4170, "/x"),
            ("http://localhost", false, "localhost", 80, "/x"),
            ("https://agents.example.org", true, "agents.example.org", 443, "/x"),
            ("https://example.org:8443/turnd/", true, "example.org", 8443, "/turnd/x"),
            ("http://[::1]:4170", false, "::1", 4170, "/x"),
            ("HTTP://localhost:1", false, "localhost", 1, "/x"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((endpoint.is_https, endpoint.host.as_str(), endpoint.port), (is_https, host, port), "{text}");
            assert_eq!(endpoint.target("/x"), target, "{text}");
        }
        assert_eq!(Endpoint::parse("http://[::1]:4170").unwrap().authority, "[::1]:4170");
    }

    #[test]
    fn what_is_no_daemons_url_is_said_without_repeating_it() {
        for (text, expected) in [
            ("", EndpointError::Form),
            ("localhost:4170", EndpointError::Form),
            ("127.0.0.1:4170", EndpointError::Form),
            ("/session", EndpointError::Form),
            ("ftp://localhost", EndpointError::Form),
            ("http://", EndpointError::Form),
            ("http://:4170", EndpointError::Form),
            ("http://localhost:99999", EndpointError::Form),
            ("http://me:s3cret@localhost", EndpointError::Credentials),
            ("http://localhost/?token=s3cret", EndpointError::Query),
            ("http://localhost/#s3cret", EndpointError::Query),
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn a_name_stays_one_segment() {
        for (text, expected) in [
            ("0190b6a5-7c1e-7000-8000-000000000000", "0190b6a5-7c1e-7000-8000-000000000000"),
            ("job:7", "job:7"),
            ("a/b", "a%2Fb"),
            ("..?x=1&y#z", "..%3Fx%3D1%26y%23z"),
            ("a b+ü", "a%20b%2B%C3%BC"),
        ] {
            assert_eq!(segment(text), expected);
        }
    }
}
