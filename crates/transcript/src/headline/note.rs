//! What one record says that a list shows. A record that is cut off has said what was read of it.

use crate::json::{Bytes, Kept, Malformed, Read, Reader, Start};
use crate::record::{NAME_BYTES_MAX, TITLE_SUBTYPE};
use crate::time::parse_millis;

/// Bytes of a prompt's text that are kept: more than a list shows, in every script.
const TEXT_BYTES_MAX: usize = 2 * 1024;
/// Bytes of a name, a source or an id that are kept.
const WORD_BYTES_MAX: usize = 1024;
/// What the session itself says in a person's place begins so.
const REMINDER: &str = "<system-reminder>";

/// What one record says.
#[derive(Debug, Default)]
pub(super) struct Note {
    pub(super) session_id: Option<String>,
    pub(super) cwd: Option<String>,
    /// Epoch milliseconds.
    pub(super) at_ms: Option<u64>,
    /// Whether somebody asked it.
    pub(super) is_prompt: bool,
    /// The beginning of what was asked.
    pub(super) text: Option<String>,
    /// Whether it names the session.
    pub(super) is_title: bool,
    pub(super) title: Option<String>,
    pub(super) title_source: Option<String>,
    pub(super) parent_session_id: Option<String>,
    pub(super) source_type: Option<String>,
    pub(super) source_id: Option<String>,
    is_user: bool,
    is_from_session: bool,
    subtype: Option<String>,
    /// What is shown in the place of the text.
    display_text: Option<String>,
    payload: Payload,
}

/// What the payload of a system record may say; which of it counts depends on the subtype.
#[derive(Debug, Default)]
struct Payload {
    custom_title: Option<String>,
    title_source: Option<String>,
    parent_session_id: Option<String>,
    source_type: Option<String>,
    source_id: Option<String>,
}

/// Reads one object that is the whole of the bytes. When it is none, `note` has what stood before that was seen.
pub(super) fn read<B: Bytes>(reader: &mut Reader<B>, note: &mut Note) -> Read<()> {
    skip_byte_order_mark(reader);
    let read = match reader.start() {
        Ok(Start::Object) => reader.object(|key, reader| field(key, reader, note)),
        _ => Err(Malformed),
    };
    note.understand();
    read?;
    if reader.is_at_end() { Ok(()) } else { Err(Malformed) }
}

fn skip_byte_order_mark<B: Bytes>(reader: &mut Reader<B>) {
    let start = reader.bytes.offset();
    for expected in *b"\xef\xbb\xbf" {
        if reader.bytes.peek() != Some(expected) {
            reader.bytes.seek(start);
            return;
        }
        reader.bytes.bump();
    }
}

fn field<B: Bytes>(key: &str, reader: &mut Reader<B>, note: &mut Note) -> Read<()> {
    match key {
        "sessionId" => note.session_id = reader.text(NAME_BYTES_MAX)?,
        "cwd" => note.cwd = reader.text(NAME_BYTES_MAX)?,
        "timestamp" => {
            let text = reader.short()?;
            let at_ms = text.as_ref().and_then(|text| parse_millis(text.text()?));
            note.at_ms = at_ms.and_then(|at_ms| u64::try_from(at_ms).ok());
        }
        "type" => note.is_user = reader.is_word("user")?,
        "provenance" => note.is_from_session = reader.is_word("system")?,
        "subtype" => note.subtype = reader.text(WORD_BYTES_MAX)?,
        "message" => {
            note.text = None;
            each_member(reader, |key, reader| match key {
                "parts" => parts(reader, &mut note.text),
                _ => reader.skip(),
            })?;
        }
        "systemPayload" => each_member(reader, |key, reader| payload(key, reader, note))?,
        _ => reader.skip()?,
    }
    Ok(())
}

fn payload<B: Bytes>(key: &str, reader: &mut Reader<B>, note: &mut Note) -> Read<()> {
    let word = match key {
        "displayText" => return beginning(reader, &mut note.display_text),
        "customTitle" => &mut note.payload.custom_title,
        "titleSource" => &mut note.payload.title_source,
        "parentSessionId" => &mut note.payload.parent_session_id,
        "sourceType" => &mut note.payload.source_type,
        "sourceId" => &mut note.payload.source_id,
        _ => return reader.skip(),
    };
    *word = reader.text(WORD_BYTES_MAX)?.filter(|word| !word.is_empty());
    Ok(())
}

/// The members of an object; any other value has none.
fn each_member<B: Bytes>(reader: &mut Reader<B>, member: impl FnMut(&str, &mut Reader<B>) -> Read<()>) -> Read<()> {
    match reader.start()? {
        Start::Object => reader.object(member),
        _ => reader.skip(),
    }
}

/// The texts of a message, one behind the other.
fn parts<B: Bytes>(reader: &mut Reader<B>, text: &mut Option<String>) -> Read<()> {
    if reader.start()? != Start::Array {
        return reader.skip();
    }
    reader.array(|reader| {
        let mut part = None;
        let read = each_member(reader, |key, reader| match key {
            "text" => beginning(reader, &mut part),
            _ => reader.skip(),
        });
        if let Some(part) = part.filter(|part: &String| !part.starts_with(REMINDER)) {
            let joined = text.get_or_insert_default();
            if joined.len() < TEXT_BYTES_MAX {
                joined.push_str(&part);
            }
        }
        read
    })
}

/// The beginning of a text, also of one that is cut off.
fn beginning<B: Bytes>(reader: &mut Reader<B>, text: &mut Option<String>) -> Read<()> {
    if reader.start()? != Start::String {
        return reader.skip();
    }
    let mut kept = Kept::new(TEXT_BYTES_MAX);
    let read = reader.string(&mut kept);
    // A character that the bound cuts in two is none.
    *text = Some(kept.into_prefix().trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned());
    read
}

impl Note {
    /// Once all fields are known, in whatever order they came.
    fn understand(&mut self) {
        self.is_prompt = self.is_user && !self.is_from_session && self.subtype.is_none() && self.text.is_some();
        self.text = self.display_text.take().or(self.text.take());
        let payload = std::mem::take(&mut self.payload);
        match self.subtype.as_deref() {
            Some(TITLE_SUBTYPE) if !self.is_user => {
                self.is_title = true;
                (self.title, self.title_source) = (payload.custom_title, payload.title_source);
            }
            Some("parent_session") if !self.is_user => self.parent_session_id = payload.parent_session_id,
            Some("session_source") if !self.is_user => {
                (self.source_type, self.source_id) = (payload.source_type, payload.source_id);
            }
            _ => {}
        }
    }
}
