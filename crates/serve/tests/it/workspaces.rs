//! Several workspaces behind one door: each session is its own workspace's, and no request is answered from another one.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use serve::ServeOptions;

use crate::client::{Answer, Connection, until};
use crate::daemon::Daemon;

/// A session id that a test chooses.
const ID: &str = "11111111-1111-4111-8111-111111111111";

fn both(options: &mut ServeOptions) {
    options.workspaces = vec!["/one".into(), "/two".into()];
}

async fn create(daemon: &Daemon, body: Value) -> Value {
    let answer = daemon.post("/session", body).await;
    assert_eq!(answer.status, 200, "{}", answer.verdict());
    answer.json()
}

/// A session of its own in a workspace; its id.
async fn thread_in(daemon: &Daemon, cwd: &str) -> String {
    let created = create(daemon, json!({ "cwd": cwd, "sessionScope": "thread" })).await;
    assert_eq!(created["workspaceCwd"], cwd);
    created["sessionId"].as_str().unwrap().to_owned()
}

/// All files below a folder, with what stands in them.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// What is wanted in the body of one or the other route.
const WORDS: &str = r#"{"prompt":"hi","command":"true","directive":"go","displayName":"n","message":"left","mode":"plan","modelId":"m-1",
    "outcome":{"outcome":"cancelled"},"question":"why?"}"#;

/// Every route that names a session, as `METHOD path`, from the document, which a test of its own holds equal to the router.
async fn session_routes(daemon: &Daemon) -> Vec<String> {
    let document = daemon.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let mut routes = Vec::new();
    for (path, item) in paths.iter().filter(|(path, _)| path.starts_with("/session/{id}")) {
        for method in item.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            routes.push(format!("{} {path}", method.to_uppercase()));
        }
    }
    // What ends the session comes last.
    routes.sort_by_key(|route| route == "DELETE /session/{id}");
    assert!(routes.len() >= 15, "{routes:?}");
    routes
}

/// Asks a route about a session and a prompt of it, with a body that the route takes. Of a stream only the head is read.
async fn ask(daemon: &Daemon, route: &str, session: &str, prompt: &str) -> Answer {
    let (method, path) = route.split_once(' ').unwrap();
    let mut filled = path.replacen("{id}", session, 1);
    while let (Some(from), Some(to)) = (filled.find('{'), filled.find('}')) {
        filled.replace_range(from..=to, prompt);
    }
    let body = match (method, path) {
        ("GET" | "DELETE", _) => String::new(),
        (_, "/session/{id}/prompt" | "/session/{id}/return-requests") => {
            json!({ "prompt": [{ "type": "text", "text": "hello" }] }).to_string()
        }
        (_, "/session/{id}/rewind") => json!({ "promptId": prompt }).to_string(),
        _ => WORDS.to_owned(),
    };
    let mut connection = Connection::open(daemon.address).await;
    connection.ask(&format!("{method} {filled}"), &[("content-type", "application/json")], body.as_bytes()).await;
    if path.ends_with("/events") {
        let head = connection.head().await.unwrap();
        return Answer { status: crate::client::status_of(&head), head, body: Vec::new() };
    }
    connection.answer().await
}

#[tokio::test]
async fn a_session_is_made_in_the_workspace_that_is_named_and_in_the_primary_one_when_none_is() {
    let daemon = Daemon::with(both).await;
    for (body, cwd) in [(json!({}), "/one"), (json!({ "cwd": "/one" }), "/one"), (json!({ "cwd": "/./two//" }), "/two")]
    {
        assert_eq!(create(&daemon, body.clone()).await["workspaceCwd"], cwd, "{body}");
    }
    let refused = daemon.post("/session", json!({ "cwd": "/three" })).await;
    assert_eq!(refused.verdict(), "400 workspace_mismatch");
    let said = refused.json();
    assert_eq!((&said["boundWorkspace"], &said["requestedWorkspace"]), (&json!("/one"), &json!("/three")));
    let orders = daemon.hosts.orders();
    let started: Vec<_> = orders.iter().map(|order| (order.workspace.to_str().unwrap(), &order.transcript)).collect();
    assert_eq!((started.len(), started[0].0, started[1].0), (2, "/one", "/two"), "{started:?}");
    assert!(started[1].1.starts_with(daemon.chats_of("-two")), "{started:?}");
}

