//! One record of a copy: as it stands, but for the members that say whose it is and where it hangs.

use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use serde_json::json;

use super::{CHECKPOINT_SUBTYPE, Copy, ForkError};
use crate::json::{self, Bytes, FileBytes, Malformed, Read, Reader};
use crate::record::Record;
use crate::rewind_points::FILE_SNAPSHOT;
use crate::snapshot::{PageError, Unavailable};

/// The subtype of what qwen-code counts; it names the prompt by the agent's own id.
const TELEMETRY: &str = "ui_telemetry";
/// Bytes of a note in which the old session's id is looked for. One that is larger tracks very many files, and is copied as it is.
const NOTE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Bytes that are copied at once.
const COPY_BYTES: usize = 64 * 1024;

/// A member of an object.
struct Member {
    name: Name,
    /// From the quote of its name to the end of its value.
    span: Range<u64>,
    value: Range<u64>,
}

/// The members that a copy changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Session,
    Parent,
    Prompt,
    Origin,
    Payload,
    Other,
}

impl Name {
    fn of(key: &str) -> Self {
        match key {
            "sessionId" => Self::Session,
            "parentUuid" => Self::Parent,
            "daemonPromptId" => Self::Prompt,
            "forkedFrom" => Self::Origin,
            "systemPayload" => Self::Payload,
            _ => Self::Other,
        }
    }
}

impl Copy<'_> {
    /// Writes a record as the copy has it. The stamp of its prompt does not stay one: a session inherits no identity of a prompt (turn status
    /// seed). It is told where the record came from, for whoever asks that.
    pub(super) fn write(&mut self, record: &Record, parent: Option<&str>) -> Result<(), ForkError> {
        let members = self.members(&record.span)?;
        let has_names = [FILE_SNAPSHOT, TELEMETRY, CHECKPOINT_SUBTYPE].iter().any(|subtype| record.is_note(subtype));
        let mut origin = json!({ "sessionId": self.fork.source_session, "messageUuid": record.uuid });
        if let Some(prompt_id) = &record.prompt_id {
            origin["promptId"] = prompt_id.as_str().into();
        }
        self.say(b"{")?;
        for member in members {
            match member.name {
                Name::Session => self.say_member("sessionId", &json!(self.fork.identity.session_id))?,
                Name::Parent => self.say_member("parentUuid", &json!(parent))?,
                Name::Prompt | Name::Origin => continue,
                Name::Payload if has_names && member.value.end - member.value.start <= NOTE_BYTES_MAX => {
                    self.say_payload(record, &member.value)?;
                }
                Name::Payload | Name::Other => self.copy(member.span)?,
            }
            self.say(b",")?;
        }
        self.say_member("forkedFrom", &origin)?;
        self.say(b"}\n")
    }

    /// Where the members of the object at `span` stand.
    fn members(&self, span: &Range<u64>) -> Result<Vec<Member>, ForkError> {
        let mut reader = Reader::new(FileBytes::new(self.source, span.clone()));
        let members = read_members(&mut reader);
        match (reader.bytes.take_error(), members) {
            (Some(cause), _) => Err(self.unreadable(cause)),
            (None, Ok(members)) => Ok(members),
            (None, Err(Malformed)) => Err(PageError::unavailable(&self.fork.source, Unavailable::Changed).into()),
        }
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), ForkError> {
        self.out.write_all(bytes).map_err(ForkError::Write)
    }

    fn say_member(&mut self, name: &str, value: &serde_json::Value) -> Result<(), ForkError> {
        self.say(format!("\"{name}\":{value}").as_bytes())
    }

    /// A payload in which the names of what belongs to the old session alone are the copy's.
    fn say_payload(&mut self, record: &Record, value: &Range<u64>) -> Result<(), ForkError> {
        let mut bytes = vec![0; usize::try_from(value.end - value.start).unwrap_or(0)];
        self.source.read_exact_at(&mut bytes, value.start).map_err(|cause| self.unreadable(cause))?;
        self.say(b"\"systemPayload\":")?;
        let Some((old, new)) = self.renamed(record, &bytes) else { return self.say(&bytes) };
        let mut rest = &bytes[..];
        while let Some(place) = memchr::memmem::find(rest, old.as_bytes()) {
            self.say(&rest[..place])?;
            self.say(new.as_bytes())?;
            rest = &rest[place + old.len()..];
        }
        self.say(rest)
    }

    /// What in a payload is written otherwise: the agent's own ids of prompts, which begin with the session's; and where a turn
    /// begins, if it begins behind a record that is left out.
    fn renamed(&self, record: &Record, payload: &[u8]) -> Option<(String, String)> {
        if !record.is_note(CHECKPOINT_SUBTYPE) {
            let name = |session: &str| format!("\"{session}#");
            return Some((name(&self.fork.source_session), name(&self.fork.identity.session_id)));
        }
        let payload = json::value(payload)?;
        let start = payload["startExclusiveRecordUuid"].as_str()?;
        let kept = self.chain.kept(Some(start.to_owned()));
        Some((json!(start).to_string(), json!(kept).to_string()))
    }

    /// The bytes at `span`, as they are.
    fn copy(&mut self, span: Range<u64>) -> Result<(), ForkError> {
        let mut block = [0; COPY_BYTES];
        let mut at = span.start;
        while at < span.end {
            let length = usize::try_from(span.end - at).map_or(COPY_BYTES, |left| left.min(COPY_BYTES));
            self.source.read_exact_at(&mut block[..length], at).map_err(|cause| self.unreadable(cause))?;
            self.say(&block[..length])?;
            at += length as u64;
        }
        Ok(())
    }

    fn unreadable(&self, cause: io::Error) -> ForkError {
        ForkError::Unreadable(PageError::of(&self.fork.source, cause))
    }
}

fn read_members<B: Bytes>(reader: &mut Reader<B>) -> Read<Vec<Member>> {
    let mut members = Vec::new();
    reader.start()?;
    // Behind the brace or the comma before a member.
    let mut behind = reader.bytes.offset() + 1;
    reader.object(|key, reader| {
        reader.start()?;
        let start = reader.bytes.offset();
        reader.skip()?;
        let end = reader.bytes.offset();
        members.push(Member { name: Name::of(key), span: behind..end, value: start..end });
        behind = end;
        Ok(())
    })?;
    // What stands between two members is the comma and white space around it.
    for member in members.iter_mut() {
        reader.bytes.seek(member.span.start);
        if !reader.bytes.find(b'"') {
            return Err(Malformed);
        }
        member.span.start = reader.bytes.offset();
    }
    Ok(members)
}
