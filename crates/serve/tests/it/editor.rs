//! An editor: an ACP client at the daemon's door, one message a frame.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::PATIENCE;
use crate::daemon::Daemon;

/// An editor that has connected.
pub(crate) struct Editor {
    socket: WebSocketStream<TcpStream>,
    last: u64,
    /// What was heard and not asked for yet.
    kept: Vec<Value>,
}

impl Editor {
    /// Connects with further headers; the status when it is refused.
    pub(crate) async fn try_connect(daemon: &Daemon, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let stream = TcpStream::connect(daemon.address).await.unwrap();
        let mut request = format!("ws://127.0.0.1:{}/acp", daemon.address.port()).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self { socket, last: 0, kept: Vec::new() }),
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Connects and introduces itself.
    pub(crate) async fn greet(daemon: &Daemon) -> Self {
        let mut editor = Self::try_connect(daemon, &[]).await.unwrap();
        let welcome = editor.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await;
        assert_eq!(welcome["result"]["protocolVersion"], 1, "{welcome}");
        editor
    }

    /// Sends a frame. Of one that is refused before its end not all may be taken; what is heard then counts.
    pub(crate) async fn send(&mut self, message: Message) {
        let _ = self.socket.send(message).await;
    }

    /// Sends a request; its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.send(Message::text(message.to_string())).await;
        self.last
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send(Message::text(message.to_string())).await;
    }

    /// Answers a request of the daemon.
    pub(crate) async fn answer(&mut self, id: &Value, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        self.send(Message::text(message.to_string())).await;
    }

    /// Sends a request and waits for its answer. What comes before is kept.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer_to(id).await
    }

    /// The answer to a request.
    pub(crate) async fn answer_to(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// The next request or notification of that name.
    pub(crate) async fn told(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method).await
    }

    /// The first message that fits, of those that were kept and those to come. The others are kept.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&fits) {
            return self.kept.remove(at);
        }
        loop {
            let message = self.hear().await.expect("the connection ended");
            if fits(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    /// The next message; none when the connection has ended.
    async fn hear(&mut self) -> Option<Value> {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("nothing in time");
            match frame {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The code with which the daemon ends the connection; everything before is dropped.
    pub(crate) async fn close_code(&mut self) -> Option<u16> {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("nothing in time");
            match frame {
                Some(Ok(Message::Close(Some(frame)))) => return Some(frame.code.into()),
                Some(Ok(Message::Close(None)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Everything kept so far, in order, and nothing of it any more.
    pub(crate) fn take_kept(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.kept)
    }

    /// Makes a session; its id.
    pub(crate) async fn create(&mut self, cwd: &str) -> String {
        let made = self.ask("session/new", json!({ "cwd": cwd, "mcpServers": [] })).await;
        made["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// Sends a prompt; the id of the request.
    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await
    }
}

/// The texts of the updates of one kind among messages.
pub(crate) fn texts(messages: &[Value], kind: &str) -> Vec<String> {
    let updates = messages.iter().map(|message| &message["params"]["update"]);
    let texts = updates.filter(|update| update["sessionUpdate"] == kind).map(|update| &update["content"]["text"]);
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
