//! How requests end: by their turns, their deadlines, their callers, and with what they run in.

use serde_json::{Value, json};

use super::{
    all_events, body, cancel, ended, events, get, interrupts, now_ms, post, reached, sent, submit, submit_with, told,
    with, world,
};
use crate::world::until;

#[test]
fn scenario_54_a_deadline_ends_a_request_that_nobody_asks_about_and_leaves_the_agent_alone() {
    let mut world = world();
    let session = world.session();
    submit_with(&mut world, &session, &with(body("X", "hang"), &json!({ "timeoutMs": 1_000 })));
    // Of the other session alone, until the deadline is long over.
    let other = world.session();
    let prompt = world.prompt(&other, "slow 2500");
    world.settle(&other, &prompt);
    let looked_at_ms = now_ms();
    let event = all_events(&mut world, 1).remove(0);
    assert_eq!(told(&event), "timed_out deadline yes");
    assert!(event["ended_at"].as_u64().unwrap() < looked_at_ms, "not only when somebody looks: {event}");
    let status = world.get(&format!("/session/{session}/status"));
    assert_eq!(status["hasActivePrompt"], true, "{status}");
    assert_eq!(interrupts(&world), 0);
}

#[test]
fn scenario_55_what_the_agent_says_after_the_deadline_changes_nothing_and_is_shown_beside_it() {
    let mut world = world();
    let session = world.session();
    submit_with(&mut world, &session, &with(body("X", "slow 3000"), &json!({ "timeoutMs": 2_000 })));
    let event = all_events(&mut world, 1).remove(0);
    let late = until("the late outcome is known", || {
        let receipt = get(&mut world, "X");
        receipt.get("late_outcome").is_some().then_some(receipt)
    });
    assert_eq!((told(&late), &late["terminal"]), ("timed_out deadline yes".to_owned(), &event));
    assert_eq!(late["late_outcome"]["state"], "completed", "{late}");
    assert!(!late.to_string().contains("final_message"), "{late}");
    assert_eq!(all_events(&mut world, 1), [event]);
}

#[test]
fn a_deadline_that_is_to_cancel_the_turn_tells_the_agent() {
    let mut world = world();
    let session = world.session();
    let asked = with(body("X", "hang"), &json!({ "timeoutMs": 1_000, "cancelOnTimeout": true }));
    submit_with(&mut world, &session, &asked);
    assert_eq!(told(&ended(&mut world, "X")), "timed_out deadline yes");
    until("the agent has heard it", || (interrupts(&world) == 1).then_some(()));
}

#[test]
fn a_deadline_in_the_queue_is_a_proof_that_nothing_was_sent() {
    let mut world = world();
    let session = world.session();
    world.prompt(&session, "hang");
    submit_with(&mut world, &session, &with(body("X", "hello"), &json!({ "queue": true, "timeoutMs": 50 })));
    assert_eq!(told(&ended(&mut world, "X")), "timed_out deadline no");
    world.call("POST", &format!("/session/{session}/cancel"), "{}");
    until("the session is idle", || {
        (world.get(&format!("/session/{session}/status"))["hasActivePrompt"] == false).then_some(())
    });
    sent(&world, 1);
}

#[test]
fn scenario_57_a_cancel_ends_the_record_and_interrupts_only_when_it_is_to() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "hang");
    let first = cancel(&mut world, "X", &json!({}));
    assert_eq!(told(&first), "cancelled client_cancel yes");
    assert_eq!(cancel(&mut world, "X", &json!({}))["terminal"], first["terminal"]);
    assert_eq!(interrupts(&world), 0);
    let other = world.session();
    submit(&mut world, &other, "Y", "hang");
    cancel(&mut world, "Y", &json!({ "interrupt": true }));
    until("the agent has heard it", || (interrupts(&world) == 1).then_some(()));
    cancel(&mut world, "Y", &json!({ "interrupt": true }));
    let late = until("its turn is over", || {
        let receipt = get(&mut world, "Y");
        receipt.get("late_outcome").is_some().then_some(receipt)
    });
    assert_eq!(told(&late), "cancelled client_cancel yes");
    assert_eq!(interrupts(&world), 1);
    all_events(&mut world, 2);
}

