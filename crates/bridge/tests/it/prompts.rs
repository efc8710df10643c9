//! Prompts from their admission to their outcome.

use acp::RpcError;
use bridge::{AdmitError, InputWritten, PromptState, Terminal};
use serde_json::json;

use crate::world::{World, envelope, prompt, soon};

#[tokio::test(start_paused = true)]
async fn a_prompt_runs_and_its_answer_can_be_polled() {
    let mut world = World::start().await;
    let receipt = world.admit("A");
    assert_eq!((receipt.prompt_id.as_str(), receipt.last_event_id), ("A", 0));
    assert_eq!(receipt.event_epoch, world.session.epoch());
    let held = world.agent.hear_prompt().await;
    assert_eq!(held.prompt_id(), "A");
    assert_eq!(held.params["sessionId"], "agent-1");
    assert_eq!(held.params["prompt"], json!([{"type": "text", "text": "A"}]));
    world.agent.text("echo: ").await;
    world.agent.text("A").await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("user_message_chunk A A; agent_message_chunk A echo: ; agent_message_chunk A A").await;
    world.expect("turn_complete A end_turn").await;
    let ended = world.session.turn(Some("A")).overlay.unwrap();
    assert_eq!(ended.result_text.unwrap().text, "echo: A");
    assert_eq!(ended.terminal, Terminal::Completed { stop_reason: "end_turn".into() });
    assert_eq!(world.ledger.lines(), ["A in_flight", "A completed end_turn"]);
}

#[tokio::test(start_paused = true)]
async fn an_envelope_has_the_shape_that_clients_read() {
    let mut world = World::start().await;
    world.admit("A");
    let echo = envelope(&world.frame().await);
    let expected = json!({
        "id": 1, "v": 1, "type": "session_update", "promptId": "A", "originatorClientId": "client",
        "data": {"sessionId": "s", "update": {
            "sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "A"},
            "_meta": {"serverTimestamp": 1000, "source": "bridge-echo"}}},
        "_meta": {"serverTimestamp": 1000},
    });
    assert_eq!(echo, expected);
    let held = world.agent.hear_prompt().await;
    world.agent.settle(&held, json!({"stopReason": "end_turn", "_meta": {"qwen.branchPoint": {"x": 1}}})).await;
    let complete = envelope(&world.frame().await);
    let expected = json!({
        "id": 2, "v": 1, "type": "turn_complete", "promptId": "A", "originatorClientId": "client",
        "data": {"sessionId": "s", "promptId": "A", "stopReason": "end_turn", "branchPoint": {"x": 1}, "inputWritten": "yes"},
        "_meta": {"serverTimestamp": 1000},
    });
    assert_eq!(complete, expected);
}

#[tokio::test(start_paused = true)]
async fn prompts_run_one_after_the_other_and_the_list_tells_of_those_that_waited() {
    let mut world = World::start().await;
    world.admit("A");
    world.admit("B");
    let states: Vec<_> =
        world.session.pending_prompts().iter().map(|pending| (pending.state, pending.input_written)).collect();
    assert_eq!(states, [(PromptState::Running, InputWritten::Yes), (PromptState::Queued, InputWritten::No)]);
    let held = world.agent.hear_prompt().await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    let held = world.agent.hear_prompt().await;
    assert_eq!(held.prompt_id(), "B");
    world.agent.settle(&held, json!({"stopReason": "max_tokens"})).await;
    world.expect("user_message_chunk A A; pending_prompt_added B; turn_complete A end_turn").await;
    world.expect("pending_prompt_started B; user_message_chunk B B; turn_complete B max_tokens").await;
    world.expect("pending_prompt_completed B completed").await;
}

