//! What was said: who, and of what kind its parts are. The parts themselves stay in the file.

use std::ops::Range;

use super::NAME_BYTES_MAX;
use crate::json::{Bytes, Read, Reader, Sink, Start};
use crate::text::trimmed_end;

/// Most function calls, and most function responses, of one message that are named. An agent makes a few at a time;
/// the rest of an absurd message still counts, without its names.
const CALLS_MAX: usize = 1_000;
/// Bytes of all the names and ids of one message that are kept. Calls are few and their ids short; what an absurd message
/// names beyond this is nameless.
const NAMED_BYTES_MAX: usize = 256 * 1024;

/// Who speaks to the model, or the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What the model is told.
    User,
    /// What the model says.
    Model,
    /// Neither.
    Other,
}

/// A function the model called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The id its answer will carry; none when it is missing or empty, so that no answer can be matched.
    pub id: Option<String>,
    /// The function's name.
    pub name: Option<String>,
}

/// A text, told apart from others without keeping it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    hash: u64,
    bytes: u64,
}

/// One message, or one entry of the model's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The functions called in it, in order.
    pub calls: Vec<Call>,
    /// The ids of the calls answered in it, in order.
    pub responses: Vec<String>,
    /// Where it stands in the file, in bytes: one range for each piece it was joined from.
    pub spans: Vec<Range<u64>>,
    pub(crate) parts: usize,
    reminders: usize,
    notifications: usize,
    has_call: bool,
    /// How long its names and ids are together.
    named_bytes: usize,
    /// The only part, if that is a text and nothing else.
    only_text: Option<Mark>,
    /// Whether its parts are a list of objects, as every reader of the format assumes.
    pub(crate) is_readable: bool,
    /// Whether its parts are a list of anything.
    has_list: bool,
}

impl Message {
    fn empty(span: Range<u64>) -> Self {
        Self {
            role: Role::Other,
            calls: Vec::new(),
            responses: Vec::new(),
            spans: vec![span],
            parts: 0,
            reminders: 0,
            notifications: 0,
            has_call: false,
            named_bytes: 0,
            only_text: None,
            is_readable: true,
            has_list: false,
        }
    }

    /// Whether it is a reminder of the session and nothing else: every part one `<system-reminder>…</system-reminder>`.
    #[must_use]
    pub fn is_reminder(&self) -> bool {
        self.parts > 0 && self.reminders == self.parts
    }

    /// Whether it tells the model of work in the background and nothing else: every part one
    /// `<task-notification>…</task-notification>`.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        self.role == Role::User && self.parts > 0 && self.notifications == self.parts
    }

    /// Whether any function is called in it, with an id or without.
    #[must_use]
    pub fn has_call(&self) -> bool {
        self.has_call
    }

    /// Whether it says this text and nothing else.
    pub(crate) fn is_only(&self, text: Option<Mark>) -> bool {
        self.parts == 1 && text.is_some() && self.only_text == text
    }

    /// About how much memory it takes, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let lists = self.calls.len() * size_of::<Call>()
            + self.responses.len() * size_of::<String>()
            + self.spans.len() * size_of::<Range<u64>>();
        size_of::<Self>() + lists + self.named_bytes.min(NAMED_BYTES_MAX * self.spans.len())
    }

    /// The message with the parts of another one behind its own.
    #[must_use]
    pub(crate) fn joined(mut self, later: Self) -> Self {
        self.calls.extend(later.calls);
        self.responses.extend(later.responses);
        self.spans.extend(later.spans);
        self.parts += later.parts;
        self.reminders += later.reminders;
        self.notifications += later.notifications;
        self.has_call |= later.has_call;
        self.named_bytes = self.named_bytes.saturating_add(later.named_bytes);
        self.only_text = self.only_text.or(later.only_text);
        self.is_readable &= later.is_readable;
        self
    }

    fn add(&mut self, part: Part) {
        self.parts += 1;
        self.reminders += usize::from(part.text.is_some_and(|text| text.is_reminder));
        self.notifications += usize::from(part.text.is_some_and(|text| text.is_notification));
        self.only_text = part.text.filter(|_| part.is_only_text).map(|text| text.mark);
        self.has_call |= part.call.is_some();
        let call = part.call.filter(|_| self.calls.len() < CALLS_MAX).map(|call| self.with_room(call));
        self.calls.extend(call);
        let response = part.response.filter(|_| self.responses.len() < CALLS_MAX);
        let response = response.filter(|id| self.has_room(id));
        self.responses.extend(response);
    }

    /// The call, without the names for which there is no room.
    fn with_room(&mut self, call: Call) -> Call {
        Call { id: call.id.filter(|id| self.has_room(id)), name: call.name.filter(|name| self.has_room(name)) }
    }

    fn has_room(&mut self, name: &str) -> bool {
        self.named_bytes = self.named_bytes.saturating_add(name.len());
        self.named_bytes <= NAMED_BYTES_MAX
    }
}