#[tokio::test]
async fn each_workspace_has_a_default_session_of_its_own() {
    let daemon = Daemon::with(both).await;
    let first = create(&daemon, json!({ "cwd": "/two" })).await;
    let other = create(&daemon, json!({})).await;
    let again = create(&daemon, json!({ "cwd": "/two" })).await;
    assert_ne!(first["sessionId"], other["sessionId"]);
    assert_eq!((&again["sessionId"], &again["attached"]), (&first["sessionId"], &json!(true)));
}

#[tokio::test]
async fn capabilities_tell_every_workspace_with_a_lasting_id() {
    let daemon = Daemon::with(both).await;
    let told = daemon.get("/capabilities").await.json();
    let spaces = told["workspaces"].as_array().unwrap();
    let described: Vec<_> = spaces.iter().map(|one| (one["cwd"].as_str().unwrap(), one["primary"].clone())).collect();
    assert_eq!(described, [("/one", json!(true)), ("/two", json!(false))]);
    // The first digits of the SHA-256 of the path.
    assert_eq!((&spaces[0]["id"], &spaces[1]["id"]), (&json!("1e1d1696ffea6730"), &json!("3ef5f6bfe9cbbfaf")));
    assert_eq!((&told["workspaceCwd"], &told["limits"]["maxTotalSessions"]), (&json!("/one"), &json!(800)));
    assert!(told["features"].as_array().unwrap().contains(&json!("multi_workspace_sessions")));
    assert_eq!(daemon.get("/health?deep=1").await.json()["workspaceCount"], 2);
    let alone = Daemon::start().await.get("/capabilities").await.json();
    assert!(!alone["features"].as_array().unwrap().contains(&json!("multi_workspace_sessions")));
}

#[tokio::test]
async fn every_route_finds_a_live_session_in_its_workspace_and_touches_no_other() {
    let daemon = Daemon::with(both).await;
    for route in session_routes(&daemon).await {
        let session = thread_in(&daemon, "/two").await;
        let prompt = daemon.run(&session, "hello").await;
        // The same id in the other workspace's part of the store, with another outcome of the same prompt.
        let decoy = |from: &str| from.replace("/two", "/one").replace("hello", "decoy");
        std::fs::create_dir_all(daemon.chats_of("-one")).unwrap();
        for end in [".jsonl", ".ledger.jsonl"] {
            let text = std::fs::read_to_string(daemon.chats_of("-two").join(format!("{session}{end}"))).unwrap();
            std::fs::write(daemon.chats_of("-one").join(format!("{session}{end}")), decoy(&text)).unwrap();
        }
        let before = files(&daemon.chats_of("-one"));
        let answer = ask(&daemon, &route, &session, &prompt).await;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        assert_ne!(answer.verdict(), "404 session_not_found", "{route}");
        assert_ne!(answer.status, 500, "{route}");
        assert!(!said.contains("decoy") && !said.contains("/one"), "{route}: {said}");
        assert_eq!(files(&daemon.chats_of("-one")), before, "{route}");
        daemon.ask(&format!("DELETE /session/{session}"), "").await;
    }
}

