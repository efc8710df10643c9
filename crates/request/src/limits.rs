//! Every bound of a return request, with its unit and its reason.

/// Characters of a request id: room for a UUID with a prefix, and little enough for a key (return requests, section 2.9).
pub const ID_CHARS_MAX: usize = 128;
/// Bytes of a final message that are kept and sent; of a longer one the length and the digest say what the whole was (return requests,
/// section 2.8).
pub const FINAL_BYTES_MAX: usize = 1024 * 1024;
/// Pieces of late evidence that are kept of one request: enough for a story, too few for a flood (return requests, section 2.5).
pub const LATE_MAX: usize = 8;
/// Bytes of a stop reason that is passed through. An agent's word, so that its length is the agent's whim.
pub const STOP_REASON_BYTES_MAX: usize = 64;
/// How deep prompt content may be nested: the canonical form is made by recursion. Real blocks are four deep.
pub const CONTENT_DEPTH_MAX: usize = 64;
