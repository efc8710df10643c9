//! Votes on what an agent asks (wire rules, section 12).

use serde_json::{Value, json};

use crate::client::Stream;
use crate::daemon::Daemon;

/// A session whose agent waits for a decision.
struct Asked {
    daemon: Daemon,
    session: String,
    request: String,
    stream: Stream,
}

async fn asked() -> Asked {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let mut stream = daemon.events(&session).await;
    daemon.prompt(&session, "ask").await;
    let request = stream.until(&["permission_request"]).await["data"]["requestId"].as_str().unwrap().to_owned();
    Asked { daemon, session, request, stream }
}

impl Asked {
    fn paths(&self) -> [String; 2] {
        [format!("/session/{}/permission/{}", self.session, self.request), format!("/permission/{}", self.request)]
    }
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

#[tokio::test]
async fn a_vote_decides_and_the_turn_goes_on() {
    for which in 0..2 {
        let mut asked = asked().await;
        let status = asked.daemon.get(&format!("/session/{}/status", asked.session)).await.json();
        assert_eq!((&status["isWaitingForPermission"], &status["pendingInteractionCount"]), (&json!(true), &json!(1)));
        let interaction = &status["pendingInteractions"][0];
        assert_eq!(
            (&interaction["requestId"], &interaction["action"]["title"]),
            (&json!(asked.request), &json!("touch x"))
        );
        assert_eq!(interaction["options"][0], json!({ "optionId": "yes", "label": "Allow", "kind": "allow_once" }));
        let answer = asked.daemon.post(&asked.paths()[which], selected("yes")).await;
        assert_eq!((answer.status, answer.json()), (200, json!({})));
        let resolved = asked.stream.until(&["permission_resolved"]).await;
        assert_eq!(resolved["data"]["outcome"], json!({ "outcome": "selected", "optionId": "yes" }));
        assert_eq!(asked.stream.until(&["turn_complete"]).await["data"]["stopReason"], "end_turn");
    }
}

#[tokio::test]
async fn what_is_no_vote_changes_nothing() {
    let asked = asked().await;
    for path in asked.paths() {
        let rows = [
            (json!({ "outcome": "x" }), "400 invalid_outcome"),
            (json!({}), "400 invalid_outcome"),
            (json!({ "outcome": { "outcome": "selected" } }), "400 invalid_outcome"),
            (selected("other"), "400 invalid_option_id"),
            (selected("__cancelled__"), "400 invalid_option_id"),
        ];
        for (body, expected) in rows {
            assert_eq!(asked.daemon.post(&path, body.clone()).await.verdict(), expected, "{path} {body}");
        }
    }
    let status = asked.daemon.get(&format!("/session/{}/status", asked.session)).await.json();
    assert_eq!(status["pendingInteractionCount"], 1);
    asked.daemon.post(&asked.paths()[0], selected("no")).await;
}

#[tokio::test]
async fn a_late_vote_is_told_and_published() {
    let mut asked = asked().await;
    let paths = asked.paths();
    asked.daemon.post(&paths[0], selected("yes")).await;
    let late = asked.daemon.post(&paths[0], selected("yes")).await;
    assert_eq!(late.verdict(), "404 permission_not_found");
    assert_eq!((&late.json()["sessionId"], &late.json()["requestId"]), (&json!(asked.session), &json!(asked.request)));
    let older = asked.daemon.post(&paths[1], selected("no")).await;
    assert_eq!((older.status, older.json().get("sessionId")), (404, None));
    let published = asked.stream.until(&["permission_already_resolved"]).await;
    assert_eq!(published["data"]["outcome"], json!({ "outcome": "selected", "optionId": "yes" }));
    let unknown = asked.daemon.post("/permission/abc", selected("yes")).await;
    assert_eq!((unknown.status, &unknown.json()["requestId"]), (404, &json!("abc")));
}

#[tokio::test]
async fn a_question_in_one_session_does_not_stop_another() {
    let asked = asked().await;
    let other = asked.daemon.create().await;
    asked.daemon.run(&other, "hello").await;
    asked.daemon.post(&asked.paths()[0], json!({ "outcome": { "outcome": "cancelled" } })).await;
}
