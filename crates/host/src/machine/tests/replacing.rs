//! Putting another process in the place of an agent that does not stop.

use super::*;

const REPLACE: &str =
    r#"{"id":9,"method":"turnd/replace_agent","params":{"sessionId":"turnd-1","cwd":"/ws","mcpServers":[]}}"#;
const CANCEL: &str = r#"{"method":"session/cancel","params":{"sessionId":"ses"}}"#;
/// The host's own requests in their order.
const OWN: [u64; 3] = [OWN_ID_FIRST, OWN_ID_FIRST + 1, OWN_ID_FIRST + 2];

impl World {
    /// Under a turn that has said something and was cancelled.
    fn deaf() -> Self {
        let mut world = Self::replaceable();
        world.prompt(2);
        world.says("half");
        world.daemon(CANCEL);
        world
    }

    fn gone(&mut self) -> String {
        self.shown(Input::Replaced(Ok(())))
    }

    fn answers(&mut self, id: u64, result: &str) -> String {
        self.agent(&format!(r#"{{"id":{id},"result":{result}}}"#))
    }
}

#[test]
fn the_old_tree_is_gone_before_the_turn_is_over_and_the_new_agent_is_given_the_session_before_the_daemon_hears_of_it() {
    let mut world = World::deaf();
    assert_eq!(world.daemon(REPLACE), "replace");
    let gone = world.gone();
    let over = "write R=cancelled(half) A(half); daemon< #2 error agent_replaced";
    assert_eq!(gone, format!("{over}; agent< initialize#{}", OWN[0]));
    let loads = world.answers(OWN[0], r#"{"agentCapabilities":{"loadSession":true}}"#);
    assert_eq!(loads, format!("agent< session/load#{}", OWN[1]));
    assert_eq!(world.says("replayed"), "", "the transcript has it already");
    let told = r#"daemon< #9 {"_meta":{"turnd/memory":"loaded"},"sessionId":"ses"}; remember ses in /ws"#;
    assert_eq!(world.answers(OWN[1], "{}"), told);
    assert_eq!(world.prompt(3), "admit U(p3); agent< session/prompt#3");
    assert_eq!(world.says("new"), "daemon< session/update new");
    let done = world.answers(3, r#"{"stopReason":"end_turn"}"#);
    assert!(done.starts_with("write A(new) R=completed(new); daemon< #3 "), "{done}");
}

#[test]
fn the_new_agent_is_greeted_in_the_daemons_words_and_a_native_one_with_its_capability() {
    for (mode, capability) in [(Mode::Recorded, None), (Mode::Native, Some("c"))] {
        let mut world = World::new(mode, None);
        world.machine = Machine::new(mode, None).trusted(capability.map(str::to_owned));
        world.daemon(r#"{"id":0,"method":"initialize","params":{"protocolVersion":1,"k":2}}"#);
        world.answers(0, r#"{"agentCapabilities":{"loadSession":true}}"#);
        world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
        world.answers(1, r#"{"sessionId":"ses"}"#);
        world.prompt(2);
        world.daemon(REPLACE);
        let effects = world.input(Input::Replaced(Ok(())));
        let Some(Effect::ToAgent(line)) = effects.last() else { panic!("{effects:?}") };
        let params = Message::parse(line.clone()).unwrap().params().unwrap().to_owned();
        assert_eq!(acp::raw_at(&params, &["k"]), Some("2"));
        let shown = acp::string_at(&params, &["_meta", "qwen-code/private-parent-capability"]);
        assert_eq!(shown.as_deref(), capability);
    }
}

#[test]
fn a_turn_that_nobody_cancelled_is_an_error() {
    let mut world = World::replaceable();
    world.prompt(2);
    world.daemon(REPLACE);
    let over = world.gone();
    assert!(over.starts_with("write R=error(); daemon< #2 error agent_replaced; agent< initialize#"), "{over}");
}

#[test]
fn what_the_old_agent_says_before_its_end_is_its_own_turns_and_its_answer_counts() {
    let mut world = World::deaf();
    world.daemon(REPLACE);
    assert_eq!(world.says(" and more"), "daemon< session/update  and more");
    let settled = world.answers(2, r#"{"stopReason":"end_turn"}"#);
    assert!(settled.starts_with("write R=cancelled(half and more) A(half and more); daemon< #2 {"), "{settled}");
    assert_eq!(world.gone(), format!("agent< initialize#{}", OWN[0]), "it has its one result");
}

#[test]
fn an_agent_that_can_bring_no_session_back_is_left_alone() {
    let mut world = World::ready();
    world.prompt(2);
    assert_eq!(world.daemon(REPLACE), "daemon< #9 error agent_cannot_restore");
    let done = world.answers(2, r#"{"stopReason":"end_turn"}"#);
    assert!(done.starts_with("write R=completed()"), "{done}");
}

#[test]
fn an_agent_that_has_stopped_meanwhile_is_left_alone() {
    let mut world = World::deaf();
    world.answers(2, r#"{"stopReason":"cancelled"}"#);
    assert_eq!(world.daemon(REPLACE), "daemon< #9 error turn_settled");
    assert_eq!(world.prompt(3), "admit U(p3); agent< session/prompt#3");
}

#[test]
fn nothing_is_asked_of_an_agent_that_is_being_replaced_and_it_asks_nobody() {
    let mut world = World::deaf();
    world.daemon(REPLACE);
    assert_eq!(world.prompt(3), "daemon< #3 error turn_in_progress");
    assert_eq!(world.daemon(&REPLACE.replace('9', "8")), "daemon< #8 error turn_in_progress");
    let asks =
        r#"{"id":5,"method":"session/request_permission","params":{"sessionId":"ses","toolCall":{"toolCallId":"1"}}}"#;
    let answer = world.agent(asks);
    assert!(answer.ends_with(r#"agent< #5 {"outcome":{"outcome":"cancelled"}}"#), "{answer}");
}

#[test]
fn an_answer_to_the_old_agent_does_not_reach_the_new_one_that_uses_the_same_id() {
    let mut world = World::deaf();
    let asks = r#"{"id":5,"method":"odd","params":{}}"#;
    assert_eq!(world.agent(asks), "daemon< odd#5");
    world.daemon(REPLACE);
    world.gone();
    world.answers(OWN[0], r#"{"agentCapabilities":{"loadSession":true}}"#);
    world.answers(OWN[1], "{}");
    assert_eq!(world.agent(asks), "daemon< odd#5");
    assert_eq!(world.daemon(r#"{"id":5,"result":"old"}"#), "");
    assert_eq!(world.daemon(r#"{"id":5,"result":"new"}"#), r#"agent< #5 "new""#);
}

#[test]
fn an_agent_that_lost_the_session_gets_a_new_one_that_says_so() {
    let mut world = World::deaf();
    world.daemon(REPLACE);
    world.gone();
    world.answers(OWN[0], r#"{"agentCapabilities":{"loadSession":true}}"#);
    let next = world.agent(&format!(r#"{{"id":{},"error":{{"code":-32002,"message":"none"}}}}"#, OWN[1]));
    assert_eq!(next, format!("agent< session/new#{}", OWN[2]));
    let told = r#"daemon< #9 {"_meta":{"turnd/memory":"fresh"},"sessionId":"ses-2"}; remember ses-2 in /ws"#;
    assert_eq!(world.answers(OWN[2], r#"{"sessionId":"ses-2"}"#), told);
}

#[test]
fn without_a_successor_the_host_says_why_and_ends() {
    let over = "write R=cancelled(half) A(half); daemon< #2 error agent_replaced";
    let ended = "daemon< #9 error agent_unavailable; end";
    let mut world = World::deaf();
    world.daemon(REPLACE);
    assert_eq!(world.shown(Input::Replaced(Err("no such program".into()))), format!("{over}; {ended}"));
    let greeted = |answer: &str| {
        let mut world = World::deaf();
        world.daemon(REPLACE);
        world.gone();
        world.agent(&format!(r#"{{"id":{},{answer}}}"#, OWN[0]))
    };
    assert_eq!(greeted(r#""error":{"code":1,"message":"no"}"#), ended);
    let mut world = World::deaf();
    world.daemon(REPLACE);
    world.gone();
    let died = world.shown(Input::AgentGone(Exit::default()));
    assert_eq!(died, "daemon< #9 error agent_unavailable; daemon< turnd/agent_exited; end");
    let mut world = World::deaf();
    world.daemon(REPLACE);
    world.gone();
    assert_eq!(world.shown(Input::AnswerLost { limit_bytes: 1 }), "daemon< #9 error frame_too_long; end");
}

#[test]
fn a_session_that_cannot_even_begin_anew_ends() {
    let mut world = World::deaf();
    world.daemon(REPLACE);
    world.gone();
    world.answers(OWN[0], "{}");
    let refused = world.agent(&format!(r#"{{"id":{},"error":{{"code":-32000,"message":"login"}}}}"#, OWN[1]));
    assert_eq!(refused, "daemon< #9 error agent_unavailable; end");
}

#[test]
fn a_daemon_that_dies_meanwhile_leaves_a_recorded_turn_and_no_new_agent() {
    let mut world = World::deaf();
    world.daemon(REPLACE);
    assert_eq!(world.shown(Input::DaemonGone), "linger");
    assert_eq!(world.gone(), "write R=cancelled(half) A(half); end");
    let mut world = World::deaf();
    world.daemon(REPLACE);
    world.gone();
    assert_eq!(world.shown(Input::DaemonGone), "end");
}

#[test]
fn a_close_ends_a_replacement() {
    let mut world = World::deaf();
    world.daemon(REPLACE);
    let closed = world.daemon(r#"{"method":"turnd/close","params":{"reason":"session_closed"}}"#);
    assert_eq!(closed, "write R=error(half) A(half); daemon< #2 error session_closed; end");
    assert_eq!(world.gone(), "");
}
