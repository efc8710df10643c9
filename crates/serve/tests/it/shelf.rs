//! Archive, unarchive, delete; and sessions that somebody else has.

use serde_json::{Value, json};
use transcript::{Owner, SessionLock};

use crate::client::until;
use crate::daemon::Daemon;

impl Daemon {
    async fn shelve(&self, what: &str, ids: &[&str]) -> Value {
        let answer = self.post(&format!("/sessions/{what}"), json!({ "sessionIds": ids })).await;
        assert_eq!(answer.status, 200, "{}", answer.verdict());
        answer.json()
    }

    /// The files of a session in both places, and everything in them that names it.
    fn left_of(&self, session: &str) -> Vec<String> {
        let mut left = Vec::new();
        for folder in [self.chats(), self.chats().join("archive"), self.chats().with_file_name("turnd-prompt-ids")] {
            for entry in std::fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap();
                let is_named = path.is_file() && std::fs::read_to_string(&path).unwrap().contains(session);
                if name.starts_with(session) || is_named {
                    left.push(path.strip_prefix(self.chats().parent().unwrap()).unwrap().display().to_string());
                }
            }
        }
        left.sort_unstable();
        left
    }
}

fn record(session: &str, uuid: &str, parent: &str) -> String {
    let record = json!({
        "uuid": uuid, "parentUuid": if parent.is_empty() { Value::Null } else { parent.into() }, "sessionId": session,
        "timestamp": "2026-11-30T00:00:00.000Z", "type": "user", "cwd": "/ws", "version": "0",
        "message": { "role": "user", "parts": [{ "text": uuid }] },
    });
    format!("{record}\n")
}

/// Takes a session's lock as another process would that has it.
fn hold(daemon: &Daemon, session: &str) -> SessionLock {
    let owner = Owner { pid: std::process::id(), started_at: 1_795_977_220_000, start_ticks: None };
    SessionLock::acquire(&daemon.chats().join(format!("{session}.lock")), &owner).unwrap()
}

#[tokio::test]
async fn a_live_session_is_closed_put_away_taken_back_and_removed_as_the_peer_does_it() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    let ledger = daemon.ledger(&session);
    let mut events = daemon.events(&session).await;

    let none = json!([]);
    let told = daemon.shelve("archive", &[&session]).await;
    assert_eq!(
        told,
        json!({ "archived": [session], "alreadyArchived": [], "resolvedConflicts": [], "notFound": [], "errors": [] })
    );
    let closed = events.until(&["session_closed"]).await;
    assert_eq!((&closed["data"]["reason"], closed["data"].get("closedBy")), (&json!("client_close"), None));
    let archived = ["jsonl", "ledger.jsonl"].map(|end| format!("chats/archive/{session}.{end}"));
    assert_eq!(daemon.left_of(&session), archived);
    let told = daemon.shelve("archive", &[&session]).await;
    assert_eq!((&told["archived"], &told["alreadyArchived"]), (&none, &json!([session])));

    for action in ["load", "resume"] {
        let refused = daemon.post(&format!("/session/{session}/{action}"), json!({})).await;
        assert_eq!(refused.verdict(), "409 session_archived");
    }
    let refused = daemon.post("/session", json!({ "sessionId": session })).await;
    assert_eq!(
        (refused.verdict(), &refused.json()["conflict"]),
        ("409 session_id_conflict".into(), &json!("persisted"))
    );

    let told = daemon.shelve("unarchive", &[&session]).await;
    assert_eq!(
        told,
        json!({ "unarchived": [session], "alreadyActive": [], "resolvedConflicts": [], "notFound": [], "errors": [] })
    );
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.status, 404, "nothing is loaded");
    let told = daemon.shelve("unarchive", &[&session]).await;
    assert_eq!((&told["unarchived"], &told["alreadyActive"]), (&none, &json!([session])));
    assert_eq!(daemon.ledger(&session), ledger);

    let loaded = daemon.post(&format!("/session/{session}/load"), json!({})).await;
    assert_eq!(loaded.json()["promptTerminals"][0]["terminal"], "completed");
    let told = daemon.shelve("unarchive", &[&session]).await;
    assert_eq!(told["alreadyActive"], json!([session]), "one that lives stays as it is");

    let told = daemon.shelve("delete", &[&session]).await;
    assert_eq!(told, json!({ "removed": [session], "notFound": [], "errors": [] }));
    assert_eq!(daemon.left_of(&session), Vec::<String>::new());
    assert_eq!(daemon.post(&format!("/session/{session}/load"), json!({})).await.status, 404);
    let told = daemon.shelve("delete", &[&session]).await;
    assert_eq!(told, json!({ "removed": [], "notFound": [session], "errors": [] }));
    assert_eq!(daemon.post("/session", json!({ "sessionId": session })).await.status, 200, "the id is free");
}

