//! Rewinding, with hosts and agents that answer as a test says (wire rules, section 13.1; docs/design/2026-11-30-rewind.md).

use serde_json::{Value, json};
use serve::Mode;
use transcript::{Body, Durability, Identity, Rewind, Writer, rewind_points};

use crate::client::{Answer, until};
use crate::daemon::Daemon;

const RECORDED: &str = "turnd/rewind";
const NATIVE: &str = "qwen/control/session/rewind";
const LIST: &str = "qwen/status/session/rewind_snapshots";

fn path(session: &str) -> String {
    format!("/session/{session}/rewind")
}

/// A daemon whose hosts answer one question in a certain way, and a session with two turns.
async fn talked(answers: Vec<(&'static str, Value)>, mode: Mode) -> (Daemon, String, Vec<String>) {
    let daemon = Daemon::with(|options| options.mode = mode).await;
    daemon.hosts.behave(|behaviour| behaviour.answers = answers);
    let session = daemon.create().await;
    let prompts = vec![daemon.run(&session, "one").await, daemon.run(&session, "two").await];
    (daemon, session, prompts)
}

fn writer(daemon: &Daemon, session: &str) -> Writer {
    let identity = Identity { session_id: session.into(), cwd: "/ws".into(), version: "0".into() };
    Writer::open(daemon.chats().join(format!("{session}.jsonl")), identity, Durability::Process).unwrap()
}

/// What the host, or a native agent, writes.
fn take_back(daemon: &Daemon, session: &str, prompt: &str) {
    let mut writer = writer(daemon, session);
    let found = rewind_points(writer.path(), Some(prompt)).unwrap();
    let before = found.points[0].before.clone();
    writer.rewind(4_000_000_000_000, &Rewind { leaf: found.leaf, before, truncated_count: 2 }).unwrap();
}

#[tokio::test]
async fn the_host_is_told_where_to_and_when() {
    let answer = json!({"result": {"sessionId": "other", "_meta": {"turnd/memory": "cut"}}});
    let (daemon, session, prompts) = talked(vec![(RECORDED, answer)], Mode::Recorded).await;
    let found = rewind_points(writer(&daemon, &session).path(), Some(&prompts[1])).unwrap();
    let done = daemon.post(&path(&session), json!({"promptId": prompts[1]})).await;
    assert_eq!((done.status, &done.json()["memory"]), (200, &json!("cut")));
    let told = daemon.hosts.heard(RECORDED);
    let params = &told[0]["params"];
    assert_eq!((&params["promptId"], &params["kept"], &params["cwd"]), (&json!(prompts[1]), &json!(1), &json!("/ws")));
    assert_eq!((&params["leaf"], &params["before"]), (&json!(found.leaf), &json!(found.points[0].before)));
    // The time is younger than every line of the ledger.
    let ledger = daemon.ledger(&session);
    let latest = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["at"].as_u64().unwrap()).max();
    assert!(params["atMs"].as_u64() > latest, "{params} {ledger}");
    // From here on the agent's other session is meant.
    daemon.run(&session, "three").await;
    assert_eq!(daemon.hosts.heard("session/prompt").last().unwrap()["params"]["sessionId"], "other");
}

#[tokio::test]
async fn a_prompt_that_comes_while_a_session_is_rewound_is_refused_and_runs_when_it_comes_again() {
    let answer = json!({"result": {"sessionId": "other", "_meta": {"turnd/memory": "cut"}}});
    let (daemon, session, prompts) = talked(vec![(RECORDED, answer)], Mode::Recorded).await;
    daemon.hosts.behave(|behaviour| behaviour.slow_answers = true);
    let (path, body) = (path(&session), json!({"promptId": prompts[1]}));
    let rewinding = daemon.post(&path, body.clone());
    let meanwhile = async {
        until("the host was asked", async || !daemon.hosts.heard(RECORDED).is_empty()).await;
        assert_eq!(daemon.post(&path, body.clone()).await.json()["code"], "session_busy");
        let three = json!({ "prompt": [{ "type": "text", "text": "three" }] });
        let refused = daemon.post(&format!("/session/{session}/prompt"), three).await;
        assert_eq!((refused.verdict().as_str(), refused.header("retry-after")), ("409 session_busy", Some("5")));
        assert_eq!(daemon.hosts.heard("session/prompt").len(), 2, "nothing is handed on");
        daemon.hosts.open_gate(1);
    };
    let (done, ()) = tokio::join!(rewinding, meanwhile);
    assert_eq!(done.status, 200);
    daemon.run(&session, "three").await;
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 3);
}

