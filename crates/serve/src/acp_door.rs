//! The ACP door: an editor speaks to the daemon as to an agent, one JSON-RPC message a frame of a WebSocket.
//!
//! [`Door`] is the pure half, one for each connection: what the editor says and what its sessions tell goes in, messages and effects come
//! out. It reads no clock and awaits nothing. `shell.rs` carries out, `opening.rs` brings sessions, `socket.rs` is the wire. Prompts go
//! through the same queue, ledger and transcript as any other; an editor is one more client of its sessions.

mod effect;
mod input;
mod opening;
mod shell;
mod socket;
mod words;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use acp::rpc_error::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
use acp::{Kind, Message, RequestId, RpcError, compose, raw_at, string_at};
use bridge::Vote;
use bytes::Bytes;
use serde_json::Value;

use crate::identity;
use crate::limits::{DOOR_OPENINGS_MAX, DOOR_SESSIONS_MAX};
pub(crate) use effect::{Effect, Goodbye, Opening, Which};
pub(crate) use input::{Admitted, Entrance, Input, Question};
pub(crate) use shell::{Visitor, receive};
use words::{RESOURCE_NOT_FOUND, error};

/// The mark of the updates by which a session shows a prompt to its readers.
const ECHO: &str = "bridge-echo";

/// What is passed on to the agent, and what of its state shows that it takes it.
const PASSED_ON: [(&str, &str); 3] =
    [("session/set_mode", "modes"), ("session/set_model", "models"), ("session/set_config_option", "configOptions")];

/// One editor's connection.
pub(crate) struct Door {
    version: String,
    /// What the agent takes in a prompt, as `initialize` answers it.
    prompt_capabilities: Value,
    greeted: bool,
    /// The sessions that it is in.
    seats: HashMap<String, Seat>,
    /// Sessions that are being opened.
    openings: usize,
    /// The questions it was asked and has not answered, by the number of the request.
    asked: HashMap<u64, (String, String)>,
    /// The number of the last request to it.
    last: u64,
}

/// An editor's place in a session.
#[derive(Default)]
struct Seat {
    /// The id under which it is registered there.
    client: String,
    /// The agent's state when the session was opened, raw JSON object.
    state: String,
    /// Updates up to this event it has seen already.
    shown: u64,
    /// The prompts it waits for, each with the request that is to be answered.
    waiting: Vec<(String, RequestId)>,
}

impl Door {
    /// A connection on which nothing was said yet.
    pub(crate) fn new(version: &str, prompt_capabilities: Value) -> Self {
        Self {
            version: version.to_owned(),
            prompt_capabilities,
            greeted: false,
            seats: HashMap::new(),
            openings: 0,
            asked: HashMap::new(),
            last: 0,
        }
    }

