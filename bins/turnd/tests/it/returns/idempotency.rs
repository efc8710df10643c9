//! One id is one prompt, whoever sends it how often.

use std::thread;

use serde_json::{Value, json};

use super::{all_events, body, ended, get, post, reached, sent, submit, told, with, world};

#[test]
fn scenario_01_a_new_id_is_taken_and_its_prompt_sent_once() {
    let mut world = world();
    let session = world.session();
    let receipt = submit(&mut world, &session, "X", "hang");
    assert_eq!((&receipt["reply_pending"], &receipt["replayed"]), (&json!(true), &json!(false)), "{receipt}");
    assert_eq!((&receipt["state"], &receipt["input_written"]), (&json!("submitted"), &json!("yes")), "{receipt}");
    assert_eq!(receipt["session_id"], session);
    assert!(receipt["incarnation"]["pid"].is_u64() && receipt["armed_cursor"]["event_id"].is_u64(), "{receipt}");
    sent(&world, 1);
    let id = get(&mut world, "X")["request_id"].clone();
    assert_eq!(id, "X");
}

#[test]
fn scenario_02_the_same_again_while_it_runs_is_answered_with_its_receipt() {
    let mut world = world();
    let session = world.session();
    let first = submit(&mut world, &session, "X", "hang");
    let (status, again) = post(&mut world, &session, &body("X", "hang"));
    assert_eq!((status, &again["replayed"], &again["prompt_id"]), (200, &json!(true), &first["prompt_id"]), "{again}");
    sent(&world, 1);
}

#[test]
fn scenario_03_the_same_again_when_it_is_over_is_answered_with_the_final_message() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "hello");
    let over = ended(&mut world, "X");
    let (status, again) = post(&mut world, &session, &body("X", "hello"));
    assert_eq!((status, &again["replayed"], &again["state"]), (200, &json!(true), &json!("completed")));
    assert_eq!(again["terminal"]["final_message"], "echo: hello");
    assert_eq!(again["terminal"], over["terminal"]);
    sent(&world, 1);
}

/// What was sent under an id is compared to the last byte, and with all that it was sent with.
fn is_refused(other: &Value) {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "hello");
    ended(&mut world, "X");
    let (status, refusal) = post(&mut world, &session, other);
    assert_eq!((status, &refusal["code"]), (422, &json!("request_id_reused")), "{refusal}");
    assert_eq!(refusal["input_written"], "maybe", "what was sent under that id is not said");
    assert!(refusal.get("state").is_none(), "{refusal}");
    sent(&world, 1);
}

#[test]
fn scenario_04_one_byte_more_is_other_input() {
    is_refused(&body("X", "hello "));
}

#[test]
fn scenario_05_another_timeout_is_other_input() {
    is_refused(&with(body("X", "hello"), &json!({ "timeoutMs": 60_000 })));
}

