//! The other end of a host's streams, scripted: it greets, answers by the prompt's text, and keeps what it heard.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use serve::{HostOrder, HostStarter, HostStreams, StartError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{Semaphore, mpsc};
use transcript::{Body, Identity, TurnResult, TurnState, Writer};

/// Updates of a burst: more than may wait for a reader.
pub(crate) const BURST_UPDATES: usize = 2_000;

/// Bytes in flight between daemon and host.
const PIPE_BYTES: usize = 1 << 20;

/// How the hosts of a test behave, and what they heard.
#[derive(Clone)]
pub(crate) struct Hosts {
    inner: Arc<Inner>,
}

struct Inner {
    behaviour: Mutex<Behaviour>,
    orders: Mutex<Vec<HostOrder>>,
    heard: Mutex<Vec<Value>>,
    /// Permits for `hold` prompts to go on.
    release: Semaphore,
    /// Permits for openings to be answered, when they are gated.
    gate: Semaphore,
    /// What each host is about to say; nothing ends it.
    outs: Mutex<Vec<mpsc::UnboundedSender<Option<Value>>>>,
}

/// What a test may change.
#[derive(Clone, Default)]
pub(crate) struct Behaviour {
    /// Starting fails.
    pub(crate) no_start: bool,
    /// The opening request is answered with this error.
    pub(crate) refuse: Option<Value>,
    /// The streams end before the opening request is answered.
    pub(crate) dies_early: bool,
    /// The opening request waits for [`Hosts::open_gate`].
    pub(crate) gated: bool,
    /// Another id than the one asked for is answered.
    pub(crate) other_id: bool,
    /// A close waits for [`Hosts::open_gate`].
    pub(crate) slow_close: bool,
    /// The opening request is never answered.
    pub(crate) mute: bool,
    /// What else is answered: a method, and `result` or `error` with its value. It counts from the next question on, for every host.
    pub(crate) answers: Vec<(&'static str, Value)>,
    /// A turn that is gone on with waits for [`Hosts::release`] or a cancel.
    pub(crate) slow_to_continue: bool,
    /// Such an answer waits for [`Hosts::open_gate`].
    pub(crate) slow_answers: bool,
    /// The agent lets nobody set it to anything.
    pub(crate) unset: bool,
    /// The host cannot write what it is told about the session.
    pub(crate) unwritable: bool,
    /// What the agent is set to is never answered.
    pub(crate) slow_to_set: bool,
}

impl Hosts {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            behaviour: Mutex::default(),
            orders: Mutex::default(),
            heard: Mutex::default(),
            release: Semaphore::new(0),
            gate: Semaphore::new(0),
            outs: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.inner.behaviour.lock().unwrap());
    }

    /// Lets `count` prompts that hold go on.
    pub(crate) fn release(&self, count: usize) {
        self.inner.release.add_permits(count);
    }

    /// Ends all hosts without a word, after what they have said so far.
    pub(crate) fn die(&self) {
        for out in &*self.inner.outs.lock().unwrap() {
            let _ = out.send(None);
        }
    }

    /// Lets `count` openings be answered.
    pub(crate) fn open_gate(&self, count: usize) {
        self.inner.gate.add_permits(count);
    }

    pub(crate) fn orders(&self) -> Vec<HostOrder> {
        self.inner.orders.lock().unwrap().clone()
    }

    /// The messages of a method that any host heard, in order.
    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        self.inner.heard.lock().unwrap().iter().filter(|message| message["method"] == method).cloned().collect()
    }
}

impl HostStarter for Hosts {
    fn start(&self, order: &HostOrder) -> Result<HostStreams, StartError> {
        let behaviour = self.inner.behaviour.lock().unwrap().clone();
        if behaviour.no_start {
            return Err(StartError { cause: "there is no such program".into() });
        }
        self.inner.orders.lock().unwrap().push(order.clone());
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        spawn(Host::new(self.inner.clone(), behaviour, order.clone()).run(far));
        let (reader, writer) = tokio::io::split(near);
        Ok(HostStreams { reader: Box::new(reader), writer: Box::new(writer) })
    }
}

#[expect(clippy::disallowed_methods, reason = "the tests start their tasks here")]
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(future);
}