/// Reads the message of a record; none when the value is no object. Parts that are no list are none: every reader of the
/// format leaves them out of a record, and not of a snapshot.
pub(super) fn read<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Message>> {
    let message = read_entry(reader)?;
    Ok(message.map(|message| Message { is_readable: message.is_readable || !message.has_list, ..message }))
}

/// Reads an entry of a snapshot; none when the value is no object.
pub(super) fn read_entry<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Message>> {
    if reader.start()? != Start::Object {
        return reader.skip().map(|()| None);
    }
    let start = reader.bytes.offset();
    let mut message = Message::empty(start..start);
    reader.object(|key, reader| match key {
        "role" => {
            message.role = reader.short()?.map_or(Role::Other, |word| role(word.text()));
            Ok(())
        }
        "parts" => {
            let span = message.spans[0].clone();
            message = Message { role: message.role, ..Message::empty(span) };
            read_parts(reader, &mut message)
        }
        _ => reader.skip(),
    })?;
    message.spans[0].end = reader.bytes.offset();
    Ok(Some(message))
}

fn role(word: Option<&str>) -> Role {
    match word {
        Some("user") => Role::User,
        Some("model") => Role::Model,
        _ => Role::Other,
    }
}

fn read_parts<B: Bytes>(reader: &mut Reader<B>, message: &mut Message) -> Read<()> {
    match reader.start()? {
        Start::Array => {
            message.has_list = true;
            reader.array(|reader| {
                match read_part(reader)? {
                    Some(part) => message.add(part),
                    None => message.is_readable = false,
                }
                Ok(())
            })
        }
        Start::Word => {
            message.is_readable = reader.word()? == "null";
            Ok(())
        }
        Start::String | Start::Object => {
            message.is_readable = false;
            reader.skip()
        }
    }
}

#[derive(Default)]
struct Part {
    text: Option<TextShape>,
    is_only_text: bool,
    call: Option<Call>,
    response: Option<String>,
}

