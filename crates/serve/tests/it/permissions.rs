//! Votes on what an agent asks (wire rules, section 12).

use std::num::NonZeroUsize;

use serde_json::{Value, json};
use serve::{Mediation, Policy};

use crate::client::{Answer, Connection, Stream, until};
use crate::daemon::Daemon;

/// A session whose agent waits for a decision.
struct Asked {
    daemon: Daemon,
    session: String,
    request: String,
    prompt: String,
    stream: Stream,
    /// Clients of the session; the prompt is the first one's unless that is the last, which created the session.
    clients: Vec<String>,
}

async fn asked() -> Asked {
    asked_under(Mediation::default(), 0).await
}

fn under(policy: Policy) -> Mediation {
    Mediation { policy, response_timeout_ms: None }
}

/// A session under these rules, with so many clients beside the one that created it.
async fn asked_under(mediation: Mediation, clients: usize) -> Asked {
    asked_of(Daemon::with(|options| options.mediation = mediation).await, clients).await
}

async fn asked_of(daemon: Daemon, clients: usize) -> Asked {
    let created = daemon.post("/session", json!({ "sessionScope": "thread" })).await.json();
    let session = created["sessionId"].as_str().unwrap().to_owned();
    let mut stream = daemon.events(&session).await;
    let mut ids = Vec::new();
    for _ in 0..clients {
        let attached = daemon.post(&format!("/session/{session}/resume"), json!({})).await.json();
        ids.push(attached["clientId"].as_str().unwrap().to_owned());
    }
    let body = json!({ "prompt": [{ "type": "text", "text": "ask" }] }).to_string();
    let client: Vec<_> = ids.first().map(|id| ("x-qwen-client-id", id.as_str())).into_iter().collect();
    let receipt = daemon.ask_with(&format!("POST /session/{session}/prompt"), &client, &body).await.json();
    let prompt = receipt["promptId"].as_str().unwrap().to_owned();
    let request = stream.until(&["permission_request"]).await["data"]["requestId"].as_str().unwrap().to_owned();
    ids.push(created["clientId"].as_str().unwrap().to_owned());
    Asked { daemon, session, request, prompt, stream, clients: ids }
}

impl Asked {
    fn paths(&self) -> [String; 2] {
        [format!("/session/{}/permission/{}", self.session, self.request), format!("/permission/{}", self.request)]
    }

    /// A vote by one of the clients, or by nobody in particular, on either route.
    async fn vote(&self, route: usize, client: Option<usize>, body: &Value) -> Answer {
        let client: Vec<_> = client.map(|at| ("x-qwen-client-id", self.clients[at].as_str())).into_iter().collect();
        self.daemon.ask_with(&format!("POST {}", self.paths()[route]), &client, &body.to_string()).await
    }

    async fn detach(&self, client: usize) {
        let headers = [("x-qwen-client-id", self.clients[client].as_str())];
        let line = format!("POST /session/{}/detach", self.session);
        assert_eq!(self.daemon.ask_with(&line, &headers, "").await.status, 204);
    }

    async fn status(&self) -> Value {
        self.daemon.get(&format!("/session/{}/status", self.session)).await.json()
    }

