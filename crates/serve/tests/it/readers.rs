//! Readers of a stream that come, go, stall and vanish (wire rules, sections 10.4 and 10.5).

use serde_json::json;

use crate::client::{Connection, Piece, Stream, until};
use crate::daemon::Daemon;

/// More than the socket's buffers, the queue and one chunk can hold together, in turns of eight million bytes.
const FLOODS: usize = 2;

/// A terminal is readable by poll before it is announced: whoever has read it and asks gets it.
#[tokio::test]
async fn at_the_moment_a_terminal_is_read_a_poll_answers_it() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    for turn in 0..300 {
        let (text, state) = [("hello", "completed"), ("fail", "error")][turn % 2];
        let prompt = daemon.prompt(&session, text).await["promptId"].as_str().unwrap().to_owned();
        let terminal = stream.until(&["turn_complete", "turn_error"]).await;
        assert_eq!(terminal["data"]["promptId"], prompt.as_str());
        let polled = daemon.turn(&session, &prompt).await.json();
        assert_eq!(polled["state"], state, "turn {turn}: {polled}");
        assert!(daemon.ledger(&session).contains(&format!(r#""promptId":"{prompt}","terminal""#)), "turn {turn}");
    }
}

/// Numbers rise by one from the first event on, whatever a session went through.
#[tokio::test]
async fn a_reader_that_stays_sees_every_number() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    daemon.run(&session, "hello").await;
    let held = daemon.prompt(&session, "hold").await["promptId"].as_str().unwrap().to_owned();
    let queued = daemon.prompt(&session, "b").await["promptId"].as_str().unwrap().to_owned();
    daemon.ask(&format!("DELETE /session/{session}/pending-prompts/{queued}"), "").await;
    daemon.post(&format!("/session/{session}/cancel"), json!({})).await;
    daemon.post(&format!("/session/{session}/cancel"), json!({})).await;
    until("the cancelled turn is over", async || daemon.turn(&session, &held).await.json()["state"] == "cancelled")
        .await;
    daemon.run(&session, "fail").await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    let (mut ids, mut last) = (Vec::new(), String::new());
    while let Some(piece) = stream.next().await {
        if let Piece::Frame { id: Some(id), kind, .. } = piece {
            ids.push(id);
            last = kind;
        }
    }
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    assert_eq!(last, "session_closed");
}

#[tokio::test]
async fn the_sixty_fifth_reader_is_told_to_come_back() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let path = format!("/session/{session}/events");
    let mut readers = Vec::new();
    for _ in 0..64 {
        readers.push(Stream::open(daemon.address, &path, &[]).await);
    }
    let refused = daemon.get(&path).await;
    assert_eq!(
        (refused.verdict().as_str(), refused.json()["limit"].as_u64()),
        ("429 subscriber_limit_exceeded", Some(64))
    );
    daemon.run_unread(&session, "hello").await;
    for reader in &mut readers {
        reader.until(&["turn_complete"]).await;
    }
}

/// Demand 32: nothing but a cancel, a close or a deadline stops a turn; least of all that nobody listens.
#[tokio::test]
async fn a_turn_whose_readers_are_all_gone_completes_with_its_whole_answer() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.prompt(&session, "hold on").await["promptId"].as_str().unwrap().to_owned();
    // One says goodbye, one is cut off with bytes unread (which resets the connection), one stays and never reads again.
    let mut polite = daemon.events(&session).await;
    polite.until(&["session_update"]).await;
    let reset = daemon.events(&session).await;
    let half_open = daemon.events(&session).await;
    drop(polite);
    drop(reset);
    until("only the silent one is left", async || daemon.get("/health?deep=1").await.json()["connectedClients"] == 1)
        .await;
    daemon.hosts.release(1);
    until("the turn is over", async || daemon.turn(&session, &prompt).await.json()["state"] != "running").await;
    let turn = daemon.turn(&session, &prompt).await.json();
    assert_eq!((&turn["state"], &turn["resultText"]), (&json!("completed"), &json!("echo: hold on")));
    drop(half_open);
}

