//! A usable record: what the evidence asks of it, and where the rest stands in the file.

mod message;
mod payload;

use std::ops::Range;

pub use message::{Call, Message, Role};
pub use payload::{GoalEnd, LATE_OUTPUT_SUBTYPE, Payload, SlashCommand, Snapshot};

use crate::json::{Bytes, Read, Reader, Start};
use crate::time::{is_plain, parse_millis};

/// Bytes of an id, a path or a name that are kept. Ids have under a hundred, paths at most 4,096; a longer one than this
/// is taken for none.
pub(crate) const NAME_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a subtype that are kept.
const WORD_BYTES_MAX: usize = 256;

/// Who speaks in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A prompt, or what the session says in its place.
    User,
    /// The agent.
    Assistant,
    /// A tool.
    ToolResult,
    /// Nobody: a note about the session.
    System,
}

/// One usable record of a transcript (evidence rules, section 2). Texts stay in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its own id, never empty.
    pub uuid: String,
    /// The record before it in the conversation; none for a first one.
    pub parent: Option<String>,
    /// The session it belongs to, never empty.
    pub session_id: String,
    /// Who speaks.
    pub kind: Kind,
    /// What kind of note, or of message, beyond its type.
    pub subtype: Option<String>,
    /// When it was written, in epoch milliseconds; none when its timestamp names no instant.
    pub at_ms: Option<i64>,
    /// The folder the agent worked in.
    pub cwd: Option<String>,
    /// Whether the session itself wrote it in the place of a person or an agent (`provenance: "system"`).
    pub is_from_session: bool,
    /// The prompt it was asked by.
    pub prompt_id: Option<String>,
    /// What was said.
    pub message: Option<Message>,
    /// What a note says, as far as it matters here.
    pub payload: Payload,
    /// The goal this turn worked for.
    pub goal: Option<Goal>,
    /// Where the record stands in the file, in bytes. Of a joined record: where its first fragment stands.
    pub span: Range<u64>,
    /// Where its payload stands in the file, in bytes.
    pub payload_span: Option<Range<u64>>,
    /// Whether it was saved from a damaged line in which not every reader of the format finds it.
    pub is_disputed: bool,
    /// Whether its time is written as every writer of the format writes it, so that the later text is the later time.
    pub(crate) has_plain_time: bool,
}

/// Where an object of a transcript says that it belongs, whether it is a usable record or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) session_id: Option<String>,
    pub(crate) cwd: Option<String>,
    /// Where the object stands in the file, in bytes.
    pub(crate) span: Range<u64>,
}

/// The permit under which an agent works for a goal. Two permits are one when all three agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// The goal.
    pub goal_id: String,
    /// The turn.
    pub turn_id: String,
    /// The revision of the goal, as it is written.
    pub revision: String,
}

/// The subtype of a message that came while a turn was running and is part of it.
pub(crate) const MID_TURN: &str = "mid_turn_user_message";
/// The subtype of a note that names the session.
pub const TITLE_SUBTYPE: &str = "custom_title";
/// The subtype of the note that a user began to run a command in the workspace. Its payload has the `command`.
pub const USER_SHELL_COMMAND: &str = "user_shell_command";
/// The subtype of the note of how that ended: `command`, `exitCode`, `signal`, `output`, `aborted`.
pub const USER_SHELL_RESULT: &str = "user_shell_result";
/// The subtype of what was spoken and is no part of the model's history.
pub(crate) const REALTIME: &str = "realtime_message";

/// Whether system records of this subtype stand beside the branch: never anyone's parent, never its end (evidence
/// rules, section 2).
#[must_use]
pub fn is_off_branch_subtype(subtype: &str) -> bool {
    matches!(subtype, "session_artifact_event" | "session_artifact_snapshot" | "session_sources_snapshot")
        || subtype.starts_with("managed_session_")
}

impl Record {
    /// Whether other records may name this one as their parent.
    #[must_use]
    pub fn is_on_branch(&self) -> bool {
        self.kind != Kind::System || !self.subtype.as_deref().is_some_and(is_off_branch_subtype)
    }

    /// Whether its subtype is this one.
    #[must_use]
    pub fn is(&self, subtype: &str) -> bool {
        self.subtype.as_deref() == Some(subtype)
    }