    /// The decision that a late vote on this route is told.
    async fn decision(&self, route: usize) -> Value {
        let late = self.vote(route, None, &selected("yes")).await;
        assert_eq!(late.verdict(), "404 permission_already_decided");
        late.json()["decision"].clone()
    }
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

#[tokio::test]
async fn a_vote_decides_and_the_turn_goes_on() {
    for which in 0..2 {
        let mut asked = asked().await;
        let status = asked.status().await;
        assert_eq!((&status["isWaitingForPermission"], &status["pendingInteractionCount"]), (&json!(true), &json!(1)));
        let interaction = &status["pendingInteractions"][0];
        assert_eq!(
            (&interaction["requestId"], &interaction["action"]["title"]),
            (&json!(asked.request), &json!("touch x"))
        );
        assert_eq!(interaction["options"][0], json!({ "optionId": "yes", "label": "Allow", "kind": "allow_once" }));
        assert_eq!(interaction.get("expiresAt"), None, "nothing limits how long it waits");
        let answer = asked.vote(which, None, &selected("yes")).await;
        assert_eq!((answer.status, answer.json()), (200, json!({})));
        let resolved = asked.stream.until(&["permission_resolved"]).await;
        assert_eq!(resolved["data"]["outcome"], json!({ "outcome": "selected", "optionId": "yes" }));
        assert_eq!(resolved["data"]["reason"], "vote");
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
        let stranger = [("x-qwen-client-id", "client_stranger")];
        let answer = asked.daemon.ask_with(&format!("POST {path}"), &stranger, &selected("yes").to_string()).await;
        assert_eq!(answer.verdict(), "400 invalid_client_id", "{path}");
    }
    assert_eq!(asked.status().await["pendingInteractionCount"], 1);
    asked.vote(0, None, &selected("no")).await;
}

#[tokio::test]
async fn a_late_vote_is_told_the_decision_where_the_peer_says_only_that_it_is_late() {
    let mut asked = asked_under(Mediation::default(), 1).await;
    asked.vote(0, Some(0), &selected("yes")).await;
    let late = asked.vote(0, None, &selected("yes")).await;
    assert_eq!(late.verdict(), "404 permission_already_decided");
    assert_eq!((&late.json()["sessionId"], &late.json()["requestId"]), (&json!(asked.session), &json!(asked.request)));
    let decision = late.json()["decision"].clone();
    assert_eq!(decision["outcome"], json!({ "outcome": "selected", "optionId": "yes" }));
    assert_eq!((&decision["reason"], &decision["voterClientId"]), (&json!("vote"), &json!(asked.clients[0])));
    assert!(decision["decidedAt"].is_u64());
    let published = asked.stream.until(&["permission_already_resolved"]).await;
    assert_eq!(published["data"]["outcome"], json!({ "outcome": "selected", "optionId": "yes" }));
    let older = asked.vote(1, None, &selected("no")).await;
    assert_eq!((older.verdict().as_str(), older.json().get("sessionId")), ("404 permission_already_decided", None));
    assert_eq!(older.json()["decision"], decision);
    asked.stream.until(&["permission_already_resolved"]).await;
}

#[tokio::test]
async fn an_unknown_request_is_told_apart_from_a_decided_one() {
    let asked = asked().await;
    let unknown = asked.daemon.post("/permission/abc", selected("yes")).await;
    assert_eq!((unknown.verdict().as_str(), &unknown.json()["requestId"]), ("404 permission_not_found", &json!("abc")));
    let path = format!("/session/{}/permission/abc", asked.session);
    let unknown = asked.daemon.post(&path, selected("yes")).await;
    assert_eq!(unknown.verdict(), "404 permission_not_found");
    assert_eq!((&unknown.json()["sessionId"], unknown.json().get("decision")), (&json!(asked.session), None));
    let other = asked.daemon.create().await;
    let path = format!("/session/{other}/permission/{}", asked.request);
    assert_eq!(asked.daemon.post(&path, selected("yes")).await.verdict(), "404 permission_not_found");
    asked.vote(0, None, &selected("no")).await;
}

#[tokio::test]
async fn ten_prompts_of_another_session_run_while_a_question_is_open_and_a_second_client_answers_it() {
    let mut asked = asked_under(Mediation::default(), 2).await;
    let other = asked.daemon.create().await;
    for number in 0..10 {
        let prompt = asked.daemon.run(&other, &format!("hello {number}")).await;
        assert_eq!(asked.daemon.turn(&other, &prompt).await.json()["state"], "completed");
    }
    assert_eq!(asked.daemon.turn(&asked.session, &asked.prompt).await.json()["state"], "running");
    assert_eq!(asked.vote(1, Some(1), &selected("yes")).await.status, 200);
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    assert_eq!(resolved["data"]["voterClientId"], asked.clients[1]);
    assert_eq!(asked.stream.until(&["turn_complete"]).await["data"]["promptId"], asked.prompt);
    assert_eq!(asked.daemon.turn(&asked.session, &asked.prompt).await.json()["resultText"], "echo: ask");
}

#[tokio::test]
async fn the_policy_is_one_of_the_capabilities() {
    let shown = async |mediation| {
        let daemon = Daemon::with(|options| options.mediation = mediation).await;
        daemon.get("/capabilities").await.json()["policy"].clone()
    };
    assert_eq!(shown(Mediation::default()).await, json!({ "permission": "first-responder" }));
    assert_eq!(shown(under(Policy::Designated)).await, json!({ "permission": "designated" }));
    assert_eq!(shown(under(Policy::LocalOnly)).await, json!({ "permission": "local-only" }));
    assert_eq!(shown(under(Policy::Consensus { quorum: None })).await, json!({ "permission": "consensus" }));
    let quorum = Policy::Consensus { quorum: NonZeroUsize::new(3) };
    let timed = Mediation { policy: quorum, response_timeout_ms: Some(5) };
    let expected = json!({ "permission": "consensus", "consensusQuorum": 3, "permissionResponseTimeoutMs": 5 });
    assert_eq!(shown(timed).await, expected);
}

#[tokio::test]
async fn under_designated_only_the_prompts_client_decides_and_others_are_told_so() {
    for route in 0..2 {
        let mut asked = asked_under(under(Policy::Designated), 2).await;
        let refused = asked.vote(route, Some(1), &selected("yes")).await;
        assert_eq!(refused.verdict(), "403 permission_forbidden");
        let body = refused.json();
        assert_eq!((&body["requestId"], &body["sessionId"]), (&json!(asked.request), &json!(asked.session)));
        assert_eq!(body["reason"], "designated_mismatch");
        let event = asked.stream.until(&["permission_forbidden"]).await;
        let data = json!({ "requestId": asked.request, "sessionId": asked.session, "clientId": asked.clients[1],
            "reason": "designated_mismatch" });
        assert_eq!((&event["data"], &event["originatorClientId"]), (&data, &json!(asked.clients[0])));
        assert_eq!(asked.vote(route, None, &selected("yes")).await.verdict(), "403 permission_forbidden");
        let event = asked.stream.until(&["permission_forbidden"]).await;
        assert_eq!(event["data"].get("clientId"), None);
        assert_eq!(asked.vote(route, Some(0), &selected("yes")).await.status, 200);
        assert_eq!(asked.stream.until(&["turn_complete"]).await["data"]["stopReason"], "end_turn");
    }
}

#[tokio::test]
async fn under_designated_anybody_decides_for_a_prompt_that_is_nobodys() {
    let mut asked = asked_under(under(Policy::Designated), 0).await;
    assert_eq!(asked.vote(0, None, &selected("yes")).await.status, 200);
    asked.stream.until(&["turn_complete"]).await;
}

#[tokio::test]
async fn unlike_at_the_peer_a_cancelled_vote_obeys_the_policy_too() {
    let mut designated = asked_under(under(Policy::Designated), 2).await;
    for client in [None, Some(1)] {
        assert_eq!(designated.vote(0, client, &cancelled()).await.verdict(), "403 permission_forbidden");
    }
    assert_eq!(designated.status().await["pendingInteractionCount"], 1);
    assert_eq!(designated.vote(0, Some(0), &cancelled()).await.status, 200);
    designated.stream.until(&["permission_resolved"]).await;

    let mut consensus = asked_under(under(Policy::Consensus { quorum: None }), 2).await;
    assert_eq!(consensus.vote(0, None, &cancelled()).await.verdict(), "403 permission_forbidden");
    assert_eq!(consensus.vote(0, Some(0), &cancelled()).await.status, 200);
    let partial = consensus.stream.until(&["permission_partial_vote", "permission_resolved"]).await;
    assert_eq!(partial["data"]["optionTallies"], json!({ "__cancelled__": 1 }), "one vote of two, and no more");
    assert_eq!(consensus.vote(0, Some(1), &cancelled()).await.status, 200);
    let resolved = consensus.stream.until(&["permission_resolved"]).await;
    assert_eq!(resolved["data"]["outcome"], json!({ "outcome": "cancelled" }));

    let local = asked_under(under(Policy::LocalOnly), 0).await;
    let remote = [("x-forwarded-for", "203.0.113.9")];
    let path = format!("POST {}", local.paths()[0]);
    let refused = local.daemon.ask_with(&path, &remote, &cancelled().to_string()).await;
    assert_eq!(refused.verdict(), "403 permission_forbidden");
    local.vote(0, None, &selected("no")).await;
}

/// As recorded at the peer: three clients, of whom two decide.
#[tokio::test]
async fn under_consensus_two_of_three_clients_decide() {
    // The session's creator is a client too.
    let mut asked = asked_under(under(Policy::Consensus { quorum: None }), 2).await;
    let partial = |asked: &Asked, received: u64, tallies: Value| {
        json!({ "requestId": asked.request, "sessionId": asked.session, "votesReceived": received, "votesNeeded": 1,
            "quorum": 2, "optionTallies": tallies })
    };
    assert_eq!(asked.vote(0, Some(0), &selected("yes")).await.status, 200);
    let event = asked.stream.until(&["permission_partial_vote"]).await;
    assert_eq!(event["data"], partial(&asked, 1, json!({ "yes": 1 })));
    assert_eq!(event["originatorClientId"], asked.clients[0]);
    for option in ["yes", "no"] {
        let again = asked.vote(0, Some(0), &selected(option)).await;
        assert_eq!((again.status, again.json()), (200, json!({})));
    }
    assert_eq!(asked.vote(0, None, &selected("yes")).await.verdict(), "403 permission_forbidden");
    let event = asked.stream.until(&["permission_partial_vote", "permission_forbidden"]).await;
    assert_eq!(event["type"], "permission_forbidden", "who votes again is told nothing");
    assert_eq!(asked.vote(0, Some(1), &selected("yes")).await.status, 200);
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    assert_eq!(resolved["data"]["voterClientId"], asked.clients[1]);
    asked.stream.until(&["turn_complete"]).await;
}

#[tokio::test]
async fn under_consensus_a_question_is_refused_once_no_option_can_get_its_votes() {
    let mut asked = asked_under(under(Policy::Consensus { quorum: None }), 2).await;
    asked.vote(0, Some(0), &selected("yes")).await;
    asked.vote(0, Some(1), &selected("no")).await;
    asked.stream.until(&["permission_partial_vote"]).await;
    asked.stream.until(&["permission_partial_vote"]).await;
    asked.detach(1).await;
    assert_eq!(asked.status().await["pendingInteractionCount"], 1, "a vote that was cast stays");
    // The third client goes without a vote.
    asked.detach(2).await;
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    let expected =
        json!({ "requestId": asked.request, "outcome": { "outcome": "cancelled" }, "reason": "undecidable" });
    assert_eq!(resolved["data"], expected);
    assert_eq!(asked.decision(0).await["reason"], "undecidable");
}

#[tokio::test]
async fn under_designated_a_question_is_refused_when_the_only_client_that_could_decide_goes() {
    let mut asked = asked_under(under(Policy::Designated), 1).await;
    asked.detach(1).await;
    assert_eq!(asked.status().await["pendingInteractionCount"], 1, "it was another client");
    asked.detach(0).await;
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    let expected =
        json!({ "requestId": asked.request, "outcome": { "outcome": "cancelled" }, "reason": "undecidable" });
    assert_eq!(resolved["data"], expected);
    asked.stream.until(&["turn_complete"]).await;
}

#[tokio::test]
async fn under_local_only_whoever_calls_from_this_machine_decides_and_what_a_proxy_hands_on_does_not() {
    let mut asked = asked_under(under(Policy::LocalOnly), 1).await;
    let client = ("x-qwen-client-id", asked.clients[0].clone());
    let headers = [(client.0, client.1.as_str()), ("x-forwarded-for", "203.0.113.9")];
    let path = format!("POST {}", asked.paths()[1]);
    let refused = asked.daemon.ask_with(&path, &headers, &selected("yes").to_string()).await;
    assert_eq!(refused.verdict(), "403 permission_forbidden");
    assert_eq!(refused.json()["reason"], "remote_not_allowed");
    let event = asked.stream.until(&["permission_forbidden"]).await;
    assert_eq!(
        (&event["data"]["clientId"], &event["data"]["reason"]),
        (&json!(client.1), &json!("remote_not_allowed"))
    );
    assert_eq!(asked.vote(1, Some(0), &selected("yes")).await.status, 200);
    asked.stream.until(&["turn_complete"]).await;
}

#[tokio::test]
async fn what_nobody_decides_in_time_is_denied_and_recorded_as_that() {
    let timed = Mediation { response_timeout_ms: Some(50), ..Mediation::default() };
    let mut asked = asked_under(timed, 0).await;
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    let outcome = json!({ "outcome": "selected", "optionId": "no" });
    let expected = json!({ "requestId": asked.request, "outcome": outcome, "reason": "timeout" });
    assert_eq!(resolved["data"], expected);
    for route in 0..2 {
        let decision = asked.decision(route).await;
        assert_eq!((&decision["outcome"], &decision["reason"]), (&outcome, &json!("timeout")));
        assert_eq!(decision.get("voterClientId"), None);
    }
    assert_eq!(asked.stream.until(&["turn_complete"]).await["data"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_question_with_a_deadline_shows_it() {
    let timed = Mediation { response_timeout_ms: Some(86_400_000), ..Mediation::default() };
    let asked = asked_under(timed, 0).await;
    let status = asked.status().await;
    let interaction = &status["pendingInteractions"][0];
    let day = |key: &str| interaction[key].as_str().unwrap().split('T').next().unwrap().to_owned();
    let time = |key: &str| interaction[key].as_str().unwrap().split('T').nth(1).unwrap().to_owned();
    assert_eq!(time("createdAt"), time("expiresAt"), "a day later to the millisecond");
    assert!(day("createdAt") < day("expiresAt"));
    let replayed = asked.daemon.events(&asked.session).await.until(&["permission_request"]).await;
    assert_eq!(replayed["data"]["responseTimeoutMs"], 86_400_000);
    asked.vote(0, None, &selected("no")).await;
}

#[tokio::test]
async fn a_cancel_while_a_question_is_open_resolves_it_and_ends_the_turn() {
    let mut asked = asked().await;
    asked.daemon.post(&format!("/session/{}/cancel", asked.session), json!({})).await;
    asked.stream.until(&["prompt_cancelled"]).await;
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    let expected =
        json!({ "requestId": asked.request, "outcome": { "outcome": "cancelled" }, "reason": "prompt_cancelled" });
    assert_eq!(resolved["data"], expected);
    assert_eq!(asked.stream.until(&["turn_complete"]).await["data"]["stopReason"], "cancelled");
    assert_eq!(asked.decision(1).await["reason"], "prompt_cancelled");
}

#[tokio::test]
async fn a_close_resolves_what_is_open_before_the_session_says_goodbye() {
    let daemon = Daemon::start().await;
    daemon.hosts.behave(|host| host.slow_close = true);
    let mut asked = asked_of(daemon, 0).await;
    let mut closing = Connection::open(asked.daemon.address).await;
    closing.ask(&format!("DELETE /session/{}", asked.session), &[], b"").await;
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    let expected =
        json!({ "requestId": asked.request, "outcome": { "outcome": "cancelled" }, "reason": "session_closed" });
    assert_eq!(resolved["data"], expected);
    for route in 0..2 {
        assert_eq!(asked.decision(route).await["reason"], "session_closed");
    }
    asked.daemon.hosts.open_gate(1);
    asked.stream.until(&["session_closed"]).await;
    assert_eq!(closing.answer().await.status, 204);
    assert_eq!(asked.vote(0, None, &selected("yes")).await.verdict(), "404 session_not_found");
    assert_eq!(asked.vote(1, None, &selected("yes")).await.verdict(), "404 permission_not_found");
}

#[tokio::test]
async fn a_shutdown_resolves_what_is_open() {
    let mut asked = asked().await;
    asked.daemon.stop().await;
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    assert_eq!(resolved["data"]["reason"], "daemon_shutdown");
    assert_eq!(asked.stream.until(&["session_died"]).await["data"]["reason"], "daemon_shutdown");
}

#[tokio::test]
async fn of_fifty_votes_at_once_one_decides_and_the_others_hear_how() {
    let mut asked = asked().await;
    let mut connections = Vec::new();
    for _ in 0..50 {
        connections.push(Connection::open(asked.daemon.address).await);
    }
    for (number, connection) in connections.iter_mut().enumerate() {
        let vote = selected(if number % 2 == 0 { "yes" } else { "no" }).to_string();
        let line = format!("POST {}", asked.paths()[number % 2]);
        connection.ask(&line, &[("content-type", "application/json")], vote.as_bytes()).await;
    }
    let mut decisions = Vec::new();
    for connection in &mut connections {
        let answer = connection.answer().await;
        if answer.status != 200 {
            assert_eq!(answer.verdict(), "404 permission_already_decided");
            decisions.push(answer.json()["decision"].clone());
        }
    }
    assert_eq!(decisions.len(), 49);
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    assert!(decisions.iter().all(|decision| decision["outcome"] == resolved["data"]["outcome"]), "{decisions:?}");
    assert_eq!(asked.stream.until(&["turn_complete"]).await["data"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn the_death_of_the_agent_resolves_what_it_asked() {
    let mut asked = asked().await;
    asked.daemon.hosts.die();
    let resolved = asked.stream.until(&["permission_resolved"]).await;
    let expected =
        json!({ "requestId": asked.request, "outcome": { "outcome": "cancelled" }, "reason": "channel_closed" });
    assert_eq!(resolved["data"], expected);
    assert_eq!(asked.stream.until(&["turn_error"]).await["data"]["code"], "channel_closed");
}

#[tokio::test]
async fn a_turn_that_asks_shows_in_the_poll_what_it_waits_for_and_since_when() {
    let asked = asked().await;
    let waiting = asked.daemon.turn(&asked.session, &asked.prompt).await.json();
    assert_eq!((&waiting["state"], &waiting["waitingFor"]), (&json!("running"), &json!("permission")));
    assert_eq!(waiting["requestIds"], json!([asked.request]));
    let since = waiting["waitingSince"].as_u64().unwrap();
    assert!(since >= waiting["startedAt"].as_u64().unwrap() && waiting["silentForMs"].is_u64());
    until("silence grows", async || {
        let turn = asked.daemon.turn(&asked.session, &asked.prompt).await.json();
        assert_eq!(turn["waitingSince"], since);
        turn["silentForMs"].as_u64().unwrap() > waiting["silentForMs"].as_u64().unwrap()
    })
    .await;
    let current = asked.daemon.get(&format!("/session/{}/turns/current", asked.session)).await.json();
    assert_eq!(current["requestIds"], json!([asked.request]));
    let queued = asked.daemon.prompt(&asked.session, "next").await["promptId"].as_str().unwrap().to_owned();
    let queued = asked.daemon.turn(&asked.session, &queued).await.json();
    assert_eq!((queued.get("waitingFor"), queued.get("silentForMs")), (None, None), "it only waits its turn");
    let mut stream = asked.daemon.events(&asked.session).await;
    asked.vote(0, None, &selected("yes")).await;
    stream.until(&["turn_complete"]).await;
    let over = asked.daemon.turn(&asked.session, &asked.prompt).await.json();
    for field in ["waitingFor", "waitingSince", "requestIds", "silentForMs"] {
        assert_eq!(over.get(field), None, "{field}");
    }
}
