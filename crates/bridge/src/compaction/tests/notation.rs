//! A notation for what is said in a session, and for what a client that attaches is shown of it.
//!
//! | said | means |
//! |---|---|
//! | `say hi`, `think hm` | the agent says, or thinks, a piece of a text |
//! | `say hi below c` | the same, below the tool call c |
//! | `say hi usage 1`, `say hi from r` | with a word about what it took; from a certain record |
//! | `notice hi` | a message that stands by itself |
//! | `call c`, `call c title=x`, `update c status=done`, `call c below d` | a word about a tool call |
//! | `commands 1`, `mode a` | a state |
//! | `plan 1` | anything else that the agent says |
//! | `echo hi` | a prompt begins to run |
//! | `end`, `fail` | a turn is over |
//!
//! Shown, each event is its number and the same words: `2=say ab`. What is left out stands first: `(-3)`, or `(-3 1 turn)`.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::compaction::{Bounds, Compaction, Part, Seed};
use crate::event::{Event, News};
use crate::{InputWritten, wire};

/// A session's life as a late client sees it.
pub(super) struct Life {
    pub(super) compaction: Compaction,
    /// Every event as it was published.
    pub(super) raw: Vec<Value>,
}

impl Life {
    pub(super) fn new(seed: Seed, bounds: Bounds) -> Self {
        Self { compaction: Compaction::new(seed, bounds), raw: Vec::new() }
    }

    /// What was said, one event after a comma.
    pub(super) fn of(script: &str, bounds: Bounds) -> Self {
        let mut life = Self::new(Seed::default(), bounds);
        for word in script.split(", ").filter(|word| !word.is_empty()) {
            life.say(word);
        }
        life
    }

    pub(super) fn say(&mut self, words: &str) {
        let id = self.raw.len() as u64 + 1;
        let event = Event { prompt_id: Some("p".into()), originator: None, news: news(words) };
        let json = wire::event(&event, "s", id, id * 10);
        self.raw.push(serde_json::from_slice(&json).unwrap());
        self.compaction.note("s", &event, id, id * 10, &json);
    }

    /// The two parts in the notation, a stroke between them.
    pub(super) fn shown(&self) -> String {
        let (turns, journal) = self.compaction.told("s");
        format!("{} | {}", part(&turns), part(&journal)).trim().to_owned()
    }

    /// All that is shown, as JSON.
    pub(super) fn told(&self) -> Vec<Value> {
        let (turns, journal) = self.compaction.told("s");
        turns.frames.iter().chain(&journal.frames).map(|frame| serde_json::from_slice(frame).unwrap()).collect()
    }
}

/// A frame of a history.
pub(super) fn history(id: u64) -> Bytes {
    json!({"id": id, "v": 1, "type": "session_update", "data": {"update": {"sessionUpdate": "plan", "n": id.to_string()}}})
        .to_string()
        .into()
}

fn part(part: &Part) -> String {
    let left_out = match (part.left_out, part.left_out_turns) {
        (0, _) => None,
        (events, 0) => Some(format!("(-{events})")),
        (events, turns) => Some(format!("(-{events} {turns} turn)")),
    };
    let frames = part.frames.iter().map(|frame| short(&serde_json::from_slice(frame).unwrap()));
    left_out.into_iter().chain(frames).collect::<Vec<_>>().join(" ")
}

fn short(frame: &Value) -> String {
    let update = &frame["data"]["update"];
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let members = || {
        let known = ["sessionUpdate", "toolCallId", "_meta"];
        let members = update.as_object().unwrap().iter().filter(|(name, _)| !known.contains(&name.as_str()));
        members.map(|(name, value)| format!(" {name}={}", word(value))).collect::<String>()
    };
    let text = word(&update["content"]["text"]);
    let words = match (frame["type"].as_str().unwrap(), update["sessionUpdate"].as_str()) {
        ("turn_complete", _) => "end".to_owned(),
        ("turn_error", _) => "fail".to_owned(),
        (_, Some("agent_message_chunk")) if update["_meta"]["qwenDiscreteMessage"] == true => format!("notice {text}"),
        (_, Some("agent_message_chunk")) => format!("say {text}"),
        (_, Some("agent_thought_chunk")) => format!("think {text}"),
        (_, Some("tool_call")) => format!("call {}{}", word(&update["toolCallId"]), members()),
        (_, Some("tool_call_update")) => format!("update {}{}", word(&update["toolCallId"]), members()),
        (_, Some("available_commands_update")) => format!("commands {}", word(&update["n"])),
        (_, Some("current_mode_update")) => format!("mode {}", word(&update["n"])),
        (_, Some("user_message_chunk")) => format!("echo {text}"),
        (_, kind) => format!("{} {}", kind.unwrap(), word(&update["n"])),
    };
    let below = update["_meta"]["parentToolCallId"].as_str().map(|call| format!(" below {call}"));
    let usage = update["_meta"].get("usage").map(|usage| format!(" usage {}", word(usage)));
    format!("{}={words}{}{}", frame["id"], below.unwrap_or_default(), usage.unwrap_or_default())
}

fn news(words: &str) -> News {
    let (words, meta) = meta(words);
    let (kind, rest) = words.split_once(' ').unwrap_or((&words, ""));
    let chunk = |kind: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": rest}});
    let mut update = match kind {
        "say" | "notice" => chunk("agent_message_chunk"),
        "think" => chunk("agent_thought_chunk"),
        "call" => call("tool_call", rest),
        "update" => call("tool_call_update", rest),
        "commands" => json!({"sessionUpdate": "available_commands_update", "n": rest}),
        "mode" => json!({"sessionUpdate": "current_mode_update", "n": rest}),
        "echo" => return News::Echo { block: json!({"type": "text", "text": rest}).to_string() },
        "end" => {
            return News::TurnComplete {
                stop_reason: "end_turn".into(),
                branch_point: None,
                cancel: None,
                input_written: InputWritten::Yes,
            };
        }
        "fail" => {
            let input_written = InputWritten::Yes;
            return News::TurnError { message: "no".into(), code: None, input_written, expiry: None };
        }
        other => json!({"sessionUpdate": other, "n": rest}),
    };
    if meta != json!({}) {
        update["_meta"] = meta;
    }
    News::Update { raw: update.to_string() }
}

/// The words without those that are metadata, and these.
fn meta(words: &str) -> (String, Value) {
    let mut meta = json!({});
    if words.starts_with("notice") {
        meta["qwenDiscreteMessage"] = true.into();
    }
    let mut kept = words.to_owned();
    for (word, key) in [(" usage ", "usage"), (" below ", "parentToolCallId"), (" from ", "qwenTranscript")] {
        if let Some((before, value)) = kept.clone().split_once(word) {
            meta[key] = value.split(' ').next().unwrap().into();
            kept = before.to_owned() + &value[meta[key].as_str().unwrap().len()..];
        }
    }
    (kept, meta)
}

fn call(kind: &str, rest: &str) -> Value {
    let mut words = rest.split(' ');
    let mut update = json!({"sessionUpdate": kind, "toolCallId": words.next().unwrap()});
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        update[name] = if value == "null" { Value::Null } else { value.into() };
    }
    update
}
