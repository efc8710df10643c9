//! An answer that says no: status, code, human text and the fields a client reads.

use std::borrow::Cow;

use bridge::HoldError;
use hyper::StatusCode;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use transcript::PageError;

use crate::limits::RETRY_AFTER_S;

/// A request that is refused. The text is for people; clients branch on the status and the code.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// The stable word clients branch on. A few of the peer's answers have none; ours add one.
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: Cow<'static, str>,
    /// Further fields of the body, in order.
    pub(crate) fields: Vec<(&'static str, Value)>,
    /// Whether the answer carries `Retry-After`.
    pub(crate) retry: bool,
    /// The value of an `Allow` header, for a method the path does not know.
    pub(crate) allow: Option<&'static str>,
}

impl Refusal {
    /// A refusal with no further fields.
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        let code = Cow::Borrowed(code);
        Self { status, code, message: message.into(), fields: Vec::new(), retry: false, allow: None }
    }

    /// 400 with a code.
    pub(crate) fn bad_request(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 409 with a code.
    pub(crate) fn conflict(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// The same refusal with one more field.
    pub(crate) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((key, value.into()));
        self
    }

    /// The same refusal with `Retry-After`.
    pub(crate) fn retry_later(mut self) -> Self {
        self.retry = true;
        self
    }

    /// The seconds of the `Retry-After` header, if it has one.
    pub(crate) fn retry_after_s(&self) -> Option<u32> {
        self.retry.then_some(RETRY_AFTER_S)
    }

    /// 404 for a session that is not live here (wire rules, section 1.3).
    pub(crate) fn session_not_found(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "session_not_found", format!("No session with id \"{id}\""))
            .with("sessionId", id)
    }

    /// 400 for a well-formed client id that this session does not know.
    pub(crate) fn unregistered(session: &str, client: &str) -> Self {
        let message = format!("Client id \"{client}\" is not registered for session {session}");
        Self::bad_request("invalid_client_id", message).with("sessionId", session).with("clientId", client)
    }

    /// 409 while a close (or a move of its files) holds the session's id.
    pub(crate) fn archiving(id: &str) -> Self {
        let message = format!("Session \"{id}\" is being archived or unarchived; retry later.");
        Self::conflict("session_archiving", message).with("sessionId", id).retry_later()
    }

    /// The same 409 while `what` is going on with the session.
    pub(crate) fn in_transition(id: &str, what: &str) -> Self {
        let message = format!("Session \"{id}\" is being {what}; retry later.");
        Self { message: message.into(), ..Self::archiving(id) }
    }

    /// 409 while the agent works on something that this would disturb.
    pub(crate) fn busy(id: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::conflict("session_busy", message)
            .with("errorKind", "session_busy")
            .with("retryable", true)
            .with("sessionId", id)
            .retry_later()
    }

    /// What a session that is not held is refused with: `busy` while a prompt of it runs or waits.
    pub(crate) fn not_held(id: &str, error: HoldError, busy: impl FnOnce() -> Self) -> Self {
        match error {
            HoldError::Busy => busy(),
            HoldError::Closing => Self::archiving(id),
            HoldError::Gone => Self::session_not_found(id),
        }
    }

    /// 409 for a session of which both an active and an archived copy exist.
    pub(crate) fn session_conflict(id: &str) -> Self {
        let message = format!(
            "Session \"{id}\" exists both as an active and as an archived one. Remove or resolve one of the two."
        );
        Self::conflict("session_conflict", message).with("sessionId", id)
    }

    /// 409 for a session that another process writes, by its lock.
    pub(crate) fn session_written(id: &str, owner: Option<&transcript::Owner>) -> Self {
        let writer =
            owner.map_or_else(|| "Another process".to_owned(), |owner| format!("Another process ({})", owner.pid));
        let refusal =
            Self::conflict("session_writer_conflict", format!("{writer} writes session \"{id}\"; retry later."));
        let refusal = refusal.with("sessionId", id).with("retryable", true).retry_later();
        match owner {
            Some(owner) => refusal.with("pid", owner.pid).with("startedAt", owner.started_at),
            None => refusal,
        }
    }

    /// 404 for a prompt that neither the live session nor its bounded memories know.
    pub(crate) fn prompt_not_found(session: &str, prompt: &str) -> Self {
        let message = format!("Prompt {prompt} not found in session {session}");
        Self::new(StatusCode::NOT_FOUND, "prompt_not_found", message)
            .with("sessionId", session)
            .with("promptId", prompt)
    }

    /// What a client is told of a transcript that cannot be searched or paged (wire rules, section 18.1). Paths stay in the
    /// log.
    pub(crate) fn of_transcript(session: &str, error: &PageError) -> Self {
        let (status, message) = match error {
            PageError::Io { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "The transcript cannot be read"),
            PageError::OversizedPage { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "The transcript holds a record larger than a page")
            }
            PageError::OversizedSnapshot { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "The transcript is too large to be searched")
            }
            PageError::InvalidCursor => (StatusCode::BAD_REQUEST, "`cursor` is none that was given out here"),
            PageError::Unavailable { .. } => (StatusCode::CONFLICT, "The transcript cannot be read as one snapshot"),
        };
        let refusal = Self::new(status, error.code(), message).with("sessionId", session);
        match error {
            PageError::OversizedPage { bytes, bytes_max, .. } => {
                refusal.with("pageSize", *bytes).with("maxBytes", *bytes_max)
            }
            PageError::OversizedSnapshot { bytes, bytes_max, .. } => {
                refusal.with("snapshotSize", *bytes).with("maxBytes", *bytes_max)
            }
            _ => refusal,
        }
    }

    /// 500 without detail: what went wrong is in the log.
    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "Internal server error")
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("error", &self.message)?;
        if !self.code.is_empty() {
            map.serialize_entry("code", &self.code)?;
        }
        for (key, value) in &self.fields {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_error_then_code_then_fields() {
        let text = serde_json::to_string(&Refusal::session_not_found("x")).unwrap();
        assert_eq!(text, r#"{"error":"No session with id \"x\"","code":"session_not_found","sessionId":"x"}"#);
    }

    #[test]
    fn every_error_of_a_transcript_has_its_status_and_tells_no_path() {
        let path = || std::path::PathBuf::from("/secret/s.jsonl");
        let large = (7, 4);
        for (error, status, fields) in [
            (
                PageError::Io { path: path(), cause: std::io::Error::other("x") },
                500,
                r#""code":"transcript_unreadable","sessionId":"s"}"#,
            ),
            (
                PageError::OversizedPage { path: path(), bytes: large.0, bytes_max: large.1 },
                413,
                r#""code":"transcript_page_too_large","sessionId":"s","pageSize":7,"maxBytes":4}"#,
            ),
            (
                PageError::OversizedSnapshot { path: path(), bytes: large.0, bytes_max: large.1 },
                413,
                r#""code":"transcript_too_large","sessionId":"s","snapshotSize":7,"maxBytes":4}"#,
            ),
            (PageError::InvalidCursor, 400, r#""code":"invalid_transcript_cursor","sessionId":"s"}"#),
            (
                PageError::Unavailable { path: path(), why: transcript::Unavailable::Replaced },
                409,
                r#""code":"transcript_snapshot_unavailable","sessionId":"s"}"#,
            ),
        ] {
            let refusal = Refusal::of_transcript("s", &error);
            let text = serde_json::to_string(&refusal).unwrap();
            assert_eq!(refusal.status.as_u16(), status, "{text}");
            assert!(text.ends_with(fields) && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn only_answers_that_invite_a_retry_carry_its_header() {
        assert_eq!(Refusal::archiving("x").retry_after_s(), Some(5));
        assert_eq!(Refusal::session_not_found("x").retry_after_s(), None);
    }
}
