//! What tells a session that is used from one that is not, and the close of one that is not.

use std::time::Duration;

use acp::compose;
use bridge::{Background, CloseError, Prompt, Subscribe};
use serde_json::{Value, json};

use crate::world::{World, prompt, soon};

/// The agent tells of its work, and what is known of it then.
async fn told(world: &mut World, sessions: Value) -> Option<(bool, bool)> {
    let before = world.session.status().background;
    world
        .agent
        .say(compose::notification("qwen/notify/channel/active-work", &json!({"v": 1, "sessions": sessions})))
        .await;
    let now = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        while world.session.status().background == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        world.session.status().background
    };
    soon(now).await.map(|told: Background| (told.has_running_tasks, told.is_held))
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_works_in_the_background_says_so_of_its_own_session() {
    let mut world = World::start().await;
    assert_eq!(world.session.status().background, None);
    let task = json!([{"sessionId": "agent-1", "hasRunningBackgroundTasks": true, "holds": []}]);
    assert_eq!(told(&mut world, task).await, Some((true, false)));
    let held = json!([{"sessionId": "agent-1", "holds": [{"category": "shell", "id": "x"}]}]);
    assert_eq!(told(&mut world, held).await, Some((false, true)));
    assert_eq!(
        told(&mut world, json!([{"sessionId": "other", "hasRunningBackgroundTasks": true}])).await,
        Some((false, false))
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_is_closed_only_if_it_is_due_at_that_moment() {
    let mut world = World::start().await;
    assert_eq!(world.session.close_if("idle_timeout", |_| false).await, Ok(false));
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    assert_eq!(world.session.close_if("idle_timeout", |status| !status.has_active_prompt).await, Ok(false));
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    soon(world.session.idle()).await;
    world.expect("user_message_chunk A A; turn_complete A end_turn").await;
    let closing = world.session.close_if("idle_timeout", |status| !status.has_active_prompt);
    let hearing = async {
        world.agent.hear_method("turnd/close").await;
        world.agent.hang_up().await;
    };
    assert_eq!(tokio::join!(closing, hearing).0, Ok(true));
    world.expect("session_closed idle_timeout").await;
    world.expect_end().await;
    assert_eq!(world.session.close_if("idle_timeout", |_| true).await, Err(CloseError::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_idle_when_its_agent_is_however_early_its_prompt_s_caller_was_released() {
    let mut world = World::start().await;
    world.session.admit(Prompt { deadline_ms: Some(10), ..prompt("A") }).unwrap();
    let held = world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A; turn_error A prompt_deadline_exceeded").await;
    let waited = tokio::time::timeout(Duration::from_secs(1), world.session.idle()).await;
    assert!(waited.is_err() && world.session.status().has_active_prompt);
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    soon(world.session.idle()).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_agent_went_away_in_the_middle_of_a_prompt_is_idle() {
    let mut world = World::start().await;
    world.admit("A");
    world.agent.hear_prompt().await;
    let session = world.session.clone();
    let hang_up = async {
        world.agent.hang_up().await;
        soon(session.ended()).await;
    };
    tokio::join!(soon(world.session.idle()), hang_up);
    assert!(!world.session.status().has_active_prompt, "whoever asks again and again is done too");
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_leaves_or_asks_was_there_until_then() {
    let mut world = World::start().await;
    let active = |world: &World| world.session.status().active_at_ms;
    let later = || tokio::time::sleep(Duration::from_millis(50));
    let began = active(&world);
    later().await;
    world.session.register(None);
    assert_eq!(active(&world), began + 50, "a client is registered");
    later().await;
    let second = world.session.subscribe(&Subscribe::default()).unwrap();
    later().await;
    drop(second);
    assert_eq!(active(&world), began + 150, "a stream has ended");
    let asking = {
        let session = world.session.clone();
        async move { session.ask("what", "{}", 1_000).await }
    };
    let answering = async {
        let inquiry = world.agent.hear_method("what").await;
        assert_eq!(world.session.status().inquiry_count, 1);
        later().await;
        world.agent.answer(&inquiry, json!({})).await;
    };
    assert!(tokio::join!(asking, answering).0.is_ok());
    assert_eq!((active(&world), world.session.status().inquiry_count), (began + 200, 0), "an inquiry was answered");
}

#[tokio::test(start_paused = true)]
async fn an_inquiry_that_nobody_waits_for_any_more_is_none() {
    let mut world = World::start().await;
    assert!(world.session.ask("what", "{}", 5).await.is_err());
    world.agent.hear_method("what").await;
    assert_eq!(world.session.status().inquiry_count, 0);
}