#[derive(Clone)]
struct Host {
    inner: Arc<Inner>,
    behaviour: Behaviour,
    order: HostOrder,
    out: mpsc::UnboundedSender<Option<Value>>,
    /// Set by a cancel, looked at by a prompt that waits.
    cancelled: Arc<Semaphore>,
    /// Permission outcomes on their way to the prompt that asked.
    votes: Arc<Mutex<Option<mpsc::UnboundedSender<Value>>>>,
    lines: Arc<Mutex<Option<mpsc::UnboundedReceiver<Option<Value>>>>>,
}

impl Host {
    fn new(inner: Arc<Inner>, behaviour: Behaviour, order: HostOrder) -> Self {
        let (out, lines) = mpsc::unbounded_channel();
        inner.outs.lock().unwrap().push(out.clone());
        Self {
            inner,
            behaviour,
            order,
            out,
            cancelled: Arc::new(Semaphore::new(0)),
            votes: Arc::default(),
            lines: Arc::new(Mutex::new(Some(lines))),
        }
    }

    /// Reads until the daemon closes or says so; an empty message in the outbox ends the streams.
    async fn run(self, stream: DuplexStream) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        let mut outbox = self.lines.lock().unwrap().take().unwrap();
        loop {
            tokio::select! {
                line = lines.next_line() => {
                    let Ok(Some(line)) = line else { return };
                    self.hear(serde_json::from_str(&line).unwrap());
                }
                said = outbox.recv() => {
                    let Some(Some(message)) = said else { return };
                    if writer.write_all(format!("{message}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn say(&self, message: Value) {
        let _ = self.out.send(Some(message));
    }

    fn end(&self) {
        let _ = self.out.send(None);
    }

    fn hear(&self, message: Value) {
        self.inner.heard.lock().unwrap().push(message.clone());
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("initialize") => {
                self.answer(&id, json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true, "promptCapabilities": { "image": true } } }))
            }
            Some("session/new" | "session/load") => spawn(self.clone().open(message)),
            Some("session/prompt") => spawn(self.clone().prompt(message)),
            Some("session/cancel") => self.cancelled.add_permits(1),
            Some("session/set_mode") if self.behaviour.slow_to_set => {}
            Some("session/set_mode" | "session/set_config_option") => self.answer(&id, json!({})),
            Some("session/set_model") if message["params"]["modelId"] == "nope" => self.say(json!({
                "jsonrpc": "2.0",
                "id": id,
                "error": { "code": -32603, "message": "Internal error", "data": { "details": "no such model" } },
            })),
            Some("session/set_model") => {
                self.answer(&id, json!({ "_meta": { "qwenModelSwitch": { "modelId": "two" } } }));
            }
            Some("turnd/record") if self.behaviour.unwritable => self.say(json!({
                "jsonrpc": "2.0",
                "id": id,
                "error": { "code": -32000, "message": "no", "data": { "turnd/code": "transcript_unwritable", "details": "full" } },
            })),
            Some("turnd/record") => {
                let params = &message["params"];
                self.record(params["subtype"].as_str().unwrap(), params["payload"].clone());
                self.answer(&id, json!({}));
            }
            Some("qwen/control/session/approval_mode") => {
                let mode = &message["params"]["mode"];
                self.answer(&id, json!({ "previous": "auto", "current": mode }));
            }
            Some("qwen/control/session/title" | "qwen/control/session/source") => {
                self.answer(&id, json!({ "persisted": true }));
            }
            Some("turnd/close") => spawn(self.clone().close()),
            Some(method) => {
                let behaviour = self.inner.behaviour.lock().unwrap();
                let scripted =
                    behaviour.answers.iter().find(|(known, _)| *known == method).map(|(_, answer)| answer.clone());
                if let Some(mut answer) = scripted {
                    answer["id"] = id;
                    spawn(self.clone().answer_as_told(answer, behaviour.slow_answers));
                } else if !id.is_null() && method != "turnd/replace_agent" {
                    let error = json!({ "code": -32601, "message": format!("no method {method:?}") });
                    self.say(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                }
            }
            None => {
                if let Some(votes) = &*self.votes.lock().unwrap() {
                    let _ = votes.send(message["result"].clone());
                }
            }
        }
    }

    fn record(&self, subtype: &str, payload: Value) {
        let cwd = self.order.workspace.to_string_lossy().into_owned();
        let identity = Identity { session_id: self.order.session_id.clone(), cwd, version: "0".into() };
        let mut writer = Writer::open(&self.order.transcript, identity, transcript::Durability::Process).unwrap();
        writer.append(now_ms(), &Body::System { subtype: subtype.to_owned(), payload }).unwrap();
    }

    fn answer(&self, id: &Value, result: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    async fn answer_as_told(self, answer: Value, waits: bool) {
        if waits {
            self.inner.gate.acquire().await.unwrap().forget();
        }
        self.say(answer);
    }

    async fn close(self) {
        if self.behaviour.slow_close {
            self.inner.gate.acquire().await.unwrap().forget();
        }
        self.end();
    }

    async fn open(self, message: Value) {
        if self.behaviour.gated {
            self.inner.gate.acquire().await.unwrap().forget();
        }
        let id = &message["id"];
        if self.behaviour.mute {
            return;
        }
        if self.behaviour.dies_early {
            return self.end();
        }
        if let Some(error) = &self.behaviour.refuse {
            return self.say(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        let agent_id = if self.behaviour.other_id { "another".to_owned() } else { self.order.session_id.clone() };
        let mut result = json!({
            "sessionId": agent_id,
            "modes": { "currentModeId": "default", "availableModes": [{ "id": "default" }, { "id": "plan" }] },
            "models": { "currentModelId": "m-1", "availableModels": [{ "modelId": "m-1" }] },
        });
        if self.behaviour.unset {
            result = json!({ "sessionId": result["sessionId"] });
        }
        if message["method"] == "session/load" {
            result["_meta"] = json!({ "turnd/memory": "loaded" });
        }
        self.answer(id, result);
    }

    /// Runs one turn. What it does is the first word of the prompt.
    async fn prompt(self, message: Value) {
        let id = message["id"].clone();
        let session = message["params"]["sessionId"].clone();
        let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
        let prompt_id = message["params"]["_meta"]["qwen-code/invocation"]["promptId"].as_str().unwrap().to_owned();
        let goes_on = message["params"]["_meta"]["qwen.daemon.continueLastTurn"] == true;
        let mut record = Recording::begin(&self.order, &prompt_id, &text, goes_on);
        let deed = text.split(' ').next().unwrap_or_default();
        let waits = deed == "hold" || goes_on && self.inner.behaviour.lock().unwrap().slow_to_continue;
        if waits && self.is_cancelled_first().await {
            return self.cancelled(&id, &mut record);
        }
        match deed {
            // It has said a long text when it is cancelled.
            "spoken" => return self.cut_while_it_spoke(&id, &session, record).await,
            // It does not hear a cancel.
            "deaf" => self.inner.release.acquire().await.unwrap().forget(),
            "hang" => {
                self.cancelled.acquire().await.unwrap().forget();
                return self.cancelled(&id, &mut record);
            }
            "fail" => {
                record.end(TurnState::Error, |result| result.with_error("bad request from model", Some("bad_req")));
                let error =
                    json!({ "code": -32603, "message": "Internal error", "data": { "details": "400 from model" } });
                return self.say(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            "die" => return self.end(),
            "flood" => (0..400).for_each(|number| self.update(&session, &format!("{number} {}", "x".repeat(20_000)))),
            "burst" => (0..BURST_UPDATES).for_each(|number| self.update(&session, &number.to_string())),
            // Little by little: others get their turn in between.
            "chatter" => {
                for number in 0..300 {
                    self.update(&session, &number.to_string());
                    tokio::task::yield_now().await;
                }
            }
            "tool" => self.tool(&session),
            "ask" => {
                let allowed = self.ask(&session).await;
                if allowed["outcome"]["outcome"] == "cancelled" {
                    let _ = self.cancelled.try_acquire().map(tokio::sync::SemaphorePermit::forget);
                    return self.cancelled(&id, &mut record);
                }
            }
            _ => {}
        }
        let stop_reason = text.strip_prefix("stop ").unwrap_or("end_turn");
        let said = match text.split_once(' ') {
            Some(("long", length)) => long(length.parse().unwrap()),
            _ if text == "silent" => String::new(),
            _ => format!("echo: {text}"),
        };
        self.update(&session, &said);
        record.say(&said);
        record.end(TurnState::Completed, |mut result| {
            result.stop_reason = Some(stop_reason.into());
            result.with_result_text(&said)
        });
        self.answer(&id, json!({ "stopReason": stop_reason, "_meta": { "turnd/turn": { "state": "completed" } } }));
    }

    async fn cut_while_it_spoke(&self, id: &Value, session: &Value, mut record: Recording) {
        let said = long(100_000);
        self.update(session, &said);
        self.cancelled.acquire().await.unwrap().forget();
        record.end(TurnState::Cancelled, |result| result.with_partial_text(&said));
        record.say(&said);
        self.answer(id, json!({ "stopReason": "cancelled", "_meta": { "turnd/turn": { "state": "cancelled" } } }));
    }

    /// Waits for a release or a cancel; whether it was the cancel.
    async fn is_cancelled_first(&self) -> bool {
        let (permit, was_cancel) = tokio::select! {
            permit = self.inner.release.acquire() => (permit, false),
            permit = self.cancelled.acquire() => (permit, true),
        };
        permit.unwrap().forget();
        was_cancel
    }

    fn cancelled(&self, id: &Value, record: &mut Recording) {
        record.end(TurnState::Cancelled, |mut result| {
            result.stop_reason = Some("cancelled".into());
            result
        });
        self.answer(id, json!({ "stopReason": "cancelled", "_meta": { "turnd/turn": { "state": "cancelled" } } }));
    }

    fn update(&self, session: &Value, text: &str) {
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
        self.say(json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } }));
    }

    /// A tool with an input and an output, as an agent tells of one.
    fn tool(&self, session: &Value) {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": "Cargo.toml" } }]);
        let updates = [
            json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls", "kind": "execute", "status": "pending", "rawInput": { "command": "ls" } }),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress" }),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "content": content, "rawOutput": "Cargo.toml" }),
        ];
        for update in updates {
            self.say(json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } }));
        }
    }

    async fn ask(&self, session: &Value) -> Value {
        let (sender, mut votes) = mpsc::unbounded_channel();
        *self.votes.lock().unwrap() = Some(sender);
        let call = json!({ "toolCallId": "call_1", "title": "touch x", "kind": "execute", "rawInput": { "command": "touch x" } });
        let options = json!([
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ]);
        let params = json!({ "sessionId": session, "toolCall": call, "options": options });
        self.say(json!({ "jsonrpc": "2.0", "id": "ask-1", "method": "session/request_permission", "params": params }));
        votes.recv().await.unwrap_or_default()
    }
}

