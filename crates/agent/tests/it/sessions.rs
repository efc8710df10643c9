//! Sessions: made, loaded, resumed, listed, closed, and apart from each other.

use acp::{Kind, RequestId};
use serde_json::{Value, json};

use crate::client::Client;

#[tokio::test(start_paused = true)]
async fn the_agent_introduces_itself_with_what_it_can_do() {
    let result = Client::new().call("initialize", &json!({"protocolVersion": 1})).await.answer.unwrap();
    assert_eq!(result["protocolVersion"], 1);
    assert_eq!(result["agentInfo"]["name"], "turnd-agent");
    let capabilities = &result["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(capabilities["sessionCapabilities"], json!({"list": {}, "resume": {}, "close": {}}));
}

#[tokio::test(start_paused = true)]
async fn a_loaded_session_says_its_history_again_before_the_answer() {
    let (mut client, session) = Client::with_session().await;
    let live = client.play(&session, "hello").await;
    client.play(&session, "surrogate").await;
    let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let loaded = client.call("session/load", &params).await;
    assert_eq!(loaded.answer.as_ref().unwrap()["modes"]["currentModeId"], "default");
    assert_eq!(loaded.chunks("user_message_chunk"), ["hello", "surrogate"]);
    assert_eq!(loaded.text(), "echo: hellohalf a pair: \u{fffd}");
    assert_eq!(loaded.updates[1..=live.updates.len()], live.updates);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_says_nothing_and_goes_on() {
    let (mut client, session) = Client::with_session().await;
    client.play(&session, "hello").await;
    let resumed = client.call("session/resume", &json!({"sessionId": session, "cwd": "/"})).await;
    assert_eq!(resumed.answer.unwrap()["models"]["currentModelId"], "scripted");
    assert_eq!(resumed.updates, Vec::<Value>::new());
    assert_eq!(client.play(&session, "again").await.text(), "echo: again");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_made_of_another_one_up_to_a_prompt_by_the_id_its_client_gave_it() {
    let mut client = Client::new();
    let initialized = client.call("initialize", &json!({"protocolVersion": 1})).await.answer.unwrap();
    assert_eq!(initialized["agentCapabilities"]["_meta"], json!({"turnd/forkBefore": true}));
    let session = client.new_session("/").await;
    for prompt in ["p1", "p2"] {
        let blocks = json!([{"type": "text", "text": format!("ask {prompt}")}]);
        let meta = json!({"qwen-code/invocation": {"promptId": prompt}});
        let params = json!({"sessionId": session, "prompt": blocks, "_meta": meta});
        client.call("session/prompt", &params).await.answer.unwrap();
    }
    let fork = json!({"sessionId": session, "promptId": "p2", "cwd": "/", "mcpServers": []});
    let made = client.call("turnd/session/fork_before", &fork).await.answer.unwrap();
    let made = made["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(client.play(&made, "recall").await.text(), "asked: ask p1");
    assert_eq!(client.play(&session, "recall").await.text(), "asked: ask p1 | ask p2", "the old one is as it was");
    for (prompt, code) in [(json!("p9"), -32002), (json!(null), -32602)] {
        let fork = json!({"sessionId": session, "promptId": prompt});
        assert_eq!(client.call("turnd/session/fork_before", &fork).await.answer.unwrap_err().code, code);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_session_is_an_error_everywhere() {
    let mut client = Client::new();
    for method in ["session/load", "session/resume", "session/prompt", "session/close"] {
        let heard = client.call(method, &json!({"sessionId": "nobody", "cwd": "/", "prompt": []})).await;
        assert_eq!(heard.answer.unwrap_err().code, -32002, "{method}");
        let heard = client.call(method, &json!({"cwd": "/"})).await;
        assert_eq!(heard.answer.unwrap_err().code, -32602, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_are_listed_by_their_folder() {
    let mut client = Client::new();
    let (first, second) = (client.new_session("/a").await, client.new_session("/b").await);
    let listed = |result: Value| -> Vec<String> {
        let sessions = result["sessions"].as_array().unwrap().clone();
        sessions.iter().map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
    };
    let all = client.call("session/list", &json!({})).await.answer.unwrap();
    assert_eq!(listed(all), [first, second.clone()]);
    let of_b = client.call("session/list", &json!({"cwd": "/b"})).await.answer.unwrap();
    assert_eq!(listed(of_b), [second]);
}

#[tokio::test(start_paused = true)]
async fn a_session_needs_an_absolute_folder() {
    let mut client = Client::new();
    for params in [json!({}), json!({"cwd": "relative"}), json!({"cwd": 7})] {
        assert_eq!(client.call("session/new", &params).await.answer.unwrap_err().code, -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_ends_its_turn_and_is_gone() {
    let (mut client, session) = Client::with_session().await;
    let prompt = client.prompt(&session, "hang").await;
    let close = client.send("session/close", &json!({"sessionId": session})).await;
    let mut ends = Vec::new();
    for _ in 0..2 {
        let message = client.next().await.unwrap();
        let Kind::Response { id: Some(id) } = message.kind() else { panic!("{message:?}") };
        ends.push((id.clone(), message.result().unwrap().to_owned()));
    }
    ends.sort_by_key(|(id, _)| id.as_u64());
    assert_eq!(ends, [(prompt, r#"{"stopReason":"cancelled"}"#.to_owned()), (close, "{}".to_owned())]);
    assert_eq!(client.play(&session, "hello").await.end(), "-32002");
}

#[tokio::test(start_paused = true)]
async fn a_second_prompt_is_refused_while_one_runs_and_taken_after() {
    let (mut client, session) = Client::with_session().await;
    let running = client.prompt(&session, "slow 200").await;
    let refused = client.prompt(&session, "hello").await;
    let mut refusal = None;
    let answered = loop {
        let message = client.next().await.unwrap();
        match message.kind() {
            Kind::Response { id: Some(id) } if *id == refused => refusal = message.rpc_error(),
            Kind::Response { id: Some(id) } if *id == running => break message,
            _ => (),
        }
    };
    let refusal = refusal.expect("refused before the running one was answered");
    assert_eq!((refusal.code, refusal.message.as_str()), (-32600, "a prompt is already running"));
    assert_eq!(answered.result(), Some(r#"{"stopReason":"end_turn"}"#));
    assert_eq!(client.play(&session, "hello").await.text(), "echo: hello");
}

#[tokio::test(start_paused = true)]
async fn two_sessions_run_side_by_side() {
    let (mut client, first) = Client::with_session().await;
    let second = client.new_session("/").await;
    let slow = client.prompt(&first, "slow 300").await;
    let heard = client.play(&second, "hello").await;
    assert!(heard.text().contains("echo: hello"), "answered while the other runs");
    assert_eq!(client.listen(&slow).await.end(), "end_turn");
}

#[tokio::test(start_paused = true)]
async fn ids_are_echoed_as_they_are_spelled() {
    let mut client = Client::new();
    for raw in ["\"a\\u0062\"", "7.0", "-3", "\"\\ud83d\""] {
        let id = RequestId::parse(raw).unwrap();
        client.write(&acp::compose::request(&id, "session/list", &json!({}))).await;
        assert!(client.listen(&id).await.answer.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_methods_are_refused_and_unknown_notifications_ignored() {
    let mut client = Client::new();
    client.write(&acp::compose::notification("nobody/knows", &json!({}))).await;
    assert_eq!(client.call("nobody/knows", &json!({})).await.answer.unwrap_err().code, -32601);
}

#[tokio::test(start_paused = true)]
async fn lines_that_are_no_messages_are_told_apart_and_do_no_harm() {
    let mut client = Client::new();
    for line in ["not json\n", "[]\n", "{\"id\":77,\"method\":\n"] {
        client.write(line.as_bytes()).await;
        let message = client.next().await.unwrap();
        assert_eq!(*message.kind(), Kind::Response { id: None });
        assert_eq!(message.rpc_error().unwrap().code, -32700);
    }
    client.write(b"\n\r\n").await;
    client.write(b"{\"id\":99,\"result\":{}}\n").await;
    assert!(client.call("session/list", &json!({})).await.answer.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_agent_ends_with_its_input_even_in_mid_turn() {
    let (mut client, session) = Client::with_session().await;
    client.prompt(&session, "hang").await;
    client.hang_up().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_last_request_without_a_line_feed_is_answered() {
    let mut client = Client::new();
    client.write(br#"{"id":"last","method":"session/list"}"#).await;
    client.close_input().await;
    assert!(client.listen(&RequestId::string("last")).await.answer.is_ok());
    client.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_the_input_ended_arrives_whole() {
    let mut client = Client::new();
    let mut ids = Vec::new();
    for _ in 0..30 {
        ids.push(client.send("session/list", &json!({})).await);
    }
    client.close_input().await;
    // The agent has read everything and waits to be read itself.
    tokio::task::yield_now().await;
    for id in ids {
        assert!(client.listen(&id).await.answer.is_ok());
    }
    assert!(client.next().await.is_none());
    client.ended().await.unwrap();
}
