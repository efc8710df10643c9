//! A client that keeps everything it hears.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acp::{FrameReader, Kind, Message, Outcome, RequestId, RpcError, Skipped, compose, lenient_value};
use agent::AgentOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinSet;

/// Small, so that the agent often has to wait until it is read.
const PIPE_BYTES: usize = 512;

/// Real time where a command runs, skipped time elsewhere.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
    frames: FrameReader,
    agent: JoinSet<io::Result<()>>,
    next_id: u64,
    /// What the agent wrote and was no message.
    pub(crate) skipped: Skipped,
    /// Whether the agent has died by a script.
    pub(crate) dead: Arc<AtomicBool>,
    /// The option to choose when asked, or `None` to answer "cancelled".
    pub(crate) choice: Option<&'static str>,
}

/// What was heard until a request was answered.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The `update` objects, in order.
    pub(crate) updates: Vec<Value>,
    /// Permission requests, in order.
    pub(crate) asked: Vec<Value>,
    /// The answer.
    pub(crate) answer: Result<Value, RpcError>,
}

impl Client {
    /// A client of a fresh agent.
    pub(crate) fn new() -> Self {
        let dead = Arc::new(AtomicBool::new(false));
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (reader, writer) = tokio::io::split(ours);
        let (agent_reader, agent_writer) = tokio::io::split(theirs);
        let die = {
            let dead = Arc::clone(&dead);
            Arc::new(move || dead.store(true, Ordering::SeqCst))
        };
        let mut agent = JoinSet::new();
        agent.spawn(agent::run(agent_reader, agent_writer, AgentOptions { die, ..AgentOptions::default() }));
        let (frames, skipped) = (FrameReader::default(), Skipped::default());
        Self { reader, writer, frames, agent, next_id: 0, skipped, dead, choice: Some("allow_once") }
    }

    /// A client with one session, in a folder that exists.
    pub(crate) async fn with_session() -> (Self, String) {
        let mut client = Self::new();
        let session = client.new_session("/").await;
        (client, session)
    }

    pub(crate) async fn new_session(&mut self, cwd: &str) -> String {
        let result = self.call("session/new", &json!({"cwd": cwd, "mcpServers": []})).await.answer.unwrap();
        result["sessionId"].as_str().unwrap().to_owned()
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
    }

    /// Sends a request and gives its id.
    pub(crate) async fn send(&mut self, method: &str, params: &Value) -> RequestId {
        let id = RequestId::from(self.next_id);
        self.next_id += 1;
        self.write(&compose::request(&id, method, params)).await;
        id
    }

    /// Sends a request and listens until it is answered.
    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> Heard {
        let id = self.send(method, params).await;
        self.listen(&id).await
    }

    /// Sends a prompt and gives the request's id.
    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> RequestId {
        self.send("session/prompt", &json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})).await
    }

    /// Sends a prompt and listens until it is answered.
    pub(crate) async fn play(&mut self, session: &str, text: &str) -> Heard {
        let id = self.prompt(session, text).await;
        self.listen(&id).await
    }

    pub(crate) async fn cancel(&mut self, session: &str) {
        self.write(&compose::notification("session/cancel", &json!({"sessionId": session}))).await;
    }

    /// Listens until the request is answered, answering the agent's own requests on the way.
    pub(crate) async fn listen(&mut self, id: &RequestId) -> Heard {
        let (mut updates, mut asked) = (Vec::new(), Vec::new());
        loop {
            let message = self.next().await.expect("the agent is gone before it answered");
            match message.kind() {
                Kind::Response { id: Some(answered) } if answered == id => {
                    let answer = match message.outcome().unwrap() {
                        Outcome::Result(raw) => Ok(lenient_value(raw).unwrap()),
                        Outcome::Error(error) => Err(error),
                    };
                    return Heard { updates, asked, answer };
                }
                Kind::Response { .. } => panic!("an answer to something else: {message:?}"),
                Kind::Notification { .. } => updates.extend(update(&message)),
                Kind::Request { id, .. } => {
                    asked.push(lenient_value(message.params().unwrap()).unwrap());
                    let id = id.clone();
                    self.decide(&id).await;
                }
            }
        }
    }

    /// The next message, or `None` when the agent has closed its output.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        tokio::time::timeout(PATIENCE, self.read_message()).await.expect("the agent says nothing more")
    }

    /// The next update.
    pub(crate) async fn next_update(&mut self) -> Value {
        let message = self.next().await.unwrap();
        update(&message).unwrap_or_else(|| panic!("not an update: {message:?}"))
    }

    /// Closes the agent's input and gives what it comes to.
    pub(crate) async fn hang_up(mut self) -> io::Result<()> {
        self.close_input().await;
        while self.next().await.is_some() {}
        self.ended().await
    }

    /// Tells the agent that nothing more comes.
    pub(crate) async fn close_input(&mut self) {
        self.writer.shutdown().await.unwrap();
    }

    /// Waits for the agent to end by itself.
    pub(crate) async fn ended(&mut self) -> io::Result<()> {
        self.agent.join_next().await.unwrap().unwrap()
    }

    async fn decide(&mut self, id: &RequestId) {
        let outcome = match self.choice {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            None => json!({"outcome": "cancelled"}),
        };
        self.write(&compose::response(id, &json!({"outcome": outcome}))).await;
    }

    async fn read_message(&mut self) -> Option<Message> {
        loop {
            while let Some(frame) = self.frames.next_frame() {
                match Message::parse(frame.unwrap()) {
                    Ok(message) => return Some(message),
                    Err(reason) => self.skipped.add(reason),
                }
            }
            let mut buffer = [0; PIPE_BYTES];
            match self.reader.read(&mut buffer).await.unwrap() {
                0 => return None,
                length => self.frames.push(&buffer[..length]),
            }
        }
    }
}

fn update(message: &Message) -> Option<Value> {
    lenient_value(message.params()?)?.get("update").cloned()
}

/// A place for a command to leave a trace, where nothing is yet.
pub(crate) fn trace_file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("turnd-agent-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Waits until a condition outside of the agent holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("it never came to this: {what}"));
}

impl Heard {
    /// The chunks of one kind of update.
    pub(crate) fn chunks(&self, kind: &str) -> Vec<&str> {
        let of_kind = self.updates.iter().filter(|update| update["sessionUpdate"] == kind);
        of_kind.map(|update| update["content"]["text"].as_str().unwrap()).collect()
    }

    /// The text of the answer.
    pub(crate) fn text(&self) -> String {
        self.chunks("agent_message_chunk").concat()
    }

    /// The stop reason, or the error's code.
    pub(crate) fn end(&self) -> String {
        match &self.answer {
            Ok(result) => result["stopReason"].as_str().unwrap().to_owned(),
            Err(error) => error.code.to_string(),
        }
    }

    /// The statuses of tool calls, in order.
    pub(crate) fn statuses(&self) -> Vec<&str> {
        self.updates.iter().filter_map(|update| update["status"].as_str()).collect()
    }
}
