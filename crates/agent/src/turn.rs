//! One turn: what a script can do while it plays.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use acp::schema::{
    ContentBlock, ContentChunk, PromptResponse, RequestPermissionRequest, SessionUpdate, StopReason, ToolCallUpdate,
};
use acp::{RequestId, compose};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::watch;

use crate::connection::Connection;
use crate::ending::{Cancelled, Ending};
use crate::permission::{self, Choice, Decision};
use crate::script;
use crate::session::Started;

/// A prompt on its way to its answer.
pub(crate) struct Turn {
    connection: Arc<Connection>,
    session_id: String,
    request_id: RequestId,
    number: u64,
    cancelled: watch::Receiver<bool>,
    deaf: bool,
    text: String,
}

impl Turn {
    pub(crate) fn new(
        connection: Arc<Connection>,
        session_id: String,
        request_id: RequestId,
        started: Started,
        text: String,
    ) -> Self {
        let Started { turn: number, cancelled } = started;
        Self { connection, session_id, request_id, number, cancelled, deaf: false, text }
    }

    /// Plays the script that the prompt names and gives the answer it comes to.
    pub(crate) async fn play(mut self) -> Ending {
        let text = std::mem::take(&mut self.text);
        let ending = script::play(&mut self, &text).await.unwrap_or(Ending::Stop(StopReason::Cancelled));
        tokio::time::sleep(self.connection.answer_after()).await;
        self.answer(&ending).await;
        ending
    }

