//! The one event of a request, as the stream carries it.

use crate::{Hash, RequestId};

/// A terminal event: written once, in the transaction that ends its request, and never joined with live data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalEvent {
    /// Its number: one more than the one before it.
    pub seq: u64,
    /// The request that ended.
    pub request_id: RequestId,
    /// When it was written, in epoch milliseconds.
    pub at_ms: u64,
    /// The body: JSON text, always the same bytes.
    pub payload: String,
    /// What ties it to all events before it.
    pub chain: Hash,
}
