//! Reading the events of a session.

use bridge::{Part, Subscribe, SubscribeError, Subscription};
use serde_json::json;

use crate::world::{World, envelope, short, soon};

fn from(cursor: u64) -> Subscribe {
    Subscribe { cursor: Some(cursor), ..Subscribe::default() }
}

fn waiting(reader: &mut Subscription) -> Vec<String> {
    std::iter::from_fn(|| reader.try_next()).map(|frame| short(&frame)).collect()
}

/// A session with a finished turn: three events.
async fn finished() -> World {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.agent.text("hi").await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("user_message_chunk A A; agent_message_chunk A hi; turn_complete A end_turn").await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_receipt_is_a_cursor_to_the_prompts_own_events() {
    let mut world = finished().await;
    let receipt = world.admit("B");
    let held = world.agent.hear_prompt().await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("user_message_chunk B B; turn_complete B end_turn").await;
    let how = Subscribe { epoch: Some(receipt.event_epoch), ..from(receipt.last_event_id) };
    let mut reader = world.session.subscribe(&how).unwrap();
    assert_eq!(waiting(&mut reader), ["user_message_chunk B B", "turn_complete B end_turn", "replay_complete"]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_another_epoch_gets_everything_and_is_told_why() {
    let world = finished().await;
    let how = Subscribe { epoch: Some("another".into()), ..from(3) };
    let mut reader = world.session.subscribe(&how).unwrap();
    let resync = envelope(&soon(reader.next()).await.unwrap());
    let data =
        json!({"reason": "epoch_reset", "detail": "epoch_mismatch", "lastDeliveredId": 3, "earliestAvailableId": 1});
    assert_eq!(resync["data"], data);
    assert_eq!(waiting(&mut reader).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_epoch_without_a_cursor_is_ignored() {
    let world = finished().await;
    let how = Subscribe { epoch: Some("another".into()), ..Subscribe::default() };
    let mut reader = world.session.subscribe(&how).unwrap();
    assert!(waiting(&mut reader).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_sixty_fifth_reader_is_refused() {
    let world = World::start().await;
    let readers: Vec<_> = (0..63).map(|_| world.session.subscribe(&Subscribe::default()).unwrap()).collect();
    assert_eq!(world.session.status().subscriber_count, 64);
    let refused = world.session.subscribe(&Subscribe::default());
    assert_eq!(refused.err(), Some(SubscribeError::Limit { limit: 64 }));
    drop(readers);
    assert!(world.session.subscribe(&Subscribe::default()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stalled_reader_is_evicted_and_the_session_does_not_notice() {
    let mut world = World::start().await;
    let mut stalled = world.session.subscribe(&Subscribe { max_queued: 16, ..Subscribe::default() }).unwrap();
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    for _ in 0..40 {
        world.agent.text("word").await;
    }
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    let mut seen = 0;
    while world.event().await != "turn_complete A end_turn" {
        seen += 1;
    }
    assert_eq!(seen, 41, "the reader beside it got everything");
    let mut frames = Vec::new();
    while let Some(frame) = soon(stalled.next()).await {
        frames.push(frame);
    }
    assert_eq!(frames.len(), 16 + 2, "what fitted, a warning, and the reason for the end");
    let evicted = envelope(frames.last().unwrap());
    assert_eq!((&evicted["type"], &evicted["data"]["reason"]), (&json!("client_evicted"), &json!("queue_overflow")));
    assert_eq!(evicted["data"]["droppedAfter"], 16);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_attaches_is_told_of_the_finished_turn() {
    let world = finished().await;
    let told = world.session.told();
    assert_eq!((told.last_event_id, told.turns.left_out, told.has_active_prompt), (3, 0, false));
    assert_eq!(told.journal, Part::default());
    let kinds: Vec<_> = told
        .turns
        .frames
        .iter()
        .map(|json| serde_json::from_slice::<serde_json::Value>(json).unwrap()["type"].clone())
        .collect();
    assert_eq!(kinds, ["session_update", "session_update", "turn_complete"]);
}

#[tokio::test(start_paused = true)]
async fn clients_are_known_by_the_ids_they_were_given() {
    let world = World::start().await;
    let id = world.session.register(Some("mine"));
    assert!(id.starts_with("client_"));
    assert!(world.session.is_registered(&id) && !world.session.is_registered("mine"));
    assert_eq!(world.session.register(Some(&id)), id);
    assert_eq!(world.session.detach(Some(&id)).client_count, 1);
    let left = world.session.detach(Some(&id));
    assert_eq!((left.client_count, left.subscriber_count, left.has_active_prompt), (0, 1, false));
}
