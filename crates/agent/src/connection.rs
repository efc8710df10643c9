//! What each message from the client does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp::rpc_error::{INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR};
use acp::schema::{
    AgentCapabilities, Implementation, InitializeResponse, ListSessionsResponse, NewSessionResponse,
    RequestPermissionRequest, SessionCapabilities, SessionCloseCapabilities, SessionInfo, SessionListCapabilities,
    SessionResumeCapabilities,
};
use acp::{Kind, Message, Outcome, Pending, ProtocolVersion, RequestId, RpcError, compose, string_at};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::aside::{self, Generation, Generations};
use crate::ending::Ending;
use crate::options::AgentOptions;
use crate::out::Outbox;
use crate::prompt;
use crate::session::{Said, Session, Sessions};
use crate::turn::Turn;

/// An extension of the protocol: makes a session of what another one was told before a prompt.
const FORK_BEFORE: &str = "turnd/session/fork_before";
/// Where `initialize` says so.
const FORK_BEFORE_META: &str = "turnd/forkBefore";

/// The client's answer to something we asked.
pub(crate) type Answer = Result<String, RpcError>;

/// What a request of the client begins and does not wait for.
pub(crate) enum Work {
    /// A turn of a conversation.
    Turn(Turn),
    /// A text beside the conversation.
    Generation(Generation),
}

impl Work {
    /// Does it to its end.
    pub(crate) async fn play(self) -> Ending {
        match self {
            Self::Turn(turn) => turn.play().await,
            Self::Generation(generation) => generation.run().await,
        }
    }
}

/// One client and everything it has made here.
pub(crate) struct Connection {
    /// Everything we say.
    pub(crate) out: Outbox,
    options: AgentOptions,
    // Held for a few field accesses at a time and never across an await, so a plain mutex does.
    state: Mutex<State>,
}

struct State {
    sessions: Sessions,
    asked: Pending<oneshot::Sender<Answer>>,
    generations: Generations,
}

impl Connection {
    pub(crate) fn new(out: Outbox, options: AgentOptions) -> Self {
        let sessions = Sessions::new(options.session_prefix.clone());
        let state = State { sessions, asked: Pending::new(), generations: Generations::default() };
        Self { out, options, state: Mutex::new(state) }
    }

    /// How long an answer lets its client wait.
    pub(crate) fn answer_after(&self) -> Duration {
        self.options.answer_after
    }

