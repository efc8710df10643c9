//! Going on with a turn that was left open (wire rules, section 13.5; trace 11).

use serde_json::{Value, json};
use serve::Mode;
use transcript::{Body, Identity, TurnResult, TurnState, Writer};

use crate::client::{Answer, until};
use crate::daemon::Daemon;

const ASKED: &str = "qwen/control/session/continue";

/// What was left in the transcript of a native agent's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Was {
    Clean,
    /// Asked, and not answered.
    Prompt,
    /// A function called, and not answered.
    Turn,
    /// Answered, and then the user ran a command.
    CleanBehindCommand,
    /// Asked, and cancelled, which is on record.
    Cancelled,
}

fn write(daemon: &Daemon, session: &str, was: Was) {
    let identity = Identity { session_id: session.to_owned(), cwd: "/ws".into(), version: "0".into() };
    let path = daemon.chats().join(format!("{session}.jsonl"));
    std::fs::create_dir_all(daemon.chats()).unwrap();
    let mut writer = Writer::open(&path, identity, transcript::Durability::Process).unwrap();
    let mut append = |at_ms, body: Body| {
        writer.append(at_ms, &body).unwrap();
    };
    append(1, Body::User { prompt_id: Some("old".into()), parts: vec![json!({"text": "do it"})] });
    let answer = |part: Value| Body::Assistant { model: None, parts: vec![part] };
    match was {
        Was::Prompt => {}
        Was::Turn => append(2, answer(json!({"functionCall": {"id": "c", "name": "ls", "args": {}}}))),
        Was::Clean | Was::CleanBehindCommand => append(2, answer(json!({"text": "done"}))),
        Was::Cancelled => {
            append(2, TurnResult::new("old", TurnState::Cancelled, 2).into());
        }
    }
    if was == Was::CleanBehindCommand {
        let note = |subtype: &str| Body::System { subtype: subtype.into(), payload: json!({"command": "ls"}) };
        append(3, note("user_shell_command"));
        append(4, note("user_shell_result"));
    }
}

fn agent_says(accepted: bool, interruption: &str) -> Value {
    json!({"result": {"accepted": accepted, "interruption": interruption}})
}

/// A session of a native agent that was left so, and whose agent answers so when it is asked whether it would go on.
async fn left(was: Was, answer: Value) -> (Daemon, String) {
    let daemon = Daemon::with(|options| options.mode = Mode::Native).await;
    daemon.hosts.behave(|behaviour| behaviour.answers = vec![(ASKED, answer)]);
    let session = daemon.create().await;
    write(&daemon, &session, was);
    (daemon, session)
}

async fn go_on(daemon: &Daemon, session: &str) -> Answer {
    daemon.post(&format!("/session/{session}/continue"), json!({})).await
}

async fn can_continue(daemon: &Daemon, session: &str) -> Value {
    daemon.get(&format!("/session/{session}/context")).await.json()["recovery"].clone()
}

#[tokio::test]
async fn what_was_left_open_goes_on_as_a_prompt_of_its_own_that_nobody_is_said_to_have_asked() {
    for (was, word) in [(Was::Prompt, "interrupted_prompt"), (Was::Turn, "interrupted_turn")] {
        let (daemon, session) = left(was, agent_says(true, word)).await;
        assert_eq!(can_continue(&daemon, &session).await, json!({"kind": word, "canContinue": true}));
        let answer = go_on(&daemon, &session).await;
        let body = answer.json();
        assert_eq!((answer.status, &body["accepted"], &body["interruption"]), (200, &json!(true), &json!(word)));
        let prompt = body["promptId"].as_str().unwrap();
        let mut events = daemon.events_from(&session, &body["lastEventId"]).await;
        let first = events.until(&["session_update", "turn_complete"]).await;
        assert_ne!(first["data"]["update"]["sessionUpdate"], "user_message_chunk", "nothing is echoed: {first}");
        if first["type"] != "turn_complete" {
            events.until(&["turn_complete"]).await;
        }
        let told = daemon.hosts.heard("session/prompt").pop().unwrap()["params"].clone();
        assert_eq!((&told["prompt"], &told["_meta"]["qwen.daemon.continueLastTurn"]), (&json!([]), &json!(true)));
        assert_eq!(told["_meta"]["qwen-code/invocation"]["promptId"], prompt);
        let ledger = daemon.ledger(&session);
        let of = |line: &&str| line.contains(prompt);
        assert_eq!(ledger.lines().filter(of).count(), 2, "an admission and one end: {ledger}");
        let turn = daemon.turn(&session, prompt).await.json();
        assert_eq!((&turn["state"], &turn["promptText"]), (&json!("completed"), &json!("")), "{turn}");
        assert_eq!(daemon.turn(&session, "old").await.status, 404, "the old prompt has no outcome of the new one");
    }
}

#[tokio::test]
async fn nothing_goes_on_where_nothing_was_left_open_whatever_the_agent_remembers() {
    for was in [Was::Clean, Was::CleanBehindCommand, Was::Cancelled] {
        let (daemon, session) = left(was, agent_says(true, "interrupted_prompt")).await;
        let answer = go_on(&daemon, &session).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({"accepted": false, "interruption": "none"})),
            "{was:?}"
        );
        assert_eq!(can_continue(&daemon, &session).await, json!({"kind": "clean", "canContinue": false}));
        assert!(daemon.hosts.heard("session/prompt").is_empty());
        assert!(daemon.hosts.heard(ASKED).is_empty(), "there is nothing to ask");
    }
}

