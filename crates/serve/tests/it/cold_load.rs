//! Bringing a session back (wire rules, section 7).

use serde_json::{Value, json};

use crate::client::{Connection, Stream, until};
use crate::daemon::Daemon;

async fn load(daemon: &Daemon, session: &str) -> Value {
    let answer = daemon.post(&format!("/session/{session}/load"), json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.verdict());
    answer.json()
}

/// A daemon that holds the history of one closed session with one finished turn.
async fn with_history() -> (Daemon, String, String) {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "hello").await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    (daemon, session, prompt)
}

#[tokio::test]
async fn a_closed_session_comes_back_with_its_history() {
    let (daemon, session, prompt) = with_history().await;
    let loaded = load(&daemon, &session).await;
    assert_eq!((&loaded["attached"], &loaded["hasActivePrompt"]), (&json!(false), &json!(false)));
    assert_eq!(loaded["state"]["modes"]["currentModeId"], "default");
    let replay = loaded["compactedReplay"].as_array().unwrap();
    assert!(replay.len() >= 2, "{loaded}");
    // Its numbers are of a new life, and the last one is the cursor.
    let beyond = loaded["lastEventId"].as_u64().unwrap() - replay.len() as u64;
    for (at, frame) in replay.iter().enumerate() {
        assert_eq!((&frame["id"], &frame["type"]), (&json!(beyond + 1 + at as u64), &json!("session_update")));
        assert_eq!(frame["data"]["sessionId"], session);
        assert!(frame["_meta"]["serverTimestamp"].is_u64(), "{frame}");
    }
    assert_eq!(replay[0]["data"]["update"]["content"]["text"], "hello");
    assert_eq!(replay[0]["data"]["update"]["_meta"]["promptId"], prompt);
    let terminals = loaded["promptTerminals"].as_array().unwrap();
    assert_eq!((terminals.len(), &terminals[0]["promptId"]), (1, &json!(prompt)));
    let turn = daemon.turn(&session, &prompt).await.json();
    assert_eq!(
        (&turn["state"], &turn["resultText"], turn.get("queuedAt")),
        (&json!("completed"), &json!("echo: hello"), None)
    );
}

#[tokio::test]
async fn the_cursor_of_a_load_is_clean_and_an_older_one_is_told() {
    let (daemon, session, _) = with_history().await;
    let loaded = load(&daemon, &session).await;
    let path = format!("/session/{session}/events");
    let tip = loaded["lastEventId"].to_string();
    let mut clean = Stream::open(daemon.address, &path, &[("last-event-id", &tip)]).await;
    assert_eq!(clean.kinds_until("replay_complete").await, ["replay_complete"]);
    let mut old = Stream::open(daemon.address, &path, &[("last-event-id", "0")]).await;
    assert_eq!(old.kinds_until("replay_complete").await[0], "state_resync_required");
    daemon.prompt(&session, "more").await;
    let first = clean.until(&["session_update"]).await;
    assert_eq!(first["id"].as_u64(), loaded["lastEventId"].as_u64().map(|tip| tip + 1));
}

