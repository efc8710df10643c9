//! A host process with a test in the daemon's place.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long anything may take before a test counts as failed. Far above what it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(POLL).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never came: {what}"));
}

/// The program around the host, built by `cargo test` with the tests.
pub(crate) fn program() -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples").join("host");
    assert!(path.exists(), "{} is missing: run `cargo test -p turnd-host`, which builds it", path.display());
    path
}

/// A store with one session, which outlives its hosts.
pub(crate) struct Store {
    folder: TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("chats")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn transcript(&self) -> PathBuf {
        self.path("chats/session-1.jsonl")
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.transcript()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The records in short: types, and the subtypes of system records.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let kind = |record: &Value| record.get("subtype").unwrap_or(&record["type"]).as_str().unwrap().to_owned();
        self.records().iter().map(kind).collect()
    }

    /// The result of a prompt's turn.
    pub(crate) fn result(&self, prompt_id: &str) -> Option<Value> {
        let of_prompt = |payload: &Value| payload["promptId"] == prompt_id;
        let results = self.records().into_iter().filter(|record| record["subtype"] == "turn_result");
        results.map(|record| record["systemPayload"].clone()).find(of_prompt)
    }

    /// Ends what a dead host of the session left behind.
    pub(crate) async fn sweep(&self) {
        let mut sweep = Command::new(program());
        sweep.args(["host", "--sweep"]).arg(self.transcript());
        assert!(timeout(PATIENCE, sweep.status()).await.expect("the sweep ends in time").unwrap().success());
    }

    /// Starts a host over the built-in agent.
    pub(crate) fn host(&self, settings: &[&str]) -> Host {
        let program = program();
        self.host_over(settings, &[program.to_str().unwrap(), "agent"])
    }

    /// Starts a host over a shell script.
    pub(crate) fn host_over_script(&self, settings: &[&str], script: &str) -> Host {
        self.host_over(settings, &["/bin/sh", "-c", script])
    }

    pub(crate) fn host_over(&self, settings: &[&str], command: &[&str]) -> Host {
        let mut host = Command::new(program());
        host.arg("host").args(["session=session-1", &format!("transcript={}", self.transcript().display())]);
        host.arg(format!("workspace={}", self.folder.path().display())).args(settings).arg("--").args(command);
        host.env("TURND_TOKEN", "secret").env_remove(turnd_host::SESSION_FILE_MARK);
        let mut child = host.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Host { child, stdin, lines: Some(lines), next_id: 0, session: String::new() }
    }
}

/// A running host.
pub(crate) struct Host {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    next_id: u64,
    session: String,
}

