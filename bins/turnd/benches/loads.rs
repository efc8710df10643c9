//! What a load costs: of a session of 100 MB that lies on disk, and of one that lives, whatever was said in it.
//!
//! `cargo bench -p turnd --bench loads` prints one line a figure. Client and daemon share the machine's cores; a load counts from the
//! request to the last byte of its reply.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says where")]

mod figures;
#[path = "../tests/it/http.rs"]
mod http;
mod turns;

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use figures::{AGENT, member, milliseconds, now, report, resident_mb, spread};
use http::{Connection, Daemon};
use turns::settle;

const SESSION: &str = "11111111-1111-4111-8111-111111111111";
const SESSION_BYTES: usize = 100_000_000;
const COLD_LOADS: usize = 9;
const ATTACHES: usize = 500;
/// Turns of a few events, so that the window holds many small ones.
const SMALL_TURNS: usize = 500;

fn main() {
    let base = std::env::temp_dir().join(format!("turnd-bench-loads-{}", std::process::id()));
    std::fs::create_dir_all(base.join("workspace")).unwrap();
    let daemon = Daemon::start(&base, &AGENT);
    write_session(&base);
    cold(&daemon);
    attached(&daemon);
    drop(daemon);
    std::fs::remove_dir_all(&base).unwrap();
}

/// Loads of a session that lies on disk, its host and its agent started each time.
fn cold(daemon: &Daemon) {
    let mut connection = Connection::open(daemon.address);
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..COLD_LOADS {
        let (time, read) = load(daemon.address, SESSION);
        times.push(time);
        bytes = read;
        assert_eq!(connection.call("DELETE", &format!("/session/{SESSION}"), "").0, 204);
    }
    report("cold load of 100 MB, its reply", bytes as f64 / 1e6, "MB");
    spread("cold load of 100 MB", times);
    report("resident after them", resident_mb(daemon.child.id()), "MB");
    report("resident at most", peak_mb(daemon.child.id()), "MB");
}

/// Loads of a session that lives.
fn attached(daemon: &Daemon) {
    let mut connection = Connection::open(daemon.address);
    let (_, created) = connection.call("POST", "/session", r#"{"sessionScope":"thread"}"#);
    let session = member(&created, "sessionId");
    attaches("attach to a session without a word", daemon.address, &session);
    for _ in 0..SMALL_TURNS {
        run(&mut connection, &session, "hello");
    }
    attaches("attach behind 500 small turns", daemon.address, &session);
    run(&mut connection, &session, "flood 1000000");
    attaches("attach behind a million updates", daemon.address, &session);
    run(&mut connection, &session, "long 20000000");
    attaches("attach behind an answer of 20 MB", daemon.address, &session);
    report("resident after them", resident_mb(daemon.child.id()), "MB");
}

fn attaches(what: &str, address: SocketAddr, session: &str) {
    let loads: Vec<_> = (0..ATTACHES).map(|_| load(address, session)).collect();
    report(&format!("{what}, its reply"), loads[0].1 as f64 / 1e6, "MB");
    spread(what, loads.into_iter().map(|(time, _)| time).collect());
}

fn run(connection: &mut Connection, session: &str, text: &str) {
    let prompt = format!(r#"{{"prompt":[{{"type":"text","text":"{text}"}}]}}"#);
    let (_, receipt) = connection.call("POST", &format!("/session/{session}/prompt"), &prompt);
    settle(connection, session, &member(&receipt, "promptId"));
}

/// One load; how long it took in milliseconds, and the bytes of its reply.
fn load(address: SocketAddr, session: &str) -> (f64, usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut reply = vec![0; 256 * 1024];
    let started = now();
    let request = format!("POST /session/{session}/load HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let (mut head, mut left) = (0, None);
    let mut total = 0;
    while left != Some(0) {
        let read = stream.read(&mut reply[head..]).unwrap();
        assert!(read > 0, "the daemon hung up");
        match &mut left {
            Some(left) => *left -= read,
            None => {
                head += read;
                if let Some(end) = reply[..head].windows(4).position(|end| end == b"\r\n\r\n") {
                    total = content_length(&reply[..end]);
                    left = Some(total - (head - end - 4));
                    head = 0;
                }
            }
        }
    }
    (milliseconds(started), total)
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().trim().parse().unwrap()
}

/// The most that a process ever held in memory.
fn peak_mb(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Writes a session of turns with a question, a tool and an answer, about 16 KB each.
fn write_session(base: &Path) {
    let workspace = base.join("workspace").canonicalize().unwrap();
    let workspace = workspace.to_str().unwrap();
    let folder: String =
        workspace.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let chats = base.join("store/projects").join(folder).join("chats");
    std::fs::create_dir_all(&chats).unwrap();
    let (mut text, mut number) = (String::with_capacity(SESSION_BYTES), 0);
    while text.len() < SESSION_BYTES {
        for kind in KINDS {
            let parent = if number == 0 { "null".to_owned() } else { format!("\"r{}\"", number - 1) };
            let (seconds, minutes, hours) = (number % 60, number / 60 % 60, number / 3600 % 24);
            writeln!(
                text,
                r#"{{"uuid":"r{number}","parentUuid":{parent},"sessionId":"{SESSION}","timestamp":"2026-11-{:02}T{hours:02}:{minutes:02}:{seconds:02}.000Z","cwd":"{workspace}","version":"0.24.4",{}}}"#,
                1 + number / 86_400,
                record(kind, number),
            )
            .unwrap();
            number += 1;
        }
    }
    std::fs::write(chats.join(format!("{SESSION}.jsonl")), text).unwrap();
}

const KINDS: [&str; 7] =
    ["user", "file_history_snapshot", "call", "tool_result", "assistant", "ui_telemetry", "turn_result"];

fn record(kind: &str, number: usize) -> String {
    let words = |times: usize| r#"the quick brown fox says \"hello\" and jumps over the lazy dog\n"#.repeat(times);
    match kind {
        "user" => format!(
            r#""type":"user","daemonPromptId":"p{number}","message":{{"role":"user","parts":[{{"text":"{}"}}]}}"#,
            words(1)
        ),
        "call" => format!(
            r#""type":"assistant","message":{{"role":"model","parts":[{{"text":"{}"}},{{"functionCall":{{"id":"c{number}","name":"read_file","args":{{"path":"a"}}}}}}]}}"#,
            words(3)
        ),
        "tool_result" => format!(
            r#""type":"tool_result","message":{{"role":"user","parts":[{{"functionResponse":{{"id":"c{}","name":"read_file","response":{{"output":"{}"}}}}}}]}}"#,
            number - 1,
            words(150)
        ),
        "assistant" => {
            format!(r#""type":"assistant","message":{{"role":"model","parts":[{{"text":"{}"}}]}}"#, words(30))
        }
        "turn_result" => format!(
            r#""type":"system","subtype":"turn_result","systemPayload":{{"promptId":"p{}","state":"completed","stopReason":"end_turn","resultText":"{}"}}"#,
            number - 6,
            words(30)
        ),
        subtype => format!(r#""type":"system","subtype":"{subtype}","systemPayload":{{}}"#),
    }
}
