//! What happened in a session, in a few words, and the files it left.
//!
//! Words are separated by spaces. In the ledger: `A+` admits A, `A+m3` admits it with the third record as its marker,
//! `A=done`, `A=cancelled`, `A=late` (its deadline) end it. In the transcript, each a record: `A?` is A's prompt, `?` one
//! without a stamp, `!` an answer, `call` a call, `tool` its answer, `A#done`, `A#cancelled`, `A#failed` are turn results,
//! `note` a note, `zip` a compression, `remind` a reminder, `task` a note on background work, `job` one that the session wrote in the user's place, `mid` something said into
//! the turn, `/` a command and `told` the session's own answer to it, `mute` a message without parts. Every word is a second later than the one before it, in whichever file, so that one line of words tells the
//! whole story in its order; `same` lets no time pass before the next word.

use serde_json::{Value, json};

use crate::files::{Files, SESSION_ID, WORKSPACE};

const START_MS: u64 = 1_795_977_220_000;

/// The two files of a story.
#[derive(Debug, Clone, Default)]
pub(crate) struct Story {
    pub(crate) ledger: String,
    pub(crate) transcript: String,
    records: usize,
    at_ms: u64,
    /// Whether no time passes before the next word.
    is_held: bool,
}

impl Story {
    pub(crate) fn new(words: &str) -> Self {
        let mut story = Self { at_ms: START_MS, ..Self::default() };
        for word in words.split_whitespace() {
            story.tell(word);
        }
        story
    }

    pub(crate) fn files(&self) -> Files {
        Files::with(Some(self.ledger.as_bytes()), Some(self.transcript.as_bytes()))
    }

    /// The same story with another transcript.
    pub(crate) fn with_transcript(&self, transcript: String) -> Self {
        Self { transcript, ..self.clone() }
    }

    /// What a reconciliation of these files says, in words like those of a story.
    pub(crate) fn verdict(&self) -> String {
        verdict(&self.files())
    }

    fn tell(&mut self, word: &str) {
        if word == "same" {
            self.is_held = true;
            return;
        }
        self.at_ms += if std::mem::take(&mut self.is_held) { 0 } else { 1_000 };
        if let Some((prompt_id, marker)) = word.split_once('+') {
            self.admit(prompt_id, marker.strip_prefix('m'));
        } else if let Some((prompt_id, ending)) = word.split_once('=') {
            self.end(prompt_id, ending);
        } else {
            self.record(word);
        }
    }

    fn admit(&mut self, prompt_id: &str, marker: Option<&str>) {
        let mut line = json!({"v": 1, "promptId": prompt_id, "state": "in_flight", "at": self.at_ms});
        if let Some(index) = marker {
            let index = if index.is_empty() { self.records.saturating_sub(1).to_string() } else { index.to_owned() };
            line["tailUuid"] = json!(format!("r{index}"));
        }
        self.ledger += &format!("{line}\n");
    }

    fn end(&mut self, prompt_id: &str, ending: &str) {
        let mut line = json!({"v": 1, "promptId": prompt_id, "at": self.at_ms});
        match ending {
            "done" => (line["terminal"], line["stopReason"]) = (json!("completed"), json!("end_turn")),
            "late" => (line["terminal"], line["code"]) = (json!("error"), json!("prompt_deadline_exceeded")),
            other => line["terminal"] = json!(other),
        }
        self.ledger += &format!("{line}\n");
    }

    fn record(&mut self, word: &str) {
        let mut record = json!({
            "uuid": format!("r{}", self.records),
            "parentUuid": self.records.checked_sub(1).map(|before| format!("r{before}")),
            "sessionId": SESSION_ID,
            "timestamp": timestamp(self.at_ms),
            "cwd": WORKSPACE,
        });
        for (key, value) in content(word, self.at_ms).as_object().unwrap() {
            record[key] = value.clone();
        }
        self.transcript += &format!("{record}\n");
        self.records += 1;
    }
}