#[tokio::test]
async fn an_archived_session_is_removed_where_it_lies() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    daemon.shelve("archive", &[&session]).await;
    assert_eq!(daemon.shelve("delete", &[&session]).await["removed"], json!([session]));
    assert_eq!(daemon.left_of(&session), Vec::<String>::new());
}

#[tokio::test]
async fn what_runs_and_what_waits_ends_as_with_a_close_before_its_session_is_put_away() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let running = daemon.prompt(&session, "hold").await;
    let waiting = daemon.prompt(&session, "hello").await;
    daemon.shelve("archive", &[&session]).await;
    let ledger = daemon.chats().join(format!("archive/{session}.ledger.jsonl"));
    let ledger = std::fs::read_to_string(ledger).unwrap();
    for (prompt, end) in [(&running, "\"cancelled\""), (&waiting, "\"session_closed\"")] {
        let id = prompt["promptId"].as_str().unwrap();
        assert!(ledger.lines().any(|line| line.contains(id) && line.contains(end)), "{end}: {ledger}");
    }
    assert_eq!(daemon.ledger(&session), "", "nothing is written behind it");
}

#[tokio::test]
async fn bodies_of_another_form_are_refused_and_change_nothing() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    let many: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    for (what, body) in ["archive", "unarchive", "delete"].into_iter().flat_map(|what| {
        [
            json!({}),
            json!({ "sessionIds": [] }),
            json!({ "sessionIds": session }),
            json!({ "sessionIds": [session, 5] }),
            json!({ "sessionIds": [session, ""] }),
            json!({ "sessionIds": many }),
            json!({ "sessionIds": [session], "resolveConflicts": "x" }),
        ]
        .map(|body| (what, body))
    }) {
        let refused = daemon.post(&format!("/sessions/{what}"), body.clone()).await;
        assert_eq!(refused.verdict(), "400 invalid_request", "{what} {body}");
    }
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.status, 200);
}

#[tokio::test]
async fn ids_that_are_nobodys_or_look_like_paths_touch_nothing() {
    let daemon = Daemon::start().await;
    let outside = daemon.chats().with_file_name("x.jsonl");
    std::fs::create_dir_all(daemon.chats()).unwrap();
    std::fs::write(&outside, record("x", "r", "")).unwrap();
    for what in ["archive", "unarchive", "delete"] {
        let told = daemon.shelve(what, &["nobody", "../x", "..%2fx", "a/b", "nobody", ".", "x.ledger"]).await;
        assert_eq!(told["notFound"], json!(["nobody"]), "{what}");
        let codes: Vec<_> =
            told["errors"].as_array().unwrap().iter().map(|error| (&error["sessionId"], &error["code"])).collect();
        let code = json!("invalid_session_id");
        let expected = ["../x", "..%2fx", "a/b", ".", "x.ledger"].map(|id| (json!(id), &code));
        assert_eq!(codes, expected.iter().map(|(id, code)| (id, *code)).collect::<Vec<_>>(), "{what}");
    }
    assert!(outside.exists());
    assert_eq!(std::fs::read_dir(daemon.chats()).unwrap().count(), 0, "not even a lock is made for them");
}

