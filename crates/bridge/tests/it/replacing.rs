//! An agent that does not stop, and the one in its place.

use acp::RpcError;
use bridge::Terminal;
use serde_json::json;

use crate::world::{World, envelope};

fn host_error(code: &str) -> RpcError {
    RpcError::new(-32000, "no").with_data(&json!({"turnd/code": code, "details": "why"}))
}

#[tokio::test(start_paused = true)]
async fn the_agent_in_its_place_is_prompted_by_its_own_name_and_nobody_hears_the_old_one_any_more() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.agent.text("half").await;
    world.expect("user_message_chunk A A; agent_message_chunk A half").await;
    world.session.cancel(None, None).unwrap();
    world.admit("B");
    world.agent.hear_method("session/cancel").await;
    world.expect("prompt_cancelled A; pending_prompt_added B").await;
    let request = world.agent.hear_method("turnd/replace_agent").await;
    let params: serde_json::Value = serde_json::from_str(request.params().unwrap()).unwrap();
    assert_eq!(params, json!({"sessionId": "s", "cwd": "/ws", "mcpServers": [], "promptId": "A"}));
    world.agent.fail(&held, &host_error("agent_replaced")).await;
    world.expect("turn_complete A cancelled").await;
    let ended = world.session.turn(Some("A")).overlay.unwrap();
    assert_eq!(ended.terminal, Terminal::Cancelled { agent_stop_reason: None });
    assert_eq!(ended.partial_text.unwrap().text, "half");
    world.agent.answer(&request, json!({"sessionId": "agent-2", "_meta": {"turnd/memory": "fresh"}, "k": 1})).await;
    let replaced = envelope(&world.frame().await);
    assert_eq!((&replaced["type"], &replaced["promptId"]), (&json!("agent_replaced"), &json!("A")));
    assert_eq!(replaced["data"], json!({"sessionId": "s", "promptId": "A", "reason": "cancel", "memory": "fresh"}));
    let held = world.agent.hear_prompt().await;
    assert_eq!((held.prompt_id(), &held.params["sessionId"]), ("B", &json!("agent-2")));
    assert_eq!(world.session.agent_session_id(), "agent-2");
    assert_eq!(acp::raw_at(&world.session.agent_state(), &["k"]), Some("1"));
    // `text` speaks for the old agent's session.
    world.agent.text("old").await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("pending_prompt_started B; user_message_chunk B B; turn_complete B end_turn").await;
    assert_eq!(world.session.turn(Some("B")).overlay.unwrap().result_text, None);
    assert_eq!(
        world.ledger.lines(),
        ["A in_flight", "A cancel_requested", "B in_flight", "A cancelled cancelled", "B completed end_turn"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_replaced_keeps_the_queue_waiting_until_it_settles() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.session.cancel(None, None).unwrap();
    world.admit("B");
    world.agent.hear_method("session/cancel").await;
    let request = world.agent.hear_method("turnd/replace_agent").await;
    let acp::Kind::Request { id, .. } = request.kind() else { panic!("a request") };
    world.agent.say(acp::compose::error_response(id, &host_error("agent_cannot_restore"))).await;
    world
        .expect("user_message_chunk A A; prompt_cancelled A; pending_prompt_added B; agent_kept A agent_cannot_restore")
        .await;
    world.agent.settle(&held, json!({"stopReason": "cancelled"})).await;
    world.expect("turn_complete A cancelled; pending_prompt_started B").await;
    assert_eq!(world.agent.hear_prompt().await.prompt_id(), "B");
}
