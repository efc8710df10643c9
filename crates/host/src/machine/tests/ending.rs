//! How turns and hosts end: with the agent, with the daemon, with the session.

use super::*;

#[test]
fn an_agent_that_dies_owes_an_answer_that_the_host_gives() {
    let mut world = World::ready();
    world.prompt(2);
    world.says("hel");
    let exit = Exit { code: Some(7), ..Exit::default() };
    let gone = world.shown(Input::AgentGone(exit));
    let expected = "write R=error(hel) A(hel); daemon< #2 error channel_closed; daemon< turnd/agent_exited; end";
    assert_eq!(gone, expected);
    assert_eq!(world.prompt(3), "", "nothing comes behind the end");
}

#[test]
fn an_agent_that_dies_before_it_answers_could_not_be_started() {
    let exit = Exit { code: Some(127), ..Exit::default() };
    let expected = "daemon< #0 error agent_unavailable; daemon< turnd/agent_exited; end";
    let initialize = r#"{"id":0,"method":"initialize"}"#;
    let mut world = World::new(Mode::Recorded, None);
    world.daemon(initialize);
    assert_eq!(world.shown(Input::AgentGone(exit.clone())), expected);
    let mut world = World::new(Mode::Recorded, None);
    assert_eq!(world.shown(Input::AgentGone(exit)), "", "the daemon has not asked yet");
    assert_eq!(world.daemon(initialize), "daemon< #0 error agent_unavailable; end");
}

#[test]
fn an_open_session_request_is_answered_when_the_agent_dies() {
    let mut world = World::new(Mode::Recorded, None);
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(r#"{"id":0,"result":{}}"#);
    world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
    let gone = world.shown(Input::AgentGone(Exit::default()));
    assert_eq!(gone, "daemon< #1 error channel_closed; daemon< turnd/agent_exited; end");
}

#[test]
fn a_close_ends_the_turn_with_its_reason() {
    let mut world = World::ready();
    world.prompt(2);
    let close = world.daemon(r#"{"method":"turnd/close","params":{"reason":"daemon_shutdown"}}"#);
    assert_eq!(close, "write R=error(); daemon< #2 error daemon_shutdown; end");
    let mut idle = World::ready();
    assert_eq!(idle.daemon(r#"{"method":"turnd/close","params":{"reason":"session_closed"}}"#), "end");
}

#[test]
fn a_host_that_is_told_to_end_says_so() {
    let mut world = World::ready();
    world.prompt(2);
    assert_eq!(world.shown(Input::Terminated), "write R=error(); daemon< #2 error host_terminated; end");
}

#[test]
fn without_a_daemon_a_turn_may_settle_and_nothing_else_is_waited_for() {
    let mut idle = World::ready();
    assert_eq!(idle.shown(Input::DaemonGone), "end");
    let mut world = World::ready();
    world.prompt(2);
    assert_eq!(world.shown(Input::DaemonGone), "linger");
    assert_eq!(world.says("hello"), "");
    assert_eq!(world.shown(Input::DaemonGone), "");
    let settled = world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(settled, "write A(hello) R=completed(hello); end");
}

#[test]
fn an_interrupt_cancels_the_turn_that_a_host_stays_for_once_and_none_of_a_daemons() {
    let mut world = World::ready();
    world.prompt(2);
    assert_eq!(world.shown(Input::Interrupted), "", "its daemon is there");
    world.shown(Input::DaemonGone);
    assert_eq!(world.shown(Input::Interrupted), "agent< session/cancel");
    assert_eq!(world.shown(Input::Interrupted), "", "it hears it once");
    let settled = world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(settled, "write R=cancelled(); end");
    let mut deaf = World::ready();
    deaf.prompt(2);
    deaf.shown(Input::DaemonGone);
    deaf.shown(Input::Interrupted);
    assert_eq!(deaf.shown(Input::LingerExpired), "write R=cancelled(); end");
}

#[test]
fn without_a_daemon_the_agents_questions_are_answered_by_nobody() {
    let mut world = World::ready();
    world.prompt(2);
    let ask = |id: &str, method: &str| format!(r#"{{"id":{id},"method":"{method}","params":{{"sessionId":"ses"}}}}"#);
    world.agent(&ask("0", "session/request_permission"));
    let cancelled = r#"{"outcome":{"outcome":"cancelled"}}"#;
    assert_eq!(world.shown(Input::DaemonGone), format!("agent< #0 {cancelled}; linger"));
    let again = world.agent(&ask("\"b\"", "session/request_permission"));
    assert_eq!(again, format!("agent< #\"b\" {cancelled}"));
    assert_eq!(world.agent(&ask("3", "fs/read_text_file")), "agent< #3 error -32601");
}

#[test]
fn a_question_that_was_answered_is_not_answered_again() {
    let mut world = World::ready();
    world.prompt(2);
    world.agent(r#"{"id":0,"method":"session/request_permission","params":{"sessionId":"ses"}}"#);
    assert_eq!(world.daemon(r#"{"id":0,"result":{"outcome":1}}"#), r#"agent< #0 {"outcome":1}"#);
    assert_eq!(world.shown(Input::DaemonGone), "linger");
}

#[test]
fn a_turn_that_does_not_settle_without_a_daemon_is_an_error() {
    let mut world = World::ready();
    world.prompt(2);
    world.says("hel");
    assert_eq!(world.shown(Input::LingerExpired), "", "the daemon is there");
    world.shown(Input::DaemonGone);
    assert_eq!(world.shown(Input::LingerExpired), "write R=error(hel) A(hel); end");
}

#[test]
fn a_cancelled_turn_that_does_not_settle_without_a_daemon_is_cancelled() {
    let mut world = World::ready();
    world.prompt(2);
    world.says("hel");
    world.daemon(r#"{"method":"session/cancel","params":{"sessionId":"ses"}}"#);
    world.shown(Input::DaemonGone);
    assert_eq!(world.shown(Input::LingerExpired), "write R=cancelled(hel) A(hel); end");
}

#[test]
fn an_agent_that_dies_without_a_daemon_is_recorded() {
    let mut world = World::ready();
    world.prompt(2);
    world.shown(Input::DaemonGone);
    assert_eq!(world.shown(Input::AgentGone(Exit::default())), "write R=error(); end");
}
