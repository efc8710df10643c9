//! What is taken, what waits, and what is refused and leaves nothing behind.

use std::thread;

use serde_json::{Value, json};

use super::{
    all_events, body, cancel, ended, events, get, is_refused, post, prompts, reached, sent, submit, submit_with, told,
    with, world,
};
use crate::world::{World, until};

#[test]
fn scenario_12_a_session_with_a_turn_takes_none_without_a_queue_and_nothing_is_stored() {
    let mut world = world();
    let session = world.session();
    world.prompt(&session, "hang");
    is_refused(&mut world, &session, &body("X", "hello"), 409, "busy");
    assert_eq!(world.call("GET", "/return-requests/X", "").0, 404);
    assert_eq!(world.get("/return-requests")["requests"], json!([]));
    assert_eq!(events(&mut world, 0), Vec::<Value>::new());
}

#[test]
fn scenario_13_a_queued_one_is_sent_behind_the_turn_that_ran_and_that_is_its_baseline() {
    let mut world = world();
    let session = world.session();
    let first = world.prompt(&session, "hang");
    let receipt = submit_with(&mut world, &session, &with(body("X", "hello"), &json!({ "queue": true })));
    assert_eq!((&receipt["state"], &receipt["input_written"]), (&json!("registered"), &json!("no")), "{receipt}");
    assert_eq!(receipt["phase"], "admitted");
    world.call("POST", &format!("/session/{session}/cancel"), "{}");
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "completed - yes");
    assert_eq!(over["baseline"], json!({ "turn": 1, "prompt_id": first }));
    sent(&world, 2);
}

#[test]
fn scenario_14_another_process_than_the_one_that_is_wanted_is_sent_nothing() {
    let mut world = world();
    let session = world.session();
    let wanting =
        |id: &str, incarnation: &Value| with(body(id, "hello"), &json!({ "expectedIncarnation": incarnation }));
    is_refused(&mut world, &session, &wanting("X", &json!("old")), 409, "stale_incarnation");
    assert_eq!(world.call("GET", "/return-requests/X", "").0, 404);
    let receipt = submit(&mut world, &session, "Y", "hello");
    ended(&mut world, "Y");
    let again = submit_with(&mut world, &session, &wanting("X", &receipt["incarnation"]["id"]));
    assert_eq!(again["incarnation"], receipt["incarnation"]);
    sent(&world, 2);
}

#[test]
fn scenario_15_a_fresh_session_has_no_baseline() {
    let mut world = world();
    let session = world.session();
    let receipt = submit(&mut world, &session, "X", "hello");
    assert_eq!(receipt["baseline"], json!({ "turn": 0, "prompt_id": null }));
    assert_eq!(ended(&mut world, "X")["state"], "completed");
}

/// What the agents have heard of prompts, by their text, and that they have answered one, in this order.
fn turns(world: &World) -> Vec<String> {
    let word = |line: Value| match line["heard"]["method"].as_str() {
        Some("session/prompt") => Some(line["heard"]["params"]["prompt"][0]["text"].as_str().unwrap().to_owned()),
        Some(_) => None,
        None => line["said"].get("result").map(|_| "answered".to_owned()),
    };
    world.journal().into_iter().filter_map(word).collect()
}

#[test]
fn scenario_16_an_agent_that_owes_an_answer_is_sent_no_request_until_it_has_given_it_and_then_the_same_one() {
    // Nobody replaces an agent that does not stop.
    let mut world = World::journaled(&["--linger-ms", "100", "--settle-grace-ms", "600000"]);
    let session = world.session();
    let agent = world.cast(&session).agent;
    world.signal(&[agent], "STOP");
    world.until_stopped(agent);
    let owed = json!({ "prompt": [{ "type": "text", "text": "deaf 100" }], "runDeadlineMs": 50 }).to_string();
    let (status, receipt) = world.call("POST", &format!("/session/{session}/prompt"), &owed);
    assert_eq!(status, 202, "{receipt}");
    let prompt = receipt["promptId"].as_str().unwrap();
    assert_eq!(world.settle(&session, prompt)["error"]["code"], "prompt_deadline_exceeded");
    let request = body("X", "hello");
    for request in [&request, &with(request.clone(), &json!({ "queue": true })), &request] {
        is_refused(&mut world, &session, request, 409, "session_tainted");
        assert_eq!(world.call("GET", "/return-requests/X", "").0, 404);
    }
    world.signal(&[agent], "CONT");
    let receipt = until("the request is taken", || match post(&mut world, &session, &request) {
        (202, receipt) => Some(receipt),
        (status, refusal) => {
            assert_eq!((status, &refusal["code"]), (409, &json!("session_tainted")), "{refusal}");
            None
        }
    });
    assert_eq!(receipt["incarnation"]["pid"], agent, "nobody has taken its place");
    assert_eq!(receipt["baseline"], json!({ "turn": 1, "prompt_id": prompt }));
    let over = ended(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["final_message"]), ("completed - yes", &json!("echo: hello")));
    assert_eq!(turns(&world), ["deaf 100", "answered", "hello", "answered"]);
    all_events(&mut world, 1);
}

