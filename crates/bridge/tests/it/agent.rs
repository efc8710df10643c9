//! An agent in memory, moved by the test line by line.

use acp::{Kind, Message, RequestId, compose};
use bridge::Streams;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use crate::world::soon;

/// The far end of a session's streams. Dropping it is the host's death.
pub(crate) struct Agent {
    lines: BufReader<DuplexStream>,
    writer: DuplexStream,
}

/// A prompt that the agent holds.
pub(crate) struct Held {
    pub(crate) id: RequestId,
    pub(crate) params: Value,
}

impl Held {
    pub(crate) fn prompt_id(&self) -> &str {
        self.params["_meta"]["qwen-code/invocation"]["promptId"].as_str().unwrap()
    }
}

impl Agent {
    pub(crate) fn connect() -> (Self, Streams) {
        let (reader, agent_writer) = tokio::io::duplex(1 << 20);
        let (agent_reader, writer) = tokio::io::duplex(1 << 20);
        let agent = Self { lines: BufReader::new(agent_reader), writer: agent_writer };
        (agent, Streams { reader: Box::new(reader), writer: Box::new(writer) })
    }

    /// The next message it is sent.
    pub(crate) async fn hear(&mut self) -> Message {
        self.hear_or_end().await.expect("the bridge closed the agent's input")
    }

    /// The next message, or none when its input has ended.
    pub(crate) async fn hear_or_end(&mut self) -> Option<Message> {
        let mut line = Vec::new();
        soon(self.lines.read_until(b'\n', &mut line)).await.unwrap();
        (!line.is_empty()).then(|| Message::parse(line.into()).unwrap())
    }

    /// The next message, which has to be this request or notification.
    pub(crate) async fn hear_method(&mut self, method: &str) -> Message {
        let message = self.hear().await;
        assert_eq!(message.method(), Some(method), "{}", String::from_utf8_lossy(message.raw()));
        message
    }

    pub(crate) async fn hear_prompt(&mut self) -> Held {
        let message = self.hear_method("session/prompt").await;
        let Kind::Request { id, .. } = message.kind() else { panic!("a prompt is a request") };
        Held { id: id.clone(), params: serde_json::from_str(message.params().unwrap()).unwrap() }
    }

    /// Greets the bridge and answers its opening request with this result.
    pub(crate) async fn greet(&mut self, result: Value) -> Message {
        let initialize = self.hear_method("initialize").await;
        self.answer(&initialize, json!({"protocolVersion": 1, "agentCapabilities": {}})).await;
        let opening = self.hear().await;
        self.answer(&opening, result).await;
        opening
    }

    pub(crate) async fn answer(&mut self, request: &Message, result: Value) {
        let Kind::Request { id, .. } = request.kind() else { panic!("only a request is answered") };
        self.say(compose::response(id, &result)).await;
    }

    pub(crate) async fn settle(&mut self, held: &Held, result: Value) {
        self.say(compose::response(&held.id, &result)).await;
    }

    pub(crate) async fn fail(&mut self, held: &Held, error: &acp::RpcError) {
        self.say(compose::error_response(&held.id, error)).await;
    }

    pub(crate) async fn update(&mut self, update: Value) {
        self.say(compose::notification("session/update", &json!({"sessionId": "agent-1", "update": update}))).await;
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})).await;
    }

    /// Ends what it says, as the end of its process would; its input stays open, so that what still comes can be seen.
    pub(crate) async fn hang_up(&mut self) {
        self.writer.shutdown().await.unwrap();
    }

    pub(crate) async fn say(&mut self, line: impl Into<Bytes>) {
        soon(self.writer.write_all(&line.into())).await.unwrap();
    }
}
