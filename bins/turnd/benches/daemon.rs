//! The daemon's figures, measured from outside: start, size at rest, the way of a prompt to its 202, polls a second.
//!
//! `cargo bench -p turnd --bench daemon` prints one line a figure. Client and daemon share the machine's cores.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says where")]

mod figures;
#[path = "../tests/it/http.rs"]
mod http;
mod turns;

use std::net::SocketAddr;
use std::thread;

use figures::{AGENT, member, milliseconds, now, report, resident_mb, spread};
use http::{Connection, Daemon};
use turns::settle;

const STARTS: usize = 15;
const PROMPTS: usize = 2_000;
const POLL_CONNECTIONS: usize = 4;
const POLLS_EACH: usize = 40_000;
const POLL_ROUNDS: usize = 5;

fn main() {
    let base = std::env::temp_dir().join(format!("turnd-bench-{}", std::process::id()));
    std::fs::create_dir_all(base.join("workspace")).unwrap();
    let start = |_| {
        let started = now();
        drop(Daemon::start(&base, &[]));
        milliseconds(started)
    };
    let mut starts: Vec<f64> = (0..STARTS).map(start).collect();
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
        admissions.push(milliseconds(started));
        prompt_id = member(&receipt, "promptId");
        settle(&mut connection, &session_id, &prompt_id);
    }
    spread("prompt to 202", admissions);

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

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
