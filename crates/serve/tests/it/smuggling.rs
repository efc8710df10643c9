//! Requests whose end two readers could see in two places: refused, or read in one way, and never a second request in the first.

use crate::client::Connection;
use crate::daemon::Daemon;

/// What is hidden: it would create a session.
const HIDDEN: &str = "POST /session HTTP/1.1\r\nhost: HOST\r\ncontent-length: 0\r\n\r\n";

/// Sends `head`, with `HOST` for the daemon's own name and `HIDDEN` for the hidden request, and then a request of our own.
/// The statuses of all answers, until ours is answered or the connection ends, and whether a session was created.
async fn check(text: &str) -> (Vec<u16>, bool) {
    let daemon = Daemon::start().await;
    let host = format!("127.0.0.1:{}", daemon.address.port());
    let length = HIDDEN.replace("HOST", &host).len();
    let text = text.replace("HIDDEN", HIDDEN).replace("HOST", &host);
    let text = text.replace("LENGTH+5", &(length + 5).to_string()).replace("LENGTH", &length.to_string());
    let text = text.replace("HEX", &format!("{length:x}"));
    let mut connection = Connection::open(daemon.address).await;
    connection.send(text.as_bytes()).await;
    connection.ask("GET /session/ours/status", &[], b"").await;
    let mut statuses = Vec::new();
    while let Some(answer) = connection.try_answer().await {
        statuses.push(answer.status);
        if String::from_utf8_lossy(&answer.body).contains("\"ours\"") {
            break;
        }
    }
    let created = daemon.get("/health?deep=1").await.json()["sessions"] != 0;
    (statuses, created)
}

#[tokio::test]
async fn the_hidden_request_would_create_a_session() {
    assert_eq!(check("HIDDEN").await, (vec![200, 404], true));
}

#[tokio::test]
async fn what_is_hidden_in_a_body_stays_a_body() {
    for text in [
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: LENGTH\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\nHEX\r\nHIDDEN\r\n0\r\n\r\n",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\nHEX;name=\"value\"\r\nHIDDEN\r\n0\r\ntrailer: x\r\n\r\n",
        "GET /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: LENGTH\r\n\r\nHIDDEN",
        "GET /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\nHEX\r\nHIDDEN\r\n0\r\n\r\n",
        "POST /nope HTTP/1.1\r\nhost: evil.example\r\ncontent-length: LENGTH\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\nexpect: 100-continue\r\ncontent-length: LENGTH\r\n\r\nHIDDEN",
    ] {
        let (statuses, created) = check(text).await;
        assert!(!created, "{text:?}: {statuses:?}");
        assert!(matches!(statuses.first(), Some(403 | 404 | 100)), "{text:?}: {statuses:?}");
    }
}

#[tokio::test]
async fn a_request_with_two_ends_is_refused_and_its_connection_over() {
    for text in [
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: LENGTH+5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\ncontent-length: LENGTH+5\r\n\r\n0\r\n\r\nHIDDEN",
        "GET /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: LENGTH+5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: 0\r\ncontent-length: LENGTH\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: LENGTH\r\ncontent-length: 0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: 0, LENGTH\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: +0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: -1\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: 0x0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: 99999999999999999999999\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.0\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length : 0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\n content-length: 0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\nx-folded: a\r\n b\r\ncontent-length: 0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\nx-nul: a\0b\r\ncontent-length: 0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\nx-cr: a\rb\r\ncontent-length: 0\r\n\r\nHIDDEN",
        "POST /no\0pe HTTP/1.1\r\nhost: HOST\r\ncontent-length: 0\r\n\r\nHIDDEN",
        "POST /no pe HTTP/1.1\r\nhost: HOST\r\ncontent-length: 0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\nG\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n0x0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\nHIDDEN",
        "POST /nope HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n0\n\r\n\r\nHIDDEN",
    ] {
        let (statuses, created) = check(text).await;
        assert!(!created, "{text:?}: {statuses:?}");
        assert!(matches!(statuses[..], [] | [400..=499]), "{text:?}: {statuses:?}");
    }
}

/// A bare line feed ends a line for us; what stands behind it cannot change where the request ends without being noticed.
#[tokio::test]
async fn a_length_behind_a_bare_line_feed_is_a_second_length() {
    let text = "POST /nope HTTP/1.1\r\nhost: HOST\r\ncontent-length: LENGTH\r\nx: a\ncontent-length: 0\r\n\r\nHIDDEN";
    assert_eq!(check(text).await, (vec![400], false));
}
