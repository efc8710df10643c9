//! One message: who is meant by it, and the text it came as.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::field::{raw_at, string_at};
use crate::request_id::RequestId;
use crate::rpc_error::RpcError;
use crate::scan::{self, Member, ScanError, key_is};
use crate::text::{decode_string, repair_surrogates};

/// A JSON-RPC message whose envelope has been found and whose content has not been touched.
#[derive(Clone, Debug)]
pub struct Message {
    raw: Bytes,
    /// Every byte of it was text.
    is_text: bool,
    kind: Kind,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Wants an answer.
    Request {
        /// To be echoed in the answer byte for byte.
        id: RequestId,
        /// The method's name.
        method: String,
    },
    /// Wants none, or has a method that nobody answers, whatever id the peer puts beside it.
    Notification {
        /// The method's name.
        method: String,
    },
    /// Answers a request.
    Response {
        /// The request's id. Absent or null when the peer could not read the request.
        id: Option<RequestId>,
    },
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Raw JSON of the result, which may be `null`.
    Result(&'a str),
    /// The error.
    Error(RpcError),
}

/// Why a line is not a message. The line is skipped and counted, and reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAMessage {
    /// Nothing but space.
    Blank,
    /// Not JSON.
    NotJson {
        /// Offset in bytes of what is wrong.
        at: usize,
    },
    /// JSON that nests deeper than the scanner follows.
    TooDeep,
    /// JSON, but an array or a scalar.
    NotAnObject,
    /// An object with neither a method nor an outcome.
    NoEnvelope,
    /// An object whose id is an array, an object or a boolean.
    BadId,
}

impl Message {
    /// Finds the envelope of one line.
    ///
    /// Half surrogate pairs, repeated keys (the last counts), members in any order and a byte order mark before them are fine.
    /// Bytes that are not UTF-8 are replaced by U+FFFD first, as no text can carry them.
    pub fn parse(line: Bytes) -> Result<Self, NotAMessage> {
        let (text, is_text) = readable(line);
        let Ok(read) = std::str::from_utf8(&text) else {
            return Err(NotAMessage::NotJson { at: 0 });
        };
        if read.is_empty() {
            return Err(NotAMessage::Blank);
        }
        let envelope = Envelope::find(read)?;
        let kind = envelope.kind(read)?;
        let Envelope { params, result, error, .. } = envelope;
        Ok(Self { kind, params, result, error, is_text, raw: presentable(text) })
    }

    /// What the message is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The line as it came, without the space around it.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Whether what an update says is readable just as the agent wrote it: its line is UTF-8, and its text has no half of a surrogate pair.
    /// Of anything but an update it says nothing.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let text = self.params().and_then(|params| raw_at(params, &["update", "content", "text"]));
        self.is_text && text.is_none_or(|text| matches!(repair_surrogates(text), Cow::Borrowed(_)))
    }

    /// The method of a request or a notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            Kind::Request { method, .. } | Kind::Notification { method } => Some(method),
            Kind::Response { .. } => None,
        }
    }

    /// Raw JSON of the parameters.
    #[must_use]
    pub fn params(&self) -> Option<&str> {
        self.part(self.params.as_ref())
    }

    /// Raw JSON of the result; `null` is a result.
    #[must_use]
    pub fn result(&self) -> Option<&str> {
        self.part(self.result.as_ref())
    }

    /// Raw JSON of the error. A null error is none.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.part(self.error.as_ref())
    }

    /// The error, read leniently.
    #[must_use]
    pub fn rpc_error(&self) -> Option<RpcError> {
        self.error().map(RpcError::from_raw)
    }

    /// What an answer says; `None` for a request or a notification. Of an answer that carries
    /// both halves the error counts.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome<'_>> {
        match self.kind {
            Kind::Response { .. } => match self.rpc_error() {
                Some(error) => Some(Outcome::Error(error)),
                None => Some(Outcome::Result(self.result().unwrap_or("null"))),
            },
            Kind::Request { .. } | Kind::Notification { .. } => None,
        }
    }

    /// The session a message is about: `sessionId` of the parameters, or of the result.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        string_at(self.params().or(self.result())?, &["sessionId"])
    }

    fn part(&self, range: Option<&Range<usize>>) -> Option<&str> {
        std::str::from_utf8(self.raw.get(range?.clone())?).ok()
    }
}

