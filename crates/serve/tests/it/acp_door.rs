//! The ACP door over a real WebSocket: an editor is one more client of its sessions, and its prompts go where all prompts go.

use serde_json::{Value, json};
use serve::{Mediation, Policy};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Connection, until};
use crate::daemon::Daemon;
use crate::editor::{Editor, texts};

/// Waits until the ledger of a session holds so many lines.
async fn ledger_of(daemon: &Daemon, session: &str, lines: usize) -> Vec<Value> {
    until("the ledger has its lines", async || daemon.ledger(session).lines().count() >= lines).await;
    daemon.ledger(session).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_prompt_of_an_editor_is_streamed_answered_and_in_the_ledger() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let made = editor.ask("session/new", json!({ "cwd": "/ws", "mcpServers": [] })).await;
    let session = made["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(made["result"]["modes"]["currentModeId"], "default");
    let request = editor.prompt(&session, "hello").await;
    let answer = editor.answer_to(request).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(answer["result"]["_meta"]["turnd/inputWritten"], "yes");
    // All that the turn said came before its answer, and its own prompt is not shown to it.
    let kept = editor.take_kept();
    assert_eq!(texts(&kept, "agent_message_chunk"), ["echo: hello"]);
    assert_eq!(texts(&kept, "user_message_chunk"), Vec::<String>::new());
    let prompt = answer["result"]["_meta"]["turnd/promptId"].as_str().unwrap();
    let lines = ledger_of(&daemon, &session, 2).await;
    assert_eq!((&lines[0]["state"], &lines[0]["promptId"]), (&json!("in_flight"), &json!(prompt)));
    assert_eq!((&lines[1]["terminal"], &lines[1]["promptId"]), (&json!("completed"), &json!(prompt)));
    let turn = daemon.turn(&session, prompt).await.json();
    assert_eq!((&turn["state"], &turn["resultText"]), (&json!("completed"), &json!("echo: hello")));
    assert!(std::fs::read_to_string(daemon.chats().join(format!("{session}.jsonl"))).unwrap().contains(prompt));
}

#[tokio::test]
async fn a_failed_turn_is_an_error_with_the_code_of_its_event() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let request = editor.prompt(&session, "fail").await;
    let error = editor.answer_to(request).await["error"].clone();
    assert_eq!((&error["message"], &error["data"]["code"]), (&json!("400 from model"), &json!("-32603")));
    let event = daemon.events(&session).await.until(&["turn_error"]).await;
    assert_eq!(
        (&event["data"]["message"], &event["data"]["promptId"]),
        (&error["message"], &error["data"]["promptId"])
    );
}

#[tokio::test]
async fn a_cancel_of_an_editor_ends_its_own_prompts_and_leaves_those_of_others() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let foreign = daemon.prompt(&session, "hold").await["promptId"].as_str().unwrap().to_owned();
    let request = editor.prompt(&session, "mine").await;
    ledger_of(&daemon, &session, 2).await;
    editor.notify("session/cancel", json!({ "sessionId": session })).await;
    let answer = editor.answer_to(request).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert_eq!(daemon.turn(&session, &foreign).await.json()["state"], "running");
    daemon.hosts.release(1);
    until("the other prompt is over", async || daemon.turn(&session, &foreign).await.json()["state"] == "completed")
        .await;
}

#[tokio::test]
async fn a_cancel_without_a_prompt_of_its_own_means_the_one_that_runs() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let foreign = daemon.prompt(&session, "hang").await["promptId"].as_str().unwrap().to_owned();
    editor.notify("session/cancel", json!({ "sessionId": session })).await;
    until("it is cancelled", async || daemon.turn(&session, &foreign).await.json()["state"] == "cancelled").await;
}

#[tokio::test]
async fn a_cancel_of_the_request_is_a_cancel_of_its_prompt() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let request = editor.prompt(&session, "hang").await;
    editor.notify("$/cancel_request", json!({ "requestId": request })).await;
    assert_eq!(editor.answer_to(request).await["result"]["stopReason"], "cancelled");
}

#[tokio::test]
async fn a_question_is_asked_and_the_answer_is_the_editors_vote() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let request = editor.prompt(&session, "ask").await;
    let asked = editor.told("session/request_permission").await;
    assert_eq!(asked["params"]["toolCall"]["title"], "touch x");
    assert_eq!(asked["params"]["options"][0]["optionId"], "yes");
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    editor.answer(&asked["id"], outcome).await;
    assert_eq!(editor.answer_to(request).await["result"]["stopReason"], "end_turn");
    let resolved = daemon.events(&session).await.until(&["permission_resolved"]).await;
    assert_eq!(resolved["data"]["outcome"]["optionId"], "yes");
    assert!(resolved["data"]["voterClientId"].as_str().unwrap().starts_with("client_"));
}

