//! A text that the agent makes beside the conversation: asked for once, told piece by piece, and stopped when its reader leaves.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::ask::{Answered, AskError};
use super::live::{Asked, Live};
use super::session::Session;
use crate::json::Object;
use crate::limits::{GENERATION_EVENT_BYTES_MAX, GENERATION_EVENTS_MAX};

/// The request that begins one, and the one that stops it (wire specification, section 14.2).
const START: &str = "qwen/control/session/generation/start";
const CANCEL: &str = "qwen/control/session/generation/cancel";
/// The notification that tells of one.
pub(super) const EVENT: &str = "qwen/notify/session/generation/event";

/// A text on its way. Dropped before its end, it is cancelled.
pub struct Generation {
    live: Arc<Live>,
    request_id: String,
    events: mpsc::Receiver<String>,
    answered: oneshot::Receiver<Answered>,
    is_over: bool,
}

/// What is heard of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Something of it: the raw JSON object of the event, with its `type`.
    Event(String),
    /// All of it was told; the raw JSON of the agent's result. Nothing follows.
    Done(String),
    /// There is no more of it. Nothing follows.
    Failed(AskError),
    /// More was told than the reader took. Nothing follows.
    Lagged,
}

impl Session {
    /// Asks the agent for a text that has nothing to do with the conversation. `request_id` is the asker's name for it, used once.
    pub fn generate(&self, request_id: &str, prompt: &str) -> Generation {
        let (events, heard) = mpsc::channel(GENERATION_EVENTS_MAX);
        let (answer, answered) = oneshot::channel();
        self.live.start_generation(request_id, prompt, events, answer);
        let (live, request_id) = (Arc::clone(&self.live), request_id.to_owned());
        Generation { live, request_id, events: heard, answered, is_over: false }
    }
}

impl Generation {
    /// What is heard next; none after the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Heard> {
        if self.is_over {
            return None;
        }
        if let Some(event) = self.events.recv().await {
            return Some(Heard::Event(event));
        }
        self.is_over = true;
        Some(match self.answered.try_recv() {
            Ok(Ok(result)) => Heard::Done(result),
            Ok(Err(error)) => Heard::Failed(AskError::Refused(error)),
            Err(oneshot::error::TryRecvError::Closed) => Heard::Failed(AskError::Gone),
            Err(oneshot::error::TryRecvError::Empty) => {
                self.live.cancel_generation(&self.request_id);
                Heard::Lagged
            }
        })
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if !self.is_over {
            self.live.cancel_generation(&self.request_id);
        }
    }
}

impl Live {
    /// Sends the request. Where nobody is left to answer, both ends are dropped.
    fn start_generation(
        &self,
        request_id: &str,
        prompt: &str,
        events: mpsc::Sender<String>,
        answer: oneshot::Sender<Answered>,
    ) {
        let mut state = self.state.lock();
        if state.machine.is_over() {
            return;
        }
        let request_id = request_id.to_owned();
        let params = Object::new().text("requestId", &request_id).text("prompt", prompt).finish();
        state.generations.insert(request_id.clone(), events);
        self.put(&mut state, START, &params, Asked::Generation { request_id, answer });
    }

    /// Tells the agent that nobody wants the rest. Its answers to that and to the request are heard by nobody.
    fn cancel_generation(&self, request_id: &str) {
        let mut state = self.state.lock();
        state.generations.remove(request_id);
        let params = Object::new().text("requestId", request_id).finish();
        self.put(&mut state, CANCEL, &params, Asked::Inquiry(oneshot::channel().0));
    }
}

/// Hands what the agent tells of a text to whoever asked for it. False when nobody did. A reader that takes too little of it is
/// told no more: the agent's output is one stream, and nobody may hold it up.
pub(super) fn hand_on(state: &mut super::live::State, params: &str) -> bool {
    let Some(request_id) = acp::string_at(params, &["requestId"]) else { return false };
    let Some(events) = state.generations.get(&request_id) else { return false };
    let event = acp::raw_at(params, &["event"]).filter(|event| event.len() <= GENERATION_EVENT_BYTES_MAX);
    if event.is_none_or(|event| events.try_send(event.to_owned()).is_err()) {
        state.generations.remove(&request_id);
    }
    true
}