/// A reader that stalls, and reads again before its socket was given up, gets what fitted and then the reason for its end.
#[tokio::test]
async fn a_stalled_reader_that_reads_again_gets_its_last_frame() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let path = format!("/session/{session}/events?maxQueued=16");
    let mut stalled = Stream::open(daemon.address, &path, &[("last-event-id", "0")]).await;
    for _ in 0..FLOODS {
        daemon.run_unread(&session, "flood").await;
    }
    let (mut ids, mut others) = (Vec::new(), Vec::new());
    while let Some(piece) = stalled.next().await {
        match piece {
            Piece::Frame { id: Some(id), .. } => ids.push(id),
            Piece::Frame { kind, envelope, .. } => others.push((kind, envelope)),
            Piece::Line(_) => {}
        }
    }
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "what fitted came whole and in order");
    let (kind, last) = others.pop().unwrap();
    assert_eq!(kind, "client_evicted");
    let data = &last["data"];
    assert_eq!((&data["reason"], &data["droppedAfter"]), (&json!("queue_overflow"), &json!(ids.len())), "{data}");
    assert_eq!((last.get("id"), &data["maxQueued"]), (None, &json!(16)));
    assert_eq!(others.pop().map(|(kind, _)| kind).as_deref(), Some("slow_client_warning"));
    // With the last number it read it can go on, or is told.
    let cursor = ids.len().to_string();
    let mut again = Stream::open(daemon.address, &path, &[("last-event-id", &cursor)]).await;
    let first = again.until(&["session_update", "state_resync_required"]).await;
    assert!(first["id"] == ids.len() + 1 || first["type"] == "state_resync_required", "{first}");
}

/// One reader that stalls delays neither its session's other readers nor other sessions.
#[tokio::test]
async fn nobody_waits_for_a_stalled_reader() {
    let daemon = Daemon::start().await;
    let (flooded, other) = (daemon.create().await, daemon.create().await);
    let path = format!("/session/{flooded}/events");
    let stalled = Stream::open(daemon.address, &path, &[]).await;
    for _ in 0..FLOODS {
        daemon.run_unread(&flooded, "flood").await;
    }
    let mut lively = Stream::open(daemon.address, &path, &[]).await;
    for _ in 0..20 {
        let prompt = daemon.prompt(&flooded, "hello").await["promptId"].clone();
        assert_eq!(lively.until(&["turn_complete"]).await["data"]["promptId"], prompt);
        daemon.run(&other, "hello").await;
    }
    drop(stalled);
}

#[tokio::test]
async fn a_reader_that_accepts_nothing_for_the_time_of_the_flag_is_ended() {
    let daemon = Daemon::with(|options| options.writer_idle_timeout_ms = Some(1)).await;
    let tags = daemon.get("/capabilities").await.json()["features"].clone();
    assert!(tags.as_array().unwrap().contains(&json!("writer_idle_timeout")), "{tags}");
    let session = daemon.create().await;
    let path = format!("/session/{session}/events?maxQueued=2048");
    let mut stalled = Connection::open(daemon.address).await;
    stalled.ask(&format!("GET {path}"), &[], b"").await;
    stalled.head().await.unwrap();
    for _ in 0..FLOODS {
        daemon.run_unread(&session, "flood").await;
    }
    until("its place is free", async || daemon.get("/health?deep=1").await.json()["connectedClients"] == 0).await;
    daemon.run(&session, "hello").await;
}

#[tokio::test]
async fn without_the_flag_its_tag_is_not_there() {
    let daemon = Daemon::start().await;
    let tags = daemon.get("/capabilities").await.json()["features"].clone();
    assert!(!tags.as_array().unwrap().contains(&json!("writer_idle_timeout")), "{tags}");
}

/// Why a client comes, and what it had before, is for the log: any value is taken.
#[tokio::test]
async fn the_reasons_a_client_gives_change_nothing() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    for query in
        ["connectReason=initial", "connectReason=odd%00&previousStreamId=none", "connectReason=&previousStreamId="]
    {
        let path = format!("/session/{session}/events?{query}");
        let headers = [("last-event-id", "0"), ("x-qwen-client-id", "not registered!")];
        let mut stream = Stream::open(daemon.address, &path, &headers).await;
        assert_eq!(stream.kinds_until("replay_complete").await, ["replay_complete"], "{query}");
    }
}