#[tokio::test]
async fn a_question_that_is_decided_elsewhere_is_withdrawn_and_a_late_answer_does_nothing() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let request = editor.prompt(&session, "ask").await;
    let asked = editor.told("session/request_permission").await;
    let path = format!("/permission/{}", asked["params"]["_meta"]["turnd/requestId"].as_str().unwrap());
    let vote = json!({ "outcome": { "outcome": "selected", "optionId": "no" } });
    assert_eq!(daemon.post(&path, vote).await.status, 200);
    assert_eq!(editor.told("$/cancel_request").await["params"]["requestId"], asked["id"]);
    editor.answer(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "yes" } })).await;
    assert_eq!(editor.answer_to(request).await["result"]["stopReason"], "end_turn");
    let resolved = daemon.events(&session).await.until(&["permission_resolved"]).await;
    assert_eq!(resolved["data"]["outcome"]["optionId"], "no");
}

#[tokio::test]
async fn an_editor_has_no_vote_where_the_policy_gives_it_none() {
    let mediation = Mediation { policy: Policy::Designated, ..Mediation::default() };
    let daemon = Daemon::with(|options| options.mediation = mediation).await;
    let (mut mine, mut other) = (Editor::greet(&daemon).await, Editor::greet(&daemon).await);
    let session = mine.create("/ws").await;
    let loaded = other.ask("session/load", json!({ "sessionId": session, "cwd": "/ws", "mcpServers": [] })).await;
    assert!(loaded.get("error").is_none(), "{loaded}");
    let request = mine.prompt(&session, "ask").await;
    let foreign = other.told("session/request_permission").await;
    other.answer(&foreign["id"], json!({ "outcome": { "outcome": "selected", "optionId": "no" } })).await;
    daemon.events(&session).await.until(&["permission_forbidden"]).await;
    let asked = mine.told("session/request_permission").await;
    mine.answer(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "yes" } })).await;
    assert_eq!(mine.answer_to(request).await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn several_editors_and_http_see_one_turn() {
    let daemon = Daemon::start().await;
    let (mut first, mut second) = (Editor::greet(&daemon).await, Editor::greet(&daemon).await);
    let session = first.create("/ws").await;
    second.ask("session/load", json!({ "sessionId": session, "cwd": "/ws", "mcpServers": [] })).await;
    let mut stream = daemon.events(&session).await;
    let request = first.prompt(&session, "hello").await;
    first.answer_to(request).await;
    let said = |update: &Value| update["params"]["update"]["content"]["text"] == "echo: hello";
    second.until(said).await;
    // Whoever did not send it sees what was asked, too.
    assert_eq!(texts(&second.take_kept(), "user_message_chunk"), ["hello"]);
    let complete = stream.until(&["turn_complete"]).await;
    assert_eq!(complete["data"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_load_shows_the_history_before_it_is_answered() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "before").await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    let mut editor = Editor::greet(&daemon).await;
    let load = json!({ "sessionId": session, "cwd": "/ws", "mcpServers": [] });
    let loaded = editor.ask("session/load", load.clone()).await;
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "default", "{loaded}");
    let shown = editor.take_kept();
    assert_eq!(texts(&shown, "user_message_chunk"), ["before"]);
    assert_eq!(texts(&shown, "agent_message_chunk"), ["echo: before"]);
    // Again on the same connection: shown again, and nothing of it twice.
    let request = editor.prompt(&session, "after").await;
    editor.answer_to(request).await;
    editor.take_kept();
    editor.ask("session/load", load).await;
    assert_eq!(texts(&editor.take_kept(), "agent_message_chunk"), ["echo: before", "echo: after"]);
    let request = editor.prompt(&session, "last").await;
    editor.answer_to(request).await;
    assert_eq!(texts(&editor.take_kept(), "agent_message_chunk"), ["echo: last"]);
}

#[tokio::test]
async fn a_resume_shows_no_history() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "before").await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    let mut editor = Editor::greet(&daemon).await;
    let resumed = editor.ask("session/resume", json!({ "sessionId": session, "cwd": "/ws" })).await;
    assert!(resumed["result"].is_object(), "{resumed}");
    assert_eq!(texts(&editor.take_kept(), "agent_message_chunk"), Vec::<String>::new());
    let request = editor.prompt(&session, "after").await;
    assert_eq!(editor.answer_to(request).await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn what_an_editor_sets_is_told_to_the_readers_and_is_what_was_there_before_the_next_change() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    for (method, key, value) in [("session/set_mode", "modeId", "plan"), ("session/set_model", "modelId", "m-2")] {
        let answer = editor.ask(method, json!({ "sessionId": session, key: value })).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    let state = daemon.get(&format!("/session/{session}/context")).await.json()["state"].clone();
    assert_eq!((&state["modes"]["currentModeId"], &state["models"]["currentModelId"]), (&json!("plan"), &json!("m-2")));
    let mut stream = daemon.events(&session).await;
    let event = stream.until(&["approval_mode_changed"]).await;
    assert_eq!((&event["data"]["previous"], &event["data"]["next"]), (&json!("default"), &json!("plan")));
    assert!(event["originatorClientId"].as_str().unwrap().starts_with("client_"), "{event}");
    assert_eq!(stream.until(&["model_switched"]).await["data"]["modelId"], "m-2");
    let back = daemon.post(&format!("/session/{session}/approval-mode"), json!({ "mode": "default" })).await;
    assert_eq!(back.json()["previous"], "plan", "{}", back.verdict());
}

#[tokio::test]
async fn who_loads_while_a_question_is_open_is_asked_too() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.prompt(&session, "ask").await;
    daemon.events(&session).await.until(&["permission_request"]).await;
    let mut editor = Editor::greet(&daemon).await;
    editor.ask("session/load", json!({ "sessionId": session, "cwd": "/ws", "mcpServers": [] })).await;
    let asked = editor.told("session/request_permission").await;
    editor.answer(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "yes" } })).await;
    daemon.events(&session).await.until(&["turn_complete"]).await;
}