fn content(word: &str, at_ms: u64) -> Value {
    let said = |kind: &str, role: &str, part: Value| json!({"type": kind, "message": {"role": role, "parts": [part]}});
    let note = |subtype: &str, payload: Value| json!({"type": "system", "subtype": subtype, "systemPayload": payload});
    match word {
        "!" => said("assistant", "model", json!({"text": "an answer"})),
        "call" => said("assistant", "model", json!({"functionCall": {"id": "c1", "name": "ls"}})),
        "blind" => said("assistant", "model", json!({"functionCall": {"name": "ls"}})),
        "tool" => said("tool_result", "user", json!({"functionResponse": {"id": "c1", "response": {"output": "x"}}})),
        "remind" => said("user", "user", json!({"text": "<system-reminder>x</system-reminder>"})),
        "task" => said("user", "user", json!({"text": "<task-notification>x</task-notification>"})),
        "job" => {
            let mut record = said("user", "user", json!({"text": "<task-notification>x</task-notification>"}));
            (record["subtype"], record["provenance"]) = (json!("notification"), json!("system"));
            record
        }
        "mid" => {
            let mut record = said("user", "user", json!({"text": "wait"}));
            record["subtype"] = json!("mid_turn_user_message");
            record
        }
        "note" => note("ui_telemetry", json!({})),
        "/" => said("user", "user", json!({"text": "/about"})),
        "told" => {
            let items = json!([{"type": "assistant", "text": "1.0"}]);
            note("slash_command", json!({"phase": "result", "rawCommand": "/about", "outputHistoryItems": items}))
        }
        "mute" => json!({"type": "user", "message": {"role": "user", "parts": []}}),
        "zip" => {
            note("chat_compression", json!({"compressedHistory": [{"role": "user", "parts": [{"text": "so far"}]}]}))
        }
        _ => match word.split_once('#') {
            Some((prompt_id, state)) => note("turn_result", result(prompt_id, state, at_ms)),
            None => asked(word.strip_suffix('?').unwrap_or_else(|| panic!("{word}"))),
        },
    }
}

fn asked(prompt_id: &str) -> Value {
    let mut record = json!({"type": "user", "message": {"role": "user", "parts": [{"text": "a question"}]}});
    if !prompt_id.is_empty() {
        record["daemonPromptId"] = json!(prompt_id);
    }
    record
}

fn result(prompt_id: &str, state: &str, at_ms: u64) -> Value {
    let mut payload = json!({"promptId": prompt_id, "endedAt": at_ms});
    match state {
        "done" => (payload["state"], payload["stopReason"]) = (json!("completed"), json!("max_tokens")),
        "failed" => {
            (payload["state"], payload["error"]) = (json!("error"), json!({"message": "m", "code": "boom"}));
        }
        other => payload["state"] = json!(other),
    }
    payload
}

pub(crate) fn timestamp(at_ms: u64) -> String {
    let second = (at_ms - START_MS) / 1_000 + 40;
    format!("2026-11-29T18:{:02}:{:02}.{:03}Z", 33 + second / 60, second % 60, at_ms % 1_000)
}

/// What a reconciliation of these files says: `A=completed:why` for each ending, then the reason for the rest.
pub(crate) fn verdict(files: &Files) -> String {
    let plan = files.plan();
    let ending = |settled: &attribution::Settled| {
        let ledger::Fact::Terminal { terminal, code, stop_reason } = &settled.fact else { panic!("{settled:?}") };
        let detail = code.as_deref().or(stop_reason.as_deref()).unwrap_or("-");
        format!("{}={}:{detail}", settled.prompt_id, terminal.as_str())
    };
    let settled = plan.verdict.settled.iter().map(ending);
    let words: Vec<_> = settled.chain(plan.verdict.withheld.map(|withheld| withheld.to_string())).collect();
    words.join(" ")
}
