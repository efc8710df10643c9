//! A world with one store, one daemon at a time, and the means to kill what runs in it.

mod aftermath;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Connection, Daemon};

/// Looks at a condition this often, and gives up after this many looks: half a minute.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOKS_MAX: usize = 3_000;

/// Where the agents of a journaled world write, below its base.
const JOURNAL: &str = "journal.jsonl";

pub(crate) struct World {
    base: TempDir,
    flags: Vec<String>,
    daemon: Daemon,
    connection: Connection,
}

/// The processes of a session.
#[derive(Clone, Copy)]
pub(crate) struct Cast {
    pub(crate) daemon: u32,
    pub(crate) host: u32,
    pub(crate) agent: u32,
}

impl World {
    /// A daemon with the built-in agent over an empty store.
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(flags: &[&str]) -> Self {
        Self::over(tempfile::tempdir().unwrap(), flags.iter().map(ToString::to_string).collect())
    }

    /// A daemon whose log goes to a file.
    pub(crate) fn logging_to(log: fs::File) -> Self {
        let base = tempfile::tempdir().unwrap();
        let daemon = Daemon::logging(base.path(), &[], log.into());
        let connection = Connection::open(daemon.address);
        Self { base, flags: Vec::new(), daemon, connection }
    }

    /// The same, where every agent keeps a synced journal, all of them the same.
    pub(crate) fn journaled(flags: &[&str]) -> Self {
        Self::journaled_agent(&[], flags)
    }

    /// The same with flags for the agents.
    pub(crate) fn journaled_agent(of_agent: &[&str], flags: &[&str]) -> Self {
        let base = tempfile::tempdir().unwrap();
        let journal = base.path().join(JOURNAL).display().to_string();
        let always = [env!("CARGO_BIN_EXE_turnd"), "agent", "--answer-after-ms", "0", "--journal", &journal];
        let agent = always.iter().chain(of_agent).map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let flags = ["--agent", &agent].iter().chain(flags).map(ToString::to_string).collect();
        Self::over(base, flags)
    }

    fn over(base: TempDir, flags: Vec<String>) -> Self {
        let daemon = Daemon::start(base.path(), &borrowed(&flags));
        let connection = Connection::open(daemon.address);
        let mut world = Self { base, flags, daemon, connection };
        world.until_opened();
        world
    }

    /// Waits until the daemon has opened its store of return requests or has said why there is none: under load that takes longer than its
    /// callers are let wait. Not of one that counts its callers: these would be among them.
    fn until_opened(&mut self) {
        if self.flags.iter().any(|flag| flag == "--rate-limit") {
            return;
        }
        until("the store is open or said to be none", || {
            let answer = self.connection.try_call("GET", "/return-requests/stream", "");
            (!answer.is_some_and(|(_, text)| text.contains("is being opened"))).then_some(())
        });
    }

