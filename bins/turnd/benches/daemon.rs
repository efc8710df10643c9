//! The daemon's figures, measured from outside: start, size at rest, the way of a prompt to its 202, polls a second.
//!
//! `cargo bench -p turnd --bench daemon` prints one line a figure. Client and daemon share the machine's cores.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says where")]

#[path = "../tests/it/http.rs"]
mod http;

use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

use http::{Connection, Daemon};

/// The built-in agent without the moment that it takes before an answer, so that the daemon is what is measured.
const AGENT: [&str; 2] = ["--agent", concat!(env!("CARGO_BIN_EXE_turnd"), " agent --answer-after-ms 0")];
const STARTS: usize = 15;
const PROMPTS: usize = 2_000;
const POLL_CONNECTIONS: usize = 4;
const POLLS_EACH: usize = 40_000;
const POLL_ROUNDS: usize = 5;

fn main() {
    let base = std::env::temp_dir().join(format!("turnd-bench-{}", std::process::id()));
    std::fs::create_dir_all(base.join("workspace")).unwrap();
    let mut starts: Vec<f64> = (0..STARTS).map(|_| milliseconds(|| drop(Daemon::start(&base, &[])))).collect();
    report("start to listening", median(&mut starts), "ms");

    let daemon = Daemon::start(&base, &AGENT);
    let mut connection = Connection::open(daemon.address);
    connection.call("GET", "/health", "");
    report("resident at rest", resident_mb(daemon.child.id()), "MB");

    let (_, session) = connection.call("POST", "/session", "{}");
    let session_id = member(&session, "sessionId");
    let prompt = r#"{"prompt":[{"type":"text","text":"hello"}]}"#;
    let mut admissions = Vec::new();
    let mut prompt_id = String::new();
    for _ in 0..PROMPTS {
        let started = now();
        let (_, receipt) = connection.call("POST", &format!("/session/{session_id}/prompt"), prompt);
        admissions.push(started.elapsed().as_secs_f64() * 1e3);
        prompt_id = member(&receipt, "promptId");
        settle(&mut connection, &session_id, &prompt_id);
    }
    admissions.sort_by(f64::total_cmp);
    report("prompt to 202, p50", admissions[PROMPTS / 2], "ms");
    report("prompt to 202, p99", admissions[PROMPTS * 99 / 100], "ms");

    let path = format!("/session/{session_id}/turns/{prompt_id}");
    let mut rounds: Vec<f64> = (0..POLL_ROUNDS).map(|_| poll_rate(daemon.address, &path)).collect();
    report("polls of a settled turn", median(&mut rounds), "requests/s");
    report("resident afterwards", resident_mb(daemon.child.id()), "MB");
    connection.call("DELETE", &format!("/session/{session_id}"), "");
    drop(daemon);
    std::fs::remove_dir_all(&base).unwrap();
}

/// Requests a second over several connections that are kept open.
fn poll_rate(address: SocketAddr, path: &str) -> f64 {
    let started = now();
    let pollers: Vec<_> = (0..POLL_CONNECTIONS)
        .map(|_| {
            let path = path.to_owned();
            thread::spawn(move || {
                let mut connection = Connection::open(address);
                for _ in 0..POLLS_EACH {
                    connection.call("GET", &path, "");
                }
            })
        })
        .collect();
    for poller in pollers {
        poller.join().unwrap();
    }
    (POLL_CONNECTIONS * POLLS_EACH) as f64 / started.elapsed().as_secs_f64()
}

/// Waits until the turn is over, so that the next prompt finds an idle session.
fn settle(connection: &mut Connection, session_id: &str, prompt_id: &str) {
    let path = format!("/session/{session_id}/turns/{prompt_id}");
    for _ in 0..100_000 {
        if member(&connection.call("GET", &path, "").1, "state") == "completed" {
            return;
        }
    }
    panic!("the turn never settled");
}

fn member(json: &str, key: &str) -> String {
    let start = json.split(&format!("\"{key}\":\"")).nth(1).unwrap_or_else(|| panic!("no {key} in {json}"));
    start.split('"').next().unwrap().to_owned()
}

fn resident_mb(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn milliseconds(run: impl FnOnce()) -> f64 {
    let started = now();
    run();
    started.elapsed().as_secs_f64() * 1e3
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn report(what: &str, figure: f64, unit: &str) {
    println!("{what:<28} {figure:>12.3} {unit}");
}
