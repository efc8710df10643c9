//! Connections that ask nothing, slowly: each holds one place, for a bounded time, and no longer.

use crate::client::Connection;
use crate::daemon::Daemon;

#[tokio::test]
async fn connections_that_ask_nothing_make_room_for_one_that_does() {
    let daemon = Daemon::with(|options| {
        options.limits.max_connections = 8;
        options.limits.first_head_ms = 100;
    })
    .await;
    let mut flood = Vec::new();
    for number in 0..32 {
        let mut connection = Connection::open(daemon.address).await;
        // Nothing at all, a head that never ends, and what is not even a beginning.
        connection.try_send([&b""[..], b"GET /health HTTP/1.1\r\nx: ", b"\r\n\r\n"][number % 3]).await;
        flood.push(connection);
    }
    daemon.the_only_connection().await;
    for connection in &mut flood {
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn a_connection_that_asked_once_may_not_be_idle_for_ever() {
    let daemon = Daemon::with(|options| options.limits.head_ms = 100).await;
    let mut idle = Connection::open(daemon.address).await;
    idle.ask("GET /health", &[], b"").await;
    assert_eq!(idle.answer().await.status, 200);
    assert!(idle.is_closed().await);
}

#[tokio::test]
async fn an_open_stream_is_not_idle() {
    let daemon = Daemon::with(|options| {
        options.limits.first_head_ms = 100;
        options.limits.head_ms = 100;
    })
    .await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    // Both of these were opened later and have less to do.
    let (mut silent, mut idle) = (Connection::open(daemon.address).await, Connection::open(daemon.address).await);
    idle.ask("GET /health", &[], b"").await;
    assert!(silent.is_closed().await && idle.is_closed().await);
    daemon.prompt(&session, "hello").await;
    stream.until(&["turn_complete"]).await;
}

/// The head of an admission whose body is announced and does not come.
fn announced(session: &str) -> String {
    format!(
        "POST /session/{session}/prompt HTTP/1.1\r\nhost: localhost:PORT\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
    )
}

#[tokio::test]
async fn a_body_that_stalls_is_told_and_admits_nothing() {
    let daemon = Daemon::with(|options| options.limits.body_read_ms = 50).await;
    let session = daemon.create().await;
    let mut connection = Connection::open(daemon.address).await;
    connection.send(announced(&session).replace("PORT", &daemon.address.port().to_string()).as_bytes()).await;
    connection.send(br#"{"prompt":[{"type":"text","text":"half"}]"#).await;
    assert_eq!(connection.answer().await.verdict(), "408 body_timeout");
    assert!(connection.is_closed().await, "what still comes of the body must not be taken for a request");
    let pending = daemon.get(&format!("/session/{session}/pending-prompts")).await;
    assert_eq!(pending.json()["pendingPrompts"], serde_json::json!([]));
}

#[tokio::test]
async fn a_body_that_trickles_has_an_end_too() {
    let daemon = Daemon::with(|options| options.limits.body_total_ms = 100).await;
    let session = daemon.create().await;
    let mut connection = Connection::open(daemon.address).await;
    let head = announced(&session).replace("PORT", &daemon.address.port().to_string()).replace("1000", "10000000");
    connection.send(head.as_bytes()).await;
    let verdict = loop {
        connection.try_send(b" ").await;
        if let Some(answer) = connection.poll_answer().await {
            break answer.verdict();
        }
    };
    assert_eq!(verdict, "408 body_timeout");
}
