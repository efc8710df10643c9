//! Giving an agent its memory back.

use super::*;

const LOAD: &str = r#"{"id":1,"method":"session/load","params":{"sessionId":"turnd-1","cwd":"/ws","mcpServers":[]}}"#;
/// The host's own first and second request.
const OWN: [u64; 2] = [OWN_ID_FIRST, OWN_ID_FIRST + 1];

fn world(mode: Mode, remembered: Option<&str>, capabilities: &str) -> World {
    let mut world = World::new(mode, remembered);
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(&format!(r#"{{"id":0,"result":{{"agentCapabilities":{capabilities}}}}}"#));
    world
}

const RESUME: &str = r#"{"loadSession":true,"sessionCapabilities":{"resume":{}}}"#;
const LOAD_ONLY: &str = r#"{"loadSession":true}"#;

fn restored(session: &str, memory: &str) -> String {
    format!(r#"daemon< #1 {{"_meta":{{"turnd/memory":"{memory}"}},"sessionId":"{session}"}}"#)
}

/// What the host sent last, as the method and the session it names.
fn asked(world: &mut World, line: &str) -> String {
    let effects = world.input(Input::Daemon(message(line)));
    let [Effect::ToAgent(line)] = &effects[..] else { panic!("{effects:?}") };
    let message = Message::parse(line.clone()).unwrap();
    format!("{} {} {}", message.method().unwrap(), message.session_id().unwrap_or_default(), message.params().unwrap())
}

#[test]
fn a_session_is_resumed_under_the_agents_own_name() {
    let mut world = world(Mode::Recorded, Some("ses"), RESUME);
    let sent = asked(&mut world, LOAD);
    assert_eq!(sent, r#"session/resume ses {"sessionId":"ses","cwd":"/ws","mcpServers":[]}"#);
    let answer = world.agent(&format!(r#"{{"id":{},"result":null}}"#, OWN[0]));
    assert_eq!(answer, format!("{}; remember ses in /ws", restored("ses", "resumed")));
    assert_eq!(world.prompt(2), "admit U(p2); agent< session/prompt#2");
}

#[test]
fn a_replay_is_swallowed_and_state_is_not() {
    let mut world = world(Mode::Recorded, Some("ses"), LOAD_ONLY);
    assert_eq!(world.daemon(LOAD), format!("agent< session/load#{}", OWN[0]));
    let state = update_line(r#"{"sessionUpdate":"available_commands_update"}"#);
    for told in ["", "daemon< turnd/strayed"] {
        assert_eq!(world.says("old"), told);
        assert_eq!(world.agent(&update_line(r#"{"sessionUpdate":"user_message_chunk"}"#)), "");
        assert_eq!(world.agent(&update_line(r#"{"sessionUpdate":"tool_call","toolCallId":"1"}"#)), "");
        assert_eq!(world.agent(&state), "daemon< session/update");
        // The second round comes behind the answer.
        world.agent(&format!(r#"{{"id":{},"result":{{}}}}"#, OWN[0]));
    }
    world.prompt(2);
    assert_eq!(world.says("new"), "daemon< session/update new");
    let answer = world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert!(answer.starts_with("write A(new) R=completed(new)"), "{answer}");
}

#[test]
fn a_session_that_cannot_be_restored_begins_anew_and_says_so() {
    for capabilities in [RESUME, LOAD_ONLY] {
        let mut world = world(Mode::Recorded, Some("ses"), capabilities);
        world.daemon(LOAD);
        let next = world.agent(&format!(r#"{{"id":{},"error":{{"code":-32603,"message":"none"}}}}"#, OWN[0]));
        assert_eq!(next, format!("agent< session/new#{}", OWN[1]));
        let answer = world.agent(&format!(r#"{{"id":{},"result":{{"sessionId":"other"}}}}"#, OWN[1]));
        assert_eq!(answer, format!("{}; remember other in /ws", restored("other", "fresh")));
    }
}

#[test]
fn a_session_nobody_knows_begins_anew() {
    for (remembered, capabilities) in [(None, RESUME), (Some("ses"), "{}")] {
        let mut world = world(Mode::Recorded, remembered, capabilities);
        let sent = asked(&mut world, LOAD);
        assert_eq!(sent, r#"session/new  {"cwd":"/ws","mcpServers":[]}"#);
    }
}

#[test]
fn an_error_of_the_last_try_goes_back() {
    let mut world = world(Mode::Recorded, None, "{}");
    world.daemon(LOAD);
    let answer = world.agent(&format!(r#"{{"id":{},"error":{{"code":-32000,"message":"login"}}}}"#, OWN[0]));
    assert_eq!(answer, "daemon< #1 error -32000");
}

#[test]
fn a_native_session_keeps_its_name_and_its_errors() {
    let mut world = world(Mode::Native, None, RESUME);
    let sent = asked(&mut world, LOAD);
    assert!(sent.starts_with("session/resume turnd-1 "), "{sent}");
    assert_eq!(world.says("old"), "");
    let answer = world.agent(&format!(r#"{{"id":{},"result":{{}}}}"#, OWN[0]));
    assert_eq!(answer, restored("turnd-1", "resumed"));
    world.daemon(LOAD);
    let answer = world.agent(&format!(r#"{{"id":{},"error":{{"code":-32002,"message":"none"}}}}"#, OWN[1]));
    assert_eq!(answer, "daemon< #1 error -32002");
}

#[test]
fn nothing_is_asked_of_a_session_that_is_being_restored() {
    let mut world = world(Mode::Recorded, Some("ses"), RESUME);
    world.daemon(LOAD);
    assert_eq!(world.prompt(2), "daemon< #2 error turn_in_progress");
}

#[test]
fn a_restore_is_answered_when_the_agent_dies() {
    let mut world = world(Mode::Recorded, Some("ses"), RESUME);
    world.daemon(LOAD);
    let gone = world.shown(Input::AgentGone(Exit::default()));
    assert_eq!(gone, "daemon< #1 error channel_closed; daemon< turnd/agent_exited; end");
}

#[test]
fn a_daemon_that_dies_while_a_session_is_restored_is_not_waited_for() {
    let mut world = world(Mode::Recorded, Some("ses"), RESUME);
    world.daemon(LOAD);
    assert_eq!(world.shown(Input::DaemonGone), "end");
}

#[test]
fn an_agent_that_cannot_restore_gets_a_new_session_and_is_prompted_under_its_new_name() {
    let mut world = world(Mode::Recorded, Some("old"), "{}");
    assert_eq!(world.daemon(LOAD), format!("agent< session/new#{}", OWN[0]));
    let answer = world.agent(&format!(r#"{{"id":{},"result":{{"sessionId":"ses"}}}}"#, OWN[0]));
    assert_eq!(answer, format!("{}; remember ses in /ws", restored("ses", "fresh")));
    assert_eq!(world.prompt(2), "admit U(p2); agent< session/prompt#2");
}

#[test]
fn a_native_agent_is_told_the_capability_it_was_started_with_and_a_recorded_one_is_not() {
    let told = |capability: Option<&str>| {
        let mut world = World::new(Mode::Native, None);
        world.machine = Machine::new(Mode::Native, None).trusted(capability.map(str::to_owned));
        let line = message(r#"{"id":0,"method":"initialize","params":{"protocolVersion":1,"_meta":{"k":1}}}"#);
        let effects = world.input(Input::Daemon(line));
        let [Effect::ToAgent(line)] = &effects[..] else { panic!("{effects:?}") };
        Message::parse(line.clone()).unwrap().params().unwrap().to_owned()
    };
    let trusted = r#"{"protocolVersion":1,"_meta":{"qwen-code/private-parent-capability":"c","k":1}}"#;
    assert_eq!(told(Some("c")), trusted);
    assert_eq!(told(None), r#"{"protocolVersion":1,"_meta":{"k":1}}"#);
}
