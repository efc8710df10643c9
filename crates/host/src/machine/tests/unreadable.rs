//! What the agent writes and nobody can read, and what the transcript has of it.

use super::straying::loaded;
use super::written::witnessed_line;
use super::*;

const WORDS: &str = r#"{"method":"session/update","params":{"cost":NaN}}"#;

impl World {
    fn unreadable(&mut self, line: &str) -> String {
        let why = Message::parse(Bytes::copy_from_slice(line.as_bytes())).unwrap_err();
        self.shown(Input::Unreadable(Unreadable::of(line.as_bytes(), why).unwrap()))
    }

    /// The answer to a prompt, as nobody can read it.
    fn mumbles(&mut self, id: u64) -> String {
        self.unreadable(&format!(r#"{{"id":{id},"result":{{"stopReason":"end_turn","cost":NaN}}}}"#))
    }
}

#[test]
fn a_promised_turn_of_which_a_line_could_not_be_read_says_so_and_no_other_does() {
    let mut world = World::ready();
    world.witnessed(2);
    world.says("hello");
    assert_eq!(world.unreadable(WORDS), "daemon< turnd/unreadable");
    assert_eq!(world.answered(2), "write A(hello) R=completed(hello)~;");
    assert_eq!(world.turn(3), "write A(hello) R=completed(hello);");
    world.prompt(4);
    world.unreadable(WORDS);
    world.says("hello");
    assert_eq!(world.answered(4), "write A(hello) R=completed(hello);", "that is promised to nobody");
}

#[test]
fn a_line_that_is_too_long_to_be_read_costs_the_certainty_too() {
    let mut world = World::ready();
    world.witnessed(2);
    assert_eq!(world.shown(Input::Unreadable(Unreadable::too_long(false))), "daemon< turnd/unreadable");
    world.says("hello");
    assert_eq!(world.answered(2), "write A(hello) R=completed(hello)~;");
}

#[test]
fn what_cannot_be_read_outside_of_a_turn_is_a_stray_word() {
    let mut world = World::ready();
    world.turn(2);
    assert_eq!(world.unreadable(WORDS), "daemon< turnd/unreadable; write late_output");
    assert_eq!(world.unreadable(WORDS), "daemon< turnd/unreadable");
    assert_eq!(world.turn(3), "write A(hello) R=completed(hello)!;");
    let mut world = World::ready();
    world.daemon(&witnessed_line(2));
    assert_eq!(world.unreadable(WORDS), "daemon< turnd/unreadable", "it cannot have read the prompt");
    world.input(Input::Reached(Reach::Whole));
    world.says("hello");
    assert_eq!(world.answered(2), "write A(hello) R=completed(hello)!;");
}

#[test]
fn what_cannot_be_read_of_a_history_is_none_and_behind_it_is() {
    let mut world = World::new(Mode::Recorded, Some("ses"));
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    assert_eq!(world.unreadable(WORDS), "", "there is no session");
    world.agent(r#"{"id":0,"result":{"agentCapabilities":{"loadSession":true}}}"#);
    world.daemon(r#"{"id":1,"method":"session/load","params":{"sessionId":"ses","cwd":"/ws"}}"#);
    assert_eq!(world.unreadable(WORDS), "");
    let mut world = loaded(Mode::Recorded);
    assert_eq!(world.unreadable(WORDS), "daemon< turnd/unreadable");
    assert_eq!(world.turn(2), "write A(hello) R=completed(hello)!;");
}

#[test]
fn a_text_that_is_not_just_what_the_agent_wrote_is_not_readable() {
    let mut world = World::ready();
    world.witnessed(2);
    assert_eq!(world.says(r"\ud83d"), "daemon< turnd/unreadable; daemon< session/update \u{fffd}");
    assert_eq!(world.answered(2), "write A(\u{fffd}) R=completed(\u{fffd})~;");
    world.witnessed(3);
    let bytes = [says_line("caf!").split('!').next().unwrap().as_bytes(), b"\xe9\"}}}}"].concat();
    let told = world.shown(Input::Agent(Message::parse(bytes.into()).unwrap()));
    assert_eq!(told, "daemon< turnd/unreadable; daemon< session/update caf\u{fffd}");
    assert_eq!(world.answered(3), "write A(caf\u{fffd}) R=completed(caf\u{fffd})~;");
    for other in [
        says_line(r"\ud83d").replace(r#""ses""#, r#""another""#),
        says_line(r"\ud83d").replace("agent_message", "agent_thought"),
        says_line("hello").replace("hello", r"\ud83d\ude00"),
    ] {
        world.witnessed(4);
        assert!(!world.agent(&other).contains("unreadable"), "{other}");
        assert!(!world.answered(4).contains('~'), "{other}");
    }
}

#[test]
fn what_may_have_been_the_answer_ends_the_turn_and_the_next_one_runs() {
    let mut world = World::ready();
    world.witnessed(2);
    world.says("hello");
    assert_eq!(world.mumbles(2), "write R=error(hello) A(hello); daemon< #2 error unreadable_answer");
    assert_eq!(world.turn(3), "write A(hello) R=completed(hello);");
    assert_eq!(world.prompt(4), "admit U(p4); agent< session/prompt#4");
    assert!(world.mumbles(4).ends_with("daemon< #4 error unreadable_answer"));
}

#[test]
fn what_may_have_been_another_answer_or_one_to_a_prompt_that_was_not_read_ends_no_turn() {
    let mut world = World::ready();
    world.daemon(&witnessed_line(2));
    assert_eq!(world.mumbles(2), "daemon< turnd/unreadable");
    world.input(Input::Reached(Reach::Whole));
    assert_eq!(world.mumbles(3), "daemon< turnd/unreadable");
    assert!(world.answered(2).contains("R=completed"));
}

#[test]
fn a_host_without_a_daemon_ends_with_an_answer_that_cannot_be_read() {
    let mut world = World::ready();
    world.witnessed(2);
    world.input(Input::DaemonGone);
    assert_eq!(world.unreadable(WORDS), "");
    assert_eq!(world.mumbles(2), "write R=error()~; end");
}