    /// Whether it is a note of this subtype.
    #[must_use]
    pub fn is_note(&self, subtype: &str) -> bool {
        self.kind == Kind::System && self.is(subtype)
    }

    /// Whether it enters the model's history: not a note, has a message, not spoken.
    #[must_use]
    pub fn is_material(&self) -> bool {
        self.kind != Kind::System && self.message.is_some() && !self.is(REALTIME)
    }

    /// Whether it is somebody's own: material, and not the session's in another's place.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        self.is_material() && !self.is_from_session
    }

    /// A *visible write*: what proves that a turn wrote something (evidence rules, section 2). A message that is nothing
    /// but reminders proves nothing.
    #[must_use]
    pub fn is_visible_write(&self) -> bool {
        self.is_visible() && !self.message.as_ref().is_some_and(Message::is_reminder)
    }

    /// Whether a person or a program asked this as a prompt of its own. What was said into a running turn belongs to
    /// that turn.
    #[must_use]
    pub fn is_real_prompt(&self) -> bool {
        self.kind == Kind::User && self.subtype.is_none() && self.is_visible_write()
    }

    /// About how much memory it takes, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let names = [&self.parent, &self.subtype, &self.cwd, &self.prompt_id];
        let names: usize = names.into_iter().flatten().map(String::len).sum();
        let message = self.message.as_ref().map_or(0, Message::weight);
        let payload = match &self.payload {
            Payload::Compression(Snapshot::Entries(entries)) => entries.iter().map(Message::weight).sum(),
            _ => 0,
        };
        size_of::<Self>() + self.uuid.len() + self.session_id.len() + names + message + payload
    }

    /// Drops what grows with every fragment that is joined: which calls its message names, and where it stands.
    pub(crate) fn forget_names(&mut self) {
        if let Some(message) = &mut self.message {
            (message.calls, message.responses, message.spans) = (Vec::new(), Vec::new(), Vec::new());
        }
    }

    /// Joins an earlier fragment of the same record: it is the base, its parts come first, and the later time is kept
    /// (evidence rules, section 2). A fragment without a time leaves the whole without one, and so do times that are
    /// not written alike: the peer takes the later text for the later time.
    pub(crate) fn join_earlier(&mut self, mut earlier: Self) {
        earlier.is_disputed |= self.is_disputed;
        earlier.at_ms = match earlier.at_ms.zip(self.at_ms) {
            Some((a, b)) if a == b || earlier.has_plain_time && self.has_plain_time => Some(a.max(b)),
            _ => None,
        };
        earlier.has_plain_time &= self.has_plain_time;
        earlier.message = match (earlier.message.take(), self.message.take()) {
            (Some(first), Some(second)) => Some(first.joined(second)),
            (first, second) => first.or(second),
        };
        *self = earlier;
    }
}

/// Reads one object. Malformed when it is no JSON; where it belongs when it is no usable record.
pub(crate) fn read<B: Bytes>(reader: &mut Reader<B>) -> Read<Result<Record, Head>> {
    let mut draft = Draft::default();
    let start = reader.bytes.offset();
    reader.object(|key, reader| draft.field(key, reader))?;
    let end = reader.bytes.offset();
    let mut record = match draft.finish(start..end) {
        Ok(record) => record,
        Err(head) => return Ok(Err(head)),
    };
    if let Some(span) = record.payload_span.clone() {
        // The payload means something only with the subtype, and that may stand behind it.
        reader.bytes.seek(span.start);
        record.payload = payload::read(reader, &record)?;
        reader.bytes.seek(end);
    }
    Ok(Ok(record))
}

/// Fields in whatever order they come; a later one of the same name replaces an earlier one.
#[derive(Default)]
struct Draft {
    uuid: Option<String>,
    /// The outer option is whether there is such a field at all.
    parent: Option<Option<String>>,
    session_id: Option<String>,
    kind: Option<Kind>,
    subtype: Option<String>,
    at_ms: Option<i64>,
    has_plain_time: bool,
    cwd: Option<String>,
    is_from_session: bool,
    prompt_id: Option<String>,
    message: Option<Message>,
    goal: Option<Goal>,
    payload_span: Option<Range<u64>>,
}