#[test]
fn scenario_59_each_stop_reason_has_its_end() {
    let mut world = world();
    let session = world.session();
    for (text, expected, reason) in [
        ("hello", "completed - yes", Some("end_turn")),
        ("refuse", "aborted refusal yes", Some("refusal")),
        ("max_tokens", "aborted max_tokens yes", Some("max_tokens")),
        ("stop max_turn_requests", "aborted max_turn_requests yes", Some("max_turn_requests")),
        ("stop unheard_of", "aborted unheard_of yes", Some("unheard_of")),
        ("fail", "aborted turn_error yes", None),
        ("empty", "indeterminate no_final_message yes", Some("end_turn")),
    ] {
        let id = text.replace(' ', "-");
        submit(&mut world, &session, &id, text);
        let over = ended(&mut world, &id);
        assert_eq!(told(&over), expected, "{text}: {over}");
        assert_eq!(over["terminal"].get("final_message").is_some(), text == "hello", "{over}");
        assert_eq!(over["terminal"]["stop_reason"], json!(reason), "{text}: it is passed on");
    }
}

#[test]
fn scenario_60_a_turn_that_says_nothing_at_last_is_no_completion() {
    let mut world = world();
    let session = world.session();
    for (id, text) in [("X", "empty"), ("Y", "steps think tool"), ("Z", "steps before tool think"), ("W", "steps tool")]
    {
        submit(&mut world, &session, id, text);
        let over = ended(&mut world, id);
        assert_eq!(told(&over), "indeterminate no_final_message yes", "{text}: {over}");
        assert_eq!(over["terminal"]["stop_reason"], "end_turn");
    }
}

#[test]
fn scenario_60_what_is_said_behind_the_last_tool_call_and_nothing_else_is_the_final_message() {
    let mut world = world();
    let session = world.session();
    for (id, text) in [("X", "steps before tool think after"), ("Y", "steps before tool between tool after think")] {
        submit(&mut world, &session, id, text);
        let over = ended(&mut world, id);
        assert_eq!(told(&over), "completed - yes", "{text}: {over}");
        assert_eq!(over["terminal"]["final_message"], "after", "{text}");
    }
}

/// What `printf '€%.0s' $(seq N) | sha256sum` says of so many of them.
const WIDE: [(&str, u64, &str); 4] = [
    ("fits", 349_525, "af4b2482bd257a40af1f4170bfe581d78a3263d1a529efcb37db3eb0990bae59"),
    ("cut", 349_526, "dd3c1bb167f61b8d3baad79c47f570e8fbf2b1bf78732fd77426759d1b30646d"),
    ("long", 1_048_576, "4d1f6d3170d583538651c7b56605dcd9a99e7bc50a0d3e9726f5fb1ce379e28b"),
    ("huge", 3_145_728, "129c22f1a5996fe40a0f6a5da8bb21591b8b21030e32a6ea573cb5230b4d1fec"),
];

#[test]
fn scenario_61_a_long_message_is_cut_between_two_characters_and_its_length_and_hash_are_the_whole_ones() {
    let mut world = world();
    let session = world.session();
    for (id, characters, sha256) in WIDE {
        submit(&mut world, &session, id, &format!("wide {characters}"));
        let event = ended(&mut world, id)["terminal"].clone();
        let message = event["final_message"].as_str().unwrap();
        let kept = characters.min((1 << 20) / 3);
        let described = (&event["final_bytes"], &event["final_truncated"], event["final_sha256"].as_str());
        assert_eq!(described, (&json!(3 * characters), &json!(kept < characters), Some(sha256)), "{id}");
        assert!(message.len() as u64 == 3 * kept && message.chars().all(|one| one == '€'), "{id}: {}", message.len());
    }
}