#[tokio::test(start_paused = true)]
async fn a_sixth_prompt_is_refused_until_one_is_removed() {
    let world = World::start().await;
    for id in ["A", "B", "C", "D", "E"] {
        world.admit(id);
    }
    let refused = world.session.admit(prompt("F"));
    assert_eq!(refused, Err(AdmitError::QueueFull { limit: 5, pending: 5 }));
    assert_eq!(world.session.remove("C", None), Ok(true));
    assert_eq!(world.session.remove("C", None), Ok(false));
    world.admit("F");
    let ids: Vec<_> = world.session.pending_prompts().into_iter().map(|pending| pending.prompt_id).collect();
    assert_eq!(ids, ["A", "B", "D", "E", "F"]);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_agent_is_the_prompts_outcome_and_the_next_prompt_runs() {
    let mut world = World::start().await;
    world.admit("A");
    world.admit("B");
    let held = world.agent.hear_prompt().await;
    let error = RpcError::new(-32603, "Internal error").with_data(&json!({"details": "400 bad request from model"}));
    world.agent.fail(&held, &error).await;
    world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A; pending_prompt_added B; prompt_cancelled A forward_failed").await;
    world.expect("turn_error A -32603; pending_prompt_started B").await;
    let turn_error = world.session.status().turn_error.unwrap();
    assert_eq!(
        (turn_error.message.as_str(), turn_error.code.as_deref()),
        ("400 bad request from model", Some("-32603"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_code_of_the_host_is_the_code_of_the_error() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    let data = json!({"turnd/code": "transcript_unwritable", "details": "disk is full", "turnd/inputWritten": "no"});
    world.agent.fail(&held, &RpcError::new(-32000, "cannot record").with_data(&data)).await;
    world.expect("user_message_chunk A A; prompt_cancelled A forward_failed; turn_error A transcript_unwritable").await;
    assert_eq!(world.session.turn(Some("A")).overlay.unwrap().input_written, Some(InputWritten::No));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_is_cancelled_whatever_the_agent_says() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.agent.text("half an ans").await;
    world.expect("user_message_chunk A A; agent_message_chunk A half an ans").await;
    world.session.cancel(None, Some("client")).unwrap();
    world.session.cancel(None, Some("client")).unwrap();
    world.agent.hear_method("session/cancel").await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("prompt_cancelled A; turn_complete A cancelled").await;
    let ended = world.session.turn(Some("A")).overlay.unwrap();
    assert_eq!(ended.terminal, Terminal::Cancelled { agent_stop_reason: Some("end_turn".into()) });
    assert_eq!((ended.result_text, ended.partial_text.unwrap().text), (None, "half an ans".into()));
    world.admit("B");
    assert_eq!(world.agent.hear_prompt().await.prompt_id(), "B", "the agent heard one cancel and no other");
}

#[tokio::test(start_paused = true)]
async fn the_hosts_word_that_the_turn_was_over_beats_a_cancel_on_its_way() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.session.cancel(None, None).unwrap();
    let stamp = json!({"stopReason": "end_turn", "_meta": {"turnd/turn": {"state": "completed"}}});
    world.agent.settle(&held, stamp).await;
    world.expect("user_message_chunk A A; prompt_cancelled A; turn_complete A end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn a_second_answer_and_late_updates_change_nothing() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.agent.fail(&held, &RpcError::new(-1, "late")).await;
    world.agent.text("late").await;
    world.expect("user_message_chunk A A; turn_complete A end_turn; agent_message_chunk late").await;
    assert_eq!(world.ledger.lines(), ["A in_flight", "A completed end_turn"]);
    assert_eq!(world.session.turn(Some("A")).overlay.unwrap().result_text, None);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_has_no_time_limit_that_it_was_not_given() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    tokio::time::advance(std::time::Duration::from_secs(3600 * 24 * 30)).await;
    assert_eq!(world.session.turn(None).live.unwrap().state, PromptState::Running);
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("user_message_chunk A A; turn_complete A end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_releases_the_caller_and_the_next_prompt_waits_for_the_agent() {
    let mut world = World::start().await;
    world.session.admit(bridge::Prompt { deadline_ms: Some(1500), ..prompt("A") }).unwrap();
    world.session.admit(bridge::Prompt { deadline_ms: Some(300), ..prompt("B") }).unwrap();
    world.admit("C");
    let held = world.agent.hear_prompt().await;
    world.expect("user_message_chunk A A; pending_prompt_added B; pending_prompt_added C").await;
    world.expect("turn_error B prompt_deadline_exceeded; pending_prompt_completed B completed").await;
    world.expect("turn_error A prompt_deadline_exceeded; prompt_cancelled A").await;
    world.agent.hear_method("session/cancel").await;
    assert!(world.session.turn(Some("A")).live.is_none());
    assert_eq!(world.session.pending_prompts().len(), 1);
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    assert_eq!(world.agent.hear_prompt().await.prompt_id(), "C");
    world.expect("pending_prompt_started C").await;
    let overlay = world.session.turn(Some("A")).overlay.unwrap();
    assert_eq!(overlay.terminal.code(), Some("prompt_deadline_exceeded"));
}

#[tokio::test(start_paused = true)]
async fn half_a_surrogate_pair_reaches_the_readers_as_it_came() {
    let mut world = World::start().await;
    world.admit("A");
    world.agent.hear_prompt().await;
    let update = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"cut \ud83d"}}"#;
    let line = format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"agent-1","update":{update}}}}}"#
    );
    world.agent.say(line + "\n").await;
    world.event().await;
    let frame = soon(world.reader.next()).await.unwrap();
    assert!(String::from_utf8_lossy(&frame.json).contains(update));
    assert_eq!(world.session.turn(None).live.unwrap().heard_at_ms, Some(1000));
}