/// The transcript as a host writes it.
struct Recording {
    writer: Writer,
    prompt_id: String,
    text: String,
}

impl Recording {
    fn begin(order: &HostOrder, prompt_id: &str, text: &str, goes_on: bool) -> Self {
        let cwd = order.workspace.to_string_lossy().into_owned();
        let identity = Identity { session_id: order.session_id.clone(), cwd, version: "0".into() };
        let mut writer = Writer::open(&order.transcript, identity, transcript::Durability::Process).unwrap();
        if !goes_on {
            let user = Body::User { prompt_id: Some(prompt_id.into()), parts: vec![json!({ "text": text })] };
            writer.append(now_ms(), &user).unwrap();
        }
        Self { writer, prompt_id: prompt_id.into(), text: text.into() }
    }

    fn end(&mut self, state: TurnState, with: impl FnOnce(TurnResult) -> TurnResult) {
        let result = with(TurnResult::new(self.prompt_id.as_str(), state, now_ms()).with_prompt_text(&self.text));
        self.writer.append(now_ms(), &Body::from(result)).unwrap();
    }

    fn say(&mut self, text: &str) {
        if !text.is_empty() {
            let said = Body::Assistant { model: None, parts: vec![json!({ "text": text })] };
            self.writer.append(now_ms(), &said).unwrap();
        }
    }
}

/// A text of so many bytes, or a few more, no part of which looks like another.
pub(crate) fn long(bytes: usize) -> String {
    let mut text = String::new();
    for number in 0.. {
        text.push_str(&format!("{number} ü \"😀\"\n"));
        if text.len() >= bytes {
            break;
        }
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "the scripted host is a shell of its own")]
pub(crate) fn now_ms() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64
}