    /// A chunk of the answer's text.
    pub(crate) async fn say(&self, text: &str) {
        self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)))).await;
    }

    /// A chunk of thought.
    pub(crate) async fn think(&self, text: &str) {
        self.update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(ContentBlock::from(text)))).await;
    }

    /// Any update.
    pub(crate) async fn update(&self, update: SessionUpdate) {
        self.raw_update(&json!(update).to_string()).await;
    }

    /// Any update as raw JSON, for what the protocol's types do not say. It is also kept, for when
    /// the session is loaded.
    pub(crate) async fn raw_update(&self, raw_update: &str) {
        let line = self.update_line(raw_update);
        self.raw(line).await;
    }

    fn update_line(&self, raw_update: &str) -> Bytes {
        let session_id = json!(self.session_id);
        let params = format!(r#"{{"sessionId":{session_id},"update":{raw_update}}}"#);
        let line = compose::notification_raw("session/update", &params);
        self.connection.with_session(&self.session_id, |session| session.history.push(line.clone()));
        line
    }

    /// The line that says a chunk of the answer's text.
    pub(crate) fn line(&self, text: &str) -> Bytes {
        let chunk = SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)));
        self.update_line(&json!(chunk).to_string())
    }

    /// Bytes that are not ours to judge.
    pub(crate) async fn raw(&self, bytes: impl Into<Bytes>) {
        self.connection.out.say(bytes.into()).await;
    }

    /// The same, cut in two.
    pub(crate) async fn raw_in_halves(&self, bytes: Bytes) {
        self.connection.out.say_in_halves(bytes).await;
    }

    /// Waits until all that was said has left the process.
    pub(crate) async fn flush(&self) {
        self.connection.out.flush().await;
    }

    /// Lets time pass, unless the client cancels.
    pub(crate) async fn pause(&mut self, time: Duration) -> Result<(), Cancelled> {
        self.unless_cancelled(tokio::time::sleep(time)).await
    }

    /// Waits for something, unless the client cancels.
    pub(crate) async fn unless_cancelled<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Cancelled> {
        if self.deaf {
            return Ok(work.await);
        }
        tokio::select! {
            biased;
            // The other end goes with the answer, which makes us deaf, or with the session, which
            // cancels first; so its end means cancel.
            _ = self.cancelled.wait_for(|cancelled| *cancelled) => Err(Cancelled),
            done = work => Ok(done),
        }
    }

    /// Whether to go on, for a script that does not pause.
    pub(crate) fn check(&self) -> Result<(), Cancelled> {
        if !self.deaf && *self.cancelled.borrow() { Err(Cancelled) } else { Ok(()) }
    }

    /// From here on the client's cancel changes nothing.
    pub(crate) fn deafen(&mut self) {
        self.deaf = true;
    }

    /// Whether a tool call may run, by what was settled before or by asking now.
    pub(crate) async fn permit(&mut self, call: ToolCallUpdate) -> Result<Decision, Cancelled> {
        let standing =
            self.connection.with_session(&self.session_id, |session| session.settings.decision().or(session.standing));
        if let Some(decision) = standing.flatten() {
            return Ok(decision);
        }
        let request = RequestPermissionRequest::new(self.session_id.clone(), call, permission::options());
        let answer = self.connection.ask_permission(&request).await;
        let answer = self.unless_cancelled(answer).await?.map_err(|_| Cancelled)?;
        let Choice { decision, always } = permission::choice(&answer)?;
        if always {
            self.connection.with_session(&self.session_id, |session| session.standing = Some(decision));
        }
        Ok(decision)
    }

    /// What the client has for the running turn, as an agent asks between two tool calls. A client that knows no such question
    /// has nothing.
    pub(crate) async fn drain(&mut self) -> Result<Vec<String>, Cancelled> {
        let params = json!({ "sessionId": self.session_id });
        let answer = self.connection.ask("craft/drainMidTurnQueue", &params).await;
        let answer = self.unless_cancelled(answer).await?.map_err(|_| Cancelled)?;
        let messages = answer.ok().and_then(|result| acp::lenient_value(acp::raw_at(&result, &["messages"])?));
        Ok(messages.and_then(|messages| serde_json::from_value(messages).ok()).unwrap_or_default())
    }

    /// An id for a tool call, new in this session.
    pub(crate) fn call_id(&self) -> String {
        let number = self.connection.with_session(&self.session_id, |session| {
            session.calls += 1;
            session.calls
        });
        format!("call-{}", number.unwrap_or(0))
    }

    /// What was asked in the session, as far as it is remembered, oldest first; this turn's prompt is the last.
    pub(crate) fn asked(&self) -> Vec<String> {
        let lines = self.connection.with_session(&self.session_id, |session| session.history.lines());
        let text = |line: Bytes| {
            let message = acp::Message::parse(line).ok()?;
            let update = acp::raw_at(message.params()?, &["update"])?;
            let by_user = acp::string_at(update, &["sessionUpdate"])? == "user_message_chunk";
            acp::string_at(update, &["content", "text"]).filter(|_| by_user)
        };
        lines.unwrap_or_default().into_iter().filter_map(text).collect()
    }

    /// The session's folder.
    pub(crate) fn cwd(&self) -> PathBuf {
        self.connection.with_session(&self.session_id, |session| session.cwd.clone()).unwrap_or_default()
    }

    /// Answers the prompt, after which no cancel concerns us, and makes room for the next: first the room, as the client may send the
    /// next prompt as soon as it has the answer.
    pub(crate) async fn answer(&mut self, ending: &Ending) {
        if let Some(line) = self.end(ending) {
            self.raw(line).await;
        }
    }

    /// The same with a chunk of text right behind it, in one piece.
    pub(crate) async fn answer_before(&mut self, ending: &Ending, text: &str) {
        let said = self.line(text);
        self.answer_with(ending, |answer| [answer, &said[..]].concat().into()).await;
    }

    /// The same with whatever is made of the answer's line.
    pub(crate) async fn answer_with(&mut self, ending: &Ending, make: impl FnOnce(&[u8]) -> Bytes) {
        if let Some(answer) = self.end(ending) {
            self.raw(make(&answer)).await;
        }
    }

    /// Ends the turn and gives the line that answers the prompt, if one does.
    fn end(&mut self, ending: &Ending) -> Option<Bytes> {
        let line = match ending {
            Ending::Stop(reason) => compose::response(&self.request_id, &PromptResponse::new(*reason)),
            Ending::StopFor(reason) => compose::response(&self.request_id, &json!({ "stopReason": reason })),
            Ending::Fail(error) => compose::error_response(&self.request_id, error),
            Ending::Answered | Ending::Death => return None,
        };
        self.deafen();
        self.connection.note("said", &line);
        self.connection.with_session(&self.session_id, |session| session.end(self.number));
        Some(line)
    }
}