#[test]
fn scenario_06_of_fifty_at_once_one_is_new_and_all_have_one_receipt() {
    let mut world = world();
    let session = world.session();
    let path = format!("/session/{session}/return-requests");
    let text = body("X", "hang").to_string();
    let answers: Vec<(u16, Value)> = thread::scope(|scope| {
        let post = || {
            let mut connection = world.connect();
            let (path, text) = (&path, &text);
            scope.spawn(move || {
                let (status, body) = connection.try_call("POST", path, text).unwrap();
                (status, serde_json::from_str(&body).unwrap())
            })
        };
        let threads: Vec<_> = (0..50).map(|_| post()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let new = answers.iter().filter(|(status, _)| *status == 202).count();
    let known = answers.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!((new, known), (1, 49), "{answers:?}");
    let prompt = &answers[0].1["prompt_id"];
    assert!(answers.iter().all(|(_, receipt)| receipt["prompt_id"] == *prompt));
    sent(&world, 1);
    assert_eq!(world.get("/return-requests")["requests"].as_array().unwrap().len(), 1);
}

#[test]
fn of_several_at_once_nobody_is_promised_a_request_that_another_ones_refusal_takes_away() {
    let mut world = world();
    let session = world.session();
    let path = format!("/session/{session}/return-requests");
    for round in 0..30 {
        // Four ids, of which the session takes one at a time, each asked for by four callers.
        let answers: Vec<(String, u16, Value)> = thread::scope(|scope| {
            let post = |number: usize| {
                let (mut connection, path) = (world.connect(), &path);
                scope.spawn(move || {
                    let id = format!("X{round}-{}", number % 4);
                    let (status, answer) = connection.try_call("POST", path, &body(&id, "hello").to_string()).unwrap();
                    (id, status, serde_json::from_str(&answer).unwrap())
                })
            };
            let threads: Vec<_> = (0..16).map(post).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (id, status, answer) in answers {
            if status == 409 {
                assert_eq!((&answer["code"], &answer["input_written"]), (&json!("busy"), &json!("no")));
            } else {
                assert!(status == 200 || status == 202, "{status} {answer}");
                assert_eq!(get(&mut world, &id)["prompt_id"], answer["prompt_id"], "{id}");
            }
        }
    }
}

#[test]
fn scenario_09_what_was_refused_leaves_the_id_free() {
    let mut world = world();
    let session = world.session();
    let running = world.prompt(&session, "hang");
    let (status, refusal) = post(&mut world, &session, &body("X", "hello"));
    assert_eq!((status, &refusal["code"]), (409, &json!("busy")), "{refusal}");
    assert_eq!(world.call("GET", "/return-requests/X", "").0, 404);
    world.call("POST", &format!("/session/{session}/cancel"), "{}");
    world.settle(&session, &running);
    submit(&mut world, &session, "X", "hello");
    assert_eq!(ended(&mut world, "X")["state"], "completed");
    assert_eq!(all_events(&mut world, 1).len(), 1);
}

#[test]
fn scenario_10_what_was_not_delivered_is_not_sent_again() {
    let mut world = world();
    let session = world.session();
    let running = world.prompt(&session, "hang");
    let queued = with(body("X", "hello"), &json!({ "queue": true }));
    super::submit_with(&mut world, &session, &queued);
    let receipt = get(&mut world, "X");
    let path = format!("/session/{session}/pending-prompts/{}", receipt["prompt_id"].as_str().unwrap());
    assert_eq!(world.call("DELETE", &path, "").0, 200);
    let over = reached(&mut world, "X", "delivery_failed");
    assert_eq!((&over["code"], &over["input_written"]), (&json!("refused_before_dispatch"), &json!("no")));
    world.call("POST", &format!("/session/{session}/cancel"), "{}");
    world.settle(&session, &running);
    let (status, again) = post(&mut world, &session, &queued);
    assert_eq!((status, &again["state"]), (200, &json!("delivery_failed")), "{again}");
    // Whatever was sent before this one has been heard with it.
    submit(&mut world, &session, "Y", "hello");
    ended(&mut world, "Y");
    sent(&world, 2);
}

#[test]
fn an_id_is_made_for_whoever_names_none_and_no_id_is_a_word_of_our_paths() {
    let mut world = world();
    let session = world.session();
    let nameless = json!({ "prompt": [{ "type": "text", "text": "hello" }] });
    let (status, receipt) = post(&mut world, &session, &nameless);
    let id = receipt["request_id"].as_str().unwrap().to_owned();
    assert_eq!((status, id.len(), id.as_bytes()[14]), (202, 36, b'7'), "a UUID of version 7: {id}");
    assert_eq!(ended(&mut world, &id)["terminal"]["final_message"], "echo: hello");
    for id in ["events", "stream", "consumers", "", "a b", &"x".repeat(129)] {
        let (status, refusal) = post(&mut world, &session, &body(id, "hello"));
        assert_eq!((status, &refusal["code"]), (400, &json!("invalid_request_id")), "{id}");
        assert_eq!(refusal["input_written"], "no");
    }
}

#[test]
fn the_prompt_id_of_a_request_whose_daemon_died_before_its_admission_is_no_plain_prompts() {
    let mut world = world();
    let session = world.session();
    let first = world.prompt(&session, "hello");
    world.settle(&session, &first);
    world.restart_failing("after:register=kill");
    world.load(&session);
    let (mut connection, path) = (world.connect(), format!("/session/{session}/return-requests"));
    assert_eq!(connection.try_call("POST", &path, &body("X", "hello").to_string()), None);
    world.until_killed();
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "indeterminate crash_before_submitted no");
    world.load(&session);
    for _life in 0..2 {
        let plain = json!({ "promptId": over["prompt_id"], "prompt": body("X", "hello")["prompt"] });
        let (status, refusal) = world.call("POST", &format!("/session/{session}/prompt"), &plain.to_string());
        assert_eq!((status, &refusal["code"]), (409, &json!("prompt_id_conflict")), "{refusal}");
        let turn = format!("/session/{session}/turns/{}", over["prompt_id"].as_str().unwrap());
        assert_eq!(world.call("GET", &turn, "").0, 404, "nobody's turn is found under it");
        world.kill_everything();
        world.load(&session);
    }
    sent(&world, 1);
}
