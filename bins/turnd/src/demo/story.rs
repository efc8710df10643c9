//! How the demo tells what it sees: one line an event, three lines an outcome.

use std::io;

use attribution::Withheld;
use serde_json::Value;

use crate::output::line;

/// One event of the stream, with the number of the prompt it belongs to.
pub(super) fn event(number: Option<usize>, event: &Value) -> io::Result<()> {
    // Frames without an id are about the stream and not about a prompt.
    let Some(id) = event["id"].as_u64() else { return Ok(()) };
    let (id, prompt) = (format!("#{id}"), number.map_or_else(|| "-".to_owned(), |number| number.to_string()));
    let kind = event["type"].as_str().unwrap_or("?");
    line(format_args!("  {id:>4}  prompt {prompt}  {kind:<22} {}", said(event)))
}

/// What the event says, in a few words.
fn said(event: &Value) -> String {
    let data = &event["data"];
    match event["type"].as_str() {
        Some("session_update") => {
            let update = &data["update"];
            let text = update["content"]["text"].as_str().unwrap_or_default().trim_end();
            format!("{} {text:?}", update["sessionUpdate"].as_str().unwrap_or_default())
        }
        Some("turn_complete") => data["stopReason"].as_str().unwrap_or_default().to_owned(),
        Some("turn_error") => data["message"].as_str().unwrap_or_default().to_owned(),
        Some("pending_prompt_added") => format!("{:?} waits", data["text"].as_str().unwrap_or_default()),
        _ => String::new(),
    }
}

/// What is known of one prompt after the restart.
pub(super) struct Outcome<'a> {
    pub(super) number: usize,
    pub(super) prompt: &'a str,
    pub(super) prompt_id: &'a str,
    /// The poll's answer, when the poll knows the prompt.
    pub(super) turn: Option<&'a Value>,
    /// The answer of the load.
    pub(super) loaded: &'a Value,
    /// Why no verdict was given for what is still open.
    pub(super) withheld: Option<Withheld>,
}

impl Outcome<'_> {
    /// Prints the outcome and the evidence it rests on.
    pub(super) fn tell(&self) -> io::Result<()> {
        line(format_args!("prompt {}  {:?}  {}", self.number, self.prompt, self.prompt_id))?;
        line(format_args!("  outcome   {}", self.state()))?;
        if let Some(text) = self.turn.and_then(|turn| turn["resultText"].as_str()) {
            line(format_args!("  answer    {:?}", tail(text)))?;
        }
        line(format_args!("  evidence  {}\n", self.evidence()))
    }

    fn state(&self) -> String {
        match self.turn {
            Some(turn) => {
                let why = turn["stopReason"].as_str().or(turn["error"]["code"].as_str()).unwrap_or_default();
                format!("{} ({why})", turn["state"].as_str().unwrap_or("?"))
            }
            None => "unknown, and turnd says so".to_owned(),
        }
    }

    fn evidence(&self) -> String {
        let terminals = self.loaded["promptTerminals"].as_array();
        let listed = terminals.is_some_and(|list| list.iter().any(|record| record["promptId"] == self.prompt_id));
        match (self.number, listed) {
            (1, true) => "ledger: its terminal line was on disk before the stream said turn_complete".to_owned(),
            (_, true) => {
                "transcript: the host outlived the daemon and wrote turn_result; the load copied it to the ledger"
                    .to_owned()
            }
            (_, false) => {
                let why =
                    self.withheld.map(|reason| format!("{} ({reason})", reason.explanation())).unwrap_or_default();
                format!(
                    "ledger: admitted, never settled; it waited when the daemon died, and nothing is made up: {why}"
                )
            }
        }
    }
}

/// The last words of a long text.
fn tail(text: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    let count = text.chars().count();
    if count <= SHOWN_CHARS {
        return text.to_owned();
    }
    let shown: String = text.chars().skip(count - SHOWN_CHARS).collect();
    format!("…{shown}")
}
