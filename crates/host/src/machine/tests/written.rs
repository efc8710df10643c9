//! Prompts whose sender keeps a record of how much of them the agent has, and of which process that is.

use super::*;

/// The prompt `p<id>`, witnessed.
pub(super) fn witnessed_line(id: u64) -> String {
    prompt_line(id).replace(r#""_meta":{"#, r#""_meta":{"turnd/witnessed":true,"#)
}

/// What the daemon is told with the error that a prompt is answered with.
fn written(effects: &[Effect]) -> Option<String> {
    effects.iter().find_map(|effect| {
        let Effect::ToDaemon(line) = effect else { return None };
        let error = Message::parse(line.clone()).unwrap().rpc_error()?;
        acp::string_at(error.data.as_deref()?, &["turnd/inputWritten"])
    })
}

fn gone() -> Input {
    Input::AgentGone(Exit::default())
}

#[test]
fn a_witnessed_prompt_is_fed_and_the_daemon_hears_when_the_agent_has_all_of_it() {
    let mut world = World::ready();
    assert_eq!(world.daemon(&witnessed_line(2)), "admit U(p2); feed session/prompt#2");
    assert_eq!(world.shown(Input::Reached(Reach::Text)), "");
    let effects = world.input(Input::Reached(Reach::Whole));
    let [Effect::ToDaemon(line)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"method\":\"turnd/prompt_written\",\"params\":{\"promptId\":\"p2\"}}\n");
    let answer = world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert!(answer.contains("R=completed"), "{answer}");
}

#[test]
fn of_any_other_prompt_nothing_is_said() {
    let mut world = World::ready();
    assert_eq!(world.prompt(2), "admit U(p2); agent< session/prompt#2");
    assert_eq!(world.shown(Input::Reached(Reach::Whole)), "");
    assert_eq!(written(&world.input(gone())), None);
    for odd in ["false", "1", "\"true\""] {
        let mut world = World::ready();
        let line = witnessed_line(2).replace("true", odd);
        assert_eq!(world.daemon(&line), "admit U(p2); agent< session/prompt#2", "{odd}");
    }
}

#[test]
fn an_error_of_the_hosts_says_how_much_of_a_witnessed_prompt_the_agent_has() {
    let ends: [fn() -> Input; 4] = [
        gone,
        || Input::Terminated,
        || Input::AnswerLost { limit_bytes: 7 },
        || Input::Daemon(message(r#"{"method":"turnd/close","params":{}}"#)),
    ];
    for end in ends {
        for (reach, word) in [(None, "no"), (Some(Reach::Text), "maybe"), (Some(Reach::Whole), "yes")] {
            let mut world = World::ready();
            world.daemon(&witnessed_line(2));
            reach.map(|reach| world.input(Input::Reached(reach)));
            assert_eq!(written(&world.input(end())).as_deref(), Some(word), "{reach:?} {:?}", end());
        }
    }
}

#[test]
fn one_whose_agent_is_replaced_says_it_too() {
    let mut world = World::replaceable();
    world.daemon(&witnessed_line(2));
    world.daemon(r#"{"id":3,"method":"turnd/replace_agent","params":{"sessionId":"s"}}"#);
    assert_eq!(written(&world.input(Input::Replaced(Ok(())))).as_deref(), Some("no"));
}

#[test]
fn one_whose_record_was_never_confirmed_was_not_written() {
    let mut world = World::ready();
    world.machine.handle(9, Input::Daemon(message(&witnessed_line(2))));
    assert_eq!(written(&world.input(Input::Terminated)).as_deref(), Some("no"));
    let mut world = World::ready();
    world.writable = false;
    assert_eq!(written(&world.input(Input::Daemon(message(&witnessed_line(2))))).as_deref(), Some("no"));
}

#[test]
fn an_answer_to_a_prompt_that_the_agent_cannot_have_read_is_none() {
    let mut world = World::ready();
    world.daemon(&witnessed_line(2));
    let answer = r#"{"id":2,"result":{"stopReason":"end_turn"}}"#;
    assert_eq!(world.agent(answer), "");
    world.input(Input::Reached(Reach::Text));
    assert!(world.agent(answer).contains("R=completed"));
}

#[test]
fn a_native_agents_prompt_is_fed_as_well() {
    let mut world = World::new(Mode::Native, None);
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(r#"{"id":0,"result":{}}"#);
    assert_eq!(world.daemon(&witnessed_line(2)), "feed session/prompt#2");
    assert_eq!(world.shown(Input::Reached(Reach::Whole)), "daemon< turnd/prompt_written");
}

#[test]
fn the_answer_that_opens_a_session_says_which_process_has_it_and_so_does_a_replacement() {
    let process = |pid| Some(Incarnation { pid, start_ticks: 42, boot_id: "b".to_owned() });
    let told = |pid| format!(r#""turnd/process":{{"pid":{pid},"startTicks":42,"bootId":"b"}}"#);
    let mut world = World::new(Mode::Recorded, None);
    assert_eq!(world.shown(Input::Started(process(7))), "");
    world.daemon(r#"{"id":0,"method":"initialize","params":{"protocolVersion":1}}"#);
    world.agent(r#"{"id":0,"result":{"agentCapabilities":{"loadSession":true}}}"#);
    world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
    let opened = world.agent(r#"{"id":1,"result":{"sessionId":"ses","_meta":{"turnd/process":{"pid":1},"x":1}}}"#);
    assert!(
        opened.contains(&told(7)) && opened.contains(r#""x":1"#) && opened.contains(r#""sessionId":"ses""#),
        "{opened}"
    );
    world.prompt(2);
    world.daemon(r#"{"id":3,"method":"turnd/replace_agent","params":{"sessionId":"s","cwd":"/ws"}}"#);
    world.input(Input::Started(process(8)));
    world.input(Input::Replaced(Ok(())));
    world.agent(r#"{"id":1000000000,"result":{"agentCapabilities":{"loadSession":true}}}"#);
    let replaced = world.agent(r#"{"id":1000000001,"result":null}"#);
    assert!(replaced.contains(&told(8)), "{replaced}");
}
