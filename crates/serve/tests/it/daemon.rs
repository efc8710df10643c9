//! A daemon for one test: a loopback socket, a store of its own, scripted hosts, and a way to end it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use serve::{Durability, Limits, Mode, ServeOptions, Server};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::client::{Answer, Connection, PATIENCE, Stream, until};
use crate::peer::{Hosts, spawn};

/// A running daemon.
pub(crate) struct Daemon {
    pub(crate) address: SocketAddr,
    pub(crate) hosts: Hosts,
    store: Arc<tempfile::TempDir>,
    end: Option<oneshot::Sender<()>>,
    ended: Option<oneshot::Receiver<()>>,
}

/// Options that fit a test.
pub(crate) fn options(store: &Path) -> ServeOptions {
    ServeOptions {
        workspaces: vec!["/ws".into()],
        store: store.to_owned(),
        mode: Mode::Recorded,
        agent: vec!["scripted".into()],
        token: None,
        tls: None,
        rates: None,
        require_auth: false,
        allow_origins: Vec::new(),
        limits: Limits::default(),
        durability: Durability::Process,
        linger_ms: 1_000,
        agent_input_ms: 30_000,
        initialize_timeout_ms: 10_000,
        restore_timeout_ms: 10_000,
        prompt_deadline_ms: None,
        writer_idle_timeout_ms: None,
        session_shell: false,
        prompt_run_deadline_ms: None,
        settle_grace_ms: 600_000,
        close_settle_ms: 600_000,
        idleness: serve::Idleness::default(),
        mediation: serve::Mediation::default(),
        host_launcher: "/nonexistent/turnd".into(),
        version: "0.0.0-test".into(),
    }
}

