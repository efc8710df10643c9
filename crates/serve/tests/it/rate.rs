//! The rate limit over HTTP, as the peer was recorded with it (wire rules, section 5.1).

use serde_json::json;

use crate::daemon::Daemon;

#[tokio::test]
async fn a_request_too_many_is_told_when_to_come_again_and_admits_nothing() {
    let rates = serve::Rates { prompt: 2, mutation: 5, read: 2, window_ms: 3_600_000 };
    let daemon = Daemon::with(|options| {
        options.rates = Some(rates);
        options.limits.max_pending_prompts = 1;
    })
    .await;
    let created = daemon.ask_with("POST /session", &[("x-qwen-client-id", "me")], "{}").await.json();
    let (session, client) = (created["sessionId"].as_str().unwrap(), created["clientId"].as_str().unwrap());
    let me = [("x-qwen-client-id", client)];
    let body = r#"{"prompt":[{"type":"text","text":"hold"}]}"#;
    let admit = format!("POST /session/{session}/prompt");
    let mut verdicts = Vec::new();
    for _ in 0..3 {
        verdicts.push(daemon.ask_with(&admit, &me, body).await.verdict());
    }
    assert_eq!(verdicts, ["202", "503 prompt_queue_full", "429 rate_limit_exceeded"], "a refused one is counted too");
    let refused = daemon.ask_with(&admit, &me, body).await;
    assert_eq!(refused.json()["tier"], "prompt");
    assert!(refused.json()["retryAfterMs"].as_u64().unwrap() <= 1_800_000);
    for header in ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        assert!(refused.header(header).is_some(), "{header}");
    }
    for _ in 0..5 {
        assert_eq!(daemon.ask_with("GET /health", &me, "").await.status, 200);
        let heartbeat = daemon.ask_with(&format!("POST /session/{session}/heartbeat"), &me, "").await;
        assert_eq!(heartbeat.status, 200);
        assert_eq!(heartbeat.header("x-ratelimit-limit"), None);
    }
    assert_eq!(daemon.get("/health?deep=1").await.json()["rateLimitHits"], 2);
    assert_eq!(daemon.hosts.heard("session/prompt").len(), 1);
    let tags = daemon.get("/capabilities").await.json()["features"].clone();
    assert!(tags.as_array().unwrap().contains(&json!("rate_limit")));
}