#[tokio::test]
async fn a_prompt_outlives_its_editor_and_the_next_one_gets_its_answer() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let prompt = json!([{ "type": "text", "text": "hold" }]);
    let body = json!({ "sessionId": session, "prompt": prompt, "_meta": { "turnd/promptId": "mine-1" } });
    editor.request("session/prompt", body.clone()).await;
    ledger_of(&daemon, &session, 1).await;
    drop(editor);
    let status = async || daemon.get(&format!("/session/{session}/status")).await.json();
    until("the registration is taken back", async || status().await["clientCount"] == 0).await;
    assert_eq!(daemon.turn(&session, "mine-1").await.json()["state"], "running");
    let mut next = Editor::greet(&daemon).await;
    next.ask("session/load", json!({ "sessionId": session, "cwd": "/ws", "mcpServers": [] })).await;
    let (first, second) =
        (next.request("session/prompt", body.clone()).await, next.request("session/prompt", body.clone()).await);
    // A question behind them has been answered, so both have been admitted before the turn goes on.
    next.ask("session/nothing", json!({})).await;
    daemon.hosts.release(1);
    for request in [first, second] {
        let answer = next.answer_to(request).await;
        assert_eq!(
            (&answer["result"]["stopReason"], &answer["result"]["_meta"]["turnd/promptId"]),
            (&json!("end_turn"), &json!("mine-1"))
        );
    }
    // It is over now, and still the same prompt; another one of its id is refused.
    let third = next.request("session/prompt", body).await;
    assert_eq!(next.answer_to(third).await["result"]["stopReason"], "end_turn");
    assert_eq!(ledger_of(&daemon, &session, 2).await.len(), 2);
    let other = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "other" }], "_meta": { "turnd/promptId": "mine-1" } });
    assert_eq!(next.ask("session/prompt", other).await["error"]["data"]["code"], "prompt_id_conflict");
}

#[tokio::test]
async fn an_idle_session_that_its_only_editor_leaves_is_closed_as_by_a_detach() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    drop(editor);
    let path = format!("/session/{session}/status");
    until("it is closed", async || daemon.get(&path).await.status == 404).await;
}

/// What has no transcript has nothing to be judged by (ledger seed): not one that lives, and not one that is gone.
#[tokio::test]
async fn a_live_conversation_without_a_transcript_is_not_reconciled() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let open = r#"{"v":1,"promptId":"p","state":"in_flight","at":1}"#.to_owned() + "\n";
    daemon.write(&format!("{session}.ledger.jsonl"), &open);
    assert!(!daemon.chats().join(format!("{session}.jsonl")).exists());
    let mut other = Editor::greet(&daemon).await;
    let load = json!({ "sessionId": session, "cwd": "/ws", "mcpServers": [] });
    assert!(other.ask("session/load", load.clone()).await["result"].is_object());
    assert_eq!(daemon.ledger(&session), open);
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    let gone = Editor::greet(&daemon).await.ask("session/load", load).await;
    assert_eq!((&gone["error"]["code"], &gone["error"]["data"]["code"]), (&json!(-32002), &json!("session_not_found")));
    assert_eq!(daemon.ledger(&session), open);
}