#[tokio::test]
async fn sessions_whose_ids_begin_alike_are_left_alone() {
    let daemon = Daemon::start().await;
    for id in ["a", "ab", "a.b", "a.host", "a.jsonl"] {
        daemon.write(&format!("{id}.jsonl"), &record(id, "r", ""));
        daemon.write(&format!("{id}.ledger.jsonl"), "");
        daemon.write(&format!("{id}.host.json"), "{}");
    }
    assert_eq!(daemon.shelve("archive", &["a"]).await["archived"], json!(["a"]));
    assert_eq!(daemon.shelve("delete", &["a"]).await["removed"], json!(["a"]));
    for id in ["ab", "a.b", "a.host", "a.jsonl"] {
        for end in ["jsonl", "ledger.jsonl", "host.json"] {
            assert!(daemon.chats().join(format!("{id}.{end}")).exists(), "{id}.{end}");
        }
    }
    assert_eq!(std::fs::read_dir(daemon.chats().join("archive")).unwrap().count(), 0);
}

#[tokio::test]
async fn one_that_fails_keeps_no_other_one_back_and_stays_as_it_was() {
    let daemon = Daemon::start().await;
    let (session, other) = (daemon.create().await, daemon.create().await);
    daemon.run(&session, "hello").await;
    daemon.run(&other, "hello").await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    let held = hold(&daemon, &session);
    let told = daemon.shelve("archive", &[&session.to_uppercase(), "nobody", &other]).await;
    assert_eq!((&told["archived"], &told["notFound"]), (&json!([other]), &json!(["nobody"])));
    assert_eq!(told["errors"][0]["sessionId"], session, "an id is looked up in lower case");
    drop(held);
    assert!(daemon.chats().join(format!("{session}.jsonl")).exists());
}

#[tokio::test]
async fn while_a_session_is_put_away_everything_else_on_its_id_is_told_to_come_back() {
    for what in ["archive", "delete"] {
        let daemon = Daemon::start().await;
        daemon.hosts.behave(|behaviour| behaviour.slow_close = true);
        let session = daemon.create().await;
        daemon.run(&session, "hello").await;
        let body = json!({ "sessionIds": [session] }).to_string();
        let line = format!("POST /sessions/{what}");
        let shelving = daemon.ask(&line, &body);
        let mut shelving = std::pin::pin!(shelving);
        // It is under way once the host has heard of it.
        tokio::select! {
            biased;
            _ = &mut shelving => panic!("it did not wait"),
            () = until("the close has begun", async || !daemon.hosts.heard("turnd/close").is_empty()) => {}
        }
        let prompt = json!({ "prompt": [{ "type": "text", "text": "x" }] }).to_string();
        for (line, body) in [
            (format!("POST /session/{session}/prompt"), prompt.as_str()),
            (format!("POST /session/{session}/cancel"), "{}"),
            (format!("POST /session/{session}/load"), "{}"),
            (format!("POST /session/{session}/resume"), "{}"),
            (format!("DELETE /session/{session}"), ""),
        ] {
            let refused = daemon.ask(&line, body).await;
            assert_eq!(
                (refused.verdict(), refused.header("retry-after")),
                ("409 session_archiving".into(), Some("5")),
                "{line}"
            );
        }
        for also in ["archive", "unarchive", "delete"] {
            let told = daemon.shelve(also, &[&session]).await;
            assert_eq!(told["errors"][0]["code"], "session_archiving", "{also}");
        }
        assert_eq!(daemon.get(&format!("/session/{session}/status")).await.status, 200, "who only looks still sees it");
        daemon.hosts.open_gate(1);
        assert_eq!(shelving.await.status, 200);
    }
}

#[tokio::test]
async fn a_session_that_is_being_loaded_is_not_put_away() {
    let daemon = Daemon::start().await;
    daemon.write("s.jsonl", &record("s", "r", ""));
    daemon.hosts.behave(|behaviour| behaviour.gated = true);
    let loading = daemon.ask("POST /session/s/load", "{}");
    let mut loading = std::pin::pin!(loading);
    tokio::select! {
        biased;
        _ = &mut loading => panic!("it did not wait"),
        () = until("the load has begun", async || !daemon.hosts.heard("session/load").is_empty()) => {}
    }
    for what in ["archive", "unarchive", "delete"] {
        let told = daemon.shelve(what, &["s"]).await;
        assert_eq!(told["errors"][0]["code"], "session_archiving");
        assert_eq!(told["errors"][0]["error"], "Session \"s\" is being loaded; retry later.");
    }
    daemon.hosts.open_gate(1);
    assert_eq!(loading.await.status, 200);
}

