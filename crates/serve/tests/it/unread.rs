//! Requests whose answer does not wait for their body: the client goes on sending, and reads its answer when it is done. Most clients give up
//! where they cannot send on, and never look for the answer that is there.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::PATIENCE;
use crate::daemon::Daemon;

/// Rounds of each question: what a reset takes away depends on who is first.
const ROUNDS: usize = 40;

/// Bytes of a body: more than the buffers of a socket hold, so that it is still on its way when the answer is there.
const BODY: usize = 8_000_000;

/// Bytes that are sent at once.
const PIECE: usize = 50_000;

/// Sends all of a question, and then reads all that there is to read.
async fn ask(daemon: &Daemon, line: &str, headers: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(daemon.address).await?;
    let host = format!("127.0.0.1:{}", daemon.address.port());
    let head = format!("{line} HTTP/1.1\r\nhost: {host}\r\n{headers}content-length: {BODY}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    for _ in 0..BODY / PIECE {
        stream.write_all(&[b' '; PIECE]).await?;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn whoever_is_one_connection_too_many_may_send_all_of_its_request_and_has_its_answer_then() {
    let daemon = Daemon::with(|options| options.limits.max_connections = 1).await;
    let mut only = daemon.the_only_connection().await;
    only.ask("GET /health", &[], b"").await;
    assert_eq!(only.answer().await.status, 200);
    for round in 0..ROUNDS {
        let asking = ask(&daemon, "POST /session", "content-type: application/json\r\n");
        let answer = timeout(PATIENCE, asking).await.expect("the connection is not closed");
        let answer = answer.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("too_many_connections"), "{round}: {answer}");
    }
}

#[tokio::test]
async fn whoever_sends_a_body_that_nobody_reads_may_send_all_of_it_and_has_its_answer_then() {
    let daemon = Daemon::start().await;
    for (line, headers, status) in [
        ("GET /health", "", "200"),
        ("GET /no/such/page", "", "404"),
        ("POST /session", "content-type: text/plain\r\n", "415"),
        ("POST /session", "origin: http://elsewhere.test\r\n", "403"),
    ] {
        for round in 0..ROUNDS {
            let answer = timeout(PATIENCE, ask(&daemon, line, headers)).await.expect("the connection is not closed");
            let answer = answer.unwrap_or_else(|error| panic!("{line}, round {round}: {error}"));
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}, round {round}: {answer}");
        }
    }
}
