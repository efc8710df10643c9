//! Ends of sessions: wanted, and not.

use bridge::{AdmitError, CloseError, InputWritten, NotOpen, SubscribeError};
use serde_json::json;

use crate::world::{World, envelope, prompt, soon};

#[tokio::test(start_paused = true)]
async fn a_close_cancels_what_runs_flushes_what_waits_and_says_goodbye_last() {
    let mut world = World::start().await;
    world.admit("A");
    world.admit("B");
    let held = world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A; pending_prompt_added B").await;
    let session = world.session.clone();
    let closing = async move { session.close("client_close", Some("client")).await };
    let agent = async {
        world.agent.hear_method("session/cancel").await;
        assert_eq!(world.session.close("client_close", None).await, Err(CloseError::Closing));
        assert_eq!(world.session.admit(prompt("C")), Err(AdmitError::Closing));
        assert_eq!(world.session.cancel(None, None), Err(NotOpen::Closing));
        world.agent.settle(&held, json!({"stopReason": "cancelled"})).await;
        let close = world.agent.hear_method("turnd/close").await;
        assert_eq!(
            close.params(),
            Some(r#"{"reason":"session_closed","message":"session closed before the prompt completed"}"#)
        );
        drop(world.agent);
    };
    let (closed, ()) = tokio::join!(closing, agent);
    assert_eq!(closed, Ok(()));
    let mut told = Vec::new();
    while let Some(frame) = soon(world.reader.next()).await {
        told.push(crate::world::short(&frame));
    }
    let expected = [
        "turn_error B session_closed",
        "pending_prompt_completed B completed",
        "turn_complete A cancelled",
        "session_closed client_close",
    ];
    assert_eq!(told, expected);
    assert!(world.bridge.session("s").is_none());
    assert_eq!(world.session.close("again", None).await, Err(CloseError::NotFound));
    assert_eq!(world.session.admit(prompt("D")), Err(AdmitError::Gone));
    assert_eq!(world.session.subscribe(&bridge::Subscribe::default()).err(), Some(SubscribeError::Gone));
    let ledger = ["A in_flight", "B in_flight", "B error session_closed", "A cancelled cancelled"];
    assert_eq!(world.ledger.lines(), ledger);
}

#[tokio::test(start_paused = true)]
async fn a_close_does_not_wait_for_ever_for_a_deaf_agent() {
    let mut world = World::start().await;
    world.admit("A");
    world.expect("user_message_chunk A A").await;
    assert_eq!(soon(world.session.close("client_close", None)).await, Ok(()));
    world.expect("turn_error A session_closed; session_closed client_close").await;
    world.expect_end().await;
    world.agent.hear_prompt().await;
    world.agent.hear_method("session/cancel").await;
    world.agent.hear_method("turnd/close").await;
    assert!(world.agent.hear_or_end().await.is_none(), "its input is closed at last");
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_closes_at_once() {
    let mut world = World::start().await;
    let session = world.session.clone();
    let (closed, ()) = tokio::join!(session.close("idle_timeout", None), async {
        world.agent.hear_method("turnd/close").await;
        drop(world.agent);
    });
    assert_eq!(closed, Ok(()));
    assert_eq!(crate::world::short(&soon(world.reader.next()).await.unwrap()), "session_closed idle_timeout");
    assert!(soon(world.reader.next()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_dies_takes_its_prompts_along_and_the_session_says_how() {
    let mut world = World::start().await;
    world.admit("A");
    world.admit("B");
    world.agent.hear_prompt().await;
    let exited = r#"{"jsonrpc":"2.0","method":"turnd/agent_exited","params":{"signal":9,"stderrTail":"oh"}}"#;
    world.agent.say(format!("{exited}\n")).await;
    drop(world.agent);
    soon(world.session.ended()).await;
    let mut frames = Vec::new();
    while let Some(frame) = soon(world.reader.next()).await {
        frames.push(frame);
    }
    let told: Vec<_> = frames.iter().map(crate::world::short).collect();
    let expected = [
        "user_message_chunk A A",
        "pending_prompt_added B",
        "prompt_cancelled A forward_failed",
        "turn_error A channel_closed",
        "turn_error B channel_closed",
        "pending_prompt_completed B completed",
        "session_died channel_closed",
    ];
    assert_eq!(told, expected);
    let died = envelope(frames.last().unwrap());
    let expected = json!({"sessionId": "s", "reason": "channel_closed", "exitCode": null, "signalCode": "SIGKILL"});
    assert_eq!(died["data"], expected);
    let written = |id: &str| world.session.turn(Some(id)).overlay.unwrap().input_written;
    assert_eq!((written("A"), written("B")), (Some(InputWritten::Yes), Some(InputWritten::No)));
    assert!(world.bridge.session("s").is_none());
}

#[tokio::test(start_paused = true)]
async fn of_a_prompt_whose_host_vanished_unheard_nobody_knows_whether_it_arrived() {
    let mut world = World::start().await;
    world.admit("A");
    world.agent.hear_prompt().await;
    drop(world.agent);
    soon(world.session.ended()).await;
    assert_eq!(world.session.turn(Some("A")).overlay.unwrap().input_written, Some(InputWritten::Maybe));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_came_with_the_end_of_the_stream_counts() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    let line = acp::compose::response(&held.id, &json!({"stopReason": "end_turn"}));
    world.agent.say(line.slice(..line.len() - 1)).await;
    drop(world.agent);
    soon(world.session.ended()).await;
    assert_eq!(world.ledger.lines(), ["A in_flight", "A completed end_turn"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_every_prompt_and_waits_for_the_agents() {
    let mut world = World::start().await;
    world.admit("A");
    world.admit("B");
    world.agent.hear_prompt().await;
    let bridge = world.bridge.clone();
    let ((), ()) = tokio::join!(bridge.shutdown(), async {
        let close = world.agent.hear_method("turnd/close").await;
        assert_eq!(
            close.params(),
            Some(r#"{"reason":"daemon_shutdown","message":"daemon shut down before the prompt completed"}"#)
        );
        drop(world.agent);
    });
    let mut told = Vec::new();
    while let Some(frame) = soon(world.reader.next()).await {
        told.push(crate::world::short(&frame));
    }
    let expected = [
        "user_message_chunk A A",
        "pending_prompt_added B",
        "turn_error A daemon_shutdown",
        "prompt_cancelled A",
        "turn_error B daemon_shutdown",
        "pending_prompt_completed B completed",
        "session_died daemon_shutdown",
    ];
    assert_eq!(told, expected);
    let ledger = ["A in_flight", "B in_flight", "A error daemon_shutdown", "B error daemon_shutdown"];
    assert_eq!(world.ledger.lines(), ledger);
}

#[tokio::test(start_paused = true)]
async fn a_killed_session_says_so_and_resolves_even_when_the_host_stays() {
    let mut world = World::start().await;
    world.admit("A");
    soon(world.session.kill()).await;
    world.expect("user_message_chunk A A; turn_error A session_killed; session_died killed").await;
    world.expect_end().await;
    assert!(world.bridge.session("s").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_fault_in_one_session_ends_that_session_and_leaves_nobody_waiting() {
    let mut world = World::start().await;
    world.admit("fault");
    world.admit("B");
    let held = world.agent.hear_prompt().await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    soon(world.session.ended()).await;
    world.expect("user_message_chunk fault fault; pending_prompt_added B; prompt_cancelled B forward_failed").await;
    world
        .expect("turn_error B channel_closed; pending_prompt_completed B completed; session_died channel_closed")
        .await;
    world.expect_end().await;
    assert!(world.bridge.session("s").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_asks_without_reading_is_read_no_further_and_can_still_be_closed() {
    let mut world = World::start().await;
    let odd = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"odd\"}\n".repeat(1_000);
    let flood = async {
        loop {
            world.agent.say(odd.clone()).await;
        }
    };
    let never = tokio::time::timeout(std::time::Duration::from_secs(60), flood).await;
    assert!(never.is_err(), "its output is full in the end");
    assert_eq!(soon(world.session.close("client_close", None)).await, Ok(()));
    world.expect("session_closed client_close").await;
}
