//! Durable return requests with the whole program, measured from outside, beside the disk they lie on.
//!
//! `cargo bench -p turnd --bench returns` prints one line a figure. Client, daemon, hosts and agents share the machine's cores.
//! `-- --filled 1000000` puts so many ended requests into the daemon's store first.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says where")]

mod figures;
#[path = "../../../crates/request/benches/filled/mod.rs"]
mod filled;
#[path = "../tests/it/http.rs"]
mod http;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use figures::{AGENT, member, milliseconds, now, report, resident_mb, spread};
use http::{Connection, Daemon};
use request as request_crate;

const COMMITS: usize = 2_000;
const SESSIONS: usize = 64;
const ALONE: usize = 2_000;
const EACH: usize = 100;
const WATCHED: usize = 500;

fn main() {
    if filled::is_asked() {
        return;
    }
    let base = std::env::temp_dir().join(format!("turnd-returns-{}", std::process::id()));
    std::fs::create_dir_all(&base).unwrap();
    raw(&base);
    fill(&base);
    let daemon = Daemon::start(
        &base,
        &[&AGENT[..], &["--max-sessions", "100", "--max-total-sessions", "100", "--max-connections", "512"]].concat(),
    );
    let mut connection = Connection::open(daemon.address);
    opened(&mut connection);
    report("resident before", resident_mb(daemon.child.id()), "MB");
    let sessions: Vec<String> = (0..SESSIONS).map(|_| session(&mut connection)).collect();
    alone(&mut connection, &sessions);
    together(daemon.address, &sessions);
    watched(daemon.address, &sessions);
    report("resident afterwards", resident_mb(daemon.child.id()), "MB");
    drop(daemon);
    std::fs::remove_dir_all(&base).unwrap();
}

/// Puts as many ended requests into the store as the arguments ask for, once a daemon has made it.
fn fill(base: &Path) {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(place) = arguments.iter().position(|argument| argument == "--filled") else { return };
    let daemon = Daemon::start(base, &AGENT);
    opened(&mut Connection::open(daemon.address));
    drop(daemon);
    filled::in_a_process_of_its_own(&store(base).unwrap(), arguments[place + 1].parse().unwrap());
}

/// The folder of the store, wherever the daemon laid it.
fn store(below: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    if files.iter().any(|file| file.ends_with("requests.db")) {
        return Some(below.to_owned());
    }
    folders.iter().find_map(|folder| store(folder))
}

/// Waits until the store is open: the daemon serves before it is.
fn opened(connection: &mut Connection) {
    let begun = now();
    while connection.call("GET", "/return-requests/stream", "").0 != 200 {
        thread::sleep(Duration::from_millis(5));
    }
    report("the store is open after", milliseconds(begun), "ms");
}

/// What the disk takes for one flushed write.
fn raw(base: &Path) {
    let mut file = std::fs::File::create(base.join("raw")).unwrap();
    let times = (0..COMMITS).map(|_| {
        let started = now();
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
        milliseconds(started)
    });
    spread("the disk: append of 4 KiB, flushed", times.collect());
}

/// One client, one session after the other. Each has ended before its turn comes again.
fn alone(connection: &mut Connection, sessions: &[String]) {
    let mut times = Vec::new();
    let mut last: Vec<Option<String>> = vec![None; sessions.len()];
    for number in 0..ALONE {
        let place = number % sessions.len();
        if let Some(request) = last[place].take() {
            wait(connection, &request);
        }
        let started = now();
        let (status, receipt) = submit(connection, &sessions[place]);
        times.push(milliseconds(started));
        assert_eq!(status, 202, "{receipt}");
        last[place] = Some(member(&receipt, "request_id"));
    }
    last.iter().flatten().for_each(|request| wait(connection, request));
    spread("a request to its 202, one client", times);
}

/// A client a session, each of which waits for the end before it asks again.
fn together(address: SocketAddr, sessions: &[String]) {
    let started = now();
    let clients: Vec<_> = sessions
        .iter()
        .cloned()
        .map(|session| {
            thread::spawn(move || {
                let mut connection = Connection::open(address);
                let mut times = Vec::new();
                for _ in 0..EACH {
                    let started = now();
                    let (status, receipt) = submit(&mut connection, &session);
                    times.push(milliseconds(started));
                    assert_eq!(status, 202, "{receipt}");
                    wait(&mut connection, &member(&receipt, "request_id"));
                }
                times
            })
        })
        .collect();
    let times: Vec<f64> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let seconds = milliseconds(started) / 1e3;
    report("whole requests of 64 clients", times.len() as f64 / seconds, "/s");
    spread("a request to its 202, 64 clients", times);
}

/// From the end as the store dates it, to its line in the hands of a watcher. The date is in whole milliseconds and rounded down.
fn watched(address: SocketAddr, sessions: &[String]) {
    let (sender, lines) = mpsc::channel();
    let mut connection = Connection::open(address);
    let (_, head) = connection.call("GET", "/return-requests/stream", "");
    let after: String = head.split("\"head\":").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!(
            "GET /return-requests/events?after={after} HTTP/1.1\r\nhost: {address}\r\naccept: application/x-ndjson\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if let Some(ended) = line.split("\"ended_at\":").nth(1) {
                let ended: String = ended.chars().take_while(char::is_ascii_digit).collect();
                let _ = sender.send(epoch_ms() - ended.parse::<f64>().unwrap());
            }
        }
    });
    let mut times = Vec::new();
    for number in 0..WATCHED {
        let (status, receipt) = submit(&mut connection, &sessions[number % sessions.len()]);
        assert_eq!(status, 202, "{receipt}");
        times.push(lines.recv().unwrap());
    }
    spread("an end to its line at a watcher, at most", times);
}

fn submit(connection: &mut Connection, session: &str) -> (u16, String) {
    let body = r#"{"prompt":[{"type":"text","text":"hello"}]}"#;
    connection.call("POST", &format!("/session/{session}/return-requests"), body)
}

fn wait(connection: &mut Connection, request: &str) {
    let (status, receipt) = connection.call("GET", &format!("/return-requests/{request}?wait_ms=30000"), "");
    assert!(status == 200 && receipt.contains("\"state\":\"completed\""), "{receipt}");
}

fn session(connection: &mut Connection) -> String {
    member(&connection.call("POST", "/session", r#"{"sessionScope":"thread"}"#).1, "sessionId")
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn epoch_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1e3
}
