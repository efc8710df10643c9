//! What a client may ask beside the conversation: a summary, a question, a text. None of it enters the history.
//!
//! The methods bear the names that qwen-code gave them, so that a client of that agent finds them here too. The answers are made
//! from what was asked and from nothing else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use acp::rpc_error::INVALID_PARAMS;
use acp::{RequestId, RpcError, compose, string_at};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::connection::Connection;
use crate::ending::Ending;
use crate::limits::GENERATIONS_MAX;

pub(crate) const RECAP: &str = "qwen/control/session/recap";
pub(crate) const BTW: &str = "qwen/control/session/btw";
pub(crate) const GENERATE: &str = "qwen/control/session/generation/start";
pub(crate) const GENERATE_CANCEL: &str = "qwen/control/session/generation/cancel";
const GENERATION_EVENT: &str = "qwen/notify/session/generation/event";

/// What a generation that was cancelled is answered with.
const CANCELLED: i64 = -32800;
/// Time between two pieces of `slow`, in milliseconds.
const BEAT_MS: u64 = 20;
/// The first word of a text that is made piece by piece for so many milliseconds.
const SLOW: &str = "slow ";
/// A text that fails.
const FAIL: &str = "fail";

/// The summary of a session in which `prompts` prompts were asked, `last` the newest of them; null where there is nothing to tell.
pub(crate) fn recap(session_id: &str, prompts: u64, last: &str) -> Value {
    let recap = (prompts > 0).then(|| format!("{prompts} asked, the last one: {last}"));
    json!({ "sessionId": session_id, "recap": recap })
}

/// The answer to a question beside the conversation.
pub(crate) fn btw(session_id: &str, params: &str) -> Result<Value, RpcError> {
    let question = string_at(params, &["question"]).filter(|question| !question.is_empty());
    let question = question.ok_or_else(|| RpcError::new(INVALID_PARAMS, "question is missing"))?;
    Ok(json!({ "sessionId": session_id, "answer": format!("echo: {question}") }))
}

/// The texts that are being made, by the client's names for them.
#[derive(Default)]
pub(crate) struct Generations {
    cancels: HashMap<String, watch::Sender<bool>>,
}

impl Generations {
    /// Takes up another one.
    pub(crate) fn begin(&mut self, request_id: &str) -> Result<watch::Receiver<bool>, RpcError> {
        if self.cancels.contains_key(request_id) {
            return Err(RpcError::new(INVALID_PARAMS, "requestId is in use"));
        }
        if self.cancels.len() >= GENERATIONS_MAX {
            return Err(RpcError::new(INVALID_PARAMS, format!("no more than {GENERATIONS_MAX} texts at once")));
        }
        let (cancel, cancelled) = watch::channel(false);
        self.cancels.insert(request_id.to_owned(), cancel);
        Ok(cancelled)
    }

    /// Whether there was one of that name, which stops now.
    pub(crate) fn cancel(&mut self, request_id: &str) -> bool {
        self.cancels.get(request_id).is_some_and(|cancel| cancel.send(true).is_ok())
    }

    pub(crate) fn end(&mut self, request_id: &str) {
        self.cancels.remove(request_id);
    }
}

/// A text on its way.
pub(crate) struct Generation {
    pub(crate) connection: Arc<Connection>,
    pub(crate) session_id: String,
    /// The request that its end answers.
    pub(crate) request: RequestId,
    /// The client's name for it.
    pub(crate) request_id: String,
    pub(crate) prompt: String,
    /// Which model says that it makes it.
    pub(crate) model: &'static str,
    pub(crate) cancelled: watch::Receiver<bool>,
}

impl Generation {
    /// Makes it and answers.
    pub(crate) async fn run(mut self) -> Ending {
        let outcome = self.make().await;
        self.connection.end_generation(&self.request_id);
        let line = match outcome {
            Ok(pieces) => compose::response(
                &self.request,
                &json!({
                    "sessionId": self.session_id, "requestId": self.request_id, "model": self.model, "modelSource": "main",
                    "inputTokens": self.prompt.split_whitespace().count(), "outputTokens": pieces,
                }),
            ),
            Err(error) => compose::error_response(&self.request, &error),
        };
        self.connection.out.say(line).await;
        Ending::Answered
    }

    /// The number of its pieces.
    async fn make(&mut self) -> Result<u64, RpcError> {
        if self.prompt == FAIL {
            return Err(RpcError::new(acp::rpc_error::INTERNAL_ERROR, "failed on purpose"));
        }
        self.tell(&json!({ "type": "started", "model": self.model, "modelSource": "main" })).await;
        let time_ms = self.prompt.strip_prefix(SLOW).and_then(|time| time.trim().parse::<u64>().ok());
        let Some(time_ms) = time_ms else {
            self.tell(&json!({ "type": "delta", "seq": 0, "text": "echo: " })).await;
            self.tell(&json!({ "type": "delta", "seq": 1, "text": self.prompt })).await;
            return Ok(2);
        };
        let beats = time_ms / BEAT_MS;
        for seq in 0..beats {
            self.tell(&json!({ "type": "delta", "seq": seq, "text": format!("{seq} ") })).await;
            tokio::select! {
                _ = self.cancelled.wait_for(|cancelled| *cancelled) => return Err(RpcError::new(CANCELLED, "cancelled")),
                () = tokio::time::sleep(Duration::from_millis(BEAT_MS)) => {}
            }
        }
        Ok(beats)
    }

    async fn tell(&self, event: &Value) {
        let params = json!({ "v": 1, "sessionId": self.session_id, "requestId": self.request_id, "event": event });
        self.connection.out.say(compose::notification(GENERATION_EVENT, &params)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_in_which_nothing_was_asked_has_no_summary() {
        assert_eq!(recap("s", 0, ""), json!({ "sessionId": "s", "recap": null }));
        assert_eq!(recap("s", 2, "hi")["recap"], "2 asked, the last one: hi");
    }

    #[test]
    fn a_question_needs_words() {
        assert_eq!(btw("s", r#"{"question":"why"}"#).unwrap()["answer"], "echo: why");
        for params in ["{}", r#"{"question":""}"#, r#"{"question":7}"#] {
            assert_eq!(btw("s", params).err().unwrap().code, INVALID_PARAMS, "{params}");
        }
    }

    #[test]
    fn a_name_is_one_texts_at_a_time_and_a_cancel_finds_it() {
        let mut generations = Generations::default();
        let cancelled = generations.begin("g").unwrap();
        assert!(generations.begin("g").is_err());
        assert!(generations.cancel("g") && *cancelled.borrow());
        generations.end("g");
        assert!(!generations.cancel("g"));
        assert!(generations.begin("g").is_ok());
    }
}