impl Daemon {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut ServeOptions)) -> Self {
        Self::on(Arc::new(tempfile::tempdir().unwrap()), change).await
    }

    async fn on(store: Arc<tempfile::TempDir>, change: impl FnOnce(&mut ServeOptions)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = Hosts::new();
        let mut options = options(store.path());
        change(&mut options);
        let (end, ending) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let server = Server::with_hosts(listener, options, Arc::new(hosts.clone())).await.unwrap();
        spawn(async move {
            server.run(async { drop(ending.await) }, std::future::pending()).await;
            let _ = done.send(());
        });
        let daemon = Self { address, hosts, store, end: Some(end), ended: Some(ended) };
        // Whatever it says, it runs.
        daemon.get("/health").await;
        daemon
    }

    /// What a second daemon on the same store is told; nothing when it may begin.
    pub(crate) fn second(&self) -> impl Future<Output = Option<String>> + use<> {
        self.second_with(|_| {})
    }

    /// The same of one with other options.
    pub(crate) fn second_with<C: FnOnce(&mut ServeOptions)>(
        &self,
        change: C,
    ) -> impl Future<Output = Option<String>> + use<C> {
        let mut options = options(self.store.path());
        change(&mut options);
        async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let second = Server::with_hosts(listener, options, Arc::new(Hosts::new())).await;
            second.err().map(|refused| refused.to_string())
        }
    }

    /// Ends the daemon gracefully.
    pub(crate) async fn stop(&mut self) {
        drop(self.end.take());
        if let Some(ended) = self.ended.take() {
            tokio::time::timeout(PATIENCE, ended).await.expect("the daemon did not end").unwrap();
        }
    }

    /// A daemon of the next life on the same store.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| {}).await
    }

    /// The same with other options.
    pub(crate) async fn restart_with(mut self, change: impl FnOnce(&mut ServeOptions)) -> Self {
        self.stop().await;
        Self::on(self.store.clone(), change).await
    }

    pub(crate) fn chats(&self) -> PathBuf {
        self.chats_of("-ws")
    }

    /// The same of another workspace, by its name in the store.
    pub(crate) fn chats_of(&self, name: &str) -> PathBuf {
        self.store.path().join("projects").join(name).join("chats")
    }

    pub(crate) fn ledger(&self, session: &str) -> String {
        std::fs::read_to_string(self.chats().join(format!("{session}.ledger.jsonl"))).unwrap_or_default()
    }

    /// Writes a file of the store.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.chats()).unwrap();
        std::fs::write(self.chats().join(name), text).unwrap();
    }

    /// A connection that the daemon serves, where the limit may refuse a few before.
    pub(crate) async fn the_only_connection(&self) -> Connection {
        let mut served = None;
        until("a connection is served", async || {
            let mut connection = Connection::open(self.address).await;
            connection.ask("GET /health", &[], b"").await;
            let is_served = connection.try_answer().await.is_some_and(|answer| answer.status == 200);
            served = is_served.then_some(connection);
            is_served
        })
        .await;
        served.unwrap()
    }

    /// One request on a connection of its own. A body is sent as JSON.
    pub(crate) async fn ask_with(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut connection = Connection::open(self.address).await;
        let mut all = headers.to_vec();
        if !body.is_empty() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            all.push(("content-type", "application/json"));
        }
        connection.ask(line, &all, body.as_bytes()).await;
        connection.answer().await
    }

    pub(crate) async fn ask(&self, line: &str, body: &str) -> Answer {
        self.ask_with(line, &[], body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask(&format!("POST {path}"), &body.to_string()).await
    }

    /// Creates a session of its own; its id.
    pub(crate) async fn create(&self) -> String {
        let answer = self.post("/session", json!({ "sessionScope": "thread" })).await;
        assert_eq!(answer.status, 200, "{}", answer.verdict());
        answer.json()["sessionId"].as_str().unwrap().to_owned()
    }

    /// Creates a session of its own; its id, and that of its one client.
    pub(crate) async fn create_with_client(&self) -> (String, String) {
        let created = self.post("/session", json!({ "sessionScope": "thread" })).await.json();
        let text = |key: &str| created[key].as_str().unwrap().to_owned();
        (text("sessionId"), text("clientId"))
    }

    /// Admits a prompt; its receipt.
    pub(crate) async fn prompt(&self, session: &str, text: &str) -> Value {
        let body = json!({ "prompt": [{ "type": "text", "text": text }] });
        let answer = self.post(&format!("/session/{session}/prompt"), body).await;
        assert_eq!(answer.status, 202, "{}", answer.verdict());
        answer.json()
    }

    /// A stream of a session's events from its beginning.
    pub(crate) async fn events(&self, session: &str) -> Stream {
        Stream::open(self.address, &format!("/session/{session}/events"), &[("last-event-id", "0")]).await
    }

    /// A stream of a session's events behind a cursor.
    pub(crate) async fn events_from(&self, session: &str, cursor: &Value) -> Stream {
        let path = format!("/session/{session}/events");
        Stream::open(self.address, &path, &[("last-event-id", &cursor.to_string())]).await
    }

    /// Admits a prompt and polls for its end, so that nobody reads what it says.
    pub(crate) async fn run_unread(&self, session: &str, text: &str) {
        let receipt = self.prompt(session, text).await;
        let prompt = receipt["promptId"].as_str().unwrap();
        until("the turn is over", async || self.turn(session, prompt).await.json()["state"] != "running").await;
    }

    /// Admits a prompt and waits for its end; its id.
    pub(crate) async fn run(&self, session: &str, text: &str) -> String {
        let receipt = self.prompt(session, text).await;
        let cursor = receipt["lastEventId"].to_string();
        let path = format!("/session/{session}/events");
        let mut stream = Stream::open(self.address, &path, &[("last-event-id", &cursor)]).await;
        loop {
            let envelope = stream.until(&["turn_complete", "turn_error"]).await;
            if envelope["data"]["promptId"] == receipt["promptId"] {
                return receipt["promptId"].as_str().unwrap().to_owned();
            }
        }
    }

    pub(crate) async fn turn(&self, session: &str, prompt: &str) -> Answer {
        self.get(&format!("/session/{session}/turns/{prompt}")).await
    }
}
