//! Cursors that come back to a stream: of this life, of another, of another session, made up (wire rules, section 10.3).

use serde_json::{Value, json};

use crate::client::{Piece, Stream};
use crate::daemon::Daemon;

/// What a stream sends to somebody who comes back: the gap it tells of, if it does, and the numbers of the replay.
async fn come_back(daemon: &Daemon, session: &str, cursor: &str, epoch: Option<&str>) -> (Option<Value>, Vec<u64>) {
    let mut headers = vec![("last-event-id", cursor)];
    headers.extend(epoch.map(|epoch| ("x-qwen-event-epoch", epoch)));
    let mut stream = Stream::open(daemon.address, &format!("/session/{session}/events"), &headers).await;
    let (mut gap, mut ids) = (None, Vec::new());
    loop {
        match stream.next().await.expect("stream ended") {
            Piece::Frame { kind, .. } if kind == "replay_complete" => return (gap, ids),
            Piece::Frame { kind, envelope, .. } if kind == "state_resync_required" => {
                assert!(ids.is_empty(), "a gap is told before what comes behind it");
                gap = Some(envelope["data"].clone());
            }
            Piece::Frame { id, .. } => ids.extend(id),
            Piece::Line(_) => {}
        }
    }
}

/// Runs turns until the session has had so many events; its newest number and its epoch.
async fn produce(daemon: &Daemon, session: &str, events: u64) -> (u64, String) {
    let mut first = None;
    loop {
        let receipt = daemon.prompt(session, "hello").await;
        let mut stream = daemon.events_from(session, &receipt["lastEventId"]).await;
        let last = stream.until(&["turn_complete"]).await["id"].as_u64().unwrap();
        let first = *first.get_or_insert(receipt["lastEventId"].as_u64().unwrap());
        if last - first >= events {
            return (last, receipt["eventEpoch"].as_str().unwrap().to_owned());
        }
    }
}

/// Demand 30: read fifty events, lose the daemon, have eighty more, come back with the fifty.
#[tokio::test]
async fn a_cursor_of_a_life_that_is_over_never_looks_valid_in_the_next() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let other = daemon.create().await;
    let (before, old_epoch) = produce(&daemon, &session, 50).await;
    produce(&daemon, &other, 3).await;
    let daemon = daemon.restart().await;
    let loaded = daemon.post(&format!("/session/{session}/load"), json!({})).await.json();
    daemon.post(&format!("/session/{other}/load"), json!({})).await;
    let (tip, epoch) = produce(&daemon, &session, 80).await;
    let (_, foreign_epoch) = produce(&daemon, &other, 3).await;
    let begins = loaded["lastEventId"].as_u64().unwrap() + 1;
    let whole: Vec<u64> = (begins..=tip).collect();
    let cases = [
        ("fifty, of the old life", 50, Some(old_epoch.as_str())),
        ("fifty, of no life", 50, None),
        ("the end of the old life", before, None),
        ("one that is as far as the new life came", tip - begins + 1, None),
        ("made up", 123_456, None),
        ("from the future", tip + 1, Some(epoch.as_str())),
        ("from the future, of no life", tip + 1, None),
        ("of another session", tip - 5, Some(foreign_epoch.as_str())),
        ("within the stream, of an epoch that is none", tip - 5, Some("no epoch!")),
    ];
    for (what, cursor, epoch) in cases {
        let (gap, ids) = come_back(&daemon, &session, &cursor.to_string(), epoch).await;
        let gap = gap.unwrap_or_else(|| panic!("a silent jump: {what}"));
        assert_eq!(gap["lastDeliveredId"], cursor, "{what}");
        assert_eq!((&gap["earliestAvailableId"], &ids), (&json!(begins), &whole), "{what}");
    }
    for epoch in [None, Some(epoch.as_str())] {
        let (gap, ids) = come_back(&daemon, &session, &(tip - 2).to_string(), epoch).await;
        assert_eq!((gap, ids), (None, vec![tip - 1, tip]), "its own cursor is none of these");
    }
}

