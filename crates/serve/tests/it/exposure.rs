//! What a stranger tries on a local port, and that none of it is admitted (demands, 37).

use serde_json::json;

use crate::daemon::Daemon;

#[tokio::test]
async fn what_a_stranger_sends_is_refused_before_anything_is_admitted() {
    let daemon = Daemon::with(|options| {
        options.token = serve::Token::new("secret").ok();
        options.allow_origins = vec!["http://app.example".into()];
    })
    .await;
    let bearer = ("authorization", "Bearer secret");
    let thread = r#"{"sessionScope":"thread"}"#;
    let created = daemon.ask_with("POST /session", &[bearer], thread).await.json();
    let session = created["sessionId"].as_str().unwrap();
    let body = json!({ "prompt": [{ "type": "text", "text": "mine coins" }] }).to_string();
    let form = ("content-type", "application/x-www-form-urlencoded");
    let (admit, create) = (format!("POST /session/{session}/prompt"), "POST /session".to_owned());
    for (line, headers, expected) in [
        (&admit, vec![bearer, ("origin", "http://evil.example")], "403 origin_not_allowed"),
        (&admit, vec![bearer, ("origin", "null")], "403 origin_not_allowed"),
        (&admit, vec![bearer, ("origin", "http://app.example.evil.example")], "403 origin_not_allowed"),
        (&admit, vec![bearer, ("sec-fetch-site", "cross-site")], "403 origin_not_allowed"),
        (&admit, vec![bearer, ("host", "evil.example")], "403 host_not_allowed"),
        (&admit, vec![bearer, ("host", "127.0.0.1.evil.example:4170")], "403 host_not_allowed"),
        (&admit, vec![bearer, form], "415 form_not_accepted"),
        (&admit, vec![bearer, ("content-type", "text/plain")], "415 form_not_accepted"),
        (&admit, vec![bearer, ("content-type", "multipart/form-data; boundary=x")], "415 form_not_accepted"),
        (&admit, vec![], "401 unauthorized"),
        (&format!("{admit}?token=secret"), vec![], "401 unauthorized"),
        (&format!("{admit}?access_token=secret"), vec![], "401 unauthorized"),
        (&admit, vec![("authorization", "Bearer secre")], "401 unauthorized"),
        (&admit, vec![("authorization", "Bearer secrets")], "401 unauthorized"),
        (&admit, vec![("authorization", "Basic c2VjcmV0")], "401 unauthorized"),
        (&admit, vec![("x-qwen-token", "secret"), ("cookie", "token=secret")], "401 unauthorized"),
        (&format!("POST http://evil.example/session/{session}/prompt"), vec![bearer], "403 host_not_allowed"),
        (&"CONNECT evil.example:443".to_owned(), vec![bearer], "403 host_not_allowed"),
        (&create, vec![bearer, ("origin", "http://evil.example")], "403 origin_not_allowed"),
        (&create, vec![bearer, form], "415 form_not_accepted"),
    ] {
        let answer = daemon.ask_with(line, &headers, &body).await;
        assert_eq!(answer.verdict(), expected, "{line} {headers:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{line} {headers:?}");
        assert_eq!(answer.json()["input_written"], json!(null), "{line} {headers:?}");
    }
    let own = format!("GET http://127.0.0.1:{}/session/{session}/status", daemon.address.port());
    assert_eq!(daemon.ask_with(&own, &[bearer], "").await.status, 200, "a proxy may name us in full");
    assert_eq!(daemon.hosts.heard("session/prompt"), Vec::<serde_json::Value>::new());
    assert_eq!(daemon.get("/health?deep=1").await.json()["sessions"], 1);
    assert_eq!(daemon.ledger(session), "");
}

#[tokio::test]
async fn a_return_request_that_is_stopped_before_its_id_is_read_does_not_say_that_nothing_was_sent() {
    let daemon = Daemon::with(|options| {
        options.token = serve::Token::new("secret").ok();
        options.rates = Some(serve::Rates { prompt: 1, mutation: 9, read: 9, window_ms: 3_600_000 });
    })
    .await;
    let bearer = ("authorization", "Bearer secret");
    let submit = "POST /session/s/return-requests";
    for (headers, expected) in [
        (vec![], "401 unauthorized"),
        (vec![bearer, ("host", "evil.example")], "403 host_not_allowed"),
        (vec![bearer, ("origin", "http://evil.example")], "403 origin_not_allowed"),
        (vec![bearer, ("content-type", "text/plain")], "415 form_not_accepted"),
        (vec![bearer], "429 rate_limit_exceeded"),
    ] {
        let answer = daemon.ask_with(submit, &headers, "{}").await;
        assert_eq!(answer.verdict(), expected, "{headers:?}");
        assert_eq!(answer.json()["input_written"], "maybe", "{headers:?}");
    }
    let other = daemon.ask_with("GET /return-requests/X", &[], "").await;
    assert_eq!((other.verdict().as_str(), &other.json()["input_written"]), ("401 unauthorized", &json!(null)));
}