impl Draft {
    fn field<B: Bytes>(&mut self, key: &str, reader: &mut Reader<B>) -> Read<()> {
        match key {
            "uuid" => self.uuid = name(reader)?,
            "parentUuid" => self.parent = parent(reader)?,
            "sessionId" => self.session_id = name(reader)?,
            "type" => self.kind = reader.short()?.and_then(|word| kind(word.text()?)),
            "subtype" => self.subtype = subtype(reader)?,
            "timestamp" => {
                let text = reader.short()?;
                let text = text.as_ref().and_then(|text| text.text()).unwrap_or_default();
                self.at_ms = parse_millis(text);
                self.has_plain_time = is_plain(text);
            }
            "cwd" => self.cwd = reader.text(NAME_BYTES_MAX)?,
            "provenance" => self.is_from_session = reader.is_word("system")?,
            "daemonPromptId" => self.prompt_id = reader.text(NAME_BYTES_MAX)?,
            "message" => self.message = message::read(reader)?,
            "goalContext" => self.goal = goal(reader)?,
            "systemPayload" => {
                reader.start()?;
                let start = reader.bytes.offset();
                reader.skip()?;
                self.payload_span = Some(start..reader.bytes.offset());
            }
            _ => reader.skip()?,
        }
        Ok(())
    }

    fn finish(self, span: Range<u64>) -> Result<Record, Head> {
        let (Some(uuid), Some(parent), Some(session_id), Some(kind)) =
            (self.uuid, self.parent, self.session_id.clone(), self.kind)
        else {
            return Err(Head { session_id: self.session_id, cwd: self.cwd, span });
        };
        Ok(Record {
            uuid,
            parent,
            session_id,
            kind,
            subtype: self.subtype,
            at_ms: self.at_ms,
            cwd: self.cwd,
            is_from_session: self.is_from_session,
            prompt_id: self.prompt_id,
            message: self.message,
            payload: Payload::Other,
            goal: self.goal,
            span,
            payload_span: self.payload_span,
            is_disputed: false,
            has_plain_time: self.has_plain_time,
        })
    }
}

/// A text that is not empty.
fn name<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<String>> {
    Ok(reader.text(NAME_BYTES_MAX)?.filter(|name| !name.is_empty()))
}

/// A text or null; anything else is damage. The empty text is nobody's id and ends a branch like null.
fn parent<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Option<String>>> {
    match reader.start()? {
        Start::String => {
            Ok(reader.text(NAME_BYTES_MAX)?.map(|parent| Some(parent).filter(|parent| !parent.is_empty())))
        }
        Start::Word => Ok((reader.word()? == "null").then_some(None)),
        Start::Object | Start::Array => reader.skip().map(|()| None),
    }
}

fn kind(word: &str) -> Option<Kind> {
    match word {
        "user" => Some(Kind::User),
        "assistant" => Some(Kind::Assistant),
        "tool_result" => Some(Kind::ToolResult),
        "system" => Some(Kind::System),
        _ => None,
    }
}

/// A subtype that is no text is one that nobody knows.
fn subtype<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<String>> {
    if reader.start()? == Start::Word && reader.bytes.peek() == Some(b'n') {
        return reader.skip().map(|()| None);
    }
    Ok(Some(reader.text(WORD_BYTES_MAX)?.unwrap_or_default()))
}

fn goal<B: Bytes>(reader: &mut Reader<B>) -> Read<Option<Goal>> {
    if reader.start()? != Start::Object {
        return reader.skip().map(|()| None);
    }
    let (mut goal_id, mut turn_id, mut revision) = (None, None, None);
    reader.object(|key, reader| {
        match key {
            "goalId" => goal_id = name(reader)?,
            "turnId" => turn_id = name(reader)?,
            "revision" if reader.start()? == Start::Word => revision = Some(reader.word()?),
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    let is_number = |word: &String| word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let permit = goal_id.zip(turn_id).zip(revision.filter(is_number));
    Ok(permit.map(|((goal_id, turn_id), revision)| Goal { goal_id, turn_id, revision }))
}

#[cfg(test)]
mod tests;