#[tokio::test]
async fn every_route_treats_a_session_that_does_not_live_alike_in_each_workspace() {
    let daemon = Daemon::with(both).await;
    for route in session_routes(&daemon).await {
        let mut answers = Vec::new();
        for (cwd, name, other) in [("/one", "-one", "/two"), ("/two", "-two", "/one")] {
            let session = thread_in(&daemon, cwd).await;
            let prompt = daemon.run(&session, "hello").await;
            assert_eq!(daemon.ask(&format!("DELETE /session/{session}"), "").await.status, 204);
            assert!(daemon.chats_of(name).join(format!("{session}.jsonl")).exists());
            let answer = ask(&daemon, &route, &session, &prompt).await;
            let said = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(!said.contains(other), "{route} in {cwd}: {said}");
            answers.push(answer.verdict());
            daemon.ask(&format!("DELETE /session/{session}"), "").await;
        }
        assert_eq!(answers[0], answers[1], "{route}");
    }
}

#[tokio::test]
async fn a_restore_looks_only_where_it_is_told_and_without_that_where_the_file_lies() {
    let daemon = Daemon::with(both).await;
    for action in ["load", "resume"] {
        let session = thread_in(&daemon, "/two").await;
        daemon.run(&session, "hello").await;
        let close = async || daemon.ask(&format!("DELETE /session/{session}"), "").await.status;
        assert_eq!(close().await, 204);
        let restore = async |body: Value| daemon.post(&format!("/session/{session}/{action}"), body).await;
        assert_eq!(restore(json!({ "cwd": "/one" })).await.verdict(), "404 session_not_found");
        assert_eq!(restore(json!({ "cwd": "/three" })).await.verdict(), "400 workspace_mismatch");
        assert_eq!(restore(json!({ "cwd": "two" })).await.verdict(), "400 invalid_cwd");
        let back = restore(json!({})).await;
        assert_eq!((back.status, back.json()["workspaceCwd"].clone()), (200, json!("/two")));
        let elsewhere = restore(json!({ "cwd": "/one" })).await;
        assert_eq!(elsewhere.verdict(), "409 session_workspace_conflict");
        assert_eq!(elsewhere.json()["liveWorkspaceCwd"], "/two");
        assert_eq!(close().await, 204);
        assert_eq!(restore(json!({ "cwd": "/two" })).await.status, 200);
        assert_eq!(close().await, 204);
    }
}

/// The files of a session that two workspaces hold.
async fn with_two_of_one_id() -> Daemon {
    let mut daemon = Daemon::with(|options| options.workspaces = vec!["/one".into()]).await;
    for cwd in ["/one", "/two"] {
        create(&daemon, json!({ "sessionId": ID })).await;
        daemon.run(ID, &format!("hello from {cwd}")).await;
        daemon = daemon.restart_with(|options| options.workspaces = vec!["/two".into()]).await;
    }
    daemon.restart_with(both).await
}

#[tokio::test]
async fn an_id_that_two_workspaces_hold_is_neithers_until_one_is_named() {
    let daemon = with_two_of_one_id().await;
    let path = format!("/session/{ID}/load");
    let refused = daemon.post(&path, json!({})).await;
    assert_eq!(refused.verdict(), "409 session_workspace_conflict");
    assert_eq!(refused.json()["workspaceCwds"], json!(["/one", "/two"]));
    let loaded = daemon.post(&path, json!({ "cwd": "/two" })).await;
    let said = loaded.json().to_string();
    assert!(said.contains("hello from /two") && !said.contains("/one"), "{said}");
    // Now it lives: the paths that name it mean this one, and the other one cannot come beside it.
    assert_eq!(daemon.post(&path, json!({})).await.json()["workspaceCwd"], "/two");
    assert_eq!(daemon.post(&path, json!({ "cwd": "/one" })).await.verdict(), "409 session_workspace_conflict");
    assert_eq!(daemon.ask(&format!("DELETE /session/{ID}"), "").await.status, 204);
    let other = daemon.post(&path, json!({ "cwd": "/one" })).await.json().to_string();
    assert!(other.contains("hello from /one") && !other.contains("/two"), "{other}");
}