#[tokio::test]
async fn an_active_and_an_archived_copy_are_a_conflict_that_is_resolved_without_loss_where_the_peer_drops_one() {
    let daemon = Daemon::start().await;
    let both = || {
        std::fs::create_dir_all(daemon.chats().join("archive")).unwrap();
        daemon.write("archive/s.jsonl", &record("s", "old", ""));
        daemon.write("s.jsonl", &record("s", "new", "old"));
    };
    both();
    for action in ["load", "resume"] {
        assert_eq!(daemon.post(&format!("/session/s/{action}"), json!({})).await.verdict(), "409 session_conflict");
    }
    for what in ["archive", "unarchive"] {
        let told = daemon.shelve(what, &["s"]).await;
        assert_eq!(told["errors"][0]["code"], "session_conflict", "{what}");
    }
    for (what, done, end) in [("archive", "archived", "archive/s.jsonl"), ("unarchive", "unarchived", "s.jsonl")] {
        std::fs::remove_dir_all(daemon.chats()).unwrap();
        both();
        let body = json!({ "sessionIds": ["s"], "resolveConflicts": true });
        let told = daemon.post(&format!("/sessions/{what}"), body).await.json();
        assert_eq!((&told[done], &told["resolvedConflicts"]), (&json!(["s"]), &json!(["s"])));
        let text = std::fs::read_to_string(daemon.chats().join(end)).unwrap();
        assert_eq!(text, record("s", "old", "") + &record("s", "new", "old"));
    }
    let loaded = daemon.post("/session/s/load", json!({})).await.json();
    assert_eq!(loaded["compactedReplay"].as_array().unwrap().len(), 2, "the records of both are one history: {loaded}");
}

#[tokio::test]
async fn two_names_of_one_file_are_a_move_that_was_cut_off_and_no_conflict() {
    let daemon = Daemon::start().await;
    daemon.write("s.jsonl", &record("s", "r", ""));
    std::fs::create_dir_all(daemon.chats().join("archive")).unwrap();
    std::fs::hard_link(daemon.chats().join("s.jsonl"), daemon.chats().join("archive/s.jsonl")).unwrap();
    assert_eq!(daemon.post("/session/s/load", json!({})).await.status, 200);
    assert_eq!(daemon.shelve("unarchive", &["s"]).await["alreadyActive"], json!(["s"]));
    assert_eq!(daemon.shelve("archive", &["s"]).await["archived"], json!(["s"]));
    assert_eq!(daemon.left_of("s"), ["chats/archive/s.jsonl"]);
}

#[tokio::test]
async fn a_live_session_beside_an_archived_copy_is_not_taken_back_over() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    std::fs::create_dir_all(daemon.chats().join("archive")).unwrap();
    daemon.write(&format!("archive/{session}.jsonl"), &record(&session, "old", ""));
    let told = daemon.shelve("unarchive", &[&session]).await;
    assert_eq!(told["errors"][0]["code"], "session_conflict");
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.status, 200);
}

#[tokio::test]
async fn a_transcript_that_cannot_be_moved_is_an_error_and_its_session_can_be_loaded_again() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "hello").await;
    daemon.write("archive", "in the way");
    let told = daemon.shelve("archive", &[&session]).await;
    assert_eq!((&told["archived"], &told["errors"][0]["code"]), (&json!([]), &json!("transcript_unmovable")));
    assert!(!told.to_string().contains("chats"), "paths stay in the log: {told}");
    let loaded = daemon.post(&format!("/session/{session}/load"), json!({})).await;
    assert_eq!(loaded.json()["promptTerminals"][0]["terminal"], "completed");
}