#[test]
fn scenario_19_what_the_agent_answers_with_an_error_is_not_completed() {
    let mut world = world();
    let session = world.session();
    for (id, text, expected) in [
        ("unknown", "reject -32601", "delivery_failed rejected_by_agent yes"),
        ("invalid", "reject -32602", "delivery_failed rejected_by_agent yes"),
        ("nobody", "reject -32000", "delivery_failed rejected_by_agent yes"),
        ("begun", "reject -32602 but it had begun", "aborted turn_error yes"),
        ("other", "reject -32001", "aborted turn_error yes"),
        ("fail", "fail", "aborted turn_error yes"),
    ] {
        submit(&mut world, &session, id, text);
        let over = ended(&mut world, id);
        assert_eq!(told(&over), expected, "{text}: {over}");
        assert!(over["terminal"].get("final_message").is_none(), "{over}");
        let is_auth = text == "reject -32000";
        assert_eq!(over["detail"], if is_auth { json!("auth") } else { json!(null) }, "{text}");
    }
    all_events(&mut world, 6);
}

#[test]
fn a_request_that_is_none_says_what_is_wrong_and_that_nothing_was_sent_if_its_id_can_be_read() {
    let mut world = world();
    let session = world.session();
    for (fields, code) in [
        (json!({ "prompt": "hello" }), "invalid_prompt"),
        (json!({ "prompt": [] }), "invalid_prompt"),
        (json!({ "requestId": 7 }), "invalid_request_id"),
        (json!({ "timeoutMs": -1 }), "invalid_timeout_ms"),
        (json!({ "timeoutMs": "1" }), "invalid_timeout_ms"),
        (json!({ "queue": "yes" }), "invalid_queue"),
        (json!({ "cancelOnTimeout": 1 }), "invalid_cancel_on_timeout"),
        (json!({ "cancelOnTimeout": true }), "cancel_on_timeout_without_timeout"),
        (json!({ "cancelOnTimeout": true, "timeoutMs": 0 }), "cancel_on_timeout_without_timeout"),
        (json!({ "expectedIncarnation": 1 }), "invalid_expected_incarnation"),
    ] {
        is_refused(&mut world, &session, &with(body("X", "hello"), &fields), 400, code);
    }
    let nowhere = "11111111-1111-4111-8111-111111111111";
    is_refused(&mut world, nowhere, &body("X", "hello"), 404, "session_not_found");
    let (status, refusal) = world.call("POST", &format!("/session/{session}/return-requests"), "{bad");
    assert_eq!((status, &refusal["code"], &refusal["input_written"]), (400, &json!("invalid_json"), &json!("maybe")));
    let (status, refusal) = world.call("POST", &format!("/session/{session}/return-requests"), "[]");
    assert_eq!((status, &refusal["code"], &refusal["input_written"]), (400, &json!("body_not_object"), &json!("no")));
    assert!(!world.base().join("journal.jsonl").exists() || prompts(&world) == 0);
}

