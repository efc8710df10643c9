//! The one event of a request, as the stream carries it, and the chain that ties it to all before it.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::{Code, Cursor, Evidence, Hash, Request, RequestId};

/// The version of the body that is written.
const VERSION: u32 = 1;
/// The last member of a body. The cursor has some of the chain in it, and the chain is made of the body, so that the chain covers all but
/// this.
const CURSOR_MEMBER: &str = ",\"cursor\":";

/// A terminal event: written once, in the transaction that ends its request, and never joined with live data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalEvent {
    /// Its number: one more than the one before it.
    pub seq: u64,
    /// The request that ended.
    pub request_id: RequestId,
    /// When it was written, in epoch milliseconds.
    pub at_ms: u64,
    /// The body: JSON text, always the same bytes (return requests, section 2.12).
    pub payload: String,
    /// What ties it to all events before it.
    pub chain: Hash,
}

impl TerminalEvent {
    /// The event of a request that has ended. `before` is the chain of the event before it.
    #[must_use]
    pub fn new(request: &Request, stream_id: &str, seq: u64, before: &Hash, at_ms: u64) -> Self {
        let mut payload = core(request, stream_id, seq);
        let chain = link(before, &payload);
        let cursor = Cursor::new(stream_id, seq, &chain);
        // The closing brace gives way.
        payload.pop();
        payload.push_str(CURSOR_MEMBER);
        payload.push('"');
        payload.push_str(&cursor.to_string());
        payload.push_str("\"}");
        Self { seq, request_id: request.id().clone(), at_ms, payload, chain }
    }
}

/// What stands before the first event of a stream.
#[must_use]
pub fn genesis(stream_id: &str) -> Hash {
    Hash(Sha256::new().chain_update("turnd-request-stream-1\n").chain_update(stream_id).finalize().into())
}

/// The chain of an event: a hash of the chain before it and of its body, but for the cursor at the end of that.
#[must_use]
pub fn link(before: &Hash, payload: &str) -> Hash {
    // Within a text the quotation marks are escaped, so that only the member itself looks like this.
    let end = payload.rfind(CURSOR_MEMBER).unwrap_or_else(|| payload.len() - usize::from(payload.ends_with('}')));
    Hash(Sha256::new().chain_update(before.0).chain_update(&payload[..end]).finalize().into())
}

#[derive(Serialize)]
struct Body<'a> {
    v: u32,
    stream_id: &'a str,
    terminal_event_sequence: u64,
    request_id: &'a str,
    state: &'static str,
    code: Option<&'a str>,
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    final_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    final_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    final_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    final_sha256: Option<Hash>,
    stop_reason: Option<&'a str>,
    evidence: Option<&'static str>,
    input_written: &'static str,
    session_id: &'a str,
    prompt_id: &'a str,
    incarnation_id: Option<&'a str>,
    created_at: u64,
    submitted_at: Option<u64>,
    ended_at: Option<u64>,
}

/// The body without its cursor. What only `completed` has is not even there otherwise.
fn core(request: &Request, stream_id: &str, seq: u64) -> String {
    let registration = &request.registration;
    let body = Body {
        v: VERSION,
        stream_id,
        terminal_event_sequence: seq,
        request_id: request.id().as_str(),
        state: request.state.as_str(),
        code: request.code.as_ref().map(Code::as_str),
        detail: request.detail.as_deref(),
        final_message: request.final_message.as_deref(),
        final_truncated: request.final_message.as_ref().map(|_| request.final_truncated),
        final_bytes: request.final_bytes,
        final_sha256: request.final_sha256,
        stop_reason: request.stop_reason.as_deref(),
        evidence: request.evidence.map(Evidence::as_str),
        input_written: request.input_written.as_str(),
        session_id: &registration.session_id,
        prompt_id: &registration.prompt_id,
        incarnation_id: registration.incarnation_id.as_deref(),
        created_at: registration.created_at,
        submitted_at: request.submitted_at,
        ended_at: request.ended_at,
    };
    // A struct of texts and numbers is always JSON.
    serde_json::to_string(&body).unwrap_or_default()
}

#[cfg(test)]
mod tests;
