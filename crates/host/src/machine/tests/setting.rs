//! Setting an agent again to what its predecessor was set to.

use super::*;

const MODES: &str = r#""modes":{"currentModeId":"default","availableModes":[]}"#;

fn set(id: u64, mode: &str) -> String {
    format!(r#"{{"id":{id},"method":"session/set_mode","params":{{"sessionId":"ses","modeId":"{mode}"}}}}"#)
}

fn ok(id: u64, result: &str) -> String {
    format!(r#"{{"id":{id},"result":{result}}}"#)
}

fn refused(id: u64) -> String {
    format!(r#"{{"id":{id},"error":{{"code":-32602,"message":"no such mode"}}}}"#)
}

/// An agent that can load and was set to `plan`, and to a model.
fn set_to_plan() -> World {
    let mut world = World::replaceable();
    assert_eq!(world.daemon(&set(50, "plan")), "agent< session/set_mode#50");
    assert_eq!(world.agent(&ok(50, "{}")), r#"keep "plan"; daemon< #50 {}"#);
    world.daemon(r#"{"id":51,"method":"session/set_model","params":{"sessionId":"ses","modelId":"m-2"}}"#);
    assert_eq!(world.agent(&ok(51, "{}")), r#"write session_model; keep "plan" "m-2"; daemon< #51 {}"#);
    world
}

/// The same once another agent is in its place and has loaded the session.
fn replaced(world: &mut World) -> String {
    world.prompt(2);
    world.daemon(r#"{"id":9,"method":"turnd/replace_agent","params":{"sessionId":"turnd-1","cwd":"/ws"}}"#);
    world.shown(Input::Replaced(Ok(())));
    world.agent(&ok(own(0), r#"{"agentCapabilities":{"loadSession":true}}"#));
    world.agent(&ok(own(1), &format!("{{{MODES}}}")))
}

#[test]
fn an_agent_in_anothers_place_is_set_to_what_that_was_set_to_before_the_daemon_may_go_on() {
    let mut world = set_to_plan();
    assert_eq!(replaced(&mut world), format!("agent< session/set_mode#{}", own(2)));
    assert_eq!(world.prompt(3), "daemon< #3 error turn_in_progress");
    assert_eq!(world.daemon(&set(52, "yolo")), "daemon< #52 error turn_in_progress");
    assert_eq!(world.agent(&ok(own(2), "{}")), format!("agent< session/set_model#{}", own(3)));
    let told = world.agent(&ok(own(3), "{}"));
    let modes = MODES.replace("\"default\"", "\"plan\"");
    let line = format!(r#"daemon< #9 {{"_meta":{{"turnd/memory":"loaded"}},"sessionId":"ses",{modes}}}"#);
    assert_eq!(told, format!("{line}; remember ses in /ws"));
    assert_eq!(world.prompt(3), "admit U(p3); agent< session/prompt#3");
}

#[test]
fn the_daemons_words_are_said_again_with_the_name_of_the_new_session() {
    let mut world = set_to_plan();
    world.prompt(2);
    world.daemon(r#"{"id":9,"method":"turnd/replace_agent","params":{"sessionId":"turnd-1","cwd":"/ws"}}"#);
    world.shown(Input::Replaced(Ok(())));
    world.agent(&ok(own(0), "{}"));
    let effects = world.input(Input::Agent(message(&ok(own(1), r#"{"sessionId":"ses-2"}"#))));
    let [Effect::ToAgent(line)] = &effects[..] else { panic!("{effects:?}") };
    let asked = Message::parse(line.clone()).unwrap();
    assert_eq!(asked.params().unwrap(), r#"{"sessionId":"ses-2","modeId":"plan"}"#);
}

#[test]
fn in_an_agent_that_refuses_the_mode_no_prompt_runs_until_a_client_has_set_one() {
    let mut world = set_to_plan();
    replaced(&mut world);
    world.agent(&refused(own(2)));
    let told = world.agent(&ok(own(3), "{}"));
    assert!(told.contains(MODES), "the readers hear which mode it is: {told}");
    assert_eq!(world.prompt(3), "daemon< #3 error approval_mode_not_restored");
    world.daemon(&set(52, "odd"));
    world.agent(&refused(52));
    world.daemon(r#"{"id":53,"method":"session/set_model","params":{"sessionId":"ses","modelId":"m-3"}}"#);
    world.agent(&ok(53, "{}"));
    assert_eq!(world.prompt(4), "daemon< #4 error approval_mode_not_restored");
    world.daemon(&set(54, "default"));
    assert_eq!(world.agent(&ok(54, "{}")), r#"keep "m-3" "default"; daemon< #54 {}"#);
    assert_eq!(world.prompt(5), "admit U(p5); agent< session/prompt#5");
}

#[test]
fn in_an_agent_that_refuses_two_things_that_may_keep_it_from_something_no_prompt_runs_until_both_are_set() {
    let option = |id: u64| {
        let params = r#"{"sessionId":"ses","configId":"how","value":"ask"}"#;
        format!(r#"{{"id":{id},"method":"session/set_config_option","params":{params}}}"#)
    };
    let mut world = set_to_plan();
    world.daemon(&option(52));
    assert!(world.agent(&ok(52, "{}")).starts_with(r#"keep "plan" "m-2" "ask""#), "nobody knows what it is about");
    replaced(&mut world);
    world.agent(&refused(own(2)));
    world.agent(&ok(own(3), "{}"));
    world.agent(&refused(own(4)));
    world.daemon(&option(53));
    world.agent(&ok(53, "{}"));
    assert_eq!(world.prompt(3), "daemon< #3 error approval_mode_not_restored", "the mode is not what was set");
    world.daemon(&set(54, "plan"));
    world.agent(&ok(54, "{}"));
    assert_eq!(world.prompt(4), "admit U(p4); agent< session/prompt#4");
}

#[test]
fn a_model_that_is_refused_keeps_nobody_from_going_on() {
    let mut world = set_to_plan();
    replaced(&mut world);
    world.agent(&ok(own(2), "{}"));
    assert!(world.agent(&refused(own(3))).starts_with("daemon< #9 {"));
    assert_eq!(world.prompt(3), "admit U(p3); agent< session/prompt#3");
}

#[test]
fn what_an_agent_refused_to_be_set_to_is_not_set_again_nor_is_what_it_was_set_to_before() {
    let mut world = set_to_plan();
    world.daemon(&set(52, "default"));
    world.agent(&refused(52));
    assert_eq!(world.machine.choices.len(), 2);
    assert_eq!(world.machine.choices[0].value, "plan");
    world.daemon(&set(53, "default"));
    assert_eq!(world.agent(&ok(53, "{}")), r#"keep "m-2" "default"; daemon< #53 {}"#);
}

#[test]
fn a_session_that_is_brought_back_by_the_next_host_is_set_to_what_was_noted() {
    let noted = set_to_plan().machine.choices;
    for capabilities in [r#"{"loadSession":true}"#, "{}"] {
        let mut world = World::new(Mode::Recorded, Some("ses"));
        world.machine = Machine::new(Mode::Recorded, Some("ses".into())).choosing(noted.clone());
        world.daemon(r#"{"id":0,"method":"initialize"}"#);
        world.agent(&ok(0, &format!(r#"{{"agentCapabilities":{capabilities}}}"#)));
        world.daemon(r#"{"id":1,"method":"session/load","params":{"sessionId":"turnd-1","cwd":"/ws"}}"#);
        let next = world.agent(&ok(own(0), r#"{"sessionId":"ses"}"#));
        assert_eq!(next, format!("agent< session/set_mode#{}", own(1)), "{capabilities}");
    }
}

#[test]
fn a_session_that_is_made_anew_by_a_rewind_is_set_before_the_daemon_hears_of_it_and_the_old_one_goes_last() {
    let mut world = World::new(Mode::Recorded, None);
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(&ok(0, r#"{"agentCapabilities":{"sessionCapabilities":{"close":{}}}}"#));
    world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
    world.agent(&ok(1, r#"{"sessionId":"ses"}"#));
    world.daemon(&set(50, "plan"));
    let rewind = r#"{"id":9,"method":"turnd/rewind","params":{"sessionId":"ses","cwd":"/ws","promptId":"p2",
        "kept":0,"leaf":"leaf","truncatedCount":2,"atMs":77}}"#;
    assert_eq!(world.daemon(rewind), "daemon< #9 error turn_in_progress", "which session would be set?");
    world.agent(&ok(50, "{}"));
    world.daemon(rewind);
    let made = world.agent(&ok(own(0), &format!(r#"{{"sessionId":"other",{MODES}}}"#)));
    let expected =
        format!("forget, rewind to nothing at 77; remember other in /ws; agent< session/set_mode#{}", own(1));
    assert_eq!(made, expected);
    assert_eq!(world.prompt(3), "daemon< #3 error turn_in_progress");
    let done = world.agent(&ok(own(1), "null"));
    assert!(done.starts_with("daemon< #9 {") && done.contains(r#""currentModeId":"plan""#), "{done}");
    assert!(done.ends_with(&format!("agent< session/close#{}", own(2))), "{done}");
}

#[test]
fn an_agent_that_goes_while_it_is_set_leaves_no_request_open_and_no_session() {
    for (input, end) in [
        (Input::AgentGone(Exit::default()), "daemon< #9 error channel_closed; daemon< turnd/agent_exited; end"),
        (Input::AnswerLost { limit_bytes: 1 }, "daemon< #9 error frame_too_long; end"),
        (Input::DaemonGone, "end"),
    ] {
        let mut world = set_to_plan();
        replaced(&mut world);
        assert_eq!(world.shown(input), end);
    }
}

#[test]
fn a_native_agent_is_set_by_its_own_method_and_nothing_is_noted_beside_its_file() {
    let mut world = World::new(Mode::Native, None);
    world.daemon(r#"{"id":0,"method":"initialize","params":{}}"#);
    world.agent(&ok(0, r#"{"agentCapabilities":{"loadSession":true}}"#));
    world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
    world.agent(&ok(1, r#"{"sessionId":"ses"}"#));
    world.daemon(
        r#"{"id":50,"method":"qwen/control/session/approval_mode","params":{"sessionId":"ses","mode":"plan"}}"#,
    );
    assert_eq!(world.agent(&ok(50, "{}")), "daemon< #50 {}");
    assert_eq!(replaced(&mut world), format!("agent< qwen/control/session/approval_mode#{}", own(2)));
    world.agent(&refused(own(2)));
    assert_eq!(world.prompt(3), "daemon< #3 error approval_mode_not_restored");
}

#[test]
fn what_is_too_long_to_be_kept_is_not_set() {
    let mut world = World::ready();
    assert_eq!(world.daemon(&set(50, &"x".repeat(5_000))), "daemon< #50 error not_recorded");
}