/// What some writers put before their text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The line without the space around it and valid UTF-8, and whether it was that from the beginning.
fn readable(line: Bytes) -> (Bytes, bool) {
    let trimmed = line.trim_ascii();
    let trimmed = trimmed.strip_prefix(BYTE_ORDER_MARK).unwrap_or(trimmed).trim_ascii_start();
    match std::str::from_utf8(trimmed) {
        Ok(_) => (line.slice_ref(trimmed), true),
        Err(_) => (String::from_utf8_lossy(trimmed).into_owned().into(), false),
    }
}

/// The same without a carriage return between its tokens, the only place where JSON has one: it would end the line of an event stream that
/// the raw text is put into.
fn presentable(text: Bytes) -> Bytes {
    if !text.contains(&b'\r') {
        return text;
    }
    text.iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }).collect::<Vec<_>>().into()
}

/// Whether a method is one that nobody answers. Some agents write every member of a message, and so a null id, and some number all that they
/// send: what they say is none the less said. That it has an id must not decide who hears it.
fn is_told(method: &str) -> bool {
    method == "session/update" || method.starts_with("qwen/notify/")
}

/// The members that matter, the last of each name.
#[derive(Default)]
struct Envelope {
    id: Option<Range<usize>>,
    method: Option<Range<usize>>,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
}

impl Envelope {
    fn find(text: &str) -> Result<Self, NotAMessage> {
        let mut envelope = Self::default();
        if !scan::each_member(text, |member| envelope.note(text, member))? {
            return Err(NotAMessage::NotAnObject);
        }
        // Old serialisers write every member, and null for those that do not apply.
        let present = |range: &Range<usize>| &text[range.clone()] != "null";
        envelope.method = envelope.method.filter(present);
        envelope.error = envelope.error.filter(present);
        Ok(envelope)
    }

    fn note(&mut self, text: &str, Member { key, value }: Member) {
        let key = &text[key];
        let slots = [
            ("id", &mut self.id),
            ("method", &mut self.method),
            ("params", &mut self.params),
            ("result", &mut self.result),
            ("error", &mut self.error),
        ];
        if let Some((_, slot)) = slots.into_iter().find(|(name, _)| key_is(key, name)) {
            *slot = Some(value);
        }
    }

    fn kind(&self, text: &str) -> Result<Kind, NotAMessage> {
        let method = match &self.method {
            Some(range) => Some(decode_string(&text[range.clone()]).ok_or(NotAMessage::NoEnvelope)?),
            None => None,
        };
        if let Some(method) = method.as_ref().filter(|method| is_told(method)) {
            return Ok(Kind::Notification { method: method.clone() });
        }
        let id = match &self.id {
            Some(range) => Some(RequestId::parse(&text[range.clone()]).ok_or(NotAMessage::BadId)?),
            None => None,
        };
        if let Some(method) = method {
            return Ok(match id {
                Some(id) => Kind::Request { id, method },
                None => Kind::Notification { method },
            });
        }
        // An id alone answers with nothing. Somebody waits for it, so it counts.
        let id = id.filter(|id| !id.is_null());
        if id.is_none() && self.result.is_none() && self.error.is_none() {
            return Err(NotAMessage::NoEnvelope);
        }
        Ok(Kind::Response { id })
    }
}

impl From<ScanError> for NotAMessage {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Syntax { at } => Self::NotJson { at },
            ScanError::TooDeep => Self::TooDeep,
        }
    }
}

impl std::fmt::Display for NotAMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blank => f.write_str("blank line"),
            Self::NotJson { at } => write!(f, "not JSON at byte {at}"),
            Self::TooDeep => write!(f, "nested deeper than {} levels", scan::DEPTH_LEVELS_MAX),
            Self::NotAnObject => f.write_str("JSON, but not an object"),
            Self::NoEnvelope => f.write_str("an object without method, result or error"),
            Self::BadId => f.write_str("an id that is neither number, string nor null"),
        }
    }
}

impl std::error::Error for NotAMessage {}

#[cfg(test)]
mod tests;
