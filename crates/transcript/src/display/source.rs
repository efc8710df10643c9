//! What a record holds that is shown, read from the file part by part, so that a large record costs what is shown of it.

use std::io;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::branch::Transcript;
use crate::json::{Bytes, FileBytes, Read, Reader, Start, copied};

/// One part of a message, as far as it is wanted.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) text: Option<String>,
    pub(super) is_thought: bool,
    pub(super) media: Media,
    pub(super) call: Option<Call>,
    pub(super) answer: Option<Answer>,
}

/// What stands in a part instead of a text.
#[derive(Debug, Default)]
pub(super) struct Media {
    pub(super) mime_type: Option<String>,
    pub(super) data: Option<String>,
}

/// A function called.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
}

/// What a function gave.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
}

/// Which parts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Texts, images and sounds.
    Said,
    /// Calls of functions.
    Calls,
    /// The answers of functions.
    Answers,
}

/// What stands beside a record's message.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// What is shown in the place of a prompt.
    pub(super) display_text: Option<String>,
    pub(super) usage: Option<Usage>,
    /// The call that a tool's record answers.
    pub(super) call_id: Option<String>,
    /// How the tool ended.
    pub(super) status: Option<String>,
    /// What the tool shows.
    pub(super) display: Option<Box<RawValue>>,
}

/// Tokens that an answer took.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) candidates: u64,
    pub(super) total: u64,
    pub(super) thoughts: u64,
    pub(super) cached: u64,
}

impl Transcript {
    /// What stands beside the message of the record at `span`.
    pub(super) fn fields(&self, span: &Range<u64>) -> io::Result<Fields> {
        let mut fields = Fields::default();
        self.read_at(span, |reader| {
            reader.object(|key, reader| match key {
                "systemPayload" => object(reader, |key, reader| match key {
                    "displayText" => string(reader, &mut fields.display_text),
                    _ => reader.skip(),
                }),
                "usageMetadata" => usage(reader, &mut fields.usage),
                "toolCallResult" => object(reader, |key, reader| match key {
                    "callId" => string(reader, &mut fields.call_id),
                    "status" => string(reader, &mut fields.status),
                    "resultDisplay" => raw(reader, &mut fields.display),
                    _ => reader.skip(),
                }),
                _ => reader.skip(),
            })
        })?;
        Ok(fields)
    }

    /// Hands on every part of the message at `span` that is an object, in order, until `take` wants no more.
    pub(super) fn parts_at(
        &self,
        span: &Range<u64>,
        wanted: Wanted,
        mut take: impl FnMut(Part) -> bool,
    ) -> io::Result<()> {
        let Some(parts) = self.parts_span(span)? else { return Ok(()) };
        self.read_at(&parts, |reader| {
            reader.array(|reader| match reader.start()? {
                Start::Object => {
                    let part = part(reader, wanted)?;
                    // To call what follows malformed is the way out.
                    if take(part) { Ok(()) } else { Err(crate::json::Malformed) }
                }
                _ => reader.skip(),
            })
        })
    }

    /// Where the list of parts stands in a message; the last one, if there are several.
    fn parts_span(&self, span: &Range<u64>) -> io::Result<Option<Range<u64>>> {
        let mut found = None;
        self.read_at(span, |reader| {
            reader.object(|key, reader| {
                let start = reader.start()?;
                let from = reader.bytes.offset();
                reader.skip()?;
                if key == "parts" {
                    found = (start == Start::Array).then(|| from..reader.bytes.offset());
                }
                Ok(())
            })
        })?;
        Ok(found)
    }

    /// Hands on the texts that a command's record shows, if it holds the command's result.
    pub(super) fn command_texts(&self, payload: &Range<u64>, mut take: impl FnMut(String) -> bool) -> io::Result<()> {
        let (mut is_result, mut items) = (false, None);
        self.read_at(payload, |reader| {
            object(reader, |key, reader| match key {
                "phase" => {
                    is_result = reader.is_word("result")?;
                    Ok(())
                }
                "outputHistoryItems" => {
                    let start = reader.start()?;
                    let from = reader.bytes.offset();
                    reader.skip()?;
                    items = (start == Start::Array).then(|| from..reader.bytes.offset());
                    Ok(())
                }
                _ => reader.skip(),
            })
        })?;
        let Some(items) = items.filter(|_| is_result) else { return Ok(()) };
        self.read_at(&items, |reader| {
            reader.array(|reader| {
                let mut text = None;
                object(reader, |key, reader| match key {
                    "text" => string(reader, &mut text),
                    _ => reader.skip(),
                })?;
                if text.is_none_or(&mut take) { Ok(()) } else { Err(crate::json::Malformed) }
            })
        })
    }