impl Host {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request and gives its id.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// The next line; none at the end.
    pub(crate) async fn line(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.lines.as_mut().unwrap().next_line()).await.expect("a line in time").unwrap();
        // The last line is torn when the host gave up on a reader that was too slow.
        line.map(|line| acp::lenient_value(&line).unwrap_or_default())
    }

    /// Reads on to the answer of a request; everything before it is skipped.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.line().await.expect("an answer before the end");
            if line.get("method").is_none() && line["id"] == id {
                return line;
            }
        }
    }

    /// Reads on to a message of the agent.
    pub(crate) async fn until(&mut self, method: &str) -> Value {
        loop {
            let line = self.line().await.unwrap_or_else(|| panic!("{method} before the end"));
            if line["method"] == method {
                return line;
            }
        }
    }

    /// Reads to the end and gives what came.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(line) = self.line().await {
            rest.push(line);
        }
        rest
    }

    pub(crate) async fn initialize(&mut self) -> Value {
        let id = self.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await;
        self.answer(id).await
    }

    /// Initialises and opens a new session.
    pub(crate) async fn open(&mut self) -> Value {
        self.initialize().await;
        let id = self.ask("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
        let answer = self.answer(id).await;
        self.session = answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        answer
    }

    /// Initialises and restores the session.
    pub(crate) async fn load(&mut self) -> Value {
        self.initialize().await;
        let params = json!({ "sessionId": "session-1", "cwd": "/", "mcpServers": [] });
        let id = self.ask("session/load", params).await;
        let answer = self.answer(id).await;
        self.session = answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        answer
    }

    /// Prompts from here on go to the session that this answer names.
    pub(crate) fn go_on_as(&mut self, answer: &Value) {
        self.session = answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    }

    pub(crate) async fn prompt(&mut self, prompt_id: &str, text: &str) -> u64 {
        let params = json!({
            "sessionId": self.session,
            "prompt": [{ "type": "text", "text": text }],
            "_meta": { "qwen-code/invocation": { "version": 1, "sessionId": "session-1", "promptId": prompt_id } },
        });
        self.ask("session/prompt", params).await
    }

    /// The same with a prompt whose sender wants to know how much of it the agent has.
    pub(crate) async fn prompt_witnessed(&mut self, prompt_id: &str, text: &str) -> u64 {
        let params = self.witnessed(prompt_id, text);
        self.ask("session/prompt", params).await
    }

    /// Writes a prompt without so many bytes of its end, and the daemon dies over it.
    pub(crate) async fn prompt_cut_off(&mut self, prompt_id: &str, missing: usize) {
        let params = self.witnessed(prompt_id, "hi");
        let line = json!({ "jsonrpc": "2.0", "id": self.next_id, "method": "session/prompt", "params": params });
        let line = format!("{line}\n");
        self.stdin.as_mut().unwrap().write_all(&line.as_bytes()[..line.len() - missing]).await.unwrap();
        self.daemon_dies();
    }

    fn witnessed(&self, prompt_id: &str, text: &str) -> Value {
        json!({
            "sessionId": self.session,
            "prompt": [{ "type": "text", "text": text }],
            "_meta": { "qwen-code/invocation": { "promptId": prompt_id }, "turnd/witnessed": true },
        })
    }

    /// How long the line of such a prompt without a text is, in bytes, the end of the line included.
    pub(crate) fn witnessed_bytes(&self, prompt_id: &str) -> usize {
        let params = self.witnessed(prompt_id, "");
        let line = json!({ "jsonrpc": "2.0", "id": self.next_id, "method": "session/prompt", "params": params });
        line.to_string().len() + 1
    }

    /// Prompts and reads on to the answer.
    pub(crate) async fn turn(&mut self, prompt_id: &str, text: &str) -> Value {
        let id = self.prompt(prompt_id, text).await;
        self.answer(id).await
    }

    pub(crate) async fn cancel(&mut self) {
        let session = self.session.clone();
        self.notify("session/cancel", json!({ "sessionId": session })).await;
    }

    /// Answers a request of the agent.
    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// Closes the session in order and waits for the host to end.
    pub(crate) async fn close(&mut self) {
        self.notify("turnd/close", json!({ "reason": "session_closed" })).await;
        self.rest().await;
        self.ended().await;
    }

    /// What a daemon's death looks like from here: both pipes close.
    pub(crate) fn daemon_dies(&mut self) {
        self.stdin = None;
        self.lines = None;
    }

    /// No longer listens, but does not hang up.
    pub(crate) fn stop_listening(&mut self) {
        self.lines = None;
    }

    pub(crate) async fn ended(&mut self) {
        let status = timeout(PATIENCE, self.child.wait()).await.expect("the host ends in time").unwrap();
        assert!(status.success(), "{status}");
    }
}

/// The stable code of an error answer.
pub(crate) fn code(answer: &Value) -> &str {
    answer["error"]["data"]["turnd/code"].as_str().unwrap_or_else(|| panic!("no stable code: {answer}"))
}

/// The cause that an error answer gives.
pub(crate) fn details(answer: &Value) -> &str {
    answer["error"]["data"]["details"].as_str().unwrap_or_else(|| panic!("no details: {answer}"))
}

/// Whether a process runs; one that only waits to be reaped does not.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// A file's content, once it is there and whole lines stand in it.
pub(crate) async fn content(path: &Path) -> String {
    let read = || std::fs::read_to_string(path).unwrap_or_default();
    eventually("a file with a line", || read().ends_with('\n')).await;
    read()
}
