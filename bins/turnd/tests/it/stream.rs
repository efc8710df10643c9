//! A session's events as one reader gets them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No stream that is watched stays silent for so long: its heartbeats come more often.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Hands over every event of a session from its first on, the data of each frame, until the stream ends. Returns when the stream
/// is open.
pub(crate) fn follow<F>(address: SocketAddr, session: &str, mut take: F) -> std::thread::JoinHandle<F>
where
    F: FnMut(&str) + Send + 'static,
{
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
    let request = format!(
        "GET /session/{session}/events?maxQueued=2048 HTTP/1.1\r\nhost: {address}\r\nlast-event-id: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    // A chunk holds whole frames, so the sizes between them are lines of their own.
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("retry:")), "no stream of {session}");
    std::thread::spawn(move || {
        for line in lines {
            line.strip_prefix("data: ").into_iter().for_each(&mut take);
        }
        take
    })
}
