//! The event stream (wire rules, section 10).

use serde_json::json;

use crate::client::{Piece, Stream, until};
use crate::daemon::Daemon;

#[tokio::test]
async fn a_stream_says_how_to_come_back() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let receipt = daemon.prompt(&session, "hello").await;
    let mut stream = daemon.events(&session).await;
    let expected = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
        ("x-qwen-event-epoch", receipt["eventEpoch"].as_str().unwrap()),
    ];
    for (name, value) in expected {
        assert_eq!(stream.header(name), Some(value), "{name}");
    }
    assert!(stream.header("x-qwen-sse-stream-id").is_some());
    assert_eq!(stream.next().await, Some(Piece::Line("retry: 3000".into())));
}

#[tokio::test]
async fn a_cursor_gives_exactly_what_came_after_it() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    let mut all = daemon.events(&session).await;
    let mut numbers = Vec::new();
    loop {
        match all.next().await.unwrap() {
            Piece::Frame { id: Some(id), kind, envelope } => {
                assert_eq!((&envelope["id"], &envelope["type"], &envelope["v"]), (&json!(id), &json!(kind), &json!(1)));
                numbers.push(id);
            }
            Piece::Frame { kind, .. } if kind == "replay_complete" => break,
            _ => {}
        }
    }
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let path = format!("/session/{session}/events");
    let (tip, before) = (numbers.len().to_string(), (numbers.len() - 1).to_string());
    let mut at_tip = Stream::open(daemon.address, &path, &[("last-event-id", &tip)]).await;
    assert_eq!(at_tip.kinds_until("replay_complete").await, ["replay_complete"]);
    let mut behind = Stream::open(daemon.address, &path, &[("last-event-id", &before)]).await;
    assert_eq!(behind.kinds_until("replay_complete").await, ["turn_complete", "replay_complete"]);
}

#[tokio::test]
async fn a_cursor_of_another_life_is_told() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    let path = format!("/session/{session}/events");
    for headers in [
        [("last-event-id", "999"), ("x-other", "1")],
        [("last-event-id", "99999999999999999999"), ("x-other", "1")],
        [("last-event-id", "1"), ("x-qwen-event-epoch", "stale")],
    ] {
        let mut stream = Stream::open(daemon.address, &path, &headers).await;
        let gap = stream.until(&["state_resync_required", "replay_complete"]).await;
        assert_eq!(gap["data"]["reason"], "epoch_reset", "{headers:?}");
    }
}

#[tokio::test]
async fn without_a_cursor_only_news_is_sent() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    for headers in [vec![], vec![("last-event-id", "x")]] {
        let mut stream = Stream::open(daemon.address, &format!("/session/{session}/events"), &headers).await;
        daemon.prompt(&session, "again").await;
        let kinds = stream.kinds_until("turn_complete").await;
        assert!(!kinds.contains(&"replay_complete".to_owned()), "{kinds:?}");
    }
}

#[tokio::test]
async fn a_snapshot_stands_where_it_is_expected() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    let path = format!("/session/{session}/events?snapshot=1");
    let mut fresh = Stream::open(daemon.address, &path, &[]).await;
    assert_eq!(fresh.next().await, Some(Piece::Line("retry: 3000".into())));
    let Some(Piece::Frame { id: None, kind, envelope }) = fresh.next().await else { panic!("no frame") };
    assert_eq!(kind, "session_snapshot");
    let expected = json!({
        "sessionId": session, "currentModelId": "m-1", "currentApprovalMode": "default", "recordingDegraded": false,
    });
    assert_eq!(envelope["data"], expected);
    let mut replayed = Stream::open(daemon.address, &path, &[("last-event-id", "0")]).await;
    let kinds = replayed.kinds_until("session_snapshot").await;
    assert_eq!(kinds.iter().rev().nth(1).map(String::as_str), Some("replay_complete"), "{kinds:?}");
}

#[tokio::test]
async fn a_queue_size_outside_its_range_is_refused() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    for (text, expected) in [("3", "400"), ("2049", "400"), ("abc", "400"), ("-16", "400"), ("", "400")] {
        let answer = daemon.get(&format!("/session/{session}/events?maxQueued={text}")).await;
        assert_eq!(answer.verdict(), format!("{expected} invalid_max_queued"), "{text}");
    }
    Stream::open(daemon.address, &format!("/session/{session}/events?maxQueued=16"), &[]).await;
}

#[tokio::test]
async fn one_reader_too_many_is_told_to_come_back() {
    let daemon = Daemon::with(|options| options.limits.max_subscribers = 2).await;
    let session = daemon.create().await;
    let path = format!("/session/{session}/events");
    let first = Stream::open(daemon.address, &path, &[]).await;
    let _second = Stream::open(daemon.address, &path, &[]).await;
    let answer = daemon.get(&path).await;
    assert_eq!((answer.verdict().as_str(), answer.header("retry-after")), ("429 subscriber_limit_exceeded", Some("5")));
    assert_eq!(answer.json()["limit"], 2);
    drop(first);
    // Its place is free as soon as the daemon has noticed.
    until("the place is free", async || daemon.get("/health?deep=1").await.json()["connectedClients"] == 1).await;
    Stream::open(daemon.address, &path, &[]).await;
}

#[tokio::test]
async fn a_reader_that_goes_away_stops_nothing() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.prompt(&session, "hold").await["promptId"].as_str().unwrap().to_owned();
    drop(daemon.events(&session).await);
    daemon.hosts.release(1);
    let mut stream = daemon.events(&session).await;
    stream.until(&["turn_complete"]).await;
    assert_eq!(daemon.turn(&session, &prompt).await.json()["state"], "completed");
}
