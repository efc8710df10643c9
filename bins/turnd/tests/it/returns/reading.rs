//! What an agent writes in other ways than it should: what can be read counts whatever is odd about it, and what cannot costs the answer.

use serde_json::{Value, json};

use super::crashes::doomed;
use super::{ended, submit, told, world};
use crate::world::World;

/// It was not given as an answer, and says why.
fn withheld(over: &Value, detail: &str, evidence: &str) {
    assert_eq!(told(over), "indeterminate unattributable yes", "{over}");
    assert_eq!((&over["detail"], &over["terminal"]["evidence"]), (&json!(detail), &json!(evidence)), "{over}");
    assert_eq!(over["terminal"]["final_message"], Value::Null);
}

#[test]
fn an_update_that_has_an_id_is_said_all_the_same() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "numbered");
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "completed - yes", "{over}");
    assert_eq!(over["terminal"]["final_message"], "first second third");
}

#[test]
fn an_answer_of_which_a_line_could_not_be_read_or_not_exactly_is_not_given_and_the_next_one_is() {
    let mut world = world();
    let session = world.session();
    for how in ["nan", "deep", "tab", "torn", "joined", "halves", "bytes"] {
        submit(&mut world, &session, how, &format!("garble {how}"));
        withheld(&ended(&mut world, how), "unreadable_words", "rpc_response");
    }
    submit(&mut world, &session, "Y", "hello");
    assert_eq!(ended(&mut world, "Y")["terminal"]["final_message"], "echo: hello");
}

#[test]
fn a_line_behind_an_answer_that_cannot_be_read_may_be_the_rest_of_it() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "garble late");
    withheld(&ended(&mut world, "X"), "unreadable_words", "rpc_response");
    submit(&mut world, &session, "Y", "hello");
    withheld(&ended(&mut world, "Y"), "stray_words", "rpc_response");
}

#[test]
fn a_request_whose_answer_cannot_be_read_ends_and_so_does_a_plain_prompt() {
    let mut world = world();
    let session = world.session();
    for how in ["nan", "deep", "tab", "batched", "joined"] {
        submit(&mut world, &session, how, &format!("mumble {how}"));
        withheld(&ended(&mut world, how), "unreadable_answer", "rpc_response");
    }
    let prompt = world.prompt(&session, "mumble nan");
    let settled = world.settle(&session, &prompt);
    assert_eq!(settled["error"]["code"], "unreadable_answer", "{settled}");
    submit(&mut world, &session, "Y", "hello");
    assert_eq!(told(&ended(&mut world, "Y")), "completed - yes");
    submit(&mut world, &session, "torn", "mumble torn");
    withheld(&ended(&mut world, "torn"), "unreadable_answer", "rpc_response");
    submit(&mut world, &session, "Z", "hello");
    withheld(&ended(&mut world, "Z"), "stray_words", "rpc_response");
}

#[test]
fn no_kill_makes_an_answer_whole_of_which_a_line_could_not_be_read() {
    for (plan, evidence) in [("before:stage=kill", "transcript_exact"), ("after:stage=kill", "rpc_response")] {
        for (text, detail) in [("garble slow", "unreadable_words"), ("mumble slow", "unreadable_answer")] {
            let (mut world, session) = doomed(plan);
            submit(&mut world, &session, "X", text);
            world.until_killed();
            withheld(&ended(&mut world, "X"), detail, evidence);
        }
    }
}

#[test]
fn a_host_without_a_daemon_notes_what_it_could_not_read() {
    let mut world = World::journaled(&["--linger-ms", "8000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "garble slow");
    world.kill_daemon();
    withheld(&ended(&mut world, "X"), "unreadable_words", "transcript_exact");
}
