//! What a load makes of a damaged transcript, and what a turn then writes behind the damage (wire rules, section 16.5, and the recording
//! of the peer's own loads).
//!
//! The file is that of three turns, `one`, `two` and `three`, of seven records each, `0` to `20`. What a load shows is written as
//! `one? one!` for a question and its answer, `all` for all of them, and `gap` where it says that earlier history was lost. Behind the arrow stands the record
//! that the next turn is written under. Unlike the peer's, a record is never glued to what is torn before it: it stands on a line of its own.

use serde_json::{Value, json};

use crate::daemon::Daemon;

const WHOLE: &str = "one? one! two? two! three? three!";
/// The middle answer, and the last one.
const TWO: usize = 10;
const THREE: usize = 17;

/// A damage, what it makes of the file, and what a load then shows.
type Row = (&'static str, fn(Lines) -> Vec<u8>, &'static str);

const ROWS: &[Row] = &[
    ("none", Lines::bytes, "all -> 20"),
    ("no newline at the end", |file| file.cut_at_end(1), "all -> 20"),
    ("last line torn", |file| file.torn_in(20), "all -> 19"),
    ("file torn in the last answer", |file| file.torn_in(THREE), "one? one! two? two! three? -> 16"),
    ("line of garbage", |file| file.with_line(TWO, "garbage").bytes(), "all -> 20"),
    ("line of NULs", |file| file.with_line(TWO, "\0\0\0\0").bytes(), "all -> 20"),
    ("lines of other JSON", |file| file.with_line(TWO, "[1,2]\n5\nnull").bytes(), "all -> 20"),
    ("blank lines", |file| file.with_line(TWO, "\n \n\t").bytes(), "all -> 20"),
    ("lines that end in CR LF", |file| file.replaced("\n", "\r\n"), "all -> 20"),
    ("mark of a byte order at the beginning", |file| file.with_front(0, "\u{feff}").bytes(), "all -> 20"),
    ("NULs before a record", |file| file.with_front(TWO, "\0\0\0\0").bytes(), "all -> 20"),
    ("fragment before a record", |file| file.with_front(TWO, "{\"uuid\":\"x").bytes(), "all -> 20"),
    ("two records on one line", |file| file.joined(TWO).bytes(), "all -> 20"),
    ("middle answer torn", |file| file.half(TWO).bytes(), "gap three? three! -> 20"),
    (
        "middle answer torn and the next record glued to it",
        |file| file.half(TWO).joined(TWO).bytes(),
        "gap three? three! -> 20",
    ),
    ("middle question missing", |file| file.without(TWO - 3).bytes(), "gap two! three? three! -> 20"),
    ("record without an id", |file| file.with_field(TWO, "uuid", Value::Null).bytes(), "gap three? three! -> 20"),
    (
        "record of an unknown type",
        |file| file.with_field(TWO, "type", json!("unheard_of")).bytes(),
        "gap three? three! -> 20",
    ),
    ("note of an unknown kind", |file| file.with_field(TWO - 2, "subtype", json!("unheard_of")).bytes(), "all -> 20"),
    ("middle answer twice", |file| file.twice(TWO).bytes(), "one? one! two? two! two! three? three! -> 20"),
    ("branch that comes back to its end", |file| file.with_field(0, "parentUuid", json!("r20")).bytes(), "all -> 20"),
    ("byte that is no UTF-8", Lines::with_odd_byte, "one? one! two? t\u{fffd}wo! three? three! -> 20"),
    (
        "record of another session",
        |file| file.with_field(TWO, "sessionId", json!("22222222-2222-4222-8222-222222222222")).bytes(),
        "409 transcript_snapshot_unavailable",
    ),
    (
        "first record of another workspace",
        |file| file.with_field(0, "cwd", json!("/other")).bytes(),
        "404 session_not_found",
    ),
    ("all records of another workspace", |file| file.replaced("\"/ws\"", "\"/other\""), "404 session_not_found"),
    ("nothing", |_| Vec::new(), "404 session_not_found"),
    ("blank lines only", |_| b"\n  \n\t\n".to_vec(), "404 session_not_found"),
    ("garbage only", |_| b"garbage\n{\"a\":1\n".to_vec(), "404 session_not_found"),
];