    /// Whether the editor has introduced itself.
    pub(crate) fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Whether the editor is in no session and waits for none.
    pub(crate) fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.openings == 0
    }

    /// What follows from something that happened.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Said(text) => self.said(text),
            Input::Opened { request, outcome } => self.opened(&request, outcome),
            Input::Event { session, id, kind, json } => self.event(&session, id, kind, &json),
            Input::Ended { session } => self.ended(&session),
            Input::Admitted { request, session, outcome } => self.admitted(request, &session, outcome),
            Input::Answered { request, outcome } => vec![Effect::Say(match outcome {
                Ok(raw) => compose::response_raw(&request, &raw),
                Err(error) => compose::error_response(&request, &error),
            })],
        }
    }

    fn said(&mut self, text: Bytes) -> Vec<Effect> {
        let message = match Message::parse(text) {
            Ok(message) => message,
            Err(acp::NotAMessage::NotJson { .. } | acp::NotAMessage::Blank) => {
                return refuse(&RequestId::null(), &error(PARSE_ERROR, "invalid_json", "the frame is not JSON"));
            }
            Err(cause) => {
                return refuse(&RequestId::null(), &error(INVALID_REQUEST, "invalid_request", cause.to_string()));
            }
        };
        let params = message.params().unwrap_or("{}");
        match message.kind() {
            Kind::Request { id, method } => self.request(id, method, params).unwrap_or_else(|error| refuse(id, &error)),
            Kind::Notification { method } => self.notified(method, params),
            Kind::Response { id } => self.answered(id.as_ref(), message.result()),
        }
    }

    fn request(&mut self, id: &RequestId, method: &str, params: &str) -> Result<Vec<Effect>, RpcError> {
        if method == "initialize" {
            self.greeted = true;
            return Ok(vec![Effect::Say(words::welcome(id, &self.prompt_capabilities, &self.version))]);
        }
        if !self.greeted {
            return Err(error(INVALID_REQUEST, "not_initialized", "`initialize` comes first"));
        }
        match method {
            "session/new" => {
                let chosen = string_at(params, &["_meta", "qwen-code/sessionId"]);
                self.open(id, params, Which::New { id: chosen })
            }
            "session/load" => self.open(id, params, Which::Load { id: session_of(params)? }),
            "session/resume" => self.open(id, params, Which::Resume { id: session_of(params)? }),
            "session/prompt" => {
                let session = self.seated(params)?;
                Ok(vec![Effect::Admit { request: id.clone(), session, body: prompt_body(params) }])
            }
            _ => self.passed_on(id, method, params),
        }
    }

    /// Opening a session: the shell does it, and tells.
    fn open(&mut self, request: &RequestId, params: &str, which: Which) -> Result<Vec<Effect>, RpcError> {
        let Some(cwd) = string_at(params, &["cwd"]).filter(|cwd| cwd.starts_with('/')) else {
            return Err(error(INVALID_PARAMS, "invalid_cwd", "`cwd` must be an absolute path"));
        };
        if self.openings >= DOOR_OPENINGS_MAX || self.seats.len() + self.openings >= DOOR_SESSIONS_MAX {
            let message = "too many sessions on one connection";
            return Err(error(acp::rpc_error::INTERNAL_ERROR, "connection_session_limit", message));
        }
        self.openings += 1;
        Ok(vec![Effect::Open { request: request.clone(), opening: Opening { cwd, which } }])
    }

    /// What the agent answers itself, if it says that it can.
    fn passed_on(&self, request: &RequestId, method: &str, params: &str) -> Result<Vec<Effect>, RpcError> {
        let unknown = || error(METHOD_NOT_FOUND, "method_not_found", format!("method not found: {method}"));
        let (_, shown_by) = PASSED_ON.iter().find(|(name, _)| *name == method).ok_or_else(unknown)?;
        let session = self.seated(params)?;
        let state = self.seats.get(&session).map_or("{}", |seat| &seat.state);
        if raw_at(state, &[shown_by]).is_none_or(|raw| raw == "null") {
            return Err(unknown());
        }
        let (request, method, params) = (request.clone(), method.to_owned(), params.to_owned());
        Ok(vec![Effect::Ask { request, session, method, params }])
    }

    /// The session that a request names, in which the editor must be.
    fn seated(&self, params: &str) -> Result<String, RpcError> {
        let session = session_of(params)?;
        if self.seats.contains_key(&session) {
            return Ok(session);
        }
        let message = format!("session \"{session}\" was neither made nor loaded on this connection");
        Err(error(RESOURCE_NOT_FOUND, "session_not_found", message))
    }

    fn notified(&self, method: &str, params: &str) -> Vec<Effect> {
        match method {
            "session/cancel" => self.cancel(params),
            "$/cancel_request" => self.cancel_request(params),
            _ => Vec::new(),
        }
    }

    /// An editor's cancel means its own prompts, wherever they stand in the queue; without any it means the one that runs.
    fn cancel(&self, params: &str) -> Vec<Effect> {
        let Ok(session) = self.seated(params) else { return Vec::new() };
        let waiting = self.seats.get(&session).map(|seat| &seat.waiting);
        let prompts = waiting.into_iter().flatten().map(|(prompt, _)| prompt.clone()).collect();
        vec![Effect::Cancel { session, prompts }]
    }

    /// A cancel of one request of its own: only a prompt can be.
    fn cancel_request(&self, params: &str) -> Vec<Effect> {
        let Some(id) = raw_at(params, &["requestId"]).and_then(RequestId::parse) else { return Vec::new() };
        let place = |(session, seat): (&String, &Seat)| {
            let waiting = seat.waiting.iter().find(|(_, request)| *request == id)?;
            Some(Effect::Cancel { session: session.clone(), prompts: vec![waiting.0.clone()] })
        };
        self.seats.iter().find_map(place).into_iter().collect()
    }

    /// The editor's answer to a question is its vote. An error is none: whoever else is asked may still decide.
    fn answered(&mut self, id: Option<&RequestId>, result: Option<&str>) -> Vec<Effect> {
        let Some((session, question)) = id.and_then(RequestId::as_u64).and_then(|number| self.asked.remove(&number))
        else {
            return Vec::new();
        };
        let word = result.and_then(|result| string_at(result, &["outcome", "outcome"]));
        let option = result.and_then(|result| string_at(result, &["outcome", "optionId"]));
        let vote = match (word.as_deref(), option) {
            (Some("selected"), Some(option_id)) => {
                let answers = result.and_then(|result| raw_at(result, &["answers"])).map(str::to_owned);
                Vote::Selected { option_id, answers }
            }
            (Some("cancelled"), _) => Vote::Cancelled,
            _ => return Vec::new(),
        };
        vec![Effect::Vote { session, question, vote }]
    }

    /// First what was said there before, then the answer, then what is open.
    fn opened(&mut self, request: &RequestId, outcome: Result<Entrance, RpcError>) -> Vec<Effect> {
        self.openings = self.openings.saturating_sub(1);
        let entrance = match outcome {
            Ok(entrance) => entrance,
            Err(error) => return refuse(request, &error),
        };
        let session = entrance.session.clone();
        let mut effects: Vec<Effect> =
            entrance.replay.iter().map(|update| Effect::Say(words::update(&session, update))).collect();
        effects.push(Effect::Say(words::opened(request, &entrance)));
        let is_new = !self.seats.contains_key(&session);
        let seat = self.seats.entry(session.clone()).or_default();
        seat.shown = seat.shown.max(entrance.shown);
        seat.state = entrance.state;
        seat.client = entrance.client;
        for question in &entrance.questions {
            effects.extend(self.ask(&session, question));
        }
        effects.extend(is_new.then_some(Effect::Follow { session }));
        effects
    }

    /// A question, unless the editor was asked it already.
    fn ask(&mut self, session: &str, question: &Question) -> Option<Effect> {
        if self.asked.values().any(|(_, asked)| *asked == question.id) {
            return None;
        }
        self.last += 1;
        self.asked.insert(self.last, (session.to_owned(), question.id.clone()));
        Some(Effect::Say(words::question(self.last, session, question)))
    }

    fn event(&mut self, session: &str, id: Option<u64>, kind: &'static str, json: &Bytes) -> Vec<Effect> {
        let Some(seat) = self.seats.get_mut(session) else { return Vec::new() };
        let envelope = std::str::from_utf8(json).unwrap_or("{}");
        let data = raw_at(envelope, &["data"]).unwrap_or("{}");
        match kind {
            "session_update" => {
                let is_shown = id.is_some_and(|id| id <= seat.shown);
                match raw_at(data, &["update"]) {
                    Some(update) if !is_shown && !seat.is_own_echo(envelope, update) => {
                        vec![Effect::Say(words::update(session, update))]
                    }
                    _ => Vec::new(),
                }
            }
            "turn_complete" | "turn_error" => seat.finish(kind, data),
            "permission_request" => {
                question(data).and_then(|question| self.ask(session, &question)).into_iter().collect()
            }
            "permission_resolved" => self.withdraw(data),
            // Something was lost on the way to this editor; what it would be told from here on would not be the whole.
            "client_evicted" | "state_resync_required" => vec![Effect::HangUp(Goodbye::TooSlow)],
            _ => Vec::new(),
        }
    }

    /// A question that is decided asks nobody any more.
    fn withdraw(&mut self, data: &str) -> Vec<Effect> {
        let id = string_at(data, &["requestId"]).unwrap_or_default();
        let open = self.asked.iter().find(|(_, (_, question))| *question == id).map(|(number, _)| *number);
        open.into_iter()
            .map(|number| {
                self.asked.remove(&number);
                Effect::Say(words::withdrawn(number))
            })
            .collect()
    }

    /// A session tells the end of each of its prompts before its own. Should one be missing, nothing is guessed.
    fn ended(&mut self, session: &str) -> Vec<Effect> {
        let Some(seat) = self.seats.remove(session) else { return Vec::new() };
        let mut gone: Vec<u64> =
            self.asked.iter().filter(|(_, (asked, _))| asked == session).map(|(number, _)| *number).collect();
        gone.sort_unstable();
        self.asked.retain(|number, _| !gone.contains(number));
        let lost = seat.waiting.iter().map(|(prompt, request)| words::lost(request, prompt));
        lost.chain(gone.into_iter().map(words::withdrawn)).map(Effect::Say).collect()
    }

    fn admitted(&mut self, request: RequestId, session: &str, outcome: Result<Admitted, RpcError>) -> Vec<Effect> {
        let said = match outcome {
            Err(error) => return refuse(&request, &error),
            Ok(Admitted::Over { prompt, terminal }) => words::over(&request, &prompt, &terminal),
            Ok(Admitted::Lost { prompt }) => words::lost(&request, &prompt),
            Ok(Admitted::Open { prompt }) => match self.seats.get_mut(session) {
                Some(seat) => {
                    seat.waiting.push((prompt, request));
                    return Vec::new();
                }
                None => words::lost(&request, &prompt),
            },
        };
        vec![Effect::Say(said)]
    }
}

