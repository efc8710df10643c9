//! Commands of a user beside the conversation.

use super::*;
use crate::command::Ended;

const RUN: &str = r#"{"id":7,"method":"turnd/shell","params":{"command":"make","originatorClientId":"c"}}"#;

fn ended(output: &str) -> Input {
    Input::CommandEnded(Ok(Ended { exit_code: Some(3), output: output.to_owned(), ..Ended::default() }))
}

/// A recorded session whose agent takes context with its prompts.
fn attentive() -> World {
    let mut world = World::new(Mode::Recorded, None);
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(r#"{"id":0,"result":{"agentCapabilities":{"promptCapabilities":{"embeddedContext":true}}}}"#);
    world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
    world.agent(r#"{"id":1,"result":{"sessionId":"ses"}}"#);
    world
}

/// The content that the agent is handed with the prompt `p<id>`.
fn handed(world: &mut World, id: u64) -> serde_json::Value {
    let effects = world.input(Input::Daemon(message(&prompt_line(id))));
    let Some(Effect::ToAgent(line)) = effects.last() else { panic!("{effects:?}") };
    let params: serde_json::Value = serde_json::from_slice(line).unwrap();
    world.agent(&format!(r#"{{"id":{id},"result":{{"stopReason":"end_turn"}}}}"#));
    params["params"]["prompt"].clone()
}

/// What the daemon is told of the end of the command, behind its note.
fn told(shown: &str) -> serde_json::Value {
    let result = shown.strip_prefix("write user_shell_result; daemon< #7 ").unwrap();
    serde_json::from_str(result).unwrap()
}

#[test]
fn a_command_is_noted_before_it_runs_and_its_end_before_it_is_told() {
    let mut world = World::ready();
    assert_eq!(world.daemon(RUN), "write user_shell_command; run make");
    let result = serde_json::json!({"exitCode": 3, "signal": null, "output": "out\n", "aborted": false});
    assert_eq!(told(&world.shown(ended("out\n"))), result);
}

#[test]
fn one_command_runs_at_a_time_also_beside_a_turn() {
    let mut world = World::ready();
    world.prompt(2);
    world.daemon(RUN);
    assert_eq!(
        world.daemon(r#"{"id":8,"method":"turnd/shell","params":{"command":"x"}}"#),
        "daemon< #8 error shell_in_progress"
    );
    world.input(ended(""));
    assert_eq!(
        world.daemon(r#"{"id":9,"method":"turnd/shell","params":{"command":"x"}}"#),
        "write user_shell_command; run x"
    );
}

#[test]
fn a_command_that_cannot_begin_says_so_and_makes_room() {
    let mut world = World::ready();
    world.daemon(RUN);
    let failed = Input::CommandEnded(Err("no sh".to_owned()));
    assert_eq!(world.shown(failed), "write user_shell_result; daemon< #7 error shell_unstartable");
    assert_eq!(world.daemon(RUN), "write user_shell_command; run make");
    assert_eq!(world.daemon(r#"{"id":8,"method":"turnd/shell","params":{}}"#), "daemon< #8 error -32602");
}

#[test]
fn the_end_of_a_session_ends_its_command_first_and_what_it_gave_is_noted() {
    let mut world = World::ready();
    world.daemon(RUN);
    assert_eq!(world.daemon(r#"{"method":"turnd/close","params":{}}"#), "stop command; end");
    let aborted = Input::CommandEnded(Ok(Ended { is_aborted: true, output: "half".into(), ..Ended::default() }));
    let result = serde_json::json!({"exitCode": null, "signal": null, "output": "half", "aborted": true});
    assert_eq!(told(&world.shown(aborted)), result);
}

#[test]
fn an_agent_is_not_replaced_under_a_command_that_goes_on() {
    let mut world = World::replaceable();
    world.prompt(2);
    world.daemon(RUN);
    let replace = r#"{"id":8,"method":"turnd/replace_agent","params":{"sessionId":"s","cwd":"/ws"}}"#;
    assert_eq!(world.daemon(replace), "stop command; replace");
}

#[test]
fn a_native_agent_keeps_its_own_notes() {
    let mut world = World::new(Mode::Native, None);
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    assert_eq!(world.daemon(RUN), "run make");
    assert!(world.shown(ended("")).starts_with("daemon< #7"));
}

#[test]
fn an_agent_that_takes_context_hears_of_it_once_in_front_of_the_next_prompt() {
    let mut world = attentive();
    world.daemon(RUN);
    world.input(ended("out\n"));
    let content = handed(&mut world, 2);
    assert_eq!((&content[0]["type"], &content[1]["text"]), (&"resource".into(), &"go".into()));
    let text = content[0]["resource"]["text"].as_str().unwrap();
    assert!(text.contains("nothing is asked here") && text.ends_with("$ make\nout\n\nIt ended with exit code 3.\n"));
    assert_eq!(handed(&mut world, 3), serde_json::json!([{"type": "text", "text": "go"}]));
}

#[test]
fn any_other_agent_is_handed_the_prompt_as_it_came() {
    let mut world = World::ready();
    world.daemon(RUN);
    world.input(ended("out\n"));
    assert_eq!(handed(&mut world, 2), serde_json::json!([{"type": "text", "text": "go"}]));
}

#[test]
fn a_refused_prompt_leaves_it_for_the_next() {
    let mut world = attentive();
    world.daemon(RUN);
    world.input(ended("out\n"));
    world.writable = false;
    world.prompt(2);
    world.writable = true;
    assert_eq!(handed(&mut world, 3)[0]["type"], "resource");
}

#[test]
fn of_much_output_the_newest_is_told() {
    let mut world = attentive();
    for (at, output) in ["first", "second", "third"].into_iter().enumerate() {
        world.daemon(&RUN.replace('7', &format!("7{at}")));
        world.input(ended(&format!("{output} {}", "x".repeat(crate::limits::HEARD_BYTES_MAX / 2 - 1_000))));
    }
    let content = handed(&mut world, 2);
    let text = content[0]["resource"]["text"].as_str().unwrap();
    assert!(!text.contains("first") && text.contains("second") && text.contains("third"));
}