#[tokio::test]
async fn a_rewind_goes_on_when_its_caller_does_not() {
    let answer = json!({"result": {"sessionId": "other", "_meta": {"turnd/memory": "cut"}}});
    let (daemon, session, prompts) = talked(vec![(RECORDED, answer)], Mode::Recorded).await;
    daemon.hosts.behave(|behaviour| behaviour.slow_answers = true);
    let mut connection = crate::client::Connection::open(daemon.address).await;
    let body = json!({"promptId": prompts[1]}).to_string();
    let line = format!("POST {}", path(&session));
    connection.ask(&line, &[("content-type", "application/json")], body.as_bytes()).await;
    until("the host was asked", async || !daemon.hosts.heard(RECORDED).is_empty()).await;
    drop(connection);
    daemon.hosts.open_gate(1);
    let three = json!({ "promptId": "three", "prompt": [{ "type": "text", "text": "three" }] });
    let path = format!("/session/{session}/prompt");
    until("it is over", async || daemon.post(&path, three.clone()).await.status == 202).await;
    until("it ran", async || daemon.turn(&session, "three").await.json()["resultText"] == "echo: three").await;
    assert_eq!(daemon.hosts.heard("session/prompt").last().unwrap()["params"]["sessionId"], "other");
}

#[tokio::test]
async fn a_rewind_that_fails_keeps_what_is_remembered_and_the_session() {
    let error = |code: &str| json!({"error": {"code": -32000, "message": "no", "data": {"turnd/code": code}}});
    let cases = [
        (error("rewind_not_supported"), 501, "rewind_not_supported"),
        (error("turn_in_progress"), 409, "session_busy"),
        (error("session_transcript_changed"), 409, "session_transcript_changed"),
        (error("transcript_unwritable"), 507, "transcript_unwritable"),
        (json!({"error": {"code": -32601, "message": "no such method"}}), 501, "rewind_not_supported"),
        (json!({"error": {"code": -32603, "message": "broken"}}), 502, "agent_refused"),
    ];
    for (answer, status, code) in cases {
        let (daemon, session, prompts) = talked(vec![(RECORDED, answer)], Mode::Recorded).await;
        let refused = daemon.post(&path(&session), json!({"promptId": prompts[1]})).await;
        assert_eq!((refused.status, &refused.json()["code"]), (status, &json!(code)), "{}", refused.verdict());
        let turn = daemon.turn(&session, &prompts[1]).await.json();
        assert!(turn["queuedAt"].is_u64(), "the overlay has it still: {turn}");
        daemon.run(&session, "three").await;
    }
}

#[tokio::test]
async fn what_was_rewound_does_not_come_back_from_the_disk_or_from_the_ledger() {
    let answer = json!({"result": {"sessionId": "other", "_meta": {"turnd/memory": "cut"}}});
    let (daemon, session, prompts) = talked(vec![(RECORDED, answer)], Mode::Recorded).await;
    for prompt in &prompts {
        assert_eq!(daemon.turn(&session, prompt).await.status, 200, "a poll has seen it");
    }
    take_back(&daemon, &session, &prompts[1]);
    assert_eq!(daemon.post(&path(&session), json!({"promptId": prompts[0]})).await.status, 200);
    for _ in 0..2 {
        assert_eq!(daemon.turn(&session, &prompts[1]).await.status, 404);
        assert_eq!(daemon.turn(&session, &prompts[0]).await.status, 200, "the branch decides, and has it still");
    }
    assert_eq!(daemon.get(&format!("/session/{session}/turns/current")).await.json()["promptId"], prompts[0]);
}

/// What a native agent answers when all that it had to write is written.
fn flushed() -> (&'static str, Value) {
    ("qwen/control/session/turn_status", json!({"result": {}}))
}

/// A native agent's list: where it has its first and its second snapshot.
fn places(session: &str, turns: [u64; 2]) -> Value {
    let place = |(number, turn)| json!({"promptId": format!("{session}########{number}"), "turnIndex": turn});
    json!({"result": {"snapshots": (1..).zip(turns).map(place).collect::<Vec<_>>()}})
}