#[test]
fn what_a_caller_says_that_means_nothing_here_is_refused_and_not_passed_over() {
    let mut world = world();
    let session = world.session();
    for (field, code) in
        [("promptId", "unknown_field"), ("request_id", "unknown_field"), ("timeout_ms", "unknown_field")]
    {
        is_refused(&mut world, &session, &with(body("X", "hello"), &json!({ field: "p" })), 400, code);
    }
    let path = format!("/session/{session}/return-requests");
    let sent_with_a_key = body("X", "hello").to_string();
    let keyed = world.connect().try_call_with("POST", &path, "idempotency-key: X\r\n", &sent_with_a_key);
    let (status, text) = keyed.unwrap();
    let refusal: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &refusal["code"]), (400, &json!("idempotency_key_not_taken")), "{refusal}");
    assert_eq!(refusal["input_written"], "no");
    assert_eq!(world.call("GET", "/return-requests/X", "").0, 404);
    submit(&mut world, &session, "X", "hang");
    for (method, path, sent, code) in [
        ("POST", "/return-requests/X/cancel", r#"{"requestId":"Y"}"#, "unknown_field"),
        ("POST", "/return-requests/X/cancel", r#"{"interupt":true}"#, "unknown_field"),
        ("POST", "/return-requests/X/cancel?interrupt=true", "{}", "unknown_parameter"),
        ("POST", "/return-requests/X/cancel", "null", "body_not_object"),
        ("PUT", "/return-requests/consumers/c", "[7]", "body_not_object"),
        ("PUT", "/return-requests/consumers/c", r#"{"ack":1}"#, "unknown_field"),
        ("PUT", "/return-requests/webhooks/w", r#"{"url":"http://127.0.0.1:9/","key":"k"}"#, "unknown_field"),
        ("GET", "/return-requests/X?waitMs=1", "", "unknown_parameter"),
        ("GET", "/return-requests?session_id=s", "", "unknown_parameter"),
        ("GET", "/return-requests/events?after=1&after=2", "", "repeated_parameter"),
        ("GET", "/return-requests/events?after=1&cursor=x", "", "cursor_beside_after"),
        ("GET", "/return-requests/stream?wait_ms=1", "", "unknown_parameter"),
    ] {
        let (status, refusal) = world.call(method, path, sent);
        assert_eq!((status, &refusal["code"]), (400, &json!(code)), "{method} {path}: {refusal}");
    }
    for (method, path, sent) in [
        ("POST", "/return-requests/X/cancel", r#"{"interrupt":false,"interrupt":true}"#),
        ("PUT", "/return-requests/consumers/c", r#"{"acked":0,"acked":0}"#),
        ("PUT", "/return-requests/webhooks/w", r#"{"url":"http://127.0.0.1:9/","url":"http://127.0.0.1:8/"}"#),
    ] {
        let (status, refusal) = world.call(method, path, sent);
        assert_eq!((status, &refusal["code"]), (400, &json!("repeated_field")), "{method} {path}: {refusal}");
    }
    let prompt = r#""prompt":[{"type":"text","text":"hello"}]"#;
    for (sent, written) in [
        (format!(r#"{{"requestId":"Y","requestId":"Z",{prompt}}}"#), "maybe"),
        (format!(r#"{{"requestId":"Y",{prompt},{prompt}}}"#), "no"),
        (format!(r#"{{"requestId":"X",{prompt},{prompt}}}"#), "yes"),
    ] {
        let (status, refusal) = world.call("POST", &format!("/session/{session}/return-requests"), &sent);
        let said = (status, &refusal["code"], &refusal["input_written"]);
        assert_eq!(said, (400, &json!("repeated_field"), &json!(written)), "{sent}: {refusal}");
    }
    let again = with(body("X", "hang"), &json!({ "promptId": "p" }));
    let (status, refusal) = post(&mut world, &session, &again);
    assert_eq!((status, &refusal["code"]), (400, &json!("unknown_field")), "{refusal}");
    assert_eq!((&refusal["input_written"], &refusal["state"]), (&json!("yes"), &json!("submitted")), "the id was sent");
    assert_eq!(get(&mut world, "X")["reply_pending"], true, "nothing of that was done");
    sent(&world, 1);
}

#[test]
fn sixty_four_wait_in_one_session_at_most() {
    let mut world = World::journaled(&["--linger-ms", "100", "--max-pending-prompts-per-session", "0"]);
    let session = world.session();
    submit(&mut world, &session, "first", "hang");
    let queued = |number: usize| with(body(&format!("q{number}"), "hello"), &json!({ "queue": true }));
    for number in 1..64 {
        submit_with(&mut world, &session, &queued(number));
    }
    is_refused(&mut world, &session, &queued(64), 429, "queue_full");
    assert_eq!(world.call("GET", "/return-requests/q64", "").0, 404);
    for number in 2..64 {
        assert_eq!(told(&cancel(&mut world, &format!("q{number}"), &json!({}))), "cancelled client_cancel no");
    }
    cancel(&mut world, "first", &json!({ "interrupt": true }));
    assert_eq!(ended(&mut world, "q1")["state"], "completed");
    sent(&world, 2);
    all_events(&mut world, 64);
}

#[test]
fn a_queue_that_is_full_refuses_the_same_id_alike_until_there_is_room() {
    let mut world = World::journaled(&["--linger-ms", "100", "--max-pending-prompts-per-session", "1"]);
    let session = world.session();
    submit(&mut world, &session, "first", "hang");
    let queued = with(body("X", "hello"), &json!({ "queue": true }));
    for _ in 0..20 {
        is_refused(&mut world, &session, &queued, 429, "queue_full");
        assert_eq!(world.call("GET", "/return-requests/X", "").0, 404, "the id is free when its caller hears of it");
    }
    cancel(&mut world, "first", &json!({ "interrupt": true }));
    until("there is room", || (post(&mut world, &session, &queued).0 == 202).then_some(()));
    assert_eq!(ended(&mut world, "X")["state"], "completed");
    sent(&world, 2);
}

#[test]
fn scenario_49_a_queued_one_that_somebody_takes_back_or_whose_session_is_closed_is_not_delivered() {
    let mut world = world();
    let session = world.session();
    world.prompt(&session, "hang");
    submit_with(&mut world, &session, &with(body("X", "hello"), &json!({ "queue": true })));
    assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
    let over = reached(&mut world, "X", "delivery_failed");
    assert_eq!(told(&over), "delivery_failed refused_before_dispatch no");
    assert_eq!(over["detail"], "session_closed");
    sent(&world, 1);
}

#[test]
fn scenario_49_a_session_that_is_being_rewound_takes_none_and_one_with_a_queued_request_is_not_rewound() {
    let mut world = world();
    let session = world.session();
    let first = world.prompt(&session, "hello");
    world.settle(&session, &first);
    let (path, to) = (format!("/session/{session}/rewind"), json!({ "promptId": first }).to_string());
    world.prompt(&session, "hang");
    let queued = with(body("X", "hello"), &json!({ "queue": true }));
    submit_with(&mut world, &session, &queued);
    let (status, refusal) = world.call("POST", &path, &to);
    assert_eq!((status, &refusal["code"]), (409, &json!("session_busy")));
    world.call("POST", &format!("/session/{session}/cancel"), "{}");
    assert_eq!(ended(&mut world, "X")["state"], "completed");
    // The next rewind has begun and cannot end: its host does nothing.
    world.signal_host(&session, "STOP");
    thread::scope(|scope| {
        let (mut connection, at) = (world.connect(), path.clone());
        // The looks below hold the session too, for a moment each.
        let mut rewind = move || connection.try_call("POST", &at, &to).unwrap().0;
        let rewinding = scope.spawn(move || until("the rewind is done", || (rewind() == 200).then_some(())));
        let queued = with(body("Y", "hello"), &json!({ "queue": true }));
        let elsewhere = json!({ "promptId": "nowhere" }).to_string();
        until("the session is held", || {
            (world.call("POST", &path, &elsewhere).1["code"] == "session_busy").then_some(())
        });
        is_refused(&mut world, &session, &queued, 409, "busy");
        assert_eq!(world.call("GET", "/return-requests/Y", "").0, 404);
        world.signal_host(&session, "CONT");
        rewinding.join().unwrap();
        submit_with(&mut world, &session, &queued);
    });
    assert_eq!(ended(&mut world, "Y")["state"], "completed");
}

#[test]
fn the_list_shows_requests_by_state_and_session_page_by_page() {
    let mut world = world();
    let (one, two) = (world.session(), world.session());
    for id in ["A", "B", "C"] {
        submit(&mut world, &one, id, "hello");
        ended(&mut world, id);
    }
    submit(&mut world, &two, "D", "hang");
    let ids = |world: &mut World, query: &str| {
        let page = world.get(&format!("/return-requests?{query}"));
        let ids: Vec<String> =
            page["requests"].as_array().unwrap().iter().map(|one| one["request_id"].as_str().unwrap().into()).collect();
        (ids.join(""), page["next_page"].clone())
    };
    assert_eq!(ids(&mut world, "").0, "DCBA");
    assert_eq!(ids(&mut world, "state=completed").0, "CBA");
    assert_eq!(ids(&mut world, &format!("session={two}")).0, "D");
    let (first, page) = ids(&mut world, "limit=3");
    assert_eq!(first, "DCB");
    assert_eq!(ids(&mut world, &format!("limit=3&page={}", page.as_str().unwrap())), ("A".into(), Value::Null));
    for (query, code) in [
        ("state=done", "invalid_state"),
        ("limit=0", "invalid_limit"),
        ("limit=1001", "invalid_limit"),
        ("page=x", "invalid_page"),
    ] {
        let (status, refusal) = world.call("GET", &format!("/return-requests?{query}"), "");
        assert_eq!((status, &refusal["code"]), (400, &json!(code)), "{query}");
    }
}

#[test]
fn the_list_shows_the_process_as_the_receipt_does_and_of_what_has_ended_no_phase() {
    let mut world = world();
    let session = world.session();
    let receipt = submit(&mut world, &session, "X", "hello");
    assert!(receipt["incarnation"]["pid"].is_u64(), "{receipt}");
    let over = ended(&mut world, "X");
    assert_eq!(over.get("phase"), Some(&Value::Null));
    let listed = world.get("/return-requests")["requests"][0].clone();
    assert_eq!((&listed["incarnation"], &listed["phase"]), (&receipt["incarnation"], &Value::Null), "{listed}");
}

#[test]
fn nobody_says_anything_into_the_turn_of_a_return_request() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "hang");
    let path = format!("/session/{session}/mid-turn-message");
    let (status, refusal) = world.call("POST", &path, r#"{"message":"and this"}"#);
    assert_eq!((status, &refusal["code"]), (409, &json!("return_request_running")));
    until("it still runs", || (get(&mut world, "X")["reply_pending"] == true).then_some(()));
}
