//! What is shown of one record, as long as there is room for it.

use std::io;
use std::ops::Range;

use serde_json::json;
use serde_json::value::RawValue;

use super::Frame;
use super::source::{Part, Wanted};
use super::update::{self, Meta, Update};
use crate::branch::Transcript;
use crate::record::{Kind, Record, USER_SHELL_COMMAND, USER_SHELL_RESULT};
use crate::results::PAYLOAD_BYTES_MAX;
use crate::turn_result::TURN_RESULT_SUBTYPE;

/// Bytes of one record that are looked at. What is in a larger one nobody reads in a replay, and its place is kept.
const RECORD_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes of the payload of a command's end: the output that a host keeps, all of it escaped.
const SHELL_PAYLOAD_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The updates of a record, in order; none when they have more than `room_bytes` together.
pub(crate) fn frames(transcript: &Transcript, record: &Record, room_bytes: usize) -> io::Result<Option<Vec<Frame>>> {
    let mut shown = Shown { transcript, record, room_bytes, bytes: 0, frames: Vec::new(), ordinal: 0 };
    if is_shown(record) && record.span.end - record.span.start > RECORD_BYTES_MAX {
        shown.push_frame(update::left_out(record));
    } else {
        match record.kind {
            Kind::User => shown.user()?,
            Kind::Assistant => shown.assistant()?,
            Kind::ToolResult => shown.tool_result()?,
            Kind::System if record.is("slash_command") => shown.slash_command()?,
            Kind::System if is_user_shell(record) => shown.user_shell()?,
            Kind::System => shown.turn_result()?,
        }
    }
    Ok((shown.bytes <= room_bytes).then_some(shown.frames))
}

/// Whether anything of the record may be shown at all.
fn is_shown(record: &Record) -> bool {
    match record.kind {
        Kind::System => record.is("slash_command") || is_user_shell(record) || record.is(TURN_RESULT_SUBTYPE),
        Kind::User | Kind::Assistant | Kind::ToolResult => record.message.is_some(),
    }
}

/// Whether a record is about a command that a user ran.
fn is_user_shell(record: &Record) -> bool {
    record.is(USER_SHELL_COMMAND) || record.is(USER_SHELL_RESULT)
}

/// The updates of one record while they are put together.
struct Shown<'a> {
    transcript: &'a Transcript,
    record: &'a Record,
    room_bytes: usize,
    bytes: usize,
    frames: Vec<Frame>,
    /// How many updates there are; part of a text's segment id.
    ordinal: usize,
}

impl<'a> Shown<'a> {
    fn user(&mut self) -> io::Result<()> {
        if self.record.message.is_none() {
            return Ok(());
        }
        let mut display_text = match self.record.payload_span {
            Some(_) => self.transcript.fields(&self.record.span)?.display_text,
            None => None,
        };
        let is_replaced = display_text.is_some();
        let meta = |record: &Record| record.prompt_id.as_ref().map(|prompt_id| ("promptId", json!(prompt_id)));
        self.each_part(Wanted::Said, |shown, part| {
            if is_replaced && part.text.is_some() {
                // What the session shows instead stands in the place of the first text.
                let Some(text) = display_text.take() else { return true };
                return shown.push(Update::chunk("user_message_chunk", &text), meta(shown.record), true);
            }
            shown.said("user_message_chunk", &part, meta(shown.record))
        })
    }

    fn assistant(&mut self) -> io::Result<()> {
        if self.record.message.is_none() {
            return Ok(());
        }
        self.each_part(Wanted::Said, |shown, part| {
            let kind = if part.is_thought { "agent_thought_chunk" } else { "agent_message_chunk" };
            shown.said(kind, &part, None)
        })?;
        if let Some(usage) = self.transcript.fields(&self.record.span)?.usage {
            let meta = Some(("usage", update::usage(&usage)));
            self.push(Update::chunk("agent_message_chunk", ""), meta, false);
        }
        let no_arguments = RawValue::from_string("{}".to_owned()).map_err(io::Error::from)?;
        self.each_part(Wanted::Calls, |shown, part| {
            let Some(call) = &part.call else { return true };
            let meta = Some(("toolName", json!(update::name_of(call))));
            Update::call(call, &no_arguments).is_none_or(|update| shown.push(update, meta, false))
        })
    }