    /// Every line of the agents' journal.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.base.path().join(JOURNAL)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.daemon.address
    }

    /// A connection of its own.
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.daemon.address)
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.base.path().canonicalize().unwrap()
    }

    pub(crate) fn call(&mut self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let Some((status, text)) = self.connection.try_call(method, path, body) else {
            panic!("no answer to {method} {path}; of the daemon: {:?}", self.daemon.child.try_wait())
        };
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// One request on a connection of its own, whose peer may hang up before it has read all: the status, if it came.
    pub(crate) fn call_once(&mut self, method: &str, path: &str, body: &str) -> Option<u16> {
        Connection::open(self.daemon.address).try_call(method, path, body).map(|(status, _)| status)
    }

    /// How much memory the daemon has now, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    }

    /// The daemon's process.
    pub(crate) fn pid(&self) -> u32 {
        self.daemon.child.id()
    }

    pub(crate) fn get(&mut self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, "");
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    pub(crate) fn session(&mut self) -> String {
        let (status, body) = self.call("POST", "/session", r#"{"sessionScope":"thread"}"#);
        assert_eq!(status, 200, "{body}");
        body["sessionId"].as_str().unwrap().to_owned()
    }

    /// Posts a prompt and returns its id.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> String {
        let body = json!({"prompt": [{"type": "text", "text": text}]}).to_string();
        let (status, receipt) = self.call("POST", &format!("/session/{session}/prompt"), &body);
        assert_eq!(status, 202, "{receipt}");
        receipt["promptId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn load(&mut self, session: &str) -> Value {
        let (status, body) = self.call("POST", &format!("/session/{session}/load"), "{}");
        assert_eq!(status, 200, "{body}");
        body
    }

    /// The transcript of a session as it stands; nothing where there is none.
    pub(crate) fn transcript(&self, session: &str) -> String {
        fs::read_to_string(chats(self).join(format!("{session}.jsonl"))).unwrap_or_default()
    }

    /// The ledger of a session as it stands.
    pub(crate) fn ledger(&self, session: &str) -> String {
        fs::read_to_string(chats(self).join(format!("{session}.ledger.jsonl"))).unwrap_or_default()
    }

    /// Waits until the prompt's turn is over.
    pub(crate) fn settle(&mut self, session: &str, prompt: &str) -> Value {
        let path = format!("/session/{session}/turns/{prompt}");
        until("the turn is over", || {
            let turn = self.get(&path);
            (turn["state"] != "queued" && turn["state"] != "running").then_some(turn)
        })
    }

    /// Waits until the agent has begun to answer: the transcript holds the stamped user record and a chunk was published.
    pub(crate) fn until_chunk(&mut self, session: &str, prompt: &str) {
        let path = format!("/session/{session}/turns/{prompt}");
        let transcript = chats(self).join(format!("{session}.jsonl"));
        until("the turn runs", || {
            let written = fs::read_to_string(&transcript).unwrap_or_default().contains(prompt);
            (written && self.get(&path)["state"] == "running").then_some(())
        });
    }

    pub(crate) fn until_gone(&mut self, session: &str) {
        let path = format!("/session/{session}/status");
        until("the session is gone", || (self.call("GET", &path, "").0 == 404).then_some(()));
    }

    /// Kills the daemon with signal 9 and starts another one on the same store.
    pub(crate) fn kill_daemon(&mut self) {
        self.daemon.child.kill().unwrap();
        self.daemon.child.wait().unwrap();
        self.restart();
    }

    /// Kills daemon, hosts and agents with signal 9, the daemon first, and starts another daemon on the same store.
    pub(crate) fn kill_everything(&mut self) {
        self.end_everything();
        self.restart();
    }

    /// Kills daemon, hosts and agents with signal 9, the daemon first.
    pub(crate) fn end_everything(&mut self) {
        let family = self.family();
        self.kill(family);
    }

    /// The same, and the hosts live on.
    pub(crate) fn kill_all_but_hosts(&mut self) {
        let is_host = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"host")
        };
        let doomed = self.family().into_iter().filter(|pid| !is_host(pid)).collect();
        self.kill(doomed);
        self.restart();
    }

    fn kill(&mut self, family: BTreeSet<u32>) {
        let pids: Vec<String> = family.iter().map(ToString::to_string).collect();
        let script = format!("kill -STOP {0}; kill -KILL {0}", pids.join(" "));
        // A process that ended by itself in between is as dead as the others.
        Command::new("sh").args(["-c", &script]).stderr(std::process::Stdio::null()).status().unwrap();
        self.daemon.child.wait().unwrap();
        self.until_dead(&family);
    }

    /// Kills the host of one session with signal 9, and nothing else.
    pub(crate) fn kill_host(&self, session: &str) {
        self.signal_host(session, "KILL");
    }

    /// Sends a signal to the host of one session.
    pub(crate) fn signal_host(&self, session: &str, signal: &str) {
        self.signal(&[self.host(session)], signal);
    }

    fn host(&self, session: &str) -> u32 {
        let runs_it = |pid: &&u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.contains(&&b"host"[..]) && words.contains(&session.as_bytes())
        };
        *self.family().iter().find(runs_it).unwrap()
    }

    /// The processes of a session whose host was started by this daemon.
    pub(crate) fn cast(&self, session: &str) -> Cast {
        let host = self.host(session);
        let runs_below = |(_, parent): &&(u32, u32)| *parent == host;
        let agent = until("the agent runs", || parents().iter().find(runs_below).map(|(pid, _)| *pid));
        Cast { daemon: self.pid(), host, agent }
    }

    /// Sends a signal to each of them that has not ended by itself.
    pub(crate) fn signal(&self, pids: &[u32], signal: &str) {
        let pids = pids.iter().map(ToString::to_string);
        let quiet = std::process::Stdio::null();
        Command::new("kill").arg(format!("-{signal}")).args(pids).stderr(quiet).status().unwrap();
    }

    /// Waits until a process has stopped itself.
    pub(crate) fn until_stopped(&self, pid: u32) {
        until("the process stops", || stat(pid).filter(|(state, _)| *state == 'T'));
    }

    /// How many prompts the agents were asked for.
    pub(crate) fn heard(&self) -> usize {
        let text = fs::read_to_string(self.base.path().join(JOURNAL)).unwrap_or_default();
        // The last line may be one over which its agent was killed.
        text.lines().filter(|line| line.contains(r#""heard""#) && line.contains(r#""session/prompt""#)).count()
    }

    /// Starts another daemon on the same store, the one before having ended.
    pub(crate) fn start_again(&mut self) {
        self.restart();
    }

    /// The same with further flags.
    pub(crate) fn start_again_with(&mut self, more: &[&str]) {
        let flags = [borrowed(&self.flags).as_slice(), more].concat();
        self.daemon = Daemon::start(self.base.path(), &flags);
        self.connection = Connection::open(self.daemon.address);
        self.until_opened();
    }

    /// Ends the daemon, if it runs, and starts one whose store of return requests fails as it is planned.
    pub(crate) fn restart_failing(&mut self, plan: &str) {
        // It may have ended by its own plan.
        let _ = self.daemon.child.kill();
        self.daemon.child.wait().unwrap();
        self.daemon = Daemon::planned(self.base.path(), &borrowed(&self.flags), std::process::Stdio::inherit(), plan);
        self.connection = Connection::open(self.daemon.address);
        // Unless it stops or ends before it could say so.
        if !plan.contains("open") && !plan.contains("recovered") {
            self.until_opened();
        }
    }

    /// Does something again and again until the daemon has ended. Nobody else is given its pid before that was seen here.
    pub(crate) fn until_ended_by(&mut self, urge: impl Fn()) {
        until("the daemon has ended", || {
            let ended = self.daemon.child.try_wait().unwrap().map(|_| ());
            if ended.is_none() {
                urge();
            }
            ended
        });
    }

    /// Waits until the daemon has ended, and starts another one on the same store.
    pub(crate) fn until_killed(&mut self) {
        until("the daemon has ended", || self.daemon.child.try_wait().unwrap().map(|_| ()));
        self.restart();
    }

    fn restart(&mut self) {
        self.start_again_with(&[]);
    }

    /// Asks the daemon to end and returns its exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let script = format!("kill -TERM {}", self.daemon.child.id());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        self.daemon.child.wait().unwrap().code()
    }

    /// The daemon and everything below it.
    pub(crate) fn family(&self) -> BTreeSet<u32> {
        let parents = parents();
        let mut family = BTreeSet::from([self.daemon.child.id()]);
        loop {
            let before = family.len();
            family.extend(
                parents.iter().filter(|(_, parent)| family.contains(parent)).map(|(pid, _)| *pid).collect::<Vec<_>>(),
            );
            if family.len() == before {
                return family;
            }
        }
    }

    pub(crate) fn until_dead(&self, family: &BTreeSet<u32>) {
        until("the processes are gone", || family.iter().all(|pid| !alive(*pid)).then_some(()));
    }
}

fn borrowed(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

/// The folder that holds the world's sessions.
pub(crate) fn chats(world: &World) -> PathBuf {
    let workspace = world.base().join("workspace");
    transcript::layout::chats_dir(&world.base().join("store"), &workspace)
}

/// Looks until there is something, or fails.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS_MAX {
        if let Some(found) = look() {
            return found;
        }
        thread::park_timeout(LOOK_EVERY);
    }
    panic!("it never came to be that {what}");
}

/// Whether the process runs: a zombie does not.
pub(crate) fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

/// Every process and its parent.
fn parents() -> Vec<(u32, u32)> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?.1)))
        .collect()
}

/// State and parent of a process; its name may hold anything, so the fields are read behind the last bracket.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit(')').next()?.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
