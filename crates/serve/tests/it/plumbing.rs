//! What stands around every route: wall, bodies, unknown paths, sizes (wire rules, sections 1 to 3).

use serde_json::json;

use crate::client::Connection;
use crate::daemon::Daemon;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// Asks one row after the other: request line, body, expected status and code.
async fn check(daemon: &Daemon, rows: &[(&str, &str, &str)]) {
    for (line, body, expected) in rows {
        assert_eq!(daemon.ask(line, body).await.verdict(), *expected, "{line} {body}");
    }
}

#[tokio::test]
async fn every_session_route_says_that_a_session_is_not_live() {
    let daemon = Daemon::start().await;
    let rows = [
        ("GET /session/ID/status", ""),
        ("POST /session/ID/prompt", r#"{"prompt":[{"type":"text","text":"x"}]}"#),
        ("POST /session/ID/cancel", "{}"),
        ("POST /session/ID/heartbeat", "{}"),
        ("GET /session/ID/pending-prompts", ""),
        ("DELETE /session/ID/pending-prompts/p", ""),
        ("GET /session/ID/events", ""),
        ("GET /session/ID/turns/p", ""),
        ("GET /session/ID/turns/current", ""),
        ("POST /session/ID/permission/r", r#"{"outcome":{"outcome":"cancelled"}}"#),
        ("POST /session/ID/load", "{}"),
        ("POST /session/ID/resume", "{}"),
        ("DELETE /session/ID", ""),
    ];
    for (line, body) in rows {
        for id in [NOBODY, "not-a-uuid", "..%2F..%2Fetc%2Fpasswd", "a%00b"] {
            let answer = daemon.ask(&line.replace("ID", id), body).await;
            assert_eq!(answer.verdict(), "404 session_not_found", "{line} {id}");
        }
        let answer = daemon.ask(&line.replace("ID", NOBODY), body).await;
        let error = format!("No session with id \"{NOBODY}\"");
        assert_eq!(answer.json(), json!({ "error": error, "code": "session_not_found", "sessionId": NOBODY }));
    }
    check(&daemon, &[(&format!("POST /session/{NOBODY}/detach"), "", "204")]).await;
}

#[tokio::test]
async fn bodies_are_read_as_tolerantly_as_the_peer_reads_them() {
    let daemon = Daemon::start().await;
    let prompt = format!("POST /session/{NOBODY}/prompt");
    check(
        &daemon,
        &[
            ("POST /session", "{bad", "400 invalid_json"),
            (&prompt, "{}", "400 invalid_prompt"),
            (&prompt, "[1,2]", "400 invalid_prompt"),
            (&prompt, r#"{"prompt":[{"type":"text","text":"half \ud83d"}]}"#, "404 session_not_found"),
        ],
    )
    .await;
    let text = daemon
        .ask_with(&prompt, &[("content-type", "application/octet-stream")], r#"{"prompt":[{"type":"text"}]}"#)
        .await;
    assert_eq!(text.verdict(), "400 invalid_prompt", "what is not JSON is no body");
    let form = daemon.ask_with(&prompt, &[("content-type", "text/plain")], r#"{"prompt":[{"type":"text"}]}"#).await;
    assert_eq!(form.verdict(), "415 form_not_accepted", "what any web page could send is no body either");
    let huge = "x".repeat(11 * 1024 * 1024);
    assert_eq!(daemon.ask(&prompt, &huge).await.verdict(), "413 body_too_large");
    assert_eq!(daemon.ask(&prompt, &huge).await.json()["error"], "Request body too large (max 10 MB)");
}

#[tokio::test]
async fn a_chunked_body_is_bounded_as_well() {
    let daemon = Daemon::start().await;
    let mut connection = Connection::open(daemon.address).await;
    let headers = [("content-type", "application/json"), ("transfer-encoding", "chunked")];
    connection.ask(&format!("POST /session/{NOBODY}/prompt"), &headers, b"").await;
    let mut chunk = b"100000\r\n".to_vec();
    chunk.extend(vec![b' '; 0x10_0000]);
    chunk.extend(b"\r\n");
    for _ in 0..11 {
        connection.send(&chunk).await;
    }
    connection.send(b"0\r\n\r\n").await;
    assert_eq!(connection.answer().await.verdict(), "413 body_too_large");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_answered_in_json() {
    let daemon = Daemon::start().await;
    check(
        &daemon,
        &[
            ("GET /nope", "", "404 route_not_found"),
            ("PUT /session/x", "{}", "404 route_not_found"),
            ("GET /session/%E0%A4%A/status", "", "400 invalid_request"),
        ],
    )
    .await;
    let answer = daemon.get("/session/x").await;
    assert_eq!((answer.verdict().as_str(), answer.header("allow")), ("404 route_not_found", Some("DELETE")));
    assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
}

#[tokio::test]
async fn the_wall_comes_before_everything_else() {
    let daemon = Daemon::with(|options| {
        options.token = serve::Token::new("secret").ok();
        options.allow_origins = vec!["http://app.example".into()];
    })
    .await;
    let rows = [
        ("GET /health", vec![], "200"),
        ("GET /nope", vec![], "401 unauthorized"),
        ("GET /nope", vec![("authorization", "bearer  secret")], "404 route_not_found"),
        ("GET /capabilities?token=secret", vec![], "401 unauthorized"),
        ("GET /health", vec![("host", "evil.example")], "403 host_not_allowed"),
        ("GET /health", vec![("origin", "http://evil.example")], "403 origin_not_allowed"),
        ("OPTIONS /session", vec![("origin", "http://app.example"), ("access-control-request-method", "POST")], "204"),
    ];
    for (line, headers, expected) in rows {
        assert_eq!(daemon.ask_with(line, &headers, "").await.verdict(), expected, "{line} {headers:?}");
    }
    let headers = [("origin", "http://app.example"), ("authorization", "Bearer secret")];
    let answer = daemon.ask_with("GET /capabilities", &headers, "").await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://app.example"));
}

#[tokio::test]
async fn health_and_capabilities_say_what_is_there() {
    let daemon = Daemon::start().await;
    assert_eq!(daemon.get("/health").await.body, br#"{"status":"ok"}"#);
    let deep = daemon.get("/health?deep=1").await.json();
    assert_eq!(
        (&deep["sessions"], &deep["activePrompts"], &deep["channelAlive"]),
        (&json!(0), &json!(0), &json!(true))
    );
    daemon.create().await;
    assert_eq!(daemon.get("/health?deep").await.json()["sessions"], 1);
    let capabilities = daemon.get("/capabilities").await.json();
    assert_eq!(capabilities["protocolVersions"], json!({ "current": "v1", "supported": ["v1"] }));
    assert_eq!(capabilities["workspaceCwd"], "/ws");
    assert_eq!(capabilities["limits"]["maxPendingPromptsPerSession"], 5);
    let tags = capabilities["features"].as_array().unwrap();
    assert!(tags.contains(&json!("session_turn_status")) && !tags.contains(&json!("require_auth")), "{tags:?}");
}

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let daemon = Daemon::start().await;
    let mut connection = Connection::open(daemon.address).await;
    for _ in 0..3 {
        connection.ask("GET /health", &[], b"").await;
        assert_eq!(connection.answer().await.status, 200);
        connection.ask("POST /session/x/cancel", &[("content-type", "application/json")], b"{}").await;
        assert_eq!(connection.answer().await.status, 404);
    }
    connection.ask("HEAD /health", &[], b"").await;
    assert!(connection.head().await.unwrap().contains(" 200 "));
}

#[tokio::test]
async fn a_body_that_says_it_is_huge_is_refused_before_it_comes_and_a_packed_one_is_not_guessed_at() {
    let daemon = Daemon::start().await;
    for (headers, expected) in [
        ("content-length: 99999999999", "413 body_too_large"),
        ("content-encoding: gzip\r\ncontent-length: 2", "415 unsupported_content_encoding"),
    ] {
        let mut connection = Connection::open(daemon.address).await;
        let host = daemon.address;
        let head = format!("POST /session HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n\r\n");
        connection.send(head.as_bytes()).await;
        assert_eq!(connection.answer().await.verdict(), expected, "{headers}");
    }
}
