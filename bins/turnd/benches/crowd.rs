//! The daemon among many: sessions, readers, and one agent that floods. Measured from outside.
//!
//! `cargo bench -p turnd --bench crowd` prints one line a figure; `-- admissions` takes only that part. Client, daemon, hosts and agents
//! share the machine's cores.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says where")]

mod figures;
#[path = "../tests/it/http.rs"]
mod http;
#[path = "../tests/it/stream.rs"]
mod stream;
mod turns;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use figures::{AGENT, member, milliseconds, now, report, resident_mb, spread};
use http::{Connection, Daemon};
use turns::settle;

const SESSIONS: usize = 200;
const ADMISSIONS: usize = 4_000;
const READERS: usize = 64;
const EVENTS: usize = 500;
const FLOOD: usize = 1_000_000;
const CROWD: usize = 1_000;

fn main() {
    let base = std::env::temp_dir().join(format!("turnd-crowd-{}", std::process::id()));
    std::fs::create_dir_all(&base).unwrap();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let parts = ["admissions", "readers", "flood", "crowd"];
    for (name, measure) in parts.into_iter().zip([admissions, readers, flood, crowd] as [fn(&Path); 4]) {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            measure(&base.join(name));
        }
    }
    std::fs::remove_dir_all(&base).unwrap();
}

/// One client posts to two hundred live sessions in turn, while the turns that it caused run.
fn admissions(base: &Path) {
    let daemon = Daemon::start(base, &[&AGENT[..], &["--max-sessions", "200"]].concat());
    let mut connection = Connection::open(daemon.address);
    let sessions: Vec<String> = (0..SESSIONS).map(|_| session(&mut connection)).collect();
    let mut times = Vec::new();
    for number in 0..ADMISSIONS {
        let path = format!("/session/{}/prompt", sessions[number % SESSIONS]);
        let started = now();
        let (status, _) = connection.call("POST", &path, &prompt("hello"));
        times.push(milliseconds(started));
        assert_eq!(status, 202);
    }
    spread("prompt to 202, 200 sessions", times);
}

/// From the sending of a prompt to its first event in the hands of each of sixty-four readers.
fn readers(base: &Path) {
    let daemon = Daemon::start(base, &AGENT);
    let mut connection = Connection::open(daemon.address);
    let session = session(&mut connection);
    let (sender, echoes) = mpsc::channel();
    for _ in 0..READERS {
        let sender = sender.clone();
        stream::follow(daemon.address, &session, move |event| {
            if event.contains("user_message_chunk") {
                let _ = sender.send(now());
            }
        });
    }
    let mut times = Vec::new();
    for _ in 0..EVENTS {
        let started = now();
        let (_, receipt) = connection.call("POST", &format!("/session/{session}/prompt"), &prompt("empty"));
        times.extend(echoes.iter().take(READERS).map(|at| (at - started).as_secs_f64() * 1e3));
        settle(&mut connection, &session, &member(&receipt, "promptId"));
    }
    spread("prompt to its event, 64 readers", times);
}

/// Polls of one session while the agent of another sends updates as fast as it can.
fn flood(base: &Path) {
    let daemon = Daemon::start(base, &AGENT);
    let mut connection = Connection::open(daemon.address);
    let (quiet, loud) = (session(&mut connection), session(&mut connection));
    let (_, receipt) = connection.call("POST", &format!("/session/{quiet}/prompt"), &prompt("hello"));
    let settled = member(&receipt, "promptId");
    settle(&mut connection, &quiet, &settled);
    let over = Arc::new(AtomicBool::new(false));
    let poller = thread::spawn({
        let (over, address, path) = (Arc::clone(&over), daemon.address, format!("/session/{quiet}/turns/{settled}"));
        move || polls(address, &path, &over)
    });
    let started = now();
    let (_, receipt) = connection.call("POST", &format!("/session/{loud}/prompt"), &prompt(&format!("flood {FLOOD}")));
    let loud_prompt = member(&receipt, "promptId");
    let path = format!("/session/{loud}/turns/{loud_prompt}");
    while member(&connection.call("GET", &path, "").1, "state") == "running" {
        thread::park_timeout(std::time::Duration::from_millis(50));
    }
    let seconds = milliseconds(started) / 1e3;
    over.store(true, Ordering::Relaxed);
    report("updates of a flooding agent", FLOOD as f64 / seconds, "/s");
    spread("poll of another session meanwhile", poller.join().unwrap());
    report("resident afterwards", resident_mb(daemon.child.id()), "MB");
}

fn polls(address: SocketAddr, path: &str, over: &AtomicBool) -> Vec<f64> {
    let mut connection = Connection::open(address);
    let mut times = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let started = now();
        connection.call("GET", path, "");
        times.push(milliseconds(started));
        // A client that polls, and not one that takes a core for itself.
        thread::park_timeout(std::time::Duration::from_millis(1));
    }
    times
}

/// A thousand live sessions that each have had a turn.
fn crowd(base: &Path) {
    let daemon =
        Daemon::start(base, &[&AGENT[..], &["--max-sessions", "1000", "--max-total-sessions", "1000"]].concat());
    let mut connection = Connection::open(daemon.address);
    report("resident, no session", resident_mb(daemon.child.id()), "MB");
    let sessions: Vec<String> = (0..CROWD).map(|_| session(&mut connection)).collect();
    report("resident, 1000 sessions", resident_mb(daemon.child.id()), "MB");
    for session in &sessions {
        let (_, receipt) = connection.call("POST", &format!("/session/{session}/prompt"), &prompt("hello"));
        settle(&mut connection, session, &member(&receipt, "promptId"));
    }
    report("resident, each with a turn", resident_mb(daemon.child.id()), "MB");
}

fn session(connection: &mut Connection) -> String {
    member(&connection.call("POST", "/session", r#"{"sessionScope":"thread"}"#).1, "sessionId")
}

fn prompt(text: &str) -> String {
    format!(r#"{{"prompt":[{{"type":"text","text":"{text}"}}]}}"#)
}
