//! Agents that say words outside of their turns: of no answer of theirs can anybody say whose it is, or that it is the whole.

use serde_json::{Value, json};

use super::crashes::doomed;
use super::{all_events, body, ended, submit, submit_with, told, with, world};
use crate::world::World;

/// It was not given as an answer, and says why.
fn withheld(over: &Value, evidence: &str) {
    assert_eq!(told(over), "indeterminate unattributable yes", "{over}");
    assert_eq!((&over["detail"], &over["terminal"]["evidence"]), (&json!("stray_words"), &json!(evidence)), "{over}");
    assert_eq!(over["terminal"]["final_message"], Value::Null);
}

#[test]
fn scenario_53_an_answer_that_its_agent_goes_on_after_is_not_given_as_the_final_message_nor_is_any_later_one() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "hasty");
    withheld(&ended(&mut world, "X"), "rpc_response");
    submit(&mut world, &session, "Y", "hello");
    withheld(&ended(&mut world, "Y"), "rpc_response");
    submit(&mut world, &session, "Z", "max_tokens");
    assert_eq!(told(&ended(&mut world, "Z")), "aborted max_tokens yes", "what gives no text needs no certainty");
    let other = world.session();
    submit(&mut world, &other, "V", "hello");
    assert_eq!(ended(&mut world, "V")["terminal"]["final_message"], "echo: hello");
    all_events(&mut world, 4);
}

#[test]
fn scenario_53_a_request_behind_a_plain_prompt_waits_for_what_its_agent_says_late() {
    for queue in [false, true] {
        let mut world = world();
        let session = world.session();
        let prompt = world.prompt(&session, if queue { "hasty 200" } else { "hasty" });
        if !queue {
            world.settle(&session, &prompt);
        }
        submit_with(&mut world, &session, &with(body("X", "hello"), &json!({ "queue": queue })));
        withheld(&ended(&mut world, "X"), "rpc_response");
    }
}

#[test]
fn scenario_53_what_was_heard_by_a_daemon_that_was_killed_is_not_forgotten_with_it() {
    let mut world = World::journaled(&["--linger-ms", "8000"]);
    let session = world.session();
    let prompt = world.prompt(&session, "hasty");
    world.settle(&session, &prompt);
    submit(&mut world, &session, "X", "slow 1500");
    world.kill_daemon();
    withheld(&ended(&mut world, "X"), "transcript_exact");
    // The next process of the agent has a clean name.
    world.load(&session);
    submit(&mut world, &session, "Y", "hello");
    assert_eq!(ended(&mut world, "Y")["terminal"]["final_message"], "echo: hello");
}

#[test]
fn scenario_53_what_is_said_late_while_there_is_no_daemon_is_heard_by_the_host() {
    let mut world = World::journaled(&["--linger-ms", "8000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "hasty 1500");
    world.kill_daemon();
    withheld(&ended(&mut world, "X"), "transcript_exact");
}

#[test]
fn scenario_53_killed_around_the_stage_an_answer_is_withheld_all_the_same() {
    for (plan, evidence) in [("before:stage=kill", "transcript_exact"), ("after:stage=kill", "rpc_response")] {
        let (mut world, session) = doomed(plan);
        submit(&mut world, &session, "X", "hasty 100");
        world.until_killed();
        withheld(&ended(&mut world, "X"), evidence);
        all_events(&mut world, 1);
    }
}

#[test]
fn scenario_53_an_agent_that_introduces_itself_completes_no_request_and_does_the_work_of_each() {
    let mut world = World::journaled_agent(&["--greeting", "Hello, I am new here."], &["--linger-ms", "100"]);
    for (id, text) in [("X", "hello"), ("Y", "hello")] {
        let session = world.session();
        submit(&mut world, &session, id, text);
        withheld(&ended(&mut world, id), "rpc_response");
        assert!(world.transcript(&session).contains("echo: hello"));
    }
    all_events(&mut world, 2);
}