#[tokio::test]
async fn nothing_goes_on_where_the_agent_would_go_on_with_something_else() {
    for (accepted, interruption) in [(true, "interrupted_turn"), (false, "interrupted_prompt"), (false, "none")] {
        let (daemon, session) = left(Was::Prompt, agent_says(accepted, interruption)).await;
        let answer = go_on(&daemon, &session).await.json();
        assert_eq!(answer, json!({"accepted": false, "interruption": "interrupted_prompt"}));
        let recovery = json!({"kind": "interrupted_prompt", "canContinue": false});
        assert_eq!(can_continue(&daemon, &session).await, recovery);
        assert_eq!((daemon.ledger(&session).as_str(), daemon.hosts.heard("session/prompt").len()), ("", 0));
    }
}

#[tokio::test]
async fn an_agent_that_cannot_go_on_is_said_to_lack_it() {
    let (daemon, session) = left(Was::Prompt, json!({"error": {"code": -32601, "message": "no such method"}})).await;
    assert_eq!(go_on(&daemon, &session).await.verdict(), "501 continue_not_supported");
    assert_eq!(can_continue(&daemon, &session).await["canContinue"], false);
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|behaviour| behaviour.answers = vec![(ASKED, agent_says(true, "interrupted_prompt"))]);
    let session = daemon.create().await;
    write(&daemon, &session, Was::Prompt);
    assert_eq!(go_on(&daemon, &session).await.verdict(), "501 continue_not_supported", "a recorded one has no way");
    let recovery = json!({"kind": "interrupted_prompt", "canContinue": false});
    assert_eq!(can_continue(&daemon, &session).await, recovery);
    assert!(daemon.hosts.heard(ASKED).is_empty());
}

#[tokio::test]
async fn a_session_in_which_a_prompt_runs_or_comes_meanwhile_is_busy() {
    let (daemon, session) = left(Was::Prompt, agent_says(true, "interrupted_prompt")).await;
    daemon.hosts.behave(|behaviour| behaviour.slow_answers = true);
    let wish = go_on(&daemon, &session);
    let other = async {
        until("the agent is asked", async || !daemon.hosts.heard(ASKED).is_empty()).await;
        let receipt = daemon.prompt(&session, "hold").await;
        daemon.hosts.open_gate(1);
        receipt
    };
    let (refused, _) = tokio::join!(wish, other);
    assert_eq!((refused.verdict().as_str(), refused.header("retry-after")), ("409 session_busy", Some("5")));
    until("the other one runs", async || daemon.hosts.heard("session/prompt").len() == 1).await;
    assert_eq!(go_on(&daemon, &session).await.verdict(), "409 session_busy");
    assert_eq!(can_continue(&daemon, &session).await, json!({"kind": "clean", "canContinue": false}));
    daemon.hosts.release(1);
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
}

#[tokio::test]
async fn a_continuation_that_is_cancelled_or_runs_out_of_time_ends_once_like_any_prompt() {
    let (daemon, session) = left(Was::Prompt, agent_says(true, "interrupted_prompt")).await;
    daemon.hosts.behave(|behaviour| behaviour.slow_to_continue = true);
    let path = format!("/session/{session}/continue");
    let receipt = daemon.post(&path, json!({"deadlineMs": 50})).await.json();
    let mut events = daemon.events_from(&session, &receipt["lastEventId"]).await;
    let end = events.until(&["turn_complete", "turn_error"]).await;
    assert_eq!(
        (&end["data"]["promptId"], &end["data"]["code"]),
        (&receipt["promptId"], &json!("prompt_deadline_exceeded"))
    );
    check_one_end(&daemon, &session, &receipt["promptId"], "error");
    for (field, code) in [("deadlineMs", "invalid_deadline_ms"), ("runDeadlineMs", "invalid_run_deadline_ms")] {
        let mut body = json!({});
        body[field] = json!(0);
        assert_eq!(daemon.post(&path, body).await.verdict(), format!("400 {code}"));
    }
    let (daemon, session) = left(Was::Prompt, agent_says(true, "interrupted_prompt")).await;
    daemon.hosts.behave(|behaviour| behaviour.slow_to_continue = true);
    let receipt = go_on(&daemon, &session).await.json();
    until("it runs", async || !daemon.hosts.heard("session/prompt").is_empty()).await;
    assert_eq!(daemon.post(&format!("/session/{session}/cancel"), json!({})).await.status, 204);
    let mut events = daemon.events_from(&session, &receipt["lastEventId"]).await;
    let end = events.until(&["turn_complete", "turn_error"]).await;
    assert_eq!((&end["data"]["promptId"], &end["data"]["stopReason"]), (&receipt["promptId"], &json!("cancelled")));
    check_one_end(&daemon, &session, &receipt["promptId"], "cancelled");
}

/// The ledger holds this end of the prompt and no other one.
fn check_one_end(daemon: &Daemon, session: &str, prompt: &Value, end: &str) {
    let ledger = daemon.ledger(session);
    let lines = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = lines.filter(|line| line["promptId"] == *prompt && line["terminal"].is_string());
    assert_eq!(ends.map(|line| line["terminal"].clone()).collect::<Vec<_>>(), [end], "{ledger}");
}

#[tokio::test]
async fn a_session_that_nobody_knows_and_a_client_that_it_does_not_know_are_refused() {
    let daemon = Daemon::with(|options| options.mode = Mode::Native).await;
    assert_eq!(go_on(&daemon, "nobody").await.verdict(), "404 session_not_found");
    let session = daemon.create().await;
    let path = format!("POST /session/{session}/continue");
    let refused = daemon.ask_with(&path, &[("x-qwen-client-id", "client_x")], "{}").await;
    assert_eq!(refused.verdict(), "400 invalid_client_id");
}