fn read_part<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Part>> {
    if reader.start()? != Start::Object {
        return reader.skip().map(|()| None);
    }
    let mut part = Part { is_only_text: true, ..Part::default() };
    reader.object(|key, reader| {
        part.is_only_text &= key == "text";
        match key {
            "text" => part.text = text_shape(reader)?,
            "functionCall" => part.call = call(reader)?,
            "functionResponse" => part.response = call(reader)?.and_then(|answered| answered.id),
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(Some(part))
}

/// A call, or its answer. Anything that is there at all is one, whatever it is; null, false, zero and the empty text
/// are not there.
fn call<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Call>> {
    let nameless = Call { id: None, name: None };
    match reader.start()? {
        Start::Object => {}
        Start::String => {
            return Ok(reader.text(NAME_BYTES_MAX)?.is_none_or(|text| !text.is_empty()).then_some(nameless));
        }
        Start::Word => return Ok((!is_falsy(&reader.word()?)).then_some(nameless)),
        Start::Array => return reader.skip().map(|()| Some(nameless)),
    }
    let mut call = nameless;
    reader.object(|key, reader| {
        match key {
            "id" => call.id = super::name(reader)?,
            "name" => call.name = reader.text(NAME_BYTES_MAX)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(Some(call))
}

/// Whether a browser takes the word for "not there".
pub(super) fn is_falsy(word: &str) -> bool {
    matches!(word, "null" | "false") || word.parse() == Ok(0.0)
}

/// What a text is, as far as anyone asks.
#[derive(Debug, Clone, Copy)]
struct TextShape {
    mark: Mark,
    is_reminder: bool,
    is_notification: bool,
}

fn text_shape<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<TextShape>> {
    if reader.start()? != Start::String {
        return reader.skip().map(|()| None);
    }
    let mut outline = Outline::default();
    reader.string(&mut outline)?;
    Ok(Some(TextShape {
        mark: outline.mark,
        is_reminder: outline.is_wrapped_in("<system-reminder>", "</system-reminder>"),
        is_notification: outline.is_wrapped_in("<task-notification>", "</task-notification>"),
    }))
}

/// Takes the next value; its mark when it is a text.
pub(super) fn mark<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Mark>> {
    Ok(text_shape(reader)?.map(|shape| shape.mark))
}

/// Bytes of a text's beginning and end that are looked at: more than the longest tag.
const EDGE_BYTES: usize = 64;
/// Bytes of a text's end that are let to gather before all but [`EDGE_BYTES`] of them are dropped.
const TAIL_BYTES_MAX: usize = 4 * 1024;

/// The beginning and the end of a text, and its mark.
#[derive(Default)]
struct Outline {
    mark: Mark,
    head: Vec<u8>,
    /// The end, white space behind it left out.
    tail: Vec<u8>,
    /// White space that may turn out to be inside.
    has_gap: bool,
}

impl Outline {
    fn is_wrapped_in(&self, open: &str, close: &str) -> bool {
        if !self.head.starts_with(open.as_bytes()) {
            return false;
        }
        trimmed_end(&String::from_utf8_lossy(&self.tail)).ends_with(close)
    }

    fn extend_tail(&mut self, piece: &[u8]) {
        let content = piece.trim_ascii_end();
        if !content.is_empty() {
            if self.has_gap {
                self.tail.push(b' ');
            }
            self.tail.extend_from_slice(&content[content.len().saturating_sub(EDGE_BYTES)..]);
            if self.tail.len() > TAIL_BYTES_MAX {
                self.tail.drain(..self.tail.len() - EDGE_BYTES);
            }
            self.has_gap = false;
        }
        self.has_gap |= content.len() < piece.len();
    }
}

impl Sink for Outline {
    fn push(&mut self, piece: &[u8]) {
        self.mark.extend(piece);
        let wanted = EDGE_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..wanted]);
        // Of a text that begins with no tag nobody asks how it ends.
        if self.head.first() == Some(&b'<') {
            self.extend_tail(piece);
        }
    }

    fn is_deaf(&self) -> bool {
        self.mark.bytes == Mark::BYTES_MAX && self.head.first() != Some(&b'<')
    }
}

impl Mark {
    /// Bytes of a text that count. Marks tell commands apart, and no two commands are the same for as long.
    const BYTES_MAX: u64 = 1024 * 1024;
    /// The base of the hash: any odd number far from a power of two.
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    /// Its powers, highest first, for as many bytes as are taken at once.
    const POWERS: [u64; 8] = {
        let mut powers = [1; 8];
        let mut index = 7;
        while index > 0 {
            powers[index - 1] = Self::BASE.wrapping_mul(powers[index]);
            index -= 1;
        }
        powers
    };

    /// Goes on with the next bytes. The hash is a polynomial in the bytes, so that it does not depend on how a text was
    /// cut into pieces. The texts of one session need to differ by it, not to resist anyone.
    fn extend(&mut self, whole: &[u8]) {
        let left = usize::try_from(Self::BYTES_MAX - self.bytes).unwrap_or(usize::MAX);
        let piece = &whole[..left.min(whole.len())];
        self.bytes += piece.len() as u64;
        let block_base = Self::BASE.wrapping_mul(Self::POWERS[0]);
        let blocks = piece.chunks_exact(8);
        let rest = blocks.remainder();
        for block in blocks {
            let terms = block.iter().zip(Self::POWERS).map(|(byte, power)| term(*byte).wrapping_mul(power));
            self.hash = terms.fold(self.hash.wrapping_mul(block_base), u64::wrapping_add);
        }
        for byte in rest {
            self.hash = self.hash.wrapping_mul(Self::BASE).wrapping_add(term(*byte));
        }
    }
}

/// What a byte adds to a hash; never nothing.
fn term(byte: u8) -> u64 {
    u64::from(byte) + 1
}
