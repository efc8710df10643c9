//! Where a consumer stands in the stream.

/// A place in one history of one stream: what was read last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The stream.
    pub stream_id: String,
    /// The number of the event.
    pub seq: u64,
    /// The first bytes of its chain: the same number in another history has others.
    pub chain: [u8; 8],
}