#[tokio::test]
async fn who_comes_later_attaches_to_the_same_life() {
    let (daemon, session, _) = with_history().await;
    let first = load(&daemon, &session).await;
    daemon.run(&session, "again").await;
    let second = load(&daemon, &session).await;
    assert_eq!((&second["attached"], &second["eventEpoch"]), (&json!(true), &first["eventEpoch"]));
    assert_ne!(second["clientId"], first["clientId"]);
    let kinds: Vec<_> =
        second["compactedReplay"].as_array().unwrap().iter().map(|frame| frame["type"].clone()).collect();
    assert_eq!(kinds.last(), Some(&json!("turn_complete")), "{kinds:?}");
    assert!(kinds.len() > first["compactedReplay"].as_array().unwrap().len());
    assert_eq!(second["liveJournal"], json!([]));
    assert_eq!(second["promptTerminals"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_page_of_history_says_that_there_is_more() {
    let (daemon, session, _) = with_history().await;
    let loaded = daemon.post(&format!("/session/{session}/load"), json!({ "historyPageSize": 1 })).await.json();
    assert_eq!((&loaded["historyHasMore"], loaded["historyAnchorRecordId"].is_string()), (&json!(true), true));
    let last = loaded["compactedReplay"].as_array().unwrap().last();
    assert!(last.is_none_or(|frame| frame["id"] == loaded["lastEventId"]), "{loaded}");
}

#[tokio::test]
async fn a_long_history_is_cut_at_its_old_end() {
    let daemon = Daemon::with(|options| options.limits.compacted_replay_max_bytes = 100_000).await;
    let session = daemon.create().await;
    daemon.run(&session, "flood").await;
    let attached = load(&daemon, &session).await;
    assert_eq!(attached["compactedReplay"][0]["type"], "history_truncated");
    assert!(attached.to_string().len() < 120_000, "{}", attached.to_string().len());
    assert_eq!(attached["compactedReplay"].as_array().unwrap().last().unwrap()["type"], "turn_complete");
}

#[tokio::test]
async fn a_resume_brings_the_session_and_nothing_else() {
    let (daemon, session, _) = with_history().await;
    let resumed = daemon.post(&format!("/session/{session}/resume"), json!({})).await.json();
    for key in ["compactedReplay", "liveJournal", "promptTerminals"] {
        assert_eq!(resumed.get(key), None, "{key}");
    }
    assert_eq!((&resumed["attached"], resumed["lastEventId"].is_u64()), (&json!(false), true));
}

#[tokio::test]
async fn identical_loads_share_one_restore_and_others_are_told() {
    let (daemon, session, _) = with_history().await;
    daemon.hosts.behave(|behaviour| behaviour.gated = true);
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut connection = Connection::open(daemon.address).await;
        connection.ask(&format!("POST /session/{session}/load"), &[], b"").await;
        waiting.push(connection);
    }
    until("the host hears session/load", async || !daemon.hosts.heard("session/load").is_empty()).await;
    let resume = daemon.post(&format!("/session/{session}/resume"), json!({})).await;
    assert_eq!((resume.verdict().as_str(), resume.header("retry-after")), ("409 restore_in_progress", Some("5")));
    assert_eq!((&resume.json()["activeAction"], &resume.json()["requestedAction"]), (&json!("load"), &json!("resume")));
    let paged = daemon.post(&format!("/session/{session}/load"), json!({ "historyPageSize": 5 })).await;
    assert_eq!(paged.verdict(), "409 restore_in_progress");
    let create = daemon.post("/session", json!({ "sessionId": session })).await;
    assert_eq!(create.verdict(), "409 restore_in_progress");
    let delete = daemon.ask(&format!("DELETE /session/{session}"), "").await;
    assert_eq!(delete.verdict(), "409 session_archiving");
    assert_eq!(delete.json()["error"], format!("Session \"{session}\" is being loaded; retry later."));
    let prompt = json!({ "prompt": [{ "type": "text", "text": "x" }] });
    assert_eq!(daemon.post(&format!("/session/{session}/prompt"), prompt).await.verdict(), "404 session_not_found");
    daemon.hosts.open_gate(2);
    let first = waiting[0].answer().await.json();
    let second = waiting[1].answer().await.json();
    let attached =
        [&first["attached"], &second["attached"]].into_iter().filter(|attached| **attached == json!(true)).count();
    assert_eq!((attached, &first["eventEpoch"]), (1, &second["eventEpoch"]));
    assert_eq!(daemon.hosts.heard("session/load").len(), 1);
}

#[tokio::test]
async fn a_restart_settles_what_the_transcript_proves() {
    let (daemon, session, prompt) = with_history().await;
    // The ledger as a killed daemon leaves it: the admission is there, the terminal is not.
    let open: String = daemon.ledger(&session).lines().take(1).map(|line| format!("{line}\n")).collect();
    daemon.write(&format!("{session}.ledger.jsonl"), &open);
    let daemon = daemon.restart().await;
    let loaded = load(&daemon, &session).await;
    let terminals = loaded["promptTerminals"].as_array().unwrap();
    assert_eq!((&terminals[0]["promptId"], &terminals[0]["terminal"]), (&json!(prompt), &json!("completed")));
    assert_eq!(terminals[0]["stopReason"], "end_turn", "the turn's own result, not a guess");
    assert_eq!(daemon.ledger(&session).lines().count(), 2);
    load(&daemon, &session).await;
    assert_eq!(daemon.ledger(&session).lines().count(), 2, "once is enough");
}

/// The ledger as a killed daemon leaves it: admissions and wishes, and no terminal. The admission is put a second earlier: one in the
/// millisecond of its answer proves nothing.
fn open_ledger(daemon: &Daemon, session: &str, wish: &str) {
    let admission = daemon.ledger(session).lines().next().unwrap().to_owned();
    let at = serde_json::from_str::<Value>(&admission).unwrap()["at"].as_u64().unwrap();
    let admission = admission.replace(&at.to_string(), &(at - 1_000).to_string());
    daemon.write(&format!("{session}.ledger.jsonl"), &format!("{admission}\n{wish}"));
}

fn wish(prompt: &str) -> String {
    format!("{{\"v\":1,\"promptId\":\"{prompt}\",\"state\":\"cancel_requested\",\"at\":1795977220000}}\n")
}

#[tokio::test]
async fn a_load_names_what_stays_open_and_what_a_client_wished_of_it() {
    let (daemon, session, prompt) = with_history().await;
    open_ledger(&daemon, &session, &wish(&prompt));
    // The answer is there, and its result is not: the wish may have come before it or after it.
    let transcript = std::fs::read_to_string(daemon.chats().join(format!("{session}.jsonl"))).unwrap();
    let kept: String =
        transcript.lines().filter(|line| !line.contains("turn_result")).map(|line| format!("{line}\n")).collect();
    assert_ne!(kept, transcript);
    daemon.write(&format!("{session}.jsonl"), &kept);
    let daemon = daemon.restart().await;
    let open =
        json!([{ "promptId": prompt, "reason": "answered_or_cancelled", "cancelRequestedAt": 1_795_977_220_000_u64 }]);
    let loaded = load(&daemon, &session).await;
    assert_eq!((&loaded["unresolvedPrompts"], loaded.get("promptTerminals")), (&open, None));
    let attached = load(&daemon, &session).await;
    assert_eq!((&attached["attached"], &attached["unresolvedPrompts"]), (&json!(true), &open));
    let resumed = daemon.post(&format!("/session/{session}/resume"), json!({})).await.json();
    assert_eq!(resumed.get("unresolvedPrompts"), None);
}

#[tokio::test]
async fn a_terminal_that_came_in_spite_of_a_wish_says_so() {
    let (daemon, session, prompt) = with_history().await;
    open_ledger(&daemon, &session, &wish(&prompt));
    let daemon = daemon.restart().await;
    let loaded = load(&daemon, &session).await;
    let terminal = &loaded["promptTerminals"][0];
    assert_eq!((&terminal["terminal"], &terminal["stopReason"]), (&json!("completed"), &json!("end_turn")));
    assert_eq!(terminal["cancelRequestedAt"], 1_795_977_220_000_u64);
    assert_eq!(loaded.get("unresolvedPrompts"), None);
}

#[tokio::test]
async fn a_resume_judges_nothing() {
    let (daemon, session, _) = with_history().await;
    let open: String = daemon.ledger(&session).lines().take(1).map(|line| format!("{line}\n")).collect();
    daemon.write(&format!("{session}.ledger.jsonl"), &open);
    daemon.post(&format!("/session/{session}/resume"), json!({})).await;
    assert_eq!(daemon.ledger(&session), open);
    let attached = load(&daemon, &session).await;
    assert_eq!((&attached["attached"], attached.get("promptTerminals")), (&json!(true), None));
    assert_eq!(daemon.ledger(&session), open);
}

#[tokio::test]
async fn files_that_do_not_load_are_named() {
    let (daemon, session, _) = with_history().await;
    let whole = std::fs::read_to_string(daemon.chats().join(format!("{session}.jsonl"))).unwrap();
    let other = "22222222-2222-4222-8222-222222222222";
    let rows = [
        ("empty", String::new(), "404 session_not_found"),
        ("blank", "\n \n".to_owned(), "404 session_not_found"),
        ("garbage", "garbage\n".to_owned(), "404 session_not_found"),
        ("elsewhere", whole.replace("\"/ws\"", "\"/other\""), "404 session_not_found"),
        ("mixed", format!("{whole}{}", whole.replace(&session, other)), "409 transcript_snapshot_unavailable"),
    ];
    for (name, text, expected) in rows {
        daemon.write(&format!("{session}.jsonl"), &text);
        for action in ["load", "resume"] {
            let answer = daemon.post(&format!("/session/{session}/{action}"), json!({})).await;
            assert_eq!(answer.verdict(), expected, "{name} {action}");
        }
    }
    std::fs::create_dir_all(daemon.chats().join("archive")).unwrap();
    std::fs::rename(
        daemon.chats().join(format!("{session}.jsonl")),
        daemon.chats().join(format!("archive/{session}.jsonl")),
    )
    .unwrap();
    assert_eq!(daemon.post(&format!("/session/{session}/load"), json!({})).await.verdict(), "409 session_archived");
}

#[tokio::test]
async fn a_pipe_in_a_files_place_makes_no_load_wait() {
    let (daemon, session, _) = with_history().await;
    let transcript = daemon.chats().join(format!("{session}.jsonl"));
    let whole = std::fs::read(&transcript).unwrap();
    let put_pipe = |path: &std::path::Path| {
        std::fs::remove_file(path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    put_pipe(&transcript);
    for action in ["load", "resume"] {
        let answer = daemon.post(&format!("/session/{session}/{action}"), json!({})).await;
        assert_eq!(answer.verdict(), "500 transcript_unreadable", "{action}");
    }
    std::fs::remove_file(&transcript).unwrap();
    std::fs::write(&transcript, whole).unwrap();
    put_pipe(&daemon.chats().join(format!("{session}.ledger.jsonl")));
    // What the ledger says is unknown then; the session itself is not.
    assert_eq!(load(&daemon, &session).await.get("promptTerminals"), None);
}

#[tokio::test]
async fn what_is_wrong_with_a_load_is_said() {
    let (daemon, session, _) = with_history().await;
    let rows = [
        (json!({ "cwd": "/x" }), "400 workspace_mismatch"),
        (json!({ "cwd": "rel" }), "400 invalid_cwd"),
        (json!({ "historyPageSize": 0 }), "400 invalid_transcript_limit"),
        (json!({ "historyPageSize": 501 }), "400 invalid_transcript_limit"),
        (json!({ "liveReplayMode": "q" }), "400 invalid_live_replay_mode"),
        (json!({ "compactedReplayMode": "q" }), "400 invalid_compacted_replay_mode"),
        (json!({ "approvalMode": "q" }), "400 invalid_approval_mode"),
    ];
    for (body, expected) in rows {
        assert_eq!(daemon.post(&format!("/session/{session}/load"), body.clone()).await.verdict(), expected, "{body}");
    }
}

#[tokio::test]
async fn a_session_that_somebody_else_writes_is_not_taken() {
    let (daemon, session, _) = with_history().await;
    daemon.hosts.behave(|behaviour| {
        behaviour.refuse = Some(json!({
            "code": -32000,
            "message": "session is being written by process 77",
            "data": { "turnd/code": "session_writer_conflict", "pid": 77, "startedAt": 5 },
        }));
    });
    let answer = daemon.post(&format!("/session/{session}/load"), json!({})).await;
    assert_eq!((answer.verdict().as_str(), &answer.json()["pid"]), ("409 session_writer_conflict", &json!(77)));
    daemon.hosts.behave(|behaviour| behaviour.refuse = None);
    load(&daemon, &session).await;
}

#[tokio::test]
async fn an_old_client_id_is_refused_in_the_next_life() {
    let daemon = Daemon::start().await;
    let created = daemon.post("/session", json!({ "sessionScope": "thread" })).await.json();
    let (session, client) = (created["sessionId"].as_str().unwrap(), created["clientId"].as_str().unwrap());
    daemon.run(session, "hello").await;
    let daemon = daemon.restart().await;
    let prompt = r#"{"prompt":[{"type":"text","text":"x"}]}"#;
    let line = format!("POST /session/{session}/prompt");
    assert_eq!(
        daemon.ask_with(&line, &[("x-qwen-client-id", client)], prompt).await.verdict(),
        "404 session_not_found"
    );
    load(&daemon, session).await;
    assert_eq!(
        daemon.ask_with(&line, &[("x-qwen-client-id", client)], prompt).await.verdict(),
        "400 invalid_client_id"
    );
}

#[tokio::test]
async fn a_load_behind_a_resume_names_what_is_open_and_says_that_nobody_has_judged_it() {
    let (daemon, session, _) = with_history().await;
    let ledger = daemon.chats().join(format!("{session}.ledger.jsonl"));
    let mut lines = std::fs::read_to_string(&ledger).unwrap();
    lines.push_str("{\"v\":1,\"promptId\":\"lost\",\"state\":\"in_flight\",\"at\":1}\n");
    std::fs::write(&ledger, lines).unwrap();
    assert_eq!(daemon.post(&format!("/session/{session}/resume"), json!({})).await.status, 200);
    let loaded = load(&daemon, &session).await;
    assert_eq!(loaded["attached"], true);
    assert_eq!(loaded["unresolvedPrompts"], json!([{ "promptId": "lost", "reason": "not_judged" }]));
}
