//! One event as every reader gets it.

use bytes::Bytes;

/// An event, serialised once and shared by all who read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number; a frame about the stream itself has none.
    pub id: Option<u64>,
    /// Its type, for the `event:` line.
    pub kind: &'static str,
    /// The whole envelope as JSON on one line.
    pub json: Bytes,
}