    /// Reads what was found to be JSON at `span`. Should it be none any more, the file was changed, and what was read of
    /// it by then is all there is.
    fn read_at(&self, span: &Range<u64>, read: impl FnOnce(&mut Reader<FileBytes<'_>>) -> Read<()>) -> io::Result<()> {
        let mut reader = Reader::new(FileBytes::new(self.file(), span.clone()));
        let _ = read(&mut reader);
        reader.bytes.take_error().map_or(Ok(()), Err)
    }
}

fn part<B: Bytes>(reader: &mut Reader<B>, wanted: Wanted) -> Read<Part> {
    let mut part = Part::default();
    reader.object(|key, reader| match (wanted, key) {
        (Wanted::Said, "text") => string(reader, &mut part.text),
        (Wanted::Said, "thought") => {
            part.is_thought = word(reader)?.as_deref() == Some("true");
            Ok(())
        }
        (Wanted::Said, "inlineData") => {
            part.media = Media::default();
            object(reader, |key, reader| match key {
                "mimeType" => string(reader, &mut part.media.mime_type),
                "data" => string(reader, &mut part.media.data),
                _ => reader.skip(),
            })
        }
        (Wanted::Calls, "functionCall") => {
            part.call = call(reader)?;
            Ok(())
        }
        (Wanted::Answers, "functionResponse") => {
            part.answer = answer(reader)?;
            Ok(())
        }
        _ => reader.skip(),
    })?;
    Ok(part)
}

fn call<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Call>> {
    if reader.start()? != Start::Object {
        return reader.skip().map(|()| None);
    }
    let mut call = Call::default();
    reader.object(|key, reader| match key {
        "id" => string(reader, &mut call.id),
        "name" => string(reader, &mut call.name),
        "args" => raw(reader, &mut call.arguments),
        _ => reader.skip(),
    })?;
    Ok(Some(call))
}

fn answer<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Answer>> {
    if reader.start()? != Start::Object {
        return reader.skip().map(|()| None);
    }
    let mut answer = Answer::default();
    reader.object(|key, reader| match key {
        "id" => string(reader, &mut answer.id),
        "name" => string(reader, &mut answer.name),
        "response" => {
            (answer.output, answer.error) = (None, None);
            object(reader, |key, reader| match key {
                "output" => said(reader, &mut answer.output),
                "error" => said(reader, &mut answer.error),
                _ => reader.skip(),
            })
        }
        _ => reader.skip(),
    })?;
    Ok(Some(answer))
}

fn usage<B: Bytes>(reader: &mut Reader<B>, usage: &mut Option<Usage>) -> Read<()> {
    *usage = None;
    if reader.start()? != Start::Object {
        return reader.skip();
    }
    let mut counted = Usage::default();
    reader.object(|key, reader| {
        let counter = match key {
            "promptTokenCount" => &mut counted.prompt,
            "candidatesTokenCount" => &mut counted.candidates,
            "totalTokenCount" => &mut counted.total,
            "thoughtsTokenCount" => &mut counted.thoughts,
            "cachedContentTokenCount" => &mut counted.cached,
            _ => return reader.skip(),
        };
        *counter = word(reader)?.and_then(|number| number.parse().ok()).unwrap_or(0);
        Ok(())
    })?;
    *usage = Some(counted);
    Ok(())
}

/// Takes the next value; hands on its fields if it is an object.
fn object<B: Bytes>(reader: &mut Reader<B>, field: impl FnMut(&str, &mut Reader<B>) -> Read<()>) -> Read<()> {
    match reader.start()? {
        Start::Object => reader.object(field),
        _ => reader.skip(),
    }
}

/// Takes the next value, which replaces `text`: by itself if it is a string, else by nothing.
fn string<B: Bytes>(reader: &mut Reader<B>, text: &mut Option<String>) -> Read<()> {
    *text = reader.text(usize::MAX)?;
    Ok(())
}

/// The same, but what is no string is shown as JSON.
fn said<B: Bytes>(reader: &mut Reader<B>, text: &mut Option<String>) -> Read<()> {
    *text = match reader.start()? {
        Start::String => reader.text(usize::MAX)?,
        _ => Some(copied(reader)?),
    };
    Ok(())
}

/// Takes the next value as the text of it.
fn raw<B: Bytes>(reader: &mut Reader<B>, value: &mut Option<Box<RawValue>>) -> Read<()> {
    *value = RawValue::from_string(copied(reader)?).ok();
    Ok(())
}

/// Takes the next value; its letters if it is a word or a number.
fn word<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<String>> {
    match reader.start()? {
        Start::Word => reader.word().map(Some),
        _ => reader.skip().map(|()| None),
    }
}
