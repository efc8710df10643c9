//! Lists of sessions, and their live state.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::client::until;
use crate::daemon::Daemon;

const LIST: &str = "/workspaces/%2Fws/sessions";

/// Writes a transcript that was begun in `cwd` and last written to `at_s` seconds after the epoch.
fn keep(daemon: &Daemon, id: &str, cwd: &str, at_s: u64) {
    let line = json!({
        "uuid": "u", "parentUuid": null, "sessionId": id, "timestamp": "2026-11-29T18:33:40.001Z", "type": "user",
        "cwd": cwd, "message": { "role": "user", "parts": [{ "text": format!("prompt of {id}") }] },
    });
    daemon.write(&format!("{id}.jsonl"), &format!("{line}\n"));
    date(daemon, id, at_s);
}

fn date(daemon: &Daemon, id: &str, at_s: u64) {
    let file = std::fs::File::options().append(true).open(daemon.chats().join(format!("{id}.jsonl"))).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(at_s)).unwrap();
}

fn ids(list: &Value) -> Vec<&str> {
    list["sessions"].as_array().unwrap().iter().map(|session| session["sessionId"].as_str().unwrap()).collect()
}

async fn list(daemon: &Daemon, query: &str) -> Value {
    let answer = daemon.get(&format!("{LIST}{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.verdict());
    answer.json()
}

#[tokio::test]
async fn a_list_holds_what_lies_on_disk_and_what_lives_newest_first() {
    let daemon = Daemon::start().await;
    assert_eq!(list(&daemon, "").await, json!({ "sessions": [] }));
    keep(&daemon, "older", "/ws", 1_000);
    keep(&daemon, "newer", "/ws", 2_000);
    let live = daemon.create().await;
    let listed = list(&daemon, "").await;
    assert_eq!(ids(&listed), [live.as_str(), "newer", "older"]);
    assert_eq!(listed["sessions"][0]["activeWorkState"], "idle");
    assert_eq!(
        listed["sessions"][1],
        json!({
            "sessionId": "newer", "workspaceCwd": "/ws", "createdAt": "2026-11-29T18:33:40.001Z",
            "updatedAt": "1970-01-01T00:33:20.000Z", "displayName": "prompt of newer", "clientCount": 0,
            "hasActivePrompt": false, "isArchived": false,
        })
    );
    let id = daemon.get("/capabilities").await.json()["workspaces"][0]["id"].as_str().unwrap().to_owned();
    for path in [format!("/workspaces/{id}/sessions"), "/workspace/%2Fws%2F/sessions?size=20".to_owned()] {
        assert_eq!(daemon.get(&path).await.json(), listed, "{path}");
    }
}

#[tokio::test]
async fn a_page_holds_as_many_as_asked_for_those_alive_among_them_unlike_the_peer() {
    let daemon = Daemon::start().await;
    for number in 1..=5 {
        keep(&daemon, &format!("s{number}"), "/ws", number);
    }
    let live = daemon.create().await;
    let first = list(&daemon, "?size=2").await;
    assert_eq!(ids(&first), [live.as_str(), "s5"]);
    let next = |page: &Value| format!("?size=2&cursor={}", page["nextCursor"].as_str().unwrap());
    let second = list(&daemon, &next(&first)).await;
    assert_eq!(ids(&second), ["s4", "s3"]);
    // What is used, comes and goes in the middle of a walk moves nothing past its reader.
    date(&daemon, "s2", 9);
    keep(&daemon, "s6", "/ws", 10);
    std::fs::remove_file(daemon.chats().join("s1.jsonl")).unwrap();
    let third = list(&daemon, &next(&second)).await;
    assert_eq!(ids(&third), ["s2"]);
    assert_eq!(third.get("nextCursor"), None);
    assert_eq!(ids(&list(&daemon, "?size=3").await), [live.as_str(), "s6", "s2"]);
}

#[tokio::test]
async fn a_cursor_outlives_its_daemon() {
    let daemon = Daemon::start().await;
    for number in 1..=3 {
        keep(&daemon, &format!("s{number}"), "/ws", number);
    }
    let cursor = list(&daemon, "?size=1").await["nextCursor"].as_str().unwrap().to_owned();
    let daemon = daemon.restart().await;
    assert_eq!(ids(&list(&daemon, &format!("?cursor={cursor}")).await), ["s2", "s1"]);
}

#[tokio::test]
async fn what_is_another_workspace_s_or_broken_is_left_out_and_breaks_nothing() {
    let daemon = Daemon::start().await;
    keep(&daemon, "ours", "/ws", 1);
    keep(&daemon, "worktree", "/ws/.qwen/worktrees/a", 2);
    keep(&daemon, "theirs", "/w.s", 3);
    keep(&daemon, "renamed", "/ws", 4);
    std::fs::rename(daemon.chats().join("renamed.jsonl"), daemon.chats().join("stolen.jsonl")).unwrap();
    for (name, text) in [("empty", ""), ("garbage", "garbage\n"), ("torn", "{\"uuid\":\"u\",\"cwd\":\"/ws\",\"sess")] {
        daemon.write(&format!("{name}.jsonl"), text);
    }
    daemon.write("ours.ledger.jsonl", "{}\n");
    std::fs::create_dir(daemon.chats().join("folder.jsonl")).unwrap();
    assert_eq!(ids(&list(&daemon, "").await), ["worktree", "ours"]);
    std::fs::remove_dir_all(daemon.chats()).unwrap();
    assert_eq!(list(&daemon, "").await, json!({ "sessions": [] }));
    std::fs::write(daemon.chats(), "a file").unwrap();
    assert_eq!(daemon.get(LIST).await.verdict(), "500 session_list_failed");
}

#[tokio::test]
async fn the_archive_has_a_list_of_its_own() {
    let daemon = Daemon::start().await;
    daemon.create().await;
    keep(&daemon, "away", "/ws", 1);
    keep(&daemon, "here", "/ws", 2);
    std::fs::create_dir(daemon.chats().join("archive")).unwrap();
    std::fs::rename(daemon.chats().join("away.jsonl"), daemon.chats().join("archive/away.jsonl")).unwrap();
    let archived = list(&daemon, "?archiveState=archived").await;
    assert_eq!(ids(&archived), ["away"]);
    assert_eq!(
        (&archived["sessions"][0]["isArchived"], &archived["sessions"][0]["clientCount"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(ids(&list(&daemon, "?archiveState=active").await)[1..], ["here"]);
}

/// Keeps a session whose last record names it so.
fn keep_named(daemon: &Daemon, session: &str, name: Value) {
    keep(daemon, session, "/ws", 1);
    let title = json!({
        "uuid": "t", "parentUuid": "u", "sessionId": session, "type": "system", "subtype": "custom_title", "cwd": "/ws",
        "timestamp": "2026-11-29T18:33:41.001Z", "systemPayload": name,
    });
    let path = daemon.chats().join(format!("{session}.jsonl"));
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + &title.to_string() + "\n").unwrap();
}

#[tokio::test]
async fn a_session_is_called_what_it_was_named_last_else_by_its_first_prompt() {
    let daemon = Daemon::start().await;
    keep_named(&daemon, "s", json!({ "customTitle": "Named", "titleSource": "manual" }));
    let named = |list: &Value| (list["sessions"][0]["displayName"].clone(), list["sessions"][0]["titleSource"].clone());
    assert_eq!(named(&list(&daemon, "").await), (json!("Named"), json!("manual")));
    assert_eq!(daemon.post("/session/s/load", json!({})).await.status, 200);
    assert_eq!(named(&list(&daemon, "").await), (json!("Named"), json!("manual")));
    let status = daemon.get("/session/s/status").await.json();
    assert_eq!((&status["displayName"], &status["titleSource"]), (&json!("Named"), &json!("manual")));
}

#[tokio::test]
async fn a_name_of_which_nobody_says_who_gave_it_is_a_persons_when_its_session_is_brought_back() {
    let daemon = Daemon::start().await;
    keep_named(&daemon, "s", json!({ "customTitle": "Named" }));
    assert_eq!(daemon.post("/session/s/load", json!({})).await.status, 200);
    let status = daemon.get("/session/s/status").await.json();
    assert_eq!((&status["displayName"], &status["titleSource"]), (&json!("Named"), &json!("manual")));
}

#[tokio::test]
async fn sessions_are_found_by_who_made_them() {
    let daemon = Daemon::start().await;
    for (id, payload) in [
        ("child", json!({ "subtype": "parent_session", "systemPayload": { "parentSessionId": "up" } })),
        ("bot", json!({ "subtype": "session_source", "systemPayload": { "sourceType": "bot", "sourceId": "7" } })),
    ] {
        keep(&daemon, id, "/ws", 1);
        let path = daemon.chats().join(format!("{id}.jsonl"));
        let mut note = json!({ "uuid": "n", "parentUuid": null, "sessionId": id, "type": "system", "cwd": "/ws" });
        note.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        std::fs::write(&path, format!("{note}\n{}", std::fs::read_to_string(&path).unwrap())).unwrap();
    }
    let live = daemon.create().await;
    for (query, expected) in [
        ("?parentSessionId=up", &["child"][..]),
        ("?parentSessionId=down", &[]),
        ("?sourceType=bot", &["bot"]),
        ("?sourceType=bot&sourceId=7", &["bot"]),
        ("?sourceType=bot&sourceId=8", &[]),
        ("?sourceType=default", &["child", live.as_str()]),
        ("?view=organized&group=pinned", &[]),
        ("?view=organized&group=ungrouped", &["bot", "child", live.as_str()]),
    ] {
        let found = list(&daemon, query).await;
        let found: BTreeSet<_> = ids(&found).into_iter().collect();
        assert_eq!(found, expected.iter().copied().collect(), "{query}");
    }
    let organized = &list(&daemon, "?view=organized&sourceType=bot").await["sessions"][0];
    assert_eq!((&organized["groupId"], &organized["isPinned"]), (&Value::Null, &json!(false)));
    assert_eq!((&organized["sourceType"], &organized["sourceId"]), (&json!("bot"), &json!("7")));
}

#[tokio::test]
async fn a_list_is_asked_for_by_a_workspace_and_by_parameters_that_exist() {
    let daemon = Daemon::start().await;
    for (path, expected) in [
        ("/workspace/relative/sessions", "400 invalid_workspace_id"),
        ("/workspaces/%20/sessions/live-state", "400 invalid_workspace_id"),
        ("/workspace/%2Felsewhere/sessions", "404 workspace_not_found"),
        ("/workspaces/0123456789abcdef/sessions", "404 workspace_not_found"),
        ("/workspaces/0123456789abcdef/sessions/live-state", "404 workspace_not_found"),
        ("/workspaces/%2Fws/sessions?archiveState=all", "400 invalid_archive_state"),
        ("/workspaces/%2Fws/sessions?view=flat", "400 invalid_session_view"),
        ("/workspaces/%2Fws/sessions?view=organized&parentSessionId=x", "400 invalid_session_view"),
        ("/workspaces/%2Fws/sessions?group=all", "400 invalid_session_group_filter"),
        ("/workspaces/%2Fws/sessions?view=organized&group=mine", "400 invalid_session_group_filter"),
        ("/workspaces/%2Fws/sessions?sourceId=7", "400 invalid_session_source"),
        ("/workspaces/%2Fws/sessions?sourceType=Bad!", "400 invalid_session_source"),
        ("/workspaces/%2Fws/sessions?cursor=", "400 invalid_cursor"),
        ("/workspaces/%2Fws/sessions?cursor=1795977960540.2217", "400 invalid_cursor"),
        ("/workspaces/%2Fws/sessions?archiveState=archived&cursor=a.1.1.1.s", "400 invalid_cursor"),
        ("/workspaces/%2Fws/sessions?size=0", "400 invalid_request"),
        ("/workspaces/%2Fws/sessions?size=many", "400 invalid_request"),
        ("/workspaces/%2Fws/sessions?size=99999999999999999999999", "200"),
    ] {
        assert_eq!(daemon.get(path).await.verdict(), expected, "{path}");
    }
}

#[tokio::test]
async fn the_live_state_tells_what_lives_and_when_the_list_is_another() {
    let daemon = Daemon::start().await;
    let state = async || daemon.get(&format!("{LIST}/live-state")).await;
    let answer = state().await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let empty = answer.json();
    assert_eq!((&empty["v"], &empty["sessions"]), (&json!(1), &json!([])));
    let session = daemon.create().await;
    let one = state().await.json();
    let generation = &empty["catalogVersion"]["generation"];
    assert_eq!((generation.is_string(), &one["catalogVersion"]["generation"]), (true, generation));
    let revision = |state: &Value| state["catalogVersion"]["revision"].as_u64().unwrap();
    assert!(revision(&one) > revision(&empty));
    assert_eq!(
        one["sessions"],
        json!([{
            "sessionId": session, "clientCount": 1, "hasActivePrompt": false, "activeWorkState": "idle",
            "isWaitingForPermission": false, "isWaitingForUserQuestion": false,
        }])
    );
    daemon.prompt(&session, "hold").await;
    assert_eq!(state().await.json()["sessions"][0]["hasActivePrompt"], true);
    daemon.hosts.release(1);
    until("the turn is over", async || state().await.json()["sessions"][0]["updatedAt"].is_string()).await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
    let gone = state().await.json();
    assert!(gone["sessions"] == json!([]) && revision(&gone) > revision(&one));
    let capabilities = daemon.get("/capabilities").await.json();
    assert_eq!(capabilities["sessionLiveStatePollIntervalMs"], 5_000);
}