impl Seat {
    /// Whether an update only shows the editor its own prompt, which it has on its screen.
    fn is_own_echo(&self, envelope: &str, update: &str) -> bool {
        string_at(envelope, &["originatorClientId"]).as_deref() == Some(&self.client)
            && string_at(update, &["_meta", "source"]).as_deref() == Some(ECHO)
    }

    /// The answers to all requests that wait for the prompt which ended.
    fn finish(&mut self, kind: &str, data: &str) -> Vec<Effect> {
        let text = |key: &str| string_at(data, &[key]);
        let Some(prompt) = text("promptId") else { return Vec::new() };
        let (done, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|(id, _)| *id == prompt);
        self.waiting = waiting;
        let answer = |(_, request): (String, RequestId)| {
            Effect::Say(match kind {
                "turn_complete" => words::finished(&request, &prompt, &text("stopReason").unwrap_or_default(), data),
                _ => {
                    let (message, code, written) = (text("message"), text("code"), text("inputWritten"));
                    words::failed(&request, &prompt, &message.unwrap_or_default(), code.as_deref(), written.as_deref())
                }
            })
        };
        Vec::into_iter(done).map(answer).collect()
    }
}

fn refuse(request: &RequestId, error: &RpcError) -> Vec<Effect> {
    vec![Effect::Say(compose::error_response(request, error))]
}