#[tokio::test]
async fn an_id_of_another_workspace_is_not_given_to_a_new_session() {
    let daemon = Daemon::with(both).await;
    create(&daemon, json!({ "sessionId": ID, "cwd": "/two" })).await;
    let live = daemon.post("/session", json!({ "sessionId": ID })).await;
    assert_eq!(live.verdict(), "409 session_id_conflict");
    assert_eq!((&live.json()["conflict"], &live.json()["liveWorkspaceCwd"]), (&json!("live"), &json!("/two")));
    daemon.run(ID, "hello").await;
    assert_eq!(daemon.ask(&format!("DELETE /session/{ID}"), "").await.status, 204);
    let persisted = daemon.post("/session", json!({ "sessionId": ID })).await;
    assert_eq!(
        (persisted.verdict(), &persisted.json()["conflict"]),
        ("409 session_id_conflict".into(), &json!("persisted"))
    );
}

#[tokio::test]
async fn of_one_id_restored_in_two_workspaces_at_once_never_two_live() {
    let daemon = with_two_of_one_id().await;
    daemon.hosts.behave(|behaviour| behaviour.gated = true);
    let mut first = Connection::open(daemon.address).await;
    let body = |cwd: &str| json!({ "cwd": cwd }).to_string();
    let headers = [("content-type", "application/json")];
    first.ask(&format!("POST /session/{ID}/load"), &headers, body("/one").as_bytes()).await;
    until("the first is being loaded", async || !daemon.hosts.heard("session/load").is_empty()).await;
    let second = daemon.post(&format!("/session/{ID}/load"), json!({ "cwd": "/two" })).await;
    assert_eq!(second.verdict(), "409 session_workspace_conflict");
    daemon.hosts.open_gate(1);
    assert_eq!(first.answer().await.json()["workspaceCwd"], "/one");
    assert_eq!(daemon.hosts.heard("session/load").len(), 1);
}

#[tokio::test]
async fn a_prompt_id_is_one_prompts_in_its_workspace_and_free_in_another() {
    let daemon = Daemon::with(both).await;
    let admit = async |session: &str, text: &str| {
        let prompt = json!([{ "type": "text", "text": text }]);
        let body = json!({ "prompt": prompt, "promptId": "chosen" });
        daemon.post(&format!("/session/{session}/prompt"), body).await.verdict()
    };
    let (one, other) = (thread_in(&daemon, "/two").await, thread_in(&daemon, "/two").await);
    assert_eq!(admit(&one, "a").await, "202");
    assert_eq!(admit(&other, "a").await, "409 prompt_id_conflict");
    let elsewhere = thread_in(&daemon, "/one").await;
    assert_eq!(admit(&elsewhere, "b").await, "202");
}

#[tokio::test]
async fn a_vote_without_a_session_finds_the_question_and_wants_a_client_of_its_session() {
    let daemon = Daemon::with(both).await;
    let client = create(&daemon, json!({})).await["clientId"].as_str().unwrap().to_owned();
    let session = thread_in(&daemon, "/two").await;
    daemon.prompt(&session, "ask").await;
    let asked = daemon.events(&session).await.until(&["permission_request"]).await;
    let path = format!("/permission/{}", asked["data"]["requestId"].as_str().unwrap());
    let vote = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    let foreign = daemon.ask_with(&format!("POST {path}"), &[("x-qwen-client-id", &client)], &vote.to_string()).await;
    assert_eq!(foreign.verdict(), "400 invalid_client_id");
    assert_eq!(daemon.post(&path, vote).await.status, 200);
}

