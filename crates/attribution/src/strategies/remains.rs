//! What a story leaves on the disk.

use ledger::{Record, Wish};

use super::story::{Deed, Ending, Entry, Event, Flaw, Marker, Outcome, Parent, Story, What};

/// The session of every story.
pub const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";
/// The workspace of every story.
pub const WORKSPACE: &str = "/ws";
/// When every story begins, in epoch milliseconds.
pub const START_MS: i64 = 1_795_977_220_000;
/// How much of a transcript's end is looked at for a marker, in bytes: what [`transcript::TAIL_BYTES_MAX`] says.
const TAIL_BYTES: usize = transcript::TAIL_BYTES_MAX as usize;

/// The two files of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remains {
    /// The ledger's bytes; empty when there is none.
    pub ledger: Vec<u8>,
    /// The transcript's bytes; empty when there is none.
    pub transcript: Vec<u8>,
    /// What the ledger gets while the evidence is weighed.
    pub late_ledger: Vec<u8>,
}

impl Story {
    /// Writes the story down.
    #[must_use]
    pub fn remains(&self) -> Remains {
        let mut pen = Pen { at_ms: START_MS, ..Pen::default() };
        for event in &self.events {
            pen.write(event);
        }
        pen.remains
    }
}

#[derive(Default)]
struct Pen {
    at_ms: i64,
    remains: Remains,
    is_loaded: bool,
    /// How many records the transcript was given.
    count: usize,
    /// The last record on the branch that is whole.
    leaf: Option<usize>,
}

impl Pen {
    fn write(&mut self, event: &Event) {
        self.at_ms += event.after_ms;
        match &event.deed {
            Deed::Load => self.is_loaded = true,
            Deed::Admit { prompt, marker } => {
                let marker = match marker {
                    Marker::None => None,
                    Marker::Elsewhere => Some("elsewhere".to_owned()),
                    Marker::Tail => self.tail_uuid(),
                    Marker::Record(number) => Some(uuid(*number)),
                };
                self.write_ledger(event, &Record::in_flight(prompt.prompt_id(), marker.as_deref(), self.at_ms()));
            }
            Deed::End { prompt, ending } => {
                self.write_ledger(event, &terminal(prompt.prompt_id(), *ending, self.at_ms()));
            }
            Deed::Wish { prompt } => {
                let line = Wish::new(prompt.prompt_id(), self.at_ms()).to_line();
                append(self.ledger(), event, &line);
            }
            Deed::Write(entry) => self.write_entry(event, entry),
        }
    }

    fn at_ms(&self) -> u64 {
        u64::try_from(self.at_ms).unwrap_or(0)
    }

    fn write_ledger(&mut self, event: &Event, record: &Record) {
        append(self.ledger(), event, &record.to_line());
    }

    fn ledger(&mut self) -> &mut Vec<u8> {
        if self.is_loaded { &mut self.remains.late_ledger } else { &mut self.remains.ledger }
    }

    fn write_entry(&mut self, event: &Event, entry: &Entry) {
        let line = self.line(entry);
        let is_whole = append(&mut self.remains.transcript, event, &line);
        if is_whole && entry.what.is_on_branch() {
            self.leaf = Some(self.count);
        }
        self.count += 1;
    }

    fn line(&self, entry: &Entry) -> String {
        let parent = match entry.parent {
            Parent::Last => self.leaf.map(uuid),
            Parent::Record(number) => Some(uuid(number)),
            Parent::Nobody => None,
            Parent::Lost => Some("lost".to_owned()),
        };
        let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("\"{parent}\""));
        let session_id = if entry.has(Flaw::Strange) { "99999999-2222-4333-8444-555555555555" } else { SESSION_ID };
        let workspace = if entry.has(Flaw::Abroad) { "/abroad" } else { WORKSPACE };
        let timestamp = transcript::iso_text(self.at_ms()).filter(|_| !entry.has(Flaw::Undated));
        format!(
            r#"{{"uuid":"{}","parentUuid":{parent},"sessionId":"{session_id}","timestamp":"{}","cwd":"{workspace}",{}{}}}"#,
            uuid(self.count),
            timestamp.as_deref().unwrap_or("some time"),
            stamp(entry),
            content(entry, self.at_ms()),
        )
    }

    /// What an admission takes for its marker now. The last line may be torn, and then there is none.
    fn tail_uuid(&self) -> Option<String> {
        let bytes = &self.remains.transcript;
        let tail = bytes.trim_ascii_end();
        let start = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |lf| lf + 1);
        let line = std::str::from_utf8(&tail[start..]).ok().filter(|_| bytes.len() - start <= TAIL_BYTES)?;
        let record: transcript::Value = line.parse().ok()?;
        Some(record.get("uuid")?.as_str()?.to_owned())
    }
}

/// Appends a line, or what of it got to the disk; whether all of it did.
fn append(file: &mut Vec<u8>, event: &Event, line: &str) -> bool {
    if !event.is_glued && file.last().is_some_and(|last| *last != b'\n') {
        file.push(b'\n');
    }
    match event.torn {
        None => file.extend_from_slice(&[line.as_bytes(), b"\n"].concat()),
        Some(thousandths) => {
            let kept = line.len() * usize::from(thousandths.min(1_000)) / 1_000;
            file.extend_from_slice(&line.as_bytes()[..kept]);
            return kept == line.len();
        }
    }
    true
}

fn uuid(number: usize) -> String {
    format!("r{number}")
}

