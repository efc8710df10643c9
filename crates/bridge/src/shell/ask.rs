//! Inquiries to the agent or its host, which are no prompt: one request, one answer, and an end to the wait.

use std::time::Duration;

use acp::{Message, RpcError, compose};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::live::{Asked, Live, State};
use super::session::Session;
use crate::json::quoted;

/// What the asker waits for: the raw JSON of the result, or the agent's error.
pub(super) type Answered = Result<String, RpcError>;

/// An inquiry was not answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// The agent or its host answered with an error.
    #[error("{}", .0.message)]
    Refused(RpcError),
    /// It did not answer in time. It may still do what it was asked for.
    #[error("agent did not answer {method} within {timeout_ms} ms")]
    Timeout {
        /// What was asked.
        method: String,
        /// The limit, in milliseconds.
        timeout_ms: u64,
    },
    /// The session ended before the answer came.
    #[error("session ended before the agent answered")]
    Gone,
}

impl Session {
    /// Asks the agent, in the name its session has there. `params` is the raw text of a JSON object; its `sessionId` is set here.
    /// Nothing of the answer is understood: it is the caller's inquiry. A prompt is never asked this way.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask(&self, method: &str, params: &str, timeout_ms: u64) -> Result<String, AskError> {
        let (answer, answered) = oneshot::channel();
        self.live.put(&mut self.live.state.lock(), method, params, Asked::Inquiry(answer));
        let answered = timeout(Duration::from_millis(timeout_ms), answered).await;
        self.live.note_activity();
        match answered {
            Ok(Ok(answered)) => answered.map_err(AskError::Refused),
            Ok(Err(_)) => Err(AskError::Gone),
            Err(_) => Err(AskError::Timeout { method: method.to_owned(), timeout_ms }),
        }
    }
}

impl Live {
    /// Sends an inquiry. Where nobody is left to answer, what waits for the answer is dropped.
    pub(super) fn put(&self, state: &mut State, method: &str, params: &str, asked: Asked) {
        if state.machine.is_over() {
            return;
        }
        let params = acp::with_member(params, "sessionId", &quoted(&state.agent.id));
        let number = state.asked.insert(asked);
        self.outbox.push(compose::request_raw(number, method, &params));
    }
}

/// Hands an answer to whoever asked. One that waits no more does not hear it.
pub(super) fn hand_over(answer: oneshot::Sender<Answered>, message: &Message) {
    let answered = match message.rpc_error() {
        Some(error) => Err(error),
        None => Ok(message.result().unwrap_or("null").to_owned()),
    };
    let _ = answer.send(answered);
}
