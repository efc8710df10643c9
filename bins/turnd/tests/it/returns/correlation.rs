//! A turn that is not exactly the request's own never completes it.

use serde_json::json;

use super::crashes::doomed;
use super::{all_events, body, ended, events, get, post, sent, submit, submit_with, told, with, world};
use crate::world::World;

#[test]
fn scenario_48_what_the_session_says_later_never_takes_the_place_of_what_was_lost() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "slow 60000");
    sent(&world, 1);
    world.kill_everything();
    let lost = ended(&mut world, "X");
    assert_eq!(told(&lost), "indeterminate daemon_lost yes");
    world.load(&session);
    submit(&mut world, &session, "Y", "hello");
    assert_eq!(ended(&mut world, "Y")["terminal"]["final_message"], "echo: hello");
    assert_eq!(get(&mut world, "X")["terminal"], lost["terminal"]);
    all_events(&mut world, 2);
}

#[test]
fn scenario_43_a_process_of_another_life_of_the_daemon_is_another_incarnation() {
    let mut world = world();
    let session = world.session();
    let before = submit(&mut world, &session, "X", "hello");
    ended(&mut world, "X");
    world.kill_everything();
    world.load(&session);
    let expected = with(body("Y", "hello"), &json!({ "expectedIncarnation": before["incarnation"]["id"] }));
    let (status, refusal) = post(&mut world, &session, &expected);
    assert_eq!((status, &refusal["code"]), (409, &json!("stale_incarnation")), "{refusal}");
    let after = submit(&mut world, &session, "Y", "hello");
    assert_ne!(after["incarnation"]["id"], before["incarnation"]["id"]);
    assert_eq!(after["incarnation"]["epoch"], before["incarnation"]["epoch"].as_u64().unwrap() + 1);
}

#[test]
fn scenario_43_two_lives_that_end_one_after_the_other_before_the_mark_of_their_dispatch_have_nothing_bound() {
    let (mut world, first) = doomed("before:written=kill");
    let mut incarnations = Vec::new();
    for (id, session) in [("X", Some(first)), ("Y", None)] {
        let session = session.unwrap_or_else(|| world.session());
        let path = format!("/session/{session}/return-requests");
        assert_eq!(world.connect().try_call("POST", &path, &body(id, "hello").to_string()), None);
        world.restart_failing("before:written=kill");
        let over = ended(&mut world, id);
        assert_eq!(told(&over), "indeterminate crash_in_dispatch maybe", "{over}");
        assert_eq!((&over["terminal"]["evidence"], &over["terminal"]["final_message"]), (&json!(null), &json!(null)));
        assert!(world.transcript(&session).contains("echo: hello"), "the turn was run, and recorded as such");
        incarnations.push(over["incarnation"].clone());
    }
    assert_ne!(incarnations[0]["id"], incarnations[1]["id"]);
    assert_eq!(incarnations[1]["epoch"].as_u64(), incarnations[0]["epoch"].as_u64().map(|epoch| epoch + 1));
    all_events(&mut world, 2);
    sent(&world, 2);
}

#[test]
fn scenario_46_a_turn_whose_agent_was_asked_something_else_as_it_says_gives_no_answer() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "misquote");
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "indeterminate prompt_mismatch yes", "{over}");
    assert_eq!(over["terminal"]["final_message"], json!(null));
    submit(&mut world, &session, "Y", "quote");
    let over = ended(&mut world, "Y");
    assert_eq!(told(&over), "completed - yes", "{over}");
    all_events(&mut world, 2);
}

#[test]
fn scenario_47_a_turn_in_which_the_agent_has_heard_its_user_twice_gives_no_answer() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "quote 2");
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "indeterminate extra_user_message yes", "{over}");
    assert_eq!(over["terminal"]["final_message"], json!(null));
    all_events(&mut world, 1);
}

#[test]
fn scenario_53_no_request_is_taken_queued_or_not_while_the_agent_owes_an_answer_to_a_released_prompt() {
    let mut world = World::journaled(&["--linger-ms", "100", "--settle-grace-ms", "100"]);
    let session = world.session();
    let released = json!({ "prompt": [{ "type": "text", "text": "deaf" }], "deadlineMs": 50 }).to_string();
    let (status, _) = world.call("POST", &format!("/session/{session}/prompt"), &released);
    assert_eq!(status, 202);
    crate::world::until("it is released", || {
        let (status, refusal) = post(&mut world, &session, &body("X", "hello"));
        (status == 409 && refusal["code"] == "session_tainted").then_some(())
    });
    let queued = with(body("Y", "hello"), &json!({ "queue": true }));
    let (status, refusal) = post(&mut world, &session, &queued);
    assert_eq!((status, &refusal["code"]), (409, &json!("session_tainted")), "{refusal}");
    assert_eq!(events(&mut world, 0).len(), 0);
    // A plain prompt behind it makes the host replace the agent; then the session takes requests again.
    let prompt = world.prompt(&session, "hello");
    world.settle(&session, &prompt);
    submit_with(&mut world, &session, &queued);
    assert_eq!(ended(&mut world, "Y")["terminal"]["final_message"], "echo: hello");
}

#[test]
fn scenario_53_pieces_of_a_released_turn_never_get_into_the_answer_to_a_request() {
    let mut world = World::journaled(&["--linger-ms", "100", "--settle-grace-ms", "100"]);
    for (id, is_before) in [("before", true), ("behind", false)] {
        let session = world.session();
        world.prompt(&session, "hang");
        // It goes on to speak long after its caller was let go, for which the time begins when the one before it is cancelled.
        let text = [json!({ "type": "text", "text": "deaf 600000" })];
        let released = json!({ "prompt": text, "runDeadlineMs": 300 }).to_string();
        assert_eq!(world.call("POST", &format!("/session/{session}/prompt"), &released).0, 202);
        let queued = with(body(id, "slow 300"), &json!({ "queue": true }));
        if is_before {
            submit_with(&mut world, &session, &queued);
        }
        assert_eq!(world.call("POST", &format!("/session/{session}/cancel"), "{}").0, 204);
        if !is_before {
            crate::world::until("it is released", || {
                (post(&mut world, &session, &body("refused", "hello")).1["code"] == "session_tainted").then_some(())
            });
            // Only a plain prompt has the host replace the agent.
            let prompt = world.prompt(&session, "hello");
            assert_eq!(world.settle(&session, &prompt)["resultText"], "echo: hello");
            submit_with(&mut world, &session, &queued);
        }
        let over = ended(&mut world, id);
        if is_before {
            // The process that it was registered for is gone, and to the next one it is not sent.
            assert_eq!(told(&over), "delivery_failed refused_before_dispatch no", "{over}");
            assert_eq!(over["detail"], "incarnation_changed");
        } else {
            assert_eq!(told(&over), "completed - yes", "{over}");
            assert_eq!(over["terminal"]["final_message"], "1 2 3 4 5 6 done");
        }
    }
}
