//! Why a request has no answer.

use std::time::Duration;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// No connection came about, so nothing was sent.
    Unreachable(std::io::Error),
    /// The connection broke, or the peer does not speak HTTP: what became of the request is unknown.
    Lost(hyper::Error),
    /// The stream ended inside a line.
    Torn,
    /// Nothing came for so long: what became of the request is unknown.
    Silent(Duration),
    /// The request cannot be made, so nothing was sent.
    Request(String),
    /// The answer is not what this client asked for.
    Answer(String),
}

impl ClientError {
    /// Whether the same request may fare better on another connection.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Lost(_) | Self::Torn | Self::Silent(_) => true,
            Self::Request(_) | Self::Answer(_) => false,
        }
    }

    /// Whether the request may have arrived all the same.
    pub(crate) fn may_have_arrived(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Torn | Self::Silent(_) | Self::Answer(_) => true,
            Self::Unreachable(_) | Self::Request(_) => false,
        }
    }
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "cannot reach the daemon: {error}"),
            Self::Lost(error) => write!(f, "the exchange with the daemon broke off: {error}"),
            Self::Torn => f.write_str("the daemon's stream ended inside a line"),
            Self::Silent(limit) => write!(f, "the daemon said nothing for {} s", limit.as_secs()),
            Self::Request(text) => f.write_str(text),
            Self::Answer(text) => write!(f, "unexpected answer: {text}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<hyper::Error> for ClientError {
    fn from(error: hyper::Error) -> Self {
        Self::Lost(error)
    }
}
