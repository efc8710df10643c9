//! What a note says, as far as the model's history or the evidence depends on it.

use std::collections::VecDeque;

use super::message::{self, Mark, Message};
use super::{Kind, NAME_BYTES_MAX, Record};
use crate::interruption::HISTORY_TAIL_ENTRIES;
use crate::json::{Bytes, Read, Reader, Start};
use crate::turn_result::TURN_RESULT_SUBTYPE;

/// The subtype of a note of what an agent said while no turn ran.
pub const LATE_OUTPUT_SUBTYPE: &str = "late_output";

/// The payload of a system record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Something that nothing depends on.
    Other,
    /// How a turn ended, and of which prompt it was the turn.
    TurnResult {
        /// The prompt; none when the payload does not say.
        prompt_id: Option<String>,
    },
    /// What the agent said while no turn ran, behind the turn of which prompt.
    LateOutput {
        /// The prompt; none when the payload does not say.
        prompt_id: Option<String>,
    },
    /// A snapshot that takes the place of the history before it.
    Compression(Snapshot),
    /// A command that the session answered, or handed on.
    SlashCommand(SlashCommand),
    /// The end of a turn that worked for a goal.
    GoalEnd(GoalEnd),
}

/// What a `chat_compression` record puts in the place of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Snapshot {
    /// Nothing, or what a browser takes for nothing: the history stays.
    Absent,
    /// Something that is no history.
    Unreadable,
    /// A history, of which the end is kept.
    Entries(Vec<Message>),
}

/// A `slash_command` record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    /// The command, if the session answered it by itself, with nothing but text, and never told the model.
    pub(crate) answered: Option<Mark>,
}

/// A `goal_turn_end` record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalEnd {
    /// The call that ended the turn.
    pub tool_call_id: Option<String>,
}

/// Reads the payload of `record`, at whose beginning the reader stands.
pub(super) fn read<B: Bytes>(reader: &mut Reader<B>, record: &Record) -> Read<Payload> {
    let subtype = record.subtype.as_deref().filter(|_| record.kind == Kind::System);
    if reader.start()? != Start::Object {
        return Ok(Payload::Other);
    }
    match subtype {
        Some(TURN_RESULT_SUBTYPE) => Ok(Payload::TurnResult { prompt_id: prompt_id(reader)? }),
        Some(LATE_OUTPUT_SUBTYPE) => Ok(Payload::LateOutput { prompt_id: prompt_id(reader)? }),
        Some("chat_compression") => compression(reader),
        Some("slash_command") => slash_command(reader),
        Some("goal_turn_end") => goal_end(reader),
        _ => Ok(Payload::Other),
    }
}

fn prompt_id<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<String>> {
    let mut prompt_id = None;
    reader.object(|key, reader| {
        match key {
            "promptId" => prompt_id = reader.text(NAME_BYTES_MAX)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(prompt_id)
}

fn goal_end<B: Bytes>(reader: &mut Reader<B>) -> Read<Payload> {
    let mut tool_call_id = None;
    reader.object(|key, reader| {
        match key {
            "toolCallId" => tool_call_id = super::name(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(Payload::GoalEnd(GoalEnd { tool_call_id }))
}

fn compression<B: Bytes>(reader: &mut Reader<B>) -> Read<Payload> {
    let mut snapshot = Snapshot::Absent;
    reader.object(|key, reader| {
        match key {
            "compressedHistory" => snapshot = read_snapshot(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(Payload::Compression(snapshot))
}

fn read_snapshot<B: Bytes>(reader: &mut Reader<B>) -> Read<Snapshot> {
    let is_absent = match reader.start()? {
        Start::Array => return read_entries(reader),
        Start::Word => message::is_falsy(&reader.word()?),
        Start::String => reader.short()?.is_some_and(|text| text.text() == Some("")),
        Start::Object => reader.skip().map(|()| false)?,
    };
    Ok(if is_absent { Snapshot::Absent } else { Snapshot::Unreadable })
}

fn read_entries<B: Bytes>(reader: &mut Reader<B>) -> Read<Snapshot> {
    let mut entries = VecDeque::new();
    let mut is_readable = true;
    reader.array(|reader| {
        match message::read_entry(reader)? {
            Some(entry) => entries.push_back(entry),
            None => is_readable = false,
        }
        // Nobody looks further back into a history than this.
        if entries.len() > HISTORY_TAIL_ENTRIES {
            entries.pop_front();
        }
        Ok(())
    })?;
    Ok(if is_readable { Snapshot::Entries(entries.into()) } else { Snapshot::Unreadable })
}

fn slash_command<B: Bytes>(reader: &mut Reader<B>) -> Read<Payload> {
    let (mut is_result, mut is_sent, mut is_text, mut command) = (false, false, false, None);
    reader.object(|key, reader| {
        match key {
            "phase" => is_result = reader.is_word("result")?,
            "sentToModel" => is_sent = is_true(reader)?,
            "outputHistoryItems" => is_text = is_only_assistant_text(reader)?,
            "rawCommand" => command = message::mark(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(Payload::SlashCommand(SlashCommand { answered: command.filter(|_| is_result && is_text && !is_sent) }))
}

fn is_true<B: Bytes>(reader: &mut Reader<B>) -> Read<bool> {
    match reader.start()? {
        Start::Word => Ok(reader.word()? == "true"),
        _ => reader.skip().map(|()| false),
    }
}

/// Whether the value is a list of at least one item, all of them the session's own answers.
fn is_only_assistant_text<B: Bytes>(reader: &mut Reader<B>) -> Read<bool> {
    if reader.start()? != Start::Array {
        return reader.skip().map(|()| false);
    }
    let (mut items, mut answers) = (0_u64, 0_u64);
    reader.array(|reader| {
        items += 1;
        answers += u64::from(is_assistant_item(reader)?);
        Ok(())
    })?;
    Ok(items > 0 && items == answers)
}

fn is_assistant_item<B: Bytes>(reader: &mut Reader<B>) -> Read<bool> {
    if reader.start()? != Start::Object {
        return reader.skip().map(|()| false);
    }
    let mut is_assistant = false;
    reader.object(|key, reader| {
        match key {
            "type" => is_assistant = reader.is_word("assistant")?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(is_assistant)
}