#[tokio::test]
async fn a_cold_load_through_the_door_reconciles_as_one_over_http() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "before").await;
    let mut daemon = daemon;
    daemon.stop().await;
    let path = daemon.chats().join(format!("{session}.ledger.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap();
    // Its end was not written any more.
    std::fs::write(&path, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    let daemon = daemon.restart().await;
    let mut editor = Editor::greet(&daemon).await;
    editor.ask("session/load", json!({ "sessionId": session, "cwd": "/ws", "mcpServers": [] })).await;
    let lines: Vec<_> = daemon.ledger(&session).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].contains("\"completed\""), "{lines:?}");
}

#[tokio::test]
async fn an_editor_is_kept_to_the_workspaces_and_to_its_own_sessions() {
    let daemon = Daemon::with(|options| options.workspaces = vec!["/ws".into(), "/two".into()]).await;
    let mut editor = Editor::greet(&daemon).await;
    let code = |answer: Value| answer["error"]["data"]["code"].as_str().unwrap_or_default().to_owned();
    assert_eq!(code(editor.ask("session/new", json!({ "cwd": "/three" })).await), "workspace_mismatch");
    assert_eq!(code(editor.ask("session/new", json!({ "cwd": "ws" })).await), "invalid_cwd");
    let session = editor.create("/two").await;
    let elsewhere = json!({ "sessionId": session, "cwd": "/ws" });
    assert_eq!(code(editor.ask("session/load", elsewhere).await), "session_workspace_conflict");
    let foreign = daemon.create().await;
    let prompt = json!({ "sessionId": foreign, "prompt": [{ "type": "text", "text": "x" }] });
    assert_eq!(code(editor.ask("session/prompt", prompt).await), "session_not_found");
    let empty = json!({ "sessionId": session, "prompt": [] });
    assert_eq!(code(editor.ask("session/prompt", empty).await), "invalid_prompt");
    let request = editor.prompt(&session, "hello").await;
    editor.answer_to(request).await;
    assert!(daemon.chats_of("-two").join(format!("{session}.ledger.jsonl")).exists());
}

#[tokio::test]
async fn a_close_over_http_ends_the_editors_prompts_each_with_its_code() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let (running, waiting) = (editor.prompt(&session, "hang").await, editor.prompt(&session, "next").await);
    ledger_of(&daemon, &session, 2).await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    assert_eq!(editor.answer_to(waiting).await["error"]["data"]["code"], "session_closed");
    let answer = editor.answer_to(running).await;
    assert!(
        answer["result"]["stopReason"] == "cancelled" || answer["error"]["data"]["code"] == "session_closed",
        "{answer}"
    );
    until("its place there is free", async || {
        let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "x" }] });
        editor.ask("session/prompt", prompt).await["error"]["data"]["code"] == "session_not_found"
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_daemon_is_told_behind_the_ends_of_the_prompts() {
    let mut daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let request = editor.prompt(&session, "hang").await;
    ledger_of(&daemon, &session, 1).await;
    let stopping = daemon.stop();
    let watching = async {
        assert_eq!(editor.answer_to(request).await["error"]["data"]["code"], "daemon_shutdown");
        editor.close_code().await
    };
    let ((), code) = tokio::join!(stopping, watching);
    assert_eq!(code, Some(1001));
}

#[tokio::test]
async fn what_a_prompt_may_carry_is_the_agents_to_say() {
    let daemon = Daemon::start().await;
    let capabilities = async || {
        let mut editor = Editor::try_connect(&daemon, &[]).await.unwrap();
        let welcome = editor.ask("initialize", json!({ "protocolVersion": 1 })).await;
        welcome["result"]["agentCapabilities"]["promptCapabilities"].clone()
    };
    let none = json!({ "image": false, "audio": false, "embeddedContext": false });
    assert_eq!(capabilities().await, none, "no agent has said anything yet");
    daemon.create().await;
    assert_eq!(capabilities().await, json!({ "image": true, "audio": false, "embeddedContext": false }));
}