#[tokio::test]
async fn every_damage_is_shown_as_the_rules_say_and_sealed_before_anything_is_written_behind_it() {
    let daemon = Daemon::start().await;
    for (at, (damage, make, expected)) in ROWS.iter().enumerate() {
        let session = format!("11111111-1111-4111-8111-{at:012}");
        let damaged = make(Lines::of(&session));
        let file = daemon.chats().join(format!("{session}.jsonl"));
        std::fs::create_dir_all(daemon.chats()).unwrap();
        std::fs::write(&file, &damaged).unwrap();
        let answer = daemon.post(&format!("/session/{session}/load"), json!({})).await;
        let expected = expected.replace("all", WHOLE);
        let Some((shown, parent)) = expected.split_once(" -> ") else {
            assert_eq!(answer.verdict(), expected, "{damage}");
            assert_eq!(std::fs::read(&file).unwrap(), damaged, "{damage}: a load that is refused writes nothing");
            continue;
        };
        assert_eq!(answer.status, 200, "{damage}: {}", answer.verdict());
        assert_eq!(said(&answer.json()["compactedReplay"]), shown, "{damage}");
        let prompt = daemon.run(&session, "more").await;
        let written = std::fs::read(&file).unwrap();
        assert!(written.starts_with(&damaged), "{damage}: what is there stays as it is");
        assert_eq!(parent_of(&written, &prompt).as_deref(), Some(format!("r{parent}").as_str()), "{damage}");
        // The next life finds it behind the damage.
        assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
        let again = daemon.post(&format!("/session/{session}/load"), json!({})).await.json();
        assert_eq!(said(&again["compactedReplay"]), format!("{shown} more? more!"), "{damage}");
        assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    }
}

/// The ledger's damage, and the terminals that a load then gives.
const LEDGER_ROWS: &[(&str, &str, &str)] = &[
    ("none", "", "one two three"),
    ("garbage, blank lines and a torn end", "garbage\n\n{\"v\":1,\"promptId\":\"x\",\"ter", "one two three"),
    (
        "another version, no time, an unknown ending",
        "{\"v\":9,\"promptId\":\"x\",\"terminal\":\"completed\",\"at\":1}\n{\"v\":1,\"promptId\":\"x\",\"terminal\":\"completed\"}\n{\"v\":1,\"promptId\":\"x\",\"terminal\":\"bogus\",\"at\":1}\n",
        "one two three",
    ),
    ("one ending twice", "{\"v\":1,\"promptId\":\"two\",\"terminal\":\"error\",\"at\":9}\n", "one two three two"),
];

#[tokio::test]
async fn a_damaged_ledger_gives_the_terminals_that_are_whole() {
    let daemon = Daemon::start().await;
    for (at, (damage, text, expected)) in LEDGER_ROWS.iter().enumerate() {
        let session = format!("11111111-1111-4111-8111-{at:012}");
        daemon.write(&format!("{session}.jsonl"), &String::from_utf8(Lines::of(&session).bytes()).unwrap());
        let ended = |prompt: &str| {
            format!(
                "{{\"v\":1,\"promptId\":\"{prompt}\",\"terminal\":\"completed\",\"stopReason\":\"end_turn\",\"at\":5}}\n"
            )
        };
        let ledger: String = ["one", "two", "three"].map(ended).concat() + text;
        daemon.write(&format!("{session}.ledger.jsonl"), &ledger);
        let loaded = daemon.post(&format!("/session/{session}/load"), json!({})).await.json();
        let terminals = loaded["promptTerminals"].as_array().unwrap();
        let prompts: Vec<_> = terminals.iter().map(|terminal| terminal["promptId"].as_str().unwrap()).collect();
        assert_eq!(
            (prompts.join(" ").as_str(), said(&loaded["compactedReplay"]).as_str()),
            (*expected, WHOLE),
            "{damage}"
        );
        let prompt = daemon.run(&session, "more").await;
        let written = daemon.ledger(&session);
        assert!(written.starts_with(&ledger), "{damage}");
        let own = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|record| record["promptId"] == *prompt);
        assert_eq!(
            written.lines().filter(|line| own(line)).count(),
            2,
            "{damage}: both records stand on lines of their own"
        );
    }
}