#[tokio::test(start_paused = true)]
async fn noise_is_passed_over_and_unknown_requests_are_refused_at_once() {
    let mut world = World::start().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    world.agent.say("not json\n\n[1]\n{\"x\":1}\n").await;
    world.agent.say("{\"jsonrpc\":\"2.0\",\"method\":\"_auth/status\",\"params\":{}}\n").await;
    world.agent.say("{\"jsonrpc\":\"2.0\",\"method\":\"craft/drain\",\"params\":{},\"id\":\"x-1\"}\n").await;
    let answer = world.agent.hear().await;
    assert_eq!(answer.rpc_error().unwrap().code, -32601);
    assert!(String::from_utf8_lossy(answer.raw()).contains("\"x-1\""));
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("user_message_chunk A A; turn_complete A end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_same_id_again_is_told_of_its_first_receipt() {
    let mut world = World::start().await;
    let first = world.admit("A");
    let known = |same_content| AdmitError::Known { first: first.clone(), same_content };
    assert_eq!(world.session.admit(prompt("A")).unwrap_err(), known(true));
    let other = bridge::Prompt { content: "[]".into(), ..prompt("A") };
    assert_eq!(world.session.admit(other.clone()).unwrap_err(), known(false));
    let held = world.agent.hear_prompt().await;
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("user_message_chunk A A; turn_complete A end_turn").await;
    assert_eq!(world.session.admit(prompt("A")).unwrap_err(), known(true));
    assert_eq!(world.ledger.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn skill_texts_are_taken_out_of_the_commands() {
    let mut world = World::start().await;
    let commands = json!({"sessionUpdate": "available_commands_update", "availableCommands": [],
        "_meta": {"availableSkills": ["a"], "availableSkillDetails": {"a": "long"}}});
    world.agent.update(commands).await;
    let envelope = envelope(&world.frame().await);
    assert_eq!(envelope["data"]["update"]["_meta"], json!({"availableSkills": ["a"]}));
    assert_eq!(world.session.state_updates().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_died_under_a_prompt_is_given_no_other() {
    let mut world = World::start().await;
    world.admit("A");
    world.admit("B");
    let held = world.agent.hear_prompt().await;
    let data = json!({"turnd/code": "channel_closed", "details": "the agent exited with status 3"});
    world.agent.fail(&held, &RpcError::new(-32000, "gone").with_data(&data)).await;
    world.expect("user_message_chunk A A; pending_prompt_added B; prompt_cancelled A forward_failed").await;
    world
        .expect("turn_error A channel_closed; turn_error B channel_closed; pending_prompt_completed B completed")
        .await;
    let queued = world.session.turn(Some("B")).overlay.unwrap();
    assert_eq!((queued.input_written, queued.started_at_ms), (Some(InputWritten::No), None));
    world.agent.say(acp::compose::notification("turnd/agent_exited", &json!({"exitCode": 3}))).await;
    world.agent.hang_up().await;
    let died = envelope(&world.frame().await);
    assert_eq!((&died["type"], &died["data"]["exitCode"]), (&json!("session_died"), &json!(3)));
    world.expect_end().await;
    assert!(world.agent.hear_or_end().await.is_none(), "nothing was sent into the dying host");
}
