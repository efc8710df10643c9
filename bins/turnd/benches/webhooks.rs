//! Webhooks with the whole program, measured by whoever is posted to.
//!
//! `cargo bench -p turnd --bench webhooks` prints one line a figure. Receivers, daemon, hosts and agents share the machine's cores, and the
//! receivers do nothing but to answer. A try is a connection of its own and two commits, flushed; there are sixteen endpoints at most.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says where")]

mod figures;
#[path = "../tests/it/http.rs"]
mod http;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use figures::{AGENT, member, milliseconds, now, report, resident_mb, spread};
use http::{Connection, Daemon};

/// As many endpoints as a daemon has.
const ENDPOINTS: usize = 16;
const SESSIONS: usize = 16;
/// Events that wait for an endpoint.
const BACKLOG: usize = 2_000;
/// Events of which each is waited for.
const WATCHED: usize = 500;

/// What came, as the receiver saw it.
struct Delivery {
    /// The first byte, in epoch milliseconds.
    at_ms: f64,
    body: String,
}

fn main() {
    let base = std::env::temp_dir().join(format!("turnd-webhooks-{}", std::process::id()));
    std::fs::create_dir_all(&base).unwrap();
    let sessions = SESSIONS.to_string();
    let daemon = Daemon::start(&base, &[&AGENT[..], &["--max-sessions", &sessions]].concat());
    let mut connection = Connection::open(daemon.address);
    let sessions: Vec<String> = (0..SESSIONS).map(|_| session(&mut connection)).collect();
    fill(daemon.address, &sessions);
    backlog(&mut connection, 1);
    backlog(&mut connection, ENDPOINTS);
    idle(&mut connection, &sessions);
    report("resident afterwards", resident_mb(daemon.child.id()), "MB");
    drop(daemon);
    std::fs::remove_dir_all(&base).unwrap();
}

/// Makes the events that wait.
fn fill(address: SocketAddr, sessions: &[String]) {
    let clients: Vec<_> = sessions
        .iter()
        .cloned()
        .map(|session| {
            thread::spawn(move || {
                let mut connection = Connection::open(address);
                for _ in 0..BACKLOG / SESSIONS {
                    let request = submit(&mut connection, &session);
                    wait(&mut connection, &request);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
}

/// So many endpoints, each of which is to have everything that there is.
fn backlog(connection: &mut Connection, many: usize) {
    let (sender, came) = channel();
    let urls: Vec<String> = (0..many).map(|_| listen(sender.clone())).collect();
    let started = now();
    for (number, url) in urls.iter().enumerate() {
        name(connection, &format!("e{number}"), url, ",\"after\":0");
    }
    let events = many * (BACKLOG / SESSIONS * SESSIONS);
    for _ in 0..events {
        came.recv().unwrap();
    }
    let seconds = milliseconds(started) / 1e3;
    report(&format!("deliveries to {many} endpoints in all"), events as f64 / seconds, "/s");
    (0..many).for_each(|number| forget(connection, &format!("e{number}")));
}

/// From the end as the store dates it, to the first byte at an endpoint that waits for it. The date is in whole milliseconds, rounded down, and
/// before the commit.
fn idle(connection: &mut Connection, sessions: &[String]) {
    let (sender, came) = channel();
    name(connection, "idle", &listen(sender), "");
    let mut times = Vec::new();
    for number in 0..WATCHED {
        submit(connection, &sessions[number % sessions.len()]);
        times.push(late(&came));
    }
    spread("an end to its first byte, at most", times);
    forget(connection, "idle");
}

fn late(came: &Receiver<Delivery>) -> f64 {
    let delivery = came.recv().unwrap();
    let ended = delivery.body.split("\"ended_at\":").nth(1).unwrap();
    let ended: String = ended.chars().take_while(char::is_ascii_digit).collect();
    delivery.at_ms - ended.parse::<f64>().unwrap()
}

/// Listens for as long as the program runs, and takes everything; the URL.
fn listen(sender: Sender<Delivery>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            // Nobody counts any more.
            let Some(delivery) = take(stream.unwrap()) else { continue };
            let _ = sender.send(delivery);
        }
    });
    url
}

/// Reads a request whole and answers; nothing of one that was given up.
fn take(mut stream: TcpStream) -> Option<Delivery> {
    let (mut text, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    let mut at_ms = None;
    loop {
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        at_ms.get_or_insert_with(epoch_ms);
        text.extend_from_slice(&chunk[..read]);
        let Some(end) = text.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&text[..end]).to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1)?.lines().next()?.parse::<usize>().ok()?;
        if text.len() >= end + 4 + length {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok()?;
            return Some(Delivery { at_ms: at_ms?, body: String::from_utf8_lossy(&text[end + 4..]).into_owned() });
        }
    }
}

fn name(connection: &mut Connection, name: &str, url: &str, more: &str) {
    let body = format!("{{\"url\":\"{url}\"{more}}}");
    let (status, named) = connection.call("PUT", &format!("/return-requests/webhooks/{name}"), &body);
    assert_eq!(status, 201, "{named}");
}

fn forget(connection: &mut Connection, name: &str) {
    assert_eq!(connection.call("DELETE", &format!("/return-requests/webhooks/{name}"), "").0, 204);
}

fn submit(connection: &mut Connection, session: &str) -> String {
    let body = r#"{"queue":true,"prompt":[{"type":"text","text":"hello"}]}"#;
    let (status, receipt) = connection.call("POST", &format!("/session/{session}/return-requests"), body);
    assert_eq!(status, 202, "{receipt}");
    member(&receipt, "request_id")
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
