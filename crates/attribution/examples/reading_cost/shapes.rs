//! The shapes: sessions of ordinary and of hostile form, written byte for byte, no holes in them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

pub(crate) const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";

const MIB: u64 = 1024 * 1024;
const LARGE_BYTES: u64 = 2 * 1024 * MIB;
const HUGE_RECORD_BYTES: u64 = 300 * MIB;
const MANY_RECORDS: u64 = 5_000_000;
/// What an ordinary text says again and again; escapes stand in it as they do in code.
const TEXT: &str = "the quick brown fox says \\\"hello\\\" and jumps over the lazy dog\\n";

/// A form that a transcript may have.
pub(crate) struct Shape {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its name in the table.
    pub(crate) what: &'static str,
    write: fn(&mut Pen) -> io::Result<Marker>,
}

/// The marker of the open prompt's admission.
type Marker = Option<String>;

const fn shape(name: &'static str, what: &'static str, write: fn(&mut Pen) -> io::Result<Marker>) -> Shape {
    Shape { name, what, write }
}

/// All of them.
pub(crate) const SHAPES: &[Shape] = &[
    shape("ordinary", "1 MiB", |pen| pen.session(MIB)),
    shape("hundred", "100 MiB", |pen| pen.session(100 * MIB)),
    shape("large", "2 GiB", |pen| pen.session(LARGE_BYTES)),
    shape("huge-text", "the last record an answer of 300 MB", |pen| {
        let marker = pen.prompt()?;
        pen.huge("assistant", "model", r#"{"text":""#, TEXT, r#""}"#).map(|()| marker)
    }),
    shape("huge-tool", "the last record a tool's answer of 300 MB", |pen| {
        let marker = pen.prompt()?;
        let open = r#"{"functionResponse":{"id":"c","response":{"output":""#;
        pen.huge("tool_result", "user", open, TEXT, r#""}}}"#).map(|()| marker)
    }),
    shape("huge-middle", "300 MB in the middle of the evidence", |pen| {
        pen.prompt()?;
        pen.huge("assistant", "model", r#"{"text":""#, TEXT, r#""}"#)?;
        pen.session(100 * 1024)
    }),
    shape("huge-torn", "the last record torn at 300 MB", |pen| {
        let marker = pen.prompt()?;
        pen.huge("assistant", "model", r#"{"text":""#, TEXT, "")?;
        pen.last_turn().map(|()| marker)
    }),
    shape("one-line", "nothing but one line of 300 MB, no newline", |pen| {
        pen.huge("user", "user", r#"{"text":""#, TEXT, r#""}"#).map(|()| None)
    }),
    shape("many", "5 million small records", |pen| {
        (1..MANY_RECORDS / 2).try_for_each(|_| pen.turn(""))?;
        pen.prompt()
    }),
    shape("tiny", "5 million records of 90 bytes", |pen| {
        pen.turn("")?;
        let marker = pen.marker();
        for number in 0..MANY_RECORDS {
            let parent = std::mem::replace(&mut pen.parent, format!("\"{number}\""));
            pen.raw(&format!(
                "{{\"uuid\":\"{number}\",\"parentUuid\":{parent},\"sessionId\":\"{SESSION_ID}\",\"type\":\"user\"}}\n"
            ))?;
        }
        pen.last_turn().map(|()| marker)
    }),
    shape("old-marker", "2 GiB behind the marker", |pen| {
        pen.turn(TEXT)?;
        let marker = pen.marker();
        pen.fill(LARGE_BYTES, |pen| pen.turn(&TEXT.repeat(150)))?;
        pen.last_turn().map(|()| marker)
    }),
    shape("legacy", "2 GiB behind an admission without a marker", |pen| {
        pen.fill(LARGE_BYTES, |pen| pen.turn(&TEXT.repeat(150)))?;
        pen.last_turn().map(|()| None)
    }),
    shape("orphan", "2 GiB before a missing parent", |pen| {
        pen.session(LARGE_BYTES)?;
        pen.parent = "\"nowhere\"".to_owned();
        pen.prompt()
    }),
    shape("garbage", "one line of 2 GiB that is no JSON", |pen| {
        pen.fill(LARGE_BYTES, |pen| pen.raw(TEXT)).map(|()| None)
    }),
    shape("open-braces", "one line of 300 MB of open objects", |pen| {
        pen.turn("")?;
        pen.fill(HUGE_RECORD_BYTES, |pen| pen.raw(r#"{"a":{"a":{"a":{"a":"#))?;
        pen.raw("\n")?;
        pen.prompt()
    }),
    shape("deep", "a record nested 300 million deep", |pen| {
        pen.turn("")?;
        let marker = pen.marker();
        pen.huge("user", "user", r#"{"x":"#, "[[[[[[[[", "")?;
        pen.raw("\n")?;
        pen.last_turn().map(|()| marker)
    }),
    shape("beside", "2 GiB beside the branch", |pen| {
        pen.turn(TEXT)?;
        let root = pen.parent.clone();
        pen.fill(LARGE_BYTES, |pen| pen.turn(&TEXT.repeat(150)))?;
        pen.parent = root;
        let marker = pen.marker();
        pen.last_turn().map(|()| marker)
    }),
    shape("blank", "2 GiB of blank lines at the end", |pen| {
        let marker = pen.session(MIB)?;
        pen.fill(LARGE_BYTES, |pen| pen.raw("\n \n\r\n\t\n")).map(|()| marker)
    }),
    shape("names", "calls with ids of 300 MB", |pen| {
        let marker = pen.prompt()?;
        let id = format!(r#"{{"functionCall":{{"id":"{}","name":"n"}}}},"#, "i".repeat(300_000));
        pen.huge("assistant", "model", "", &id, r#"{"text":"x"}"#).map(|()| marker)
    }),
    shape("mid-turn", "5 million messages said into one turn", |pen| {
        pen.turn(TEXT)?;
        let marker = pen.marker();
        (0..MANY_RECORDS).try_for_each(|_| pen.record("user\",\"subtype\":\"mid_turn_user_message", "user", "x"))?;
        pen.last_turn().map(|()| marker)
    }),
    shape("snapshot", "a compression of 300 MB", |pen| {
        pen.turn(TEXT)?;
        let entry = format!(r#"{{"role":"model","parts":[{{"text":"{TEXT}"}}]}},"#);
        pen.huge_note("chat_compression", r#"{"compressedHistory":["#, &entry, r#"{"role":"user"}]}"#)?;
        pen.prompt()
    }),
    shape("lists", "an argument of 15 MB of empty lists", |pen| {
        let marker = pen.prompt()?;
        let open = r#"{"functionCall":{"id":"c","name":"n","args":["#;
        pen.long("assistant", "model", [open, "[],", "[]]}}"], 15 * MIB)?;
        pen.last_turn().map(|()| marker)
    }),
];

impl Shape {
    /// Writes the file; the marker of the prompt that is open at its end.
    pub(crate) fn write(&self, path: &Path) -> io::Result<Marker> {
        let mut pen =
            Pen { file: BufWriter::with_capacity(1 << 20, File::create(path)?), records: 0, parent: "null".to_owned() };
        let marker = (self.write)(&mut pen)?;
        pen.file.into_inner()?.sync_all()?;
        Ok(marker)
    }
}

/// Writes records one behind the other.
struct Pen {
    file: BufWriter<File>,
    records: u64,
    /// The parent of the next record, as JSON.
    parent: String,
}

impl Pen {
    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }

    /// The beginning of a record, up to the parts of its message.
    fn begin(&mut self, kind: &str, rest: &str) -> io::Result<()> {
        let uuid = format!("\"{:08x}-0000-4000-8000-000000000000\"", self.records);
        self.records += 1;
        let parent = std::mem::replace(&mut self.parent, uuid.clone());
        write!(
            self.file,
            "{{\"uuid\":{uuid},\"parentUuid\":{parent},\"sessionId\":\"{SESSION_ID}\",\"timestamp\":\"2026-11-29T18:33:41.000Z\",\
             \"type\":\"{kind}\",\"cwd\":\"/ws\",\"version\":\"0\",{rest}"
        )
    }

    fn record(&mut self, kind: &str, role: &str, text: &str) -> io::Result<()> {
        self.begin(kind, &format!("\"message\":{{\"role\":\"{role}\",\"parts\":[{{\"text\":\"{text}\"}}]}}}}\n"))
    }

    /// A record whose one part is made of a beginning, a middle that is repeated up to so many bytes, and an end.
    fn long(&mut self, kind: &str, role: &str, [open, middle, close]: [&str; 3], bytes: u64) -> io::Result<()> {
        self.begin(kind, &format!("\"message\":{{\"role\":\"{role}\",\"parts\":[{open}"))?;
        (0..bytes / middle.len() as u64).try_for_each(|_| self.raw(middle))?;
        self.raw(close)?;
        self.raw(if close.is_empty() { "" } else { "]}}\n" })
    }

    fn huge(&mut self, kind: &str, role: &str, open: &str, middle: &str, close: &str) -> io::Result<()> {
        self.long(kind, role, [open, middle, close], HUGE_RECORD_BYTES)
    }

    fn huge_note(&mut self, subtype: &str, open: &str, middle: &str, close: &str) -> io::Result<()> {
        self.begin("system", &format!("\"subtype\":\"{subtype}\",\"systemPayload\":{open}"))?;
        (0..HUGE_RECORD_BYTES / middle.len() as u64).try_for_each(|_| self.raw(middle))?;
        self.raw(close)?;
        self.raw("}\n")
    }

    fn turn(&mut self, text: &str) -> io::Result<()> {
        self.record("user", "user", text)?;
        self.record("assistant", "model", text)
    }

    /// The record that a prompt admitted now has as its marker.
    fn marker(&self) -> Marker {
        (self.parent != "null").then(|| self.parent.trim_matches('"').to_owned())
    }

    fn last_turn(&mut self) -> io::Result<()> {
        self.turn("x")
    }

    /// A few turns, a turn's result, and the turn of the open prompt.
    fn prompt(&mut self) -> io::Result<Marker> {
        (0..5).try_for_each(|_| self.turn(TEXT))?;
        let payload = r#"{"promptId":"last","state":"completed","endedAt":1}"#;
        self.begin("system", &format!("\"subtype\":\"turn_result\",\"systemPayload\":{payload}}}\n"))?;
        let marker = self.marker();
        self.last_turn().map(|()| marker)
    }

    /// Turns of about 20 KiB, every other one rewound, until there are enough bytes; then an open prompt.
    fn session(&mut self, bytes: u64) -> io::Result<Marker> {
        let text = TEXT.repeat(150);
        let mut turns = 0_u64;
        self.fill(bytes, |pen| {
            let before = pen.parent.clone();
            pen.turn(&text)?;
            turns += 1;
            if turns.is_multiple_of(2) {
                pen.parent = before;
            }
            Ok(())
        })?;
        self.prompt()
    }

    /// Writes on until so many bytes were written.
    fn fill(&mut self, bytes: u64, mut write: impl FnMut(&mut Self) -> io::Result<()>) -> io::Result<()> {
        let written = |pen: &mut Self| -> io::Result<u64> {
            Ok(pen.file.get_ref().metadata()?.len() + pen.file.buffer().len() as u64)
        };
        let end = written(self)? + bytes;
        while written(self)? < end {
            for _ in 0..16 {
                write(self)?;
            }
        }
        Ok(())
    }
}
