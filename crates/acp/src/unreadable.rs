//! Lines that cannot be read and may have been messages.
//!
//! An agent's words may be on such a line, or its answer. Nobody can say what was lost, but much of it can be told from where its members stand:
//! the braces and quotation marks of most such lines still pair (a number that JSON does not have, a tab in a text, two messages
//! on one line, more levels than are followed). Where they do not, as on a line that was torn apart, the bytes alone are looked at, and
//! whatever may have been an answer counts as one.

use crate::message::NotAMessage;
use crate::request_id::RequestId;
use crate::scan::key_is;

/// Messages on one line, and ids in one of them, that are told apart. Where there are more, each may be anything.
const PIECES_MAX: usize = 64;

/// Bytes of an id that is looked for.
const ID_BYTES_MAX: usize = 64;

/// Members that an object has which was meant for a message.
const MESSAGE_MEMBERS: [&[u8]; 5] = [b"\"jsonrpc\"", b"\"method\"", b"\"params\"", b"\"update\"", b"\"sessionUpdate\""];

/// A line that cannot be read and may have been a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pieces: Vec<Piece>,
}

/// What may have been one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Piece {
    ids: Vec<RequestId>,
    /// There is an id that may be any.
    has_odd_id: bool,
    has_outcome: bool,
    has_method: bool,
    /// It is torn: its id may be on another line.
    is_torn: bool,
}

impl Unreadable {
    /// Looks at a line that is no message. None when it was not meant for one either: it has no braces, as a log has none, or it is an object
    /// that can be read and has nothing of a message.
    #[must_use]
    pub fn of(line: &[u8], why: NotAMessage) -> Option<Self> {
        let has = |word: &[u8]| line.windows(word.len()).any(|window| window == word);
        let is_noise = match why {
            NotAMessage::Blank => true,
            NotAMessage::NoEnvelope => !MESSAGE_MEMBERS.iter().any(|member| has(member)),
            _ => !line.iter().any(|byte| matches!(byte, b'{' | b'}')),
        };
        (!is_noise).then(|| Self { pieces: paired(line).unwrap_or_else(|| vec![torn(line)]) })
    }

    /// A line that is too long to be looked at, and whether it began as an answer does.
    #[must_use]
    pub fn too_long(was_answer: bool) -> Self {
        let answer = Piece { has_odd_id: true, has_outcome: true, ..Piece::default() };
        Self { pieces: was_answer.then_some(answer).into_iter().collect() }
    }

    /// Whether the answer to this request may have been on the line. Ids of ours are numbers, which an agent may write with a point.
    #[must_use]
    pub fn may_answer(&self, request: &RequestId) -> bool {
        self.pieces.iter().any(|piece| piece.may_answer(&request.as_numbered()))
    }
}

impl Piece {
    fn may_answer(&self, request: &RequestId) -> bool {
        let is_answer = self.has_outcome || !self.has_method;
        let is_named = self.has_odd_id || self.ids.iter().any(|id| id == request);
        let is_nameless = self.is_torn && self.ids.is_empty() && self.has_outcome && !self.has_method;
        is_answer && is_named || is_nameless
    }

    /// Takes the member whose key and what is behind its colon these are.
    fn note(&mut self, key: &[u8], behind: &[u8]) {
        let Ok(key) = std::str::from_utf8(key) else { return };
        self.has_method |= key_is(key, "method");
        self.has_outcome |= key_is(key, "result") || key_is(key, "error");
        if key_is(key, "id") {
            match id(behind).filter(|_| self.ids.len() < PIECES_MAX) {
                Some(id) => self.ids.push(id.as_numbered()),
                None => self.has_odd_id = true,
            }
        }
    }
}

/// The messages on a line whose braces and quotation marks pair; none of another one, or of too many.
fn paired(line: &[u8]) -> Option<Vec<Piece>> {
    let (mut pieces, mut depth, mut at) = (Vec::<Piece>::new(), 0_usize, 0);
    while let Some(byte) = line.get(at) {
        match byte {
            b'{' | b'[' if depth > 0 || *byte == b'{' => {
                if depth == 0 {
                    pieces.push(Piece::default());
                }
                depth += 1;
            }
            b'}' => depth = depth.checked_sub(1)?,
            b']' => depth = depth.saturating_sub(1),
            b'"' if depth > 0 => {
                let end = at + string_length(&line[at..])?;
                if let (1, Some(behind), Some(piece)) = (depth, behind_colon(&line[end..]), pieces.last_mut()) {
                    piece.note(&line[at..end], behind);
                }
                at = end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    (depth == 0 && !pieces.is_empty() && pieces.len() <= PIECES_MAX).then_some(pieces)
}

/// All that may be a member, wherever it stands.
fn torn(line: &[u8]) -> Piece {
    let mut piece = Piece { is_torn: true, ..Piece::default() };
    for key in [&b"\"id\""[..], b"\"method\"", b"\"result\"", b"\"error\"", b"\"stopReason\""] {
        let places = line.windows(key.len()).enumerate().filter(|(_, window)| *window == key);
        for (place, _) in places.take(PIECES_MAX + 1) {
            piece.note(key, behind_colon(&line[place + key.len()..]).unwrap_or_default());
            // Only the answer to a prompt has one.
            piece.has_odd_id |= key == b"\"stopReason\"";
        }
    }
    piece
}

/// The length of the string that begins here, with its quotation marks; none if it does not end.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// What is behind the colon that comes next.
fn behind_colon(text: &[u8]) -> Option<&[u8]> {
    Some(text.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start())
}

/// The id that stands here, if it is one to its end.
fn id(text: &[u8]) -> Option<RequestId> {
    let text = &text[..text.len().min(ID_BYTES_MAX)];
    let length = match text.first()? {
        b'"' => string_length(text)?,
        _ => text.iter().position(|byte| matches!(byte, b',' | b'}' | b' ' | b'\t'))?,
    };
    RequestId::parse(std::str::from_utf8(&text[..length]).ok()?)
}

#[cfg(test)]
mod tests;