    fn tool_result(&mut self) -> io::Result<()> {
        if self.record.message.is_none() {
            return Ok(());
        }
        let fields = self.transcript.fields(&self.record.span)?;
        self.each_part(Wanted::Answers, |shown, part| {
            let Some(answer) = &part.answer else { return true };
            let Some(id) = answer.id.as_deref().or(fields.call_id.as_deref()) else { return true };
            let meta = answer.name.as_ref().map(|name| ("toolName", json!(name)));
            shown.push(Update::answer(id, answer, fields.status.as_deref(), fields.display.as_deref()), meta, false)
        })
    }

    fn slash_command(&mut self) -> io::Result<()> {
        let Some(payload) = &self.record.payload_span else { return Ok(()) };
        self.transcript.command_texts(payload, |text| {
            // The session wrote lines, and who shows a chunk reads Markdown.
            let text = text.replace('\n', "  \n");
            self.push(Update::chunk("agent_message_chunk", &text), Some(("source", json!("slash_command"))), true)
        })
    }

    /// A command of a user, and in an update of its own what it gave: where that is missing, nobody knows it.
    fn user_shell(&mut self) -> io::Result<()> {
        let Some(payload) = &self.record.payload_span else { return Ok(()) };
        let Some(payload) = self.transcript.value(payload, SHELL_PAYLOAD_BYTES_MAX)? else { return Ok(()) };
        let told = ["command", "exitCode", "signal", "aborted", "outputTruncated", "error"];
        let told = told.into_iter().filter(|key| !payload[*key].is_null()).map(|key| (key, payload[key].clone()));
        let is_result = self.record.is(USER_SHELL_RESULT);
        let output = payload["output"].as_str().unwrap_or_default();
        let update = told.fold(Update::shell_output(output), |update, (key, value)| update.with(key, value));
        let source = if is_result { "user-shell" } else { "user-shell-command" };
        self.push(update, Some(("source", json!(source))), false);
        Ok(())
    }

    /// Of the ends of turns only a cancel is shown, so that nobody takes half an answer for a whole one.
    fn turn_result(&mut self) -> io::Result<()> {
        let payload = self.record.payload_span.as_ref().filter(|_| self.record.is(TURN_RESULT_SUBTYPE));
        let Some(payload) = payload else { return Ok(()) };
        let payload = self.transcript.value(payload, PAYLOAD_BYTES_MAX)?;
        if let Some(cancelled) = payload.as_ref().and_then(update::cancelled) {
            let update = Update::chunk("agent_message_chunk", "").with("qwenDiscreteMessage", true);
            self.push(update, Some(("promptCancelled", cancelled)), false);
        }
        Ok(())
    }

    /// Goes through the parts of the message, those of its later fragments behind those of the first, until `take` finds
    /// no more room.
    fn each_part(&mut self, wanted: Wanted, mut take: impl FnMut(&mut Self, Part) -> bool) -> io::Result<()> {
        let spans: &'a [Range<u64>] = self.record.message.as_ref().map_or(&[], |message| &message.spans);
        for span in spans.iter().filter(|span| span.end - span.start <= RECORD_BYTES_MAX) {
            self.transcript.parts_at(span, wanted, |part| take(self, part))?;
        }
        Ok(())
    }

    /// Shows what was said in a part, if anything; whether there was room.
    fn said(&mut self, kind: &str, part: &Part, meta: Meta) -> bool {
        match &part.text {
            Some(text) => !update::is_shown(text) || self.push(Update::chunk(kind, text), meta, true),
            None => Update::media(kind, &part.media).is_none_or(|update| self.push(update, meta, true)),
        }
    }

    fn push(&mut self, update: Update<'_>, meta: Meta, is_segment: bool) -> bool {
        let frame = update.frame(self.record, meta, is_segment.then_some(self.ordinal));
        self.push_frame(frame)
    }

    /// Adds a frame, if there is room for it; whether there was.
    fn push_frame(&mut self, frame: Frame) -> bool {
        self.ordinal += 1;
        self.bytes = self.bytes.saturating_add(frame.update.len());
        let has_room = self.bytes <= self.room_bytes;
        self.frames.extend(has_room.then_some(frame));
        has_room
    }
}