/// The session that parameters name, as it is looked up.
fn session_of(params: &str) -> Result<String, RpcError> {
    let named = string_at(params, &["sessionId"]).map(|id| identity::session_id(&id));
    named.ok_or_else(|| error(INVALID_PARAMS, "invalid_params", "`sessionId` is missing"))
}

/// A question as an event tells it.
fn question(data: &str) -> Option<Question> {
    Some(Question {
        id: string_at(data, &["requestId"])?,
        tool_call: raw_at(data, &["toolCall"])?.to_owned(),
        options: raw_at(data, &["options"])?.to_owned(),
    })
}

/// The body that the HTTP route takes for the same prompt. What is ours stands in `_meta`: the prompt's id, under either name, and how
/// long its caller waits.
fn prompt_body(params: &str) -> String {
    let mut body = "{}".to_owned();
    let mut put = |key: &str, raw: Option<&str>| {
        if let Some(raw) = raw {
            body = acp::with_member(&body, key, raw);
        }
    };
    let meta = |path: &[&str]| raw_at(params, &[&["_meta"], path].concat());
    put("prompt", raw_at(params, &["prompt"]));
    put("promptId", meta(&["turnd/promptId"]).or_else(|| meta(&["qwen-code/invocation", "promptId"])));
    put("deadlineMs", meta(&["turnd/deadlineMs"]));
    put("runDeadlineMs", meta(&["turnd/runDeadlineMs"]));
    put("_meta", raw_at(params, &["_meta"]).filter(|raw| *raw != "null"));
    body
}