fn terminal(prompt_id: String, ending: Ending, at_ms: u64) -> Record {
    match ending {
        Ending::Completed => Record::completed(prompt_id, "end_turn", at_ms),
        Ending::Cancelled => Record::cancelled(prompt_id, at_ms),
        Ending::Failed => Record::error(prompt_id, Some("boom"), at_ms),
        Ending::Deadline => Record::error(prompt_id, Some("prompt_deadline_exceeded"), at_ms),
        Ending::Shutdown => Record::error(prompt_id, Some("daemon_shutdown"), at_ms),
        Ending::Lost => Record::interrupted(prompt_id, "daemon_lost", at_ms),
    }
}

/// The prompt that the record says it is of. A prompt says it unless it is bare, another record only when it is stamped.
fn stamp(entry: &Entry) -> String {
    let is_stamped = if entry.what == What::User { !entry.has(Flaw::Bare) } else { entry.has(Flaw::Stamped) };
    let name = entry.owner.filter(|_| is_stamped);
    name.map_or_else(String::new, |name| format!(r#""daemonPromptId":"{}","#, name.letter()))
}

/// The fields that are not the same for all records.
fn content(entry: &Entry, at_ms: u64) -> String {
    match entry.what {
        What::User => said(entry, "user", "user", r#"{"text":"a question"}"#),
        What::Answer => said(entry, "assistant", "model", r#"{"text":"an answer"}"#),
        What::Thought => said(entry, "assistant", "model", r#"{"text":"hm","thought":true}"#),
        What::Call => said(entry, "assistant", "model", r#"{"functionCall":{"id":"c1","name":"ls","args":{}}}"#),
        What::BlindCall => said(entry, "assistant", "model", r#"{"functionCall":{"name":"ls","args":{}}}"#),
        What::Tool => said(entry, "tool_result", "user", TOOL),
        What::GoalTool => format!("{GOAL},{}", said(entry, "tool_result", "user", TOOL)),
        What::GoalEnd => format!("{GOAL},{}", note("goal_turn_end", r#"{"toolCallId":"c1"}"#)),
        What::Result(outcome) => note("turn_result", &result(entry, outcome, at_ms)),
        What::Reminder => said(entry, "user", "user", r#"{"text":"<system-reminder>x</system-reminder>"}"#),
        What::Notification => said(entry, "user", "user", NOTIFICATION),
        What::Job => {
            format!(r#""subtype":"notification","provenance":"system",{}"#, said(entry, "user", "user", NOTIFICATION))
        }
        What::MidTurn => {
            format!(r#""subtype":"mid_turn_user_message",{}"#, said(entry, "user", "user", r#"{"text":"wait"}"#))
        }
        What::Spoken => {
            format!(r#""subtype":"realtime_message",{}"#, said(entry, "user", "user", r#"{"text":"hello"}"#))
        }
        What::Command => said(entry, "user", "user", r#"{"text":"/about"}"#),
        What::CommandAnswered => note("slash_command", COMMAND_ANSWERED),
        What::Note => note("ui_telemetry", "{}"),
        What::ShellCommand => note("user_shell_command", r#"{"command":"ls"}"#),
        What::ShellResult => {
            note("user_shell_result", r#"{"command":"ls","exitCode":0,"signal":null,"output":"x","aborted":false}"#)
        }
        What::Title => note("custom_title", r#"{"customTitle":"t"}"#),
        What::Artifact => note("session_artifact_event", "{}"),
        What::Compression => note("chat_compression", compression(entry)),
        What::EmptyCompression => note("chat_compression", "{}"),
        What::Rewind => note("rewind", r#"{"truncatedCount":2}"#),
    }
}

const TOOL: &str = r#"{"functionResponse":{"id":"c1","name":"ls","response":{"output":"x"}}}"#;
const GOAL: &str = r#""goalContext":{"goalId":"g","turnId":"t","revision":1}"#;
const NOTIFICATION: &str = r#"{"text":"<task-notification>x</task-notification>"}"#;
const COMMAND_ANSWERED: &str =
    r#"{"phase":"result","rawCommand":"/about","outputHistoryItems":[{"type":"assistant","text":"x"}]}"#;

fn said(entry: &Entry, kind: &str, role: &str, part: &str) -> String {
    let parts = match part {
        _ if entry.has(Flaw::Unreadable) => "\"torn\"".to_owned(),
        _ if entry.has(Flaw::Mute) => "[]".to_owned(),
        part if entry.has(Flaw::Huge) => format!(r#"[{part},{{"text":"{}"}}]"#, "x".repeat(TAIL_BYTES)),
        part => format!("[{part}]"),
    };
    format!(r#""type":"{kind}","message":{{"role":"{role}","parts":{parts}}}"#)
}

fn compression(entry: &Entry) -> &'static str {
    if entry.has(Flaw::Unreadable) {
        r#"{"compressedHistory":"torn"}"#
    } else if entry.has(Flaw::Mute) {
        r#"{"compressedHistory":[]}"#
    } else {
        r#"{"compressedHistory":[{"role":"user","parts":[{"text":"so far"}]}]}"#
    }
}

fn note(subtype: &str, payload: &str) -> String {
    format!(r#""type":"system","subtype":"{subtype}","systemPayload":{payload}"#)
}

fn result(entry: &Entry, outcome: Outcome, at_ms: u64) -> String {
    let prompt = entry.owner.map_or('?', super::story::Name::letter);
    let state = match outcome {
        Outcome::Completed => r#""completed","stopReason":"max_tokens""#,
        Outcome::Cancelled => r#""cancelled""#,
        Outcome::Failed => r#""error","error":{"message":"m","code":"boom"}"#,
    };
    format!(r#"{{"promptId":"{prompt}","state":{state},"endedAt":{at_ms}}}"#)
}
