//! Texts beside the conversation: what is told of them reaches whoever asked, in order, and stops with the reader.

use acp::RpcError;
use bridge::{AskError, Heard};
use serde_json::{Value, json};

use crate::world::World;

const START: &str = "qwen/control/session/generation/start";
const CANCEL: &str = "qwen/control/session/generation/cancel";

/// The agent tells something of the text.
async fn tell(world: &mut World, request_id: &str, event: Value) {
    let params = json!({"v": 1, "sessionId": "agent-1", "requestId": request_id, "event": event});
    world.agent.say(acp::compose::notification("qwen/notify/session/generation/event", &params)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_told_of_a_text_reaches_its_asker_in_order_and_the_result_comes_last() {
    let mut world = World::start().await;
    let session = world.session.clone();
    let (mut first, mut second) = (session.generate("g1", "say hi"), session.generate("g2", "no"));
    let asked = world.agent.hear_method(START).await;
    let params: Value = serde_json::from_str(asked.params().unwrap()).unwrap();
    assert_eq!(params, json!({"sessionId": "agent-1", "requestId": "g1", "prompt": "say hi"}));
    let other = world.agent.hear_method(START).await;
    tell(&mut world, "g1", json!({"type": "delta", "text": "a"})).await;
    tell(&mut world, "g2", json!({"type": "delta", "text": "x"})).await;
    tell(&mut world, "nobody", json!({"type": "delta", "text": "y"})).await;
    tell(&mut world, "g1", json!({"type": "delta", "text": "b"})).await;
    world.agent.answer(&asked, json!({"model": "m"})).await;
    let acp::Kind::Request { id, .. } = other.kind() else { panic!("a request") };
    world.agent.say(acp::compose::error_response(id, &RpcError::new(7, "no"))).await;
    let event = |text: &str| Some(Heard::Event(json!({"type": "delta", "text": text}).to_string()));
    let sorted = |told: Option<Heard>| match told {
        Some(Heard::Event(raw)) => Some(Heard::Event(serde_json::from_str::<Value>(&raw).unwrap().to_string())),
        told => told,
    };
    assert_eq!(sorted(first.next().await), event("a"));
    assert_eq!(sorted(first.next().await), event("b"));
    assert_eq!(first.next().await, Some(Heard::Done(r#"{"model":"m"}"#.to_owned())));
    assert_eq!(first.next().await, None);
    assert_eq!(sorted(second.next().await), event("x"));
    assert!(matches!(second.next().await, Some(Heard::Failed(AskError::Refused(error))) if error.code == 7));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_leaves_cancels_the_text_and_one_that_stayed_does_not() {
    let mut world = World::start().await;
    let session = world.session.clone();
    let mut read = session.generate("g1", "p");
    let asked = world.agent.hear_method(START).await;
    world.agent.answer(&asked, json!({})).await;
    assert!(matches!(read.next().await, Some(Heard::Done(_))));
    drop(read);
    drop(session.generate("g2", "p"));
    world.agent.hear_method(START).await;
    let cancelled = world.agent.hear_method(CANCEL).await;
    let params: Value = serde_json::from_str(cancelled.params().unwrap()).unwrap();
    assert_eq!(params, json!({"sessionId": "agent-1", "requestId": "g2"}));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_is_told_that_it_lags_and_holds_nobody_up() {
    let mut world = World::start().await;
    let session = world.session.clone();
    let mut slow = session.generate("g1", "p");
    world.agent.hear_method(START).await;
    for seq in 0..=bridge::limits::GENERATION_EVENTS_MAX {
        tell(&mut world, "g1", json!({"seq": seq})).await;
    }
    // A sign that all of it was taken in.
    let (asked, mut sign) = (session.ask("x/sign", "{}", 1_000), world.agent);
    let answered = async {
        let inquiry = sign.hear_method("x/sign").await;
        sign.answer(&inquiry, json!({})).await;
    };
    tokio::join!(asked, answered).0.unwrap();
    let mut heard = 0;
    let end = loop {
        match slow.next().await {
            Some(Heard::Event(_)) => heard += 1,
            told => break told,
        }
    };
    assert_eq!((heard, end), (bridge::limits::GENERATION_EVENTS_MAX, Some(Heard::Lagged)));
}

#[tokio::test(start_paused = true)]
async fn a_text_ends_with_its_session() {
    let mut world = World::start().await;
    let session = world.session.clone();
    let mut text = session.generate("g1", "p");
    world.agent.hear_method(START).await;
    world.agent.hang_up().await;
    assert_eq!(text.next().await, Some(Heard::Failed(AskError::Gone)));
    assert_eq!(session.generate("g2", "p").next().await, Some(Heard::Failed(AskError::Gone)));
}