/// A session of a native agent, whose transcript names its own snapshots.
async fn native(mut answers: Vec<(&'static str, Value)>) -> (Daemon, String, Vec<String>) {
    let daemon = Daemon::with(|options| options.mode = Mode::Native).await;
    let session = daemon.create().await;
    answers.push((LIST, places(&session, [0, 1])));
    daemon.hosts.behave(|behaviour| behaviour.answers = answers);
    let prompts = vec!["p-1".to_owned(), "p-2".to_owned()];
    let mut writer = writer(&daemon, &session);
    for (number, prompt) in (1..).zip(&prompts) {
        let parts = vec![json!({"text": prompt})];
        let snapshot = json!({"snapshots": [{"promptId": format!("{session}########{number}")}]});
        let note = Body::System { subtype: "file_history_snapshot".into(), payload: snapshot };
        writer.append(number, &Body::User { prompt_id: Some(prompt.clone()), parts }).unwrap();
        writer.append(number, &note).unwrap();
    }
    (daemon, session, prompts)
}

/// Asks for a rewind to `to` while the agent, asked so many questions before, takes back `prompt`.
async fn rewound(daemon: &Daemon, session: &str, to: Value, asked: usize, prompt: Option<&str>) -> Answer {
    daemon.hosts.behave(|behaviour| behaviour.slow_answers = true);
    let (path, before) = (path(session), daemon.hosts.heard(NATIVE).len());
    let rewinding = daemon.post(&path, to);
    let agent = async {
        daemon.hosts.open_gate(asked);
        until("the agent was asked", async || daemon.hosts.heard(NATIVE).len() > before).await;
        if let Some(prompt) = prompt {
            take_back(daemon, session, prompt);
        }
        daemon.hosts.open_gate(2);
    };
    let (done, ()) = tokio::join!(rewinding, agent);
    done
}

#[tokio::test]
async fn a_native_agent_is_told_its_own_name_for_the_place_and_its_answer_is_passed_on() {
    let answer = json!({"result": {"success": true, "targetTurnIndex": 1, "filesChanged": ["a"], "filesFailed": []}});
    for ours in [true, false] {
        let (daemon, session, prompts) = native(vec![(NATIVE, answer.clone()), flushed()]).await;
        let snapshot = format!("{session}########2");
        let body = json!({"promptId": if ours { &prompts[1] } else { &snapshot }, "rewindFiles": false});
        let done = rewound(&daemon, &session, body, usize::from(ours), Some(&prompts[1])).await;
        assert_eq!(done.status, 200, "{}", done.verdict());
        assert_eq!(
            done.json(),
            json!({"rewound": true, "targetTurnIndex": 1, "filesChanged": ["a"], "filesFailed": []})
        );
        let params = daemon.hosts.heard(NATIVE).last().unwrap()["params"].clone();
        assert_eq!(params, json!({"sessionId": session, "promptId": snapshot, "rewindFiles": false}));
    }
    let (daemon, session, _) = native(Vec::new()).await;
    let refused = daemon.post(&path(&session), json!({"promptId": "nobody"})).await;
    assert_eq!(refused.json()["code"], "invalid_rewind_target");
}

#[tokio::test]
async fn a_native_agent_that_took_back_other_turns_or_none_is_not_said_to_have_done_what_was_asked() {
    let answer = json!({"result": {"success": true, "targetTurnIndex": 1, "filesChanged": [], "filesFailed": []}});
    for (taken, stay) in [(Some(0), 0), (None, 2)] {
        let (daemon, session, prompts) = native(vec![(NATIVE, answer.clone()), flushed()]).await;
        let taken = taken.map(|number: usize| prompts[number].as_str());
        let done = rewound(&daemon, &session, json!({"promptId": prompts[1]}), 1, taken).await;
        assert_eq!((done.status, &done.json()["code"]), (502, &json!("rewind_elsewhere")), "{}", done.verdict());
        assert_eq!((&done.json()["targetTurnIndex"], &done.json()["sideEffectPossible"]), (&json!(stay), &json!(true)));
        if let Some(taken) = taken {
            let mut events = daemon.events(&session).await;
            let told = events.until(&["session_rewound"]).await["data"].clone();
            assert_eq!((&told["promptId"], &told["targetTurnIndex"]), (&json!(taken), &json!(stay)));
        }
    }
}

#[tokio::test]
async fn behind_a_compression_a_native_agent_would_count_other_turns_so_our_id_is_refused() {
    let (daemon, session, prompts) = native(vec![(NATIVE, json!({"result": {"success": true}}))]).await;
    let payload = json!({"compressedHistory": [{"role": "user", "parts": [{"text": "all of it"}]}]});
    writer(&daemon, &session).append(9, &Body::System { subtype: "chat_compression".into(), payload }).unwrap();
    let refused = daemon.post(&path(&session), json!({"promptId": prompts[0]})).await;
    assert_eq!((refused.status, &refused.json()["code"]), (501, &json!("rewind_not_supported")));
    assert!(daemon.hosts.heard(NATIVE).is_empty());
}

#[tokio::test]
async fn a_native_agent_that_counts_the_turns_otherwise_is_not_sent_to_a_place_under_our_id() {
    let (daemon, session, prompts) = native(Vec::new()).await;
    let place = |number: u64, turn: u64| json!({"promptId": format!("{session}########{number}"), "turnIndex": turn});
    // As qwen-code 0.24.4 lists them behind a rewind; one turn more, one less, none, and no list.
    let lists = [
        json!([place(1, 0), place(7, 1)]),
        json!([place(1, 0), place(2, 1), place(3, 2)]),
        json!([place(2, 1)]),
        json!([]),
        json!(null),
    ];
    for list in lists {
        let list = (LIST, json!({"result": {"snapshots": list}}));
        daemon.hosts.behave(|behaviour| behaviour.answers = vec![list, flushed()]);
        let refused = daemon.post(&path(&session), json!({"promptId": prompts[1]})).await;
        assert_eq!((refused.status, &refused.json()["code"]), (501, &json!("rewind_not_supported")));
        let listed = daemon.get(&format!("{}/snapshots", path(&session))).await.json();
        assert!(!listed.to_string().contains(&format!(r#""daemonPromptId":"{}""#, prompts[1])), "{listed}");
    }
    assert!(daemon.hosts.heard(NATIVE).is_empty());
    let list = (LIST, json!({"result": {"snapshots": [place(1, 0), place(7, 1)]}}));
    let done = (NATIVE, json!({"result": {"success": true, "targetTurnIndex": 1}}));
    daemon.hosts.behave(|behaviour| behaviour.answers = vec![list, flushed(), done]);
    let body = json!({"promptId": prompts[1], "rewindFiles": false});
    let done = rewound(&daemon, &session, body, 1, Some(&prompts[1])).await;
    assert_eq!(done.status, 200, "where no file is put back only the turn counts: {}", done.verdict());
    let name = &daemon.hosts.heard(NATIVE)[0]["params"]["promptId"];
    assert_eq!(*name, json!(format!("{session}########7")));
}

#[tokio::test]
async fn a_native_agent_that_says_no_and_moved_its_history_all_the_same_is_believed_by_its_transcript() {
    let (daemon, session, prompts) = native(vec![(NATIVE, json!({"result": {"success": false}})), flushed()]).await;
    let done = rewound(&daemon, &session, json!({"promptId": prompts[1]}), 1, Some(&prompts[1])).await;
    assert_eq!((done.status, &done.json()["rewound"]), (200, &json!(false)));
    let mut events = daemon.events(&session).await;
    events.until(&["session_rewound"]).await;
}

#[tokio::test]
async fn the_errors_of_a_native_agent_have_the_peers_codes() {
    for (kind, status) in [("invalid_rewind_target", 400), ("session_busy", 409)] {
        let error = json!({"error": {"code": -32602, "message": "no", "data": {"errorKind": kind}}});
        let (daemon, session, prompts) = native(vec![(NATIVE, error), flushed()]).await;
        let refused = daemon.post(&path(&session), json!({"promptId": prompts[1]})).await;
        assert_eq!((refused.status, &refused.json()["code"]), (status, &json!(kind)), "{}", refused.verdict());
    }
}

#[tokio::test]
async fn a_native_agents_list_is_its_own_with_our_ids_in_it() {
    let (daemon, session, prompts) = native(Vec::new()).await;
    let list = daemon.get(&format!("{}/snapshots", path(&session))).await.json();
    let place = |number: usize| json!({"promptId": format!("{session}########{}", number + 1), "turnIndex": number, "daemonPromptId": prompts[number]});
    assert_eq!(list, json!({ "snapshots": [place(0), place(1)] }));
}
