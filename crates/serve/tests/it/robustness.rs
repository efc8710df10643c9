//! Bad manners of clients, and the end of the daemon.

use serde_json::json;

use crate::client::{Connection, Stream};
use crate::daemon::Daemon;

#[tokio::test]
async fn what_is_no_http_is_answered_or_closed() {
    let daemon = Daemon::start().await;
    for bytes in
        [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", b"\r\n\r\n\r\nnonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
    {
        let mut connection = Connection::open(daemon.address).await;
        connection.send(bytes).await;
        assert!(connection.is_closed().await, "{bytes:?}");
    }
    assert_eq!(daemon.get("/health").await.status, 200);
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let daemon = Daemon::start().await;
    let mut connection = Connection::open(daemon.address).await;
    let long = "x".repeat(400 * 1024);
    connection.ask("GET /health", &[("x-long", &long)], b"").await;
    assert_eq!(connection.answer().await.status, 431);
    assert_eq!(daemon.get("/health").await.status, 200);
}

#[tokio::test]
async fn one_connection_too_many_is_told() {
    let daemon = Daemon::with(|options| options.limits.max_connections = 2).await;
    let mut first = Connection::open(daemon.address).await;
    let mut second = Connection::open(daemon.address).await;
    for connection in [&mut first, &mut second] {
        connection.ask("GET /health", &[], b"").await;
        assert_eq!(connection.answer().await.status, 200);
    }
    let mut third = Connection::open(daemon.address).await;
    assert_eq!(third.answer().await.verdict(), "503 too_many_connections");
    drop(first);
    daemon.the_only_connection().await;
}

#[tokio::test]
async fn a_reader_that_stalls_hurts_nobody() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let path = format!("/session/{session}/events?maxQueued=16");
    let _stalled = Stream::open(daemon.address, &path, &[]).await;
    // More than the sockets' buffers, the queue and the ring's bound together can hold for it.
    for _ in 0..2 {
        daemon.run(&session, "flood").await;
    }
    let deep = daemon.get("/health?deep=1").await.json();
    assert_eq!((&deep["status"], &deep["sessions"]), (&json!("ok"), &json!(1)));
    daemon.run(&session, "hello").await;
}

#[tokio::test]
async fn a_graceful_end_leaves_every_terminal_on_disk_and_tells_everybody() {
    let mut daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    let running = daemon.prompt(&session, "hold").await["promptId"].clone();
    let queued = daemon.prompt(&session, "b").await["promptId"].clone();
    let reading = async {
        let mut codes = Vec::new();
        for _ in 0..2 {
            let error = stream.until(&["turn_error"]).await;
            codes.push((error["data"]["promptId"].clone(), error["data"]["code"].clone()));
        }
        stream.until(&["session_died"]).await;
        assert_eq!(stream.next().await, None);
        codes
    };
    let (codes, ()) = tokio::join!(reading, daemon.stop());
    assert_eq!(codes, [(running, json!("daemon_shutdown")), (queued, json!("daemon_shutdown"))]);
    let ledger = daemon.ledger(&session);
    assert_eq!(ledger.matches(r#""terminal":"error","code":"daemon_shutdown""#).count(), 2, "{ledger}");
    assert_eq!(daemon.hosts.heard("turnd/close")[0]["params"]["reason"], "daemon_shutdown");
    assert!(tokio::net::TcpStream::connect(daemon.address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn an_idle_daemon_ends_at_once() {
    let mut daemon = Daemon::start().await;
    let mut idle = Connection::open(daemon.address).await;
    idle.ask("GET /health", &[], b"").await;
    idle.answer().await;
    daemon.stop().await;
    assert!(idle.is_closed().await);
}

#[tokio::test]
async fn a_second_daemon_on_the_same_store_is_told_who_has_it() {
    let daemon = Daemon::start().await;
    let told = daemon.second().await.unwrap();
    assert!(told.contains(&format!("process {}", std::process::id())), "{told}");
    daemon.restart().await.create().await;
}

/// A daemon that was killed a moment ago may still be on its way out when the next one starts.
#[tokio::test]
async fn a_store_that_is_let_go_of_meanwhile_is_taken() {
    let mut daemon = Daemon::start().await;
    let second = daemon.second();
    let (told, ()) = tokio::join!(second, daemon.stop());
    assert_eq!(told, None);
}