#[test]
fn scenario_62_a_daemon_that_is_ended_ends_its_requests() {
    let mut world = world();
    let (one, two) = (world.session(), world.session());
    submit(&mut world, &one, "X", "hang");
    world.prompt(&two, "hang");
    submit_with(&mut world, &two, &with(body("Y", "hello"), &json!({ "queue": true })));
    assert_eq!(world.terminate(), Some(0));
    world.start_again();
    let over = get(&mut world, "X");
    assert_eq!(told(&over), "aborted daemon_shutdown yes");
    assert!(over.get("late_evidence").is_none(), "that its own end was obeyed is no late outcome: {over}");
    assert_eq!(told(&get(&mut world, "Y")), "delivery_failed refused_before_dispatch no");
    all_events(&mut world, 2);
}

#[test]
fn another_clients_cancel_and_a_closed_session_abort_a_request() {
    let mut world = world();
    let (one, two) = (world.session(), world.session());
    submit(&mut world, &one, "X", "hang");
    world.call("POST", &format!("/session/{one}/cancel"), "{}");
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "aborted turn_cancelled yes");
    let said = [&over["terminal"]["stop_reason"], &over["terminal"]["evidence"]];
    assert_eq!(said, [&json!("cancelled"), &json!("rpc_response")], "the agent's own word is passed on: {over}");
    submit(&mut world, &two, "Y", "deaf");
    assert_eq!(world.call("DELETE", &format!("/session/{two}"), "").0, 204);
    assert_eq!(told(&ended(&mut world, "Y")), "aborted session_closed yes");
    let (status, again) = post(&mut world, &two, &body("Y", "deaf"));
    assert_eq!((status, &again["replayed"]), (200, &json!(true)), "whatever became of the session: {again}");
    assert!(again.get("late_evidence").is_none(), "{again}");
}

#[test]
fn a_turn_that_stops_because_its_session_is_closed_put_away_or_deleted_says_so_and_not_that_somebody_cancelled_it() {
    let mut world = world();
    for (id, path) in [("closed", None), ("archived", Some("/sessions/archive")), ("deleted", Some("/sessions/delete"))]
    {
        let session = world.session();
        submit(&mut world, &session, id, "hang");
        let (status, said) = match path {
            None => world.call("DELETE", &format!("/session/{session}"), ""),
            Some(path) => world.call("POST", path, &json!({ "sessionIds": [session] }).to_string()),
        };
        assert!(status == 204 || status == 200, "{said}");
        let over = ended(&mut world, id);
        assert_eq!(told(&over), "aborted session_closed yes", "{id}: {over}");
        assert!(over.get("late_evidence").is_none(), "{id}: {over}");
    }
    let session = world.session();
    submit(&mut world, &session, "cancelled", "deaf 300");
    world.call("POST", &format!("/session/{session}/cancel"), "{}");
    assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
    assert_eq!(told(&ended(&mut world, "cancelled")), "aborted turn_cancelled yes", "the cancel came first");
}

#[test]
fn scenario_45_an_agent_that_exits_leaves_nobody_to_say_how_its_turn_ended() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "die");
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "indeterminate agent_exited yes", "{over}");
    assert_eq!(events(&mut world, 0).len(), 1);
}

#[test]
fn what_waits_for_a_permission_says_so_and_is_not_ended_by_that() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "tool true");
    let waiting = until("it waits for a permission", || {
        let receipt = get(&mut world, "X");
        (receipt["waiting_on"] == "permission").then_some(receipt)
    });
    assert_eq!(waiting["reply_pending"], true);
    let question = crate::permission::question(&mut world, &session);
    let path = format!("/permission/{}", question["requestId"].as_str().unwrap());
    let vote = json!({ "outcome": { "outcome": "selected", "optionId": question["options"][0]["optionId"] } });
    assert_eq!(world.call("POST", &path, &vote.to_string()).0, 200);
    let over: Value = reached(&mut world, "X", "completed");
    assert!(over.get("waiting_on").is_none(), "{over}");
}
