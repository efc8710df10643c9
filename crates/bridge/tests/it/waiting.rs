//! Waiting for a prompt's end: what wakes a waiter, and what does not.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bridge::Terminal;
use serde_json::json;

use crate::world::{World, prompt, soon};

/// Whether the future is there when it is asked now.
fn is_ready(future: impl Future<Output = ()>) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_prompt_wakes_at_its_end_and_finds_its_outcome() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    let session = world.session.clone();
    let mut waiters: Vec<_> = (0..100).map(|_| Box::pin(session.settled("A"))).collect();
    assert!(!waiters.iter_mut().any(|waiter| is_ready(waiter.as_mut())), "it runs");
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    for waiter in waiters {
        soon(waiter).await;
        let view = session.turn(Some("A"));
        assert_eq!(view.live, None);
        assert_eq!(view.overlay.unwrap().terminal, Terminal::Completed { stop_reason: "end_turn".into() });
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_another_prompt_is_waited_over() {
    let mut world = World::start().await;
    world.admit("A");
    world.admit("B");
    let first = world.agent.hear_prompt().await;
    let session = world.session.clone();
    let mut waiting = pin!(session.settled("B"));
    assert!(!is_ready(waiting.as_mut()));
    world.agent.settle(&first, json!({"stopReason": "end_turn"})).await;
    let second = world.agent.hear_prompt().await;
    assert!(session.turn(Some("A")).live.is_none());
    assert!(!is_ready(waiting.as_mut()), "A is over and B is not");
    world.agent.settle(&second, json!({"stopReason": "end_turn"})).await;
    soon(waiting).await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_not_there_is_not_waited_for() {
    let world = World::start().await;
    assert!(is_ready(world.session.settled("nope")));
}

#[tokio::test(start_paused = true)]
async fn a_removal_a_deadline_and_a_lost_agent_all_wake() {
    let mut world = World::start().await;
    world.admit("A");
    world.admit("B");
    let late = bridge::Prompt { deadline_ms: Some(500), ..prompt("C") };
    world.session.admit(late).unwrap();
    world.agent.hear_prompt().await;
    let session = world.session.clone();
    let (mut running, mut removed, mut expired) =
        (pin!(session.settled("A")), pin!(session.settled("B")), pin!(session.settled("C")));
    assert!(!is_ready(running.as_mut()) && !is_ready(removed.as_mut()) && !is_ready(expired.as_mut()));
    assert_eq!(session.remove("B", None), Ok(true));
    soon(removed).await;
    soon(expired).await;
    assert!(!is_ready(running.as_mut()));
    drop(world.agent);
    soon(running).await;
}

#[tokio::test(start_paused = true)]
async fn a_fault_in_recording_an_outcome_leaves_nobody_waiting() {
    let mut world = World::start().await;
    world.admit("fault");
    let held = world.agent.hear_prompt().await;
    let session = world.session.clone();
    let mut waiting = pin!(session.settled("fault"));
    assert!(!is_ready(waiting.as_mut()));
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    soon(waiting).await;
}