#[tokio::test]
async fn the_ids_chosen_in_a_session_are_its_own_in_the_archive_and_free_when_it_is_removed() {
    let daemon = Daemon::start().await;
    let (session, other) = (daemon.create().await, daemon.create().await);
    let chosen = |session: &str| {
        let path = format!("/session/{session}/prompt");
        let body = json!({ "prompt": [{ "type": "text", "text": "hello" }], "promptId": "job-1" });
        let daemon = &daemon;
        async move { daemon.post(&path, body).await.verdict() }
    };
    assert_eq!(chosen(&session).await, "202");
    until("the turn is over", async || daemon.turn(&session, "job-1").await.json()["state"] == "completed").await;
    daemon.shelve("archive", &[&session]).await;
    assert_eq!(chosen(&other).await, "409 prompt_id_conflict");
    daemon.shelve("unarchive", &[&session]).await;
    daemon.post(&format!("/session/{session}/load"), json!({})).await;
    let again = json!({ "prompt": [{ "type": "text", "text": "hello" }], "promptId": "job-1" });
    let again = daemon.post(&format!("/session/{session}/prompt"), again).await.json();
    assert_eq!(again["replayed"], true, "it is not run twice behind its way to the archive and back");
    daemon.shelve("delete", &[&session]).await;
    assert_eq!(daemon.left_of(&session), Vec::<String>::new());
    assert_eq!(chosen(&other).await, "202");
}

#[tokio::test]
async fn the_default_session_that_was_put_away_makes_room_for_a_new_one() {
    let daemon = Daemon::start().await;
    let first = daemon.post("/session", json!({})).await.json()["sessionId"].as_str().unwrap().to_owned();
    daemon.run(&first, "hello").await;
    daemon.shelve("archive", &[&first]).await;
    let next = daemon.post("/session", json!({})).await.json();
    assert_eq!(next["attached"], false);
    assert_ne!(next["sessionId"], first);
}

#[tokio::test]
async fn a_session_that_was_never_prompted_is_closed_and_leaves_nothing_to_put_away() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    assert_eq!(daemon.shelve("archive", &[&session]).await["notFound"], json!([session]));
    assert_eq!(daemon.get(&format!("/session/{session}/status")).await.status, 404);
    let session = daemon.create().await;
    assert_eq!(daemon.shelve("delete", &[&session]).await["removed"], json!([session]));
}

#[tokio::test]
async fn a_session_that_another_process_has_is_neither_closed_nor_moved_and_its_holder_is_named() {
    let daemon = Daemon::start().await;
    daemon.write("s.jsonl", &record("s", "r", ""));
    let held = hold(&daemon, "s");
    let refused = daemon.ask("DELETE /session/s", "").await;
    assert_eq!((refused.verdict(), refused.header("retry-after")), ("409 session_writer_conflict".into(), Some("5")));
    let named = |body: &Value| (body["pid"].clone(), body["startedAt"].clone());
    let me = (json!(std::process::id()), json!(1_795_977_220_000_u64));
    assert_eq!(named(&refused.json()), me);
    for what in ["archive", "unarchive", "delete"] {
        let told = daemon.shelve(what, &["s"]).await;
        assert_eq!(
            (&told["errors"][0]["code"], named(&told["errors"][0])),
            (&json!("session_writer_conflict"), me.clone())
        );
    }
    assert!(daemon.chats().join("s.jsonl").exists());
    drop(held);
    assert_eq!(daemon.ask("DELETE /session/s", "").await.verdict(), "404 session_not_found");
    assert_eq!(daemon.shelve("archive", &["s"]).await["archived"], json!(["s"]));
}

#[tokio::test]
async fn a_name_left_in_a_lock_keeps_nobody_out_also_when_its_pid_runs() {
    let daemon = Daemon::start().await;
    daemon.write("s.jsonl", &record("s", "r", ""));
    daemon.write("s.lock", &format!("{{\"pid\":{},\"startedAt\":1,\"startTicks\":1}}\n", std::process::id()));
    assert_eq!(daemon.shelve("archive", &["s"]).await["archived"], json!(["s"]));
    assert_eq!(daemon.left_of("s"), ["chats/archive/s.jsonl"], "the lock goes with its session");
}