    /// Puts a message into the journal, if there is one.
    pub(crate) fn note(&self, how: &str, message: &[u8]) {
        if let Some(journal) = &self.options.journal {
            journal(&format!(r#"{{"{how}":{}}}"#, String::from_utf8_lossy(message).trim_end()));
        }
    }

    /// Ends the process, as the embedding program understands it.
    pub(crate) fn die(&self) {
        (self.options.die)();
    }

    /// Tells the client that a line of its could not be used.
    pub(crate) async fn refuse_line(&self, reason: &str) {
        let error = RpcError::new(PARSE_ERROR, reason);
        self.out.say(compose::error_response(&RequestId::null(), &error)).await;
    }

    /// Takes one message. What takes time is given back as work, which the caller lets run.
    pub(crate) async fn receive(self: &Arc<Self>, message: &Message) -> Option<Work> {
        self.note("heard", message.raw());
        let params = message.params().unwrap_or("{}");
        match message.kind() {
            Kind::Request { id, method } => return self.request(id, method, params).await,
            Kind::Notification { method } if method == "session/cancel" => self.cancel(params),
            Kind::Notification { .. } => (),
            Kind::Response { id } => self.answered(id.as_ref(), message.outcome()),
        }
        None
    }

    /// Asks and gives the place where its answer will come.
    pub(crate) async fn ask_permission(&self, request: &RequestPermissionRequest) -> oneshot::Receiver<Answer> {
        self.ask("session/request_permission", &json!(request)).await
    }

    /// The same for anything else.
    pub(crate) async fn ask(&self, method: &str, params: &Value) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let number = self.state().asked.insert(sender);
        self.out.say(compose::request(number, method, params)).await;
        receiver
    }

    /// Forgets a text that is made.
    pub(crate) fn end_generation(&self, request_id: &str) {
        self.state().generations.end(request_id);
    }

    /// Looks at a session, or changes it. `None` when it has been closed meanwhile.
    pub(crate) fn with_session<T>(&self, id: &str, look: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.state().sessions.get(id).ok().map(look)
    }

    async fn request(self: &Arc<Self>, id: &RequestId, method: &str, params: &str) -> Option<Work> {
        let work = match method {
            "session/prompt" => Some(self.prompt(id, params).map(Work::Turn)),
            aside::GENERATE => Some(self.generation(id, params).map(Work::Generation)),
            _ => None,
        };
        match work {
            Some(Ok(work)) => return Some(work),
            Some(Err(error)) => {
                self.out.say(compose::error_response(id, &error)).await;
                return None;
            }
            None => {}
        }
        match self.reply(method, params).await {
            Ok(result) => {
                self.out.say(compose::response(id, &result)).await;
                self.greet(method, params, &result).await;
            }
            Err(error) => self.out.say(compose::error_response(id, &error)).await,
        }
        None
    }

    /// Behind an answer that gives a session it says its greeting, if it has one.
    async fn greet(&self, method: &str, params: &str, result: &Value) {
        if !matches!(method, "session/new" | "session/load" | "session/resume" | FORK_BEFORE) {
            return;
        }
        let given = result.get("sessionId").and_then(Value::as_str).map(str::to_owned);
        let session = given.or_else(|| session_id(params).ok());
        if let (Some(greeting), Some(session)) = (&self.options.greeting, session) {
            let content = json!({"type": "text", "text": greeting});
            let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
            self.out
                .say(compose::notification("session/update", &json!({"sessionId": session, "update": update})))
                .await;
        }
    }

    /// The result of every request but the prompt, whose result comes later.
    async fn reply(&self, method: &str, params: &str) -> Result<Value, RpcError> {
        match method {
            "initialize" => Ok(json!(introduction())),
            "session/new" => self.new_session(params),
            "session/load" => self.load(params).await,
            "session/resume" => self.resume(params),
            FORK_BEFORE => self.fork_before(params),
            "session/set_mode" => self.set_mode(params).await,
            "session/set_model" => {
                let model = string_at(params, &["modelId"]).unwrap_or_default();
                self.state().sessions.get(&session_id(params)?)?.settings.set_model(&model).map(|()| json!({}))
            }
            "session/list" => Ok(self.list(params)),
            "session/close" => {
                let id = session_id(params)?;
                self.state().sessions.close(&id).map(|()| json!({}))
            }
            aside::RECAP => {
                let id = session_id(params)?;
                let mut state = self.state();
                let session = state.sessions.get(&id)?;
                Ok(aside::recap(&id, session.prompts, &session.last_prompt))
            }
            aside::BTW => {
                let id = session_id(params)?;
                self.state().sessions.get(&id)?;
                aside::btw(&id, params)
            }
            aside::GENERATE_CANCEL => {
                let id = string_at(params, &["requestId"]).unwrap_or_default();
                let cancelled = self.state().generations.cancel(&id);
                Ok(json!({ "requestId": id, "cancelled": cancelled }))
            }
            unknown => Err(RpcError::new(METHOD_NOT_FOUND, format!("no method {unknown:?}"))),
        }
    }

    fn new_session(&self, params: &str) -> Result<Value, RpcError> {
        let cwd = string_at(params, &["cwd"]).map(PathBuf::from).filter(|cwd| cwd.is_absolute());
        let cwd = cwd.ok_or_else(|| RpcError::new(INVALID_PARAMS, "cwd must be an absolute path"))?;
        let mut state = self.state();
        let id = state.sessions.make(cwd)?;
        made(&mut state.sessions, id)
    }

    /// Says what it is set to before the answer, as the protocol has it.
    async fn set_mode(&self, params: &str) -> Result<Value, RpcError> {
        let (id, mode) = (session_id(params)?, string_at(params, &["modeId"]).unwrap_or_default());
        self.state().sessions.get(&id)?.settings.set_mode(&mode)?;
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
        self.out.say(compose::notification("session/update", &json!({"sessionId": id, "update": update}))).await;
        Ok(json!({}))
    }

    /// Says the whole history again before the answer, as the protocol has it.
    async fn load(&self, params: &str) -> Result<Value, RpcError> {
        let id = session_id(params)?;
        let (lines, state) = {
            let mut state = self.state();
            let session = state.sessions.get(&id)?;
            (session.history.lines(), session.settings.state())
        };
        for line in lines {
            self.out.say(line).await;
        }
        Ok(state)
    }

    fn resume(&self, params: &str) -> Result<Value, RpcError> {
        self.state().sessions.get(&session_id(params)?).map(|session| session.settings.state())
    }

    fn fork_before(&self, params: &str) -> Result<Value, RpcError> {
        let prompt_id = string_at(params, &["promptId"]);
        let prompt_id = prompt_id.ok_or_else(|| RpcError::new(INVALID_PARAMS, "promptId is missing"))?;
        let mut state = self.state();
        let id = state.sessions.fork_before(&session_id(params)?, &prompt_id)?;
        made(&mut state.sessions, id)
    }

    fn list(&self, params: &str) -> Value {
        let cwd = string_at(params, &["cwd"]);
        let listed = self.state().sessions.list(cwd.as_deref().map(Path::new));
        let sessions = listed.into_iter().map(|(id, cwd)| SessionInfo::new(id, cwd)).collect();
        json!(ListSessionsResponse::new(sessions))
    }

    fn prompt(self: &Arc<Self>, id: &RequestId, params: &str) -> Result<Turn, RpcError> {
        let session_id = session_id(params)?;
        let blocks = prompt::blocks(params)
            .ok_or_else(|| RpcError::new(INVALID_PARAMS, "prompt must be a list of content blocks"))?;
        let mut state = self.state();
        let started = state.sessions.start(&session_id)?;
        let text = prompt::text(&blocks);
        let session = state.sessions.get(&session_id)?;
        let mut begins = string_at(params, &["_meta", "qwen-code/invocation", "promptId"]);
        for block in &blocks {
            session.history.say(Said { line: said_by_user(&session_id, block), begins: begins.take() });
        }
        (session.prompts, session.last_prompt) = (session.prompts + 1, text.clone());
        drop(state);
        Ok(Turn::new(Arc::clone(self), session_id, id.clone(), started, text))
    }

    fn generation(self: &Arc<Self>, id: &RequestId, params: &str) -> Result<Generation, RpcError> {
        let session_id = session_id(params)?;
        let text = |key| string_at(params, &[key]).filter(|text| !text.is_empty());
        let missing = |key| RpcError::new(INVALID_PARAMS, format!("{key} is missing"));
        let request_id = text("requestId").ok_or_else(|| missing("requestId"))?;
        let prompt = text("prompt").ok_or_else(|| missing("prompt"))?;
        let mut state = self.state();
        let model = state.sessions.get(&session_id)?.settings.model();
        let cancelled = state.generations.begin(&request_id)?;
        let (connection, request) = (Arc::clone(self), id.clone());
        Ok(Generation { connection, session_id, request, request_id, prompt, model, cancelled })
    }

    fn cancel(&self, params: &str) {
        if let Some(id) = string_at(params, &["sessionId"]) {
            self.with_session(&id, |session| session.cancel());
        }
    }

    fn answered(&self, id: Option<&RequestId>, outcome: Option<Outcome<'_>>) {
        let waiting = id.and_then(|id| self.state().asked.take(id));
        let (Some(waiting), Some(outcome)) = (waiting, outcome) else { return };
        // The turn may have been cancelled and no longer listen.
        let _ = waiting.send(match outcome {
            Outcome::Result(raw) => Ok(raw.to_owned()),
            Outcome::Error(error) => Err(error),
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn introduction() -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let extensions = [(FORK_BEFORE_META.to_owned(), Value::Bool(true))].into_iter().collect::<Map<_, _>>();
    let capabilities = AgentCapabilities::new().load_session(true).session_capabilities(sessions).meta(extensions);
    InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(
        Implementation::new("turnd-agent", env!("CARGO_PKG_VERSION")).title("turnd's scripted agent".to_owned()),
    )
}

/// The answer of a session that was made: its id, and what it is set to.
fn made(sessions: &mut Sessions, id: String) -> Result<Value, RpcError> {
    let mut answer = sessions.get(&id)?.settings.state();
    if let (Some(members), Value::Object(more)) = (answer.as_object_mut(), json!(NewSessionResponse::new(id))) {
        members.extend(more);
    }
    Ok(answer)
}

fn session_id(params: &str) -> Result<String, RpcError> {
    string_at(params, &["sessionId"]).ok_or_else(|| RpcError::new(INVALID_PARAMS, "sessionId is missing"))
}

/// The update by which a loaded session shows what the user said, whatever kind of block it was.
fn said_by_user(session_id: &str, block: &Value) -> Bytes {
    let update = json!({"sessionUpdate": "user_message_chunk", "content": block});
    compose::notification("session/update", &json!({"sessionId": session_id, "update": update}))
}