#[tokio::test]
async fn each_workspace_has_its_limit_and_all_of_them_one() {
    let daemon = Daemon::with(|options| {
        both(options);
        options.limits.max_sessions = 2;
        options.limits.max_total_sessions = 3;
    })
    .await;
    let thread = |cwd: &str| json!({ "cwd": cwd, "sessionScope": "thread" });
    thread_in(&daemon, "/one").await;
    thread_in(&daemon, "/one").await;
    let full = daemon.post("/session", thread("/one")).await;
    assert_eq!((full.verdict(), &full.json()["scope"]), ("503 session_limit_exceeded".into(), &json!("workspace")));
    let last = thread_in(&daemon, "/two").await;
    let full = daemon.post("/session", thread("/two")).await;
    assert_eq!((full.verdict(), &full.json()["scope"]), ("503 session_limit_exceeded".into(), &json!("total")));
    assert_eq!(full.json()["limit"], 3);
    assert_eq!(daemon.ask(&format!("DELETE /session/{last}"), "").await.status, 204);
    thread_in(&daemon, "/two").await;
}

#[tokio::test]
async fn a_daemon_takes_all_of_its_workspaces_or_none() {
    let daemon = Daemon::with(|options| options.workspaces = vec!["/two".into()]).await;
    let refused = daemon.second_with(both).await.unwrap();
    assert!(refused.contains("/two") && refused.contains("cannot take the store"), "{refused}");
    // The other one was let go again.
    assert_eq!(daemon.second_with(|options| options.workspaces = vec!["/one".into()]).await, None);
}

#[tokio::test]
async fn workspaces_that_share_a_folder_of_the_store_are_not_served_together() {
    let daemon = Daemon::start().await;
    let refused = daemon.second_with(|options| options.workspaces = vec!["/a-b".into(), "/a/b".into()]).await.unwrap();
    assert!(refused.contains("/a-b and /a/b cannot be served together"), "{refused}");
}

#[tokio::test]
async fn a_folder_that_is_named_twice_is_one_workspace() {
    let daemon = Daemon::with(|options| options.workspaces = vec!["/one".into(), "/one".into()]).await;
    assert_eq!(daemon.get("/capabilities").await.json()["workspaces"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_prompts_of_every_workspace_end_with_the_daemon() {
    let mut daemon = Daemon::with(both).await;
    let mut ledgers = Vec::new();
    for (cwd, name) in [("/one", "-one"), ("/two", "-two")] {
        let session = thread_in(&daemon, cwd).await;
        daemon.prompt(&session, "hang").await;
        ledgers.push(daemon.chats_of(name).join(format!("{session}.ledger.jsonl")));
    }
    daemon.stop().await;
    for ledger in ledgers {
        let text = std::fs::read_to_string(ledger).unwrap();
        assert!(text.contains("daemon_shutdown"), "{text}");
    }
}

#[tokio::test]
async fn what_is_put_away_or_deleted_by_its_id_alone_is_of_the_workspace_that_has_it() {
    let daemon = with_two_of_one_id().await;
    let ids = json!({ "sessionIds": [ID] });
    let all = || (files(&daemon.chats_of("-one")), files(&daemon.chats_of("-two")));
    let before = all();
    for action in ["archive", "unarchive", "delete"] {
        let told = daemon.post(&format!("/sessions/{action}"), ids.clone()).await.json();
        assert_eq!(told["errors"][0]["code"], "session_workspace_conflict", "{action}: {told}");
        assert_eq!(all(), before, "{action}");
    }
    // The one that lives is the one that is meant.
    let loaded = daemon.post(&format!("/session/{ID}/load"), json!({ "cwd": "/two" })).await;
    assert_eq!(loaded.status, 200);
    let told = daemon.post("/sessions/delete", ids.clone()).await.json();
    assert_eq!(told["removed"], json!([ID]), "{told}");
    assert_eq!(files(&daemon.chats_of("-one")), before.0);
    assert!(!daemon.chats_of("-two").join(format!("{ID}.jsonl")).exists());
    // And now there is one left.
    let told = daemon.post("/sessions/archive", ids).await.json();
    assert_eq!(told["archived"], json!([ID]), "{told}");
    assert!(daemon.chats_of("-one").join("archive").join(format!("{ID}.jsonl")).exists());
}