#[tokio::test]
async fn each_life_numbers_on_behind_the_one_before() {
    let mut daemon = Daemon::start().await;
    let session = daemon.create().await;
    let (mut newest, _) = produce(&daemon, &session, 3).await;
    for _ in 0..3 {
        daemon = daemon.restart().await;
        let loaded = daemon.post(&format!("/session/{session}/load"), json!({})).await.json();
        let shown: Vec<u64> =
            loaded["compactedReplay"].as_array().unwrap().iter().filter_map(|frame| frame["id"].as_u64()).collect();
        let cursor = loaded["lastEventId"].as_u64().unwrap();
        assert!(shown[0] > newest, "{} behind {newest}", shown[0]);
        assert_eq!(shown, (cursor + 1 - shown.len() as u64..=cursor).collect::<Vec<_>>());
        assert!(cursor < 1 << 53, "a client that counts in doubles can tell numbers apart");
        (newest, _) = produce(&daemon, &session, 3).await;
        assert!(newest > cursor);
    }
}

#[tokio::test]
async fn a_cursor_that_the_ring_let_go_of_is_told_where_it_goes_on() {
    let daemon = Daemon::with(|options| options.limits.event_ring_size = 4).await;
    let session = daemon.create().await;
    let (tip, _) = produce(&daemon, &session, 9).await;
    let (gap, ids) = come_back(&daemon, &session, "1", None).await;
    let expected = json!({"reason": "ring_evicted", "lastDeliveredId": 1, "earliestAvailableId": tip - 3});
    assert_eq!((gap, ids), (Some(expected), (tip - 3..=tip).collect()));
}

#[tokio::test]
async fn a_replay_over_its_budget_says_where_it_stops_and_the_stream_goes_on() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    for _ in 0..2 {
        daemon.run(&session, "flood").await;
    }
    let path = format!("/session/{session}/events");
    let mut stream = Stream::open(daemon.address, &path, &[("last-event-id", "0")]).await;
    let gap = stream.until(&["state_resync_required"]).await["data"].clone();
    let from = gap["lastDeliveredId"].as_u64().unwrap();
    assert_eq!((&gap["reason"], &gap["earliestAvailableId"]), (&json!("replay_budget_exceeded"), &json!(from + 1)));
    let complete = stream.until(&["replay_complete"]).await["data"].clone();
    assert_eq!((&complete["replayedCount"], &complete["lastReplayedEventId"]), (&json!(from), &json!(from)));
    let tip = complete["lastEventId"].as_u64().unwrap();
    daemon.prompt(&session, "hello").await;
    assert_eq!(stream.until(&["session_update"]).await["id"], tip + 1);
}

/// What a load shows and what the stream sends from its cursor meet, at whatever moment of a turn the load comes.
#[tokio::test]
async fn a_load_gives_the_cursor_behind_what_it_shows() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.prompt(&session, "chatter").await["promptId"].as_str().unwrap().to_owned();
    let mut loads = 0;
    loop {
        let is_over = daemon.turn(&session, &prompt).await.json()["state"] != "running";
        let loaded = daemon.post(&format!("/session/{session}/load"), json!({})).await.json();
        let shown = ["compactedReplay", "liveJournal"].map(|part| loaded[part].as_array().unwrap().clone()).concat();
        let last = shown.iter().filter_map(|frame| frame["id"].as_u64()).next_back().unwrap_or_default();
        assert_eq!(loaded["lastEventId"], last, "events between the two would be seen by nobody");
        loads += 1;
        if is_over {
            break;
        }
    }
    assert!(loads > 2, "none came in mid-turn");
}

#[tokio::test]
async fn a_load_shows_the_turns_that_the_ring_has_let_go_of() {
    let daemon = Daemon::with(|options| options.limits.event_ring_size = 4).await;
    let session = daemon.create().await;
    let (tip, _) = produce(&daemon, &session, 9).await;
    let loaded = daemon.post(&format!("/session/{session}/load"), json!({})).await.json();
    let shown: Vec<_> = loaded["compactedReplay"].as_array().unwrap().iter().map(|event| &event["id"]).collect();
    assert_eq!(shown, (1..=tip).collect::<Vec<_>>());
}