/// What was said, in the notation of this table.
fn said(replay: &Value) -> String {
    let word = |event: &Value| {
        let update = &event["data"]["update"];
        let text = update["content"]["text"].as_str().unwrap().to_owned();
        match update["sessionUpdate"].as_str().unwrap() {
            "user_message_chunk" => format!("{text}?"),
            _ if text.contains("History gap") => "gap".to_owned(),
            _ => format!("{}!", text.strip_prefix("echo: ").unwrap()),
        }
    };
    let events = replay.as_array().unwrap().iter();
    events.map(word).collect::<Vec<_>>().join(" ")
}

/// The parent of the question of this prompt, if that stands on a line of its own.
fn parent_of(file: &[u8], prompt: &str) -> Option<String> {
    let lines = file.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let question = lines.into_iter().find(|record| record["daemonPromptId"] == prompt)?;
    question["parentUuid"].as_str().map(str::to_owned)
}

/// The lines of a transcript, whole ones at first.
struct Lines(Vec<String>);

impl Lines {
    fn of(session: &str) -> Self {
        let mut lines = Vec::new();
        for word in ["one", "two", "three"] {
            for kind in [
                "user",
                "file_history_snapshot",
                "ui_telemetry",
                "assistant",
                "branch_checkpoint",
                "ui_telemetry",
                "turn_result",
            ] {
                let at = lines.len();
                let mut record = json!({
                    "uuid": format!("r{at}"),
                    "parentUuid": at.checked_sub(1).map(|before| format!("r{before}")),
                    "sessionId": session,
                    "timestamp": format!("2026-11-29T18:33:{:02}.000Z", 10 + at),
                    "type": kind,
                    "cwd": "/ws",
                    "version": "0.24.4",
                });
                match kind {
                    "user" => {
                        record["daemonPromptId"] = word.into();
                        record["message"] = json!({ "role": "user", "parts": [{ "text": word }] });
                    }
                    "assistant" => {
                        record["message"] = json!({ "role": "model", "parts": [{ "text": format!("echo: {word}") }] })
                    }
                    _ => {
                        record["type"] = "system".into();
                        record["subtype"] = kind.into();
                        record["systemPayload"] = json!({ "promptId": word, "state": "completed", "endedAt": 1_795_977_220_000_u64 + at as u64 });
                    }
                }
                lines.push(record.to_string());
            }
        }
        Self(lines)
    }

    fn bytes(self) -> Vec<u8> {
        self.0.iter().map(|line| format!("{line}\n")).collect::<String>().into()
    }

    fn replaced(self, from: &str, to: &str) -> Vec<u8> {
        String::from_utf8(self.bytes()).unwrap().replace(from, to).into()
    }

    fn cut_at_end(self, bytes: usize) -> Vec<u8> {
        let mut whole = self.bytes();
        whole.truncate(whole.len() - bytes);
        whole
    }

    /// The file ends in the middle of this line.
    fn torn_in(mut self, at: usize) -> Vec<u8> {
        self.0.truncate(at + 1);
        let half = self.0[at].len() / 2;
        self.cut_at_end(half + 1)
    }

    /// The text stands on lines of its own before this one.
    fn with_line(mut self, at: usize, text: &str) -> Self {
        self.0.insert(at, text.to_owned());
        self
    }

    fn with_front(mut self, at: usize, text: &str) -> Self {
        self.0[at].insert_str(0, text);
        self
    }

    /// The line after this one is glued to it.
    fn joined(mut self, at: usize) -> Self {
        let next = self.0.remove(at + 1);
        self.0[at].push_str(&next);
        self
    }

    fn half(mut self, at: usize) -> Self {
        let half = self.0[at].len() / 2;
        self.0[at].truncate(half);
        self
    }

    fn without(mut self, at: usize) -> Self {
        self.0.remove(at);
        self
    }

    fn twice(mut self, at: usize) -> Self {
        self.0.insert(at, self.0[at].clone());
        self
    }

    /// The record has this field, or with a null lacks it.
    fn with_field(mut self, at: usize, field: &str, value: Value) -> Self {
        let mut record: Value = serde_json::from_str(&self.0[at]).unwrap();
        match value {
            Value::Null => drop(record.as_object_mut().unwrap().remove(field)),
            value => record[field] = value,
        }
        self.0[at] = record.to_string();
        self
    }

    fn with_odd_byte(self) -> Vec<u8> {
        let whole = self.bytes();
        let at = whole.windows(9).position(|window| window == b"echo: two").unwrap() + 7;
        [&whole[..at], &[0xff], &whole[at..]].concat()
    }
}