#[tokio::test]
async fn the_wall_stands_before_the_door() {
    let daemon = Daemon::with(|options| options.token = Some(serve::Token::new("secret").unwrap())).await;
    let status = async |headers: &[(&'static str, &str)]| Editor::try_connect(&daemon, headers).await.err();
    assert_eq!(status(&[]).await, Some(401));
    assert_eq!(status(&[("authorization", "Bearer wrong")]).await, Some(401));
    assert_eq!(status(&[("authorization", "Bearer secret"), ("origin", "http://evil.example")]).await, Some(403));
    assert_eq!(status(&[("authorization", "Bearer secret"), ("host", "evil.example")]).await, Some(403));
    assert_eq!(status(&[("authorization", "Bearer secret")]).await, None);
}

#[tokio::test]
async fn what_is_no_websocket_is_told_what_is_there() {
    let daemon = Daemon::start().await;
    let plain = daemon.get("/acp").await;
    assert_eq!(plain.verdict(), "426 upgrade_required");
    assert_eq!((plain.header("upgrade"), plain.header("sec-websocket-version")), (Some("websocket"), Some("13")));
    assert_eq!(Editor::try_connect(&daemon, &[("sec-websocket-version", "8")]).await.err(), Some(426));
    assert_eq!(Editor::try_connect(&daemon, &[("sec-websocket-key", "short")]).await.err(), Some(426));
    assert_eq!(daemon.post("/acp", json!({})).await.verdict(), "404 route_not_found");
}

#[tokio::test]
async fn an_editors_connection_takes_a_place_until_it_is_over() {
    let daemon = Daemon::with(|options| options.limits.max_connections = 1).await;
    let mut editor = None;
    until("there is a place", async || {
        editor = Editor::try_connect(&daemon, &[]).await.ok();
        editor.is_some()
    })
    .await;
    let mut second = Connection::open(daemon.address).await;
    second.ask("GET /health", &[], b"").await;
    assert!(second.try_answer().await.is_none_or(|answer| answer.status == 503));
    drop(editor);
    daemon.the_only_connection().await;
}

#[tokio::test]
async fn a_frame_that_is_no_text_and_one_that_is_too_large_end_the_connection() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    editor.send(Message::binary(vec![0; 4])).await;
    assert_eq!(editor.close_code().await, Some(1003));
    let mut editor = Editor::greet(&daemon).await;
    editor.send(Message::text("x".repeat(11 * 1024 * 1024))).await;
    assert!(matches!(editor.close_code().await, Some(1009) | None));
    let mut editor = Editor::greet(&daemon).await;
    editor.send(Message::text("{ no json")).await;
    let answer = editor.until(|message| message.get("error").is_some()).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
}

#[tokio::test]
async fn an_editor_that_does_not_read_is_hung_up_on_and_holds_nobody_up() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    for number in 0..4 {
        editor.notify("x/y", json!({ "number": number })).await;
        daemon.run_unread(&session, "flood").await;
    }
    // A goodbye that the socket does not take in time is not waited for.
    assert!(matches!(editor.close_code().await, Some(1013) | None));
    let mut next = Editor::greet(&daemon).await;
    let load = json!({ "sessionId": session, "cwd": "/ws", "mcpServers": [] });
    assert!(next.ask("session/load", load).await["result"].is_object());
}

#[tokio::test]
async fn an_editor_that_reads_hears_a_burst_whole_though_more_comes_at_once_than_waits_for_a_reader() {
    let daemon = Daemon::start().await;
    let mut editor = Editor::greet(&daemon).await;
    let session = editor.create("/ws").await;
    let prompt = editor.prompt(&session, "burst").await;
    assert_eq!(editor.answer_to(prompt).await["result"]["stopReason"], "end_turn");
    let heard = texts(&editor.take_kept(), "agent_message_chunk");
    let burst: Vec<_> = (0..crate::peer::BURST_UPDATES).map(|number| number.to_string()).collect();
    assert!(heard[..heard.len() - 1] == burst, "{} updates, and the answer", heard.len());
}

#[tokio::test]
async fn the_door_is_told_of_and_not_counted() {
    let rates = serve::Rates { prompt: 1, mutation: 1, read: 1, window_ms: 60_000 };
    let daemon = Daemon::with(|options| options.rates = Some(rates)).await;
    let told = daemon.get("/capabilities").await.json();
    assert_eq!(told["transports"], json!(["rest", "acp-websocket"]));
    assert!(told["features"].as_array().unwrap().contains(&json!("acp_websocket")));
    for _ in 0..3 {
        Editor::greet(&daemon).await;
    }
}
