//! What the agent says outside of its turns, and what the transcript has of it.

use super::written::witnessed_line;
use super::*;

impl World {
    /// A witnessed prompt, of which the agent has all.
    pub(super) fn witnessed(&mut self, id: u64) -> String {
        let fed = self.daemon(&witnessed_line(id));
        self.input(Input::Reached(Reach::Whole));
        fed
    }

    /// What is written when the agent answers.
    pub(super) fn answered(&mut self, id: u64) -> String {
        let shown = self.agent(&format!(r#"{{"id":{id},"result":{{"stopReason":"end_turn"}}}}"#));
        shown.split(" daemon<").next().unwrap().to_owned()
    }

    /// A witnessed turn that says hello, as it is written.
    pub(super) fn turn(&mut self, id: u64) -> String {
        self.witnessed(id);
        self.says("hello");
        self.answered(id)
    }
}

fn call_line() -> String {
    update_line(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}"#)
}

#[test]
fn what_is_said_first_behind_a_promised_turn_is_on_record_at_once() {
    for late in [says_line("late"), call_line()] {
        let mut world = World::ready();
        assert_eq!(world.turn(2), "write A(hello) R=completed(hello);");
        let told = world.agent(&late);
        assert!(told.starts_with("daemon< ") && told.ends_with("; write late_output"), "before the disk: {told}");
        assert_eq!(world.says("later"), "daemon< session/update later");
        assert!(world.witnessed(3).starts_with("write late_output; admit U(p3);"));
    }
}

#[test]
fn the_note_names_the_turn_behind_which_it_was_said() {
    let mut world = World::ready();
    world.turn(2);
    let effects = world.input(Input::Agent(message(&says_line("late"))));
    let [_, Effect::Append(records)] = &effects[..] else { panic!("{effects:?}") };
    let Body::System { payload, .. } = &records[0] else { panic!("{records:?}") };
    assert_eq!(*payload, serde_json::json!({ "promptId": "p2", "text": "late" }));
}

#[test]
fn each_promised_turn_of_an_agent_that_has_strayed_says_so_and_no_other_does() {
    let mut world = World::ready();
    world.prompt(2);
    world.answered(2);
    assert_eq!(world.says("late"), "daemon< session/update late", "behind a plain turn nothing waits for it");
    assert_eq!(world.turn(3), "write A(hello) R=completed(hello)!;");
    world.prompt(4);
    world.says("hello");
    assert_eq!(world.answered(4), "write A(hello) R=completed(hello);");
    assert_eq!(world.turn(5), "write A(hello) R=completed(hello)!;");
}

#[test]
fn what_is_said_before_any_of_a_prompt_can_be_read_is_not_recorded_as_its_answer() {
    let mut world = World::ready();
    world.daemon(&witnessed_line(2));
    assert_eq!(world.says("before"), "daemon< session/update before");
    world.input(Input::Reached(Reach::Whole));
    world.says("hello");
    assert_eq!(world.answered(2), "write A(hello) R=completed(hello)!;");
    assert!(world.prompt(3).starts_with("write late_output; admit"), "it is kept");
}

#[test]
fn a_message_that_began_in_another_turn_is_heard_out_of_its_turn() {
    let piece = says_line("hello").replace(r#""sessionUpdate""#, r#""messageId":"m","sessionUpdate""#);
    let mut world = World::ready();
    world.witnessed(2);
    world.agent(&piece);
    world.agent(&piece);
    assert_eq!(world.answered(2), "write A(hellohello) R=completed(hellohello);");
    world.witnessed(3);
    world.agent(&piece);
    assert_eq!(world.answered(3), "write A(hello) R=completed(hello)!;");
}

#[test]
fn what_is_no_part_of_an_answer_may_come_at_any_time() {
    let below = r#"{"sessionUpdate":"tool_call","toolCallId":"c","_meta":{"parentToolCallId":"d"}}"#;
    let usage = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{}}}"#;
    let thought = r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#;
    let state = r#"{"sessionUpdate":"usage_update"}"#;
    for update in [below, usage, thought, state] {
        let mut world = World::ready();
        world.turn(2);
        assert!(world.agent(&update_line(update)).starts_with("daemon<"), "{update}");
        assert_eq!(world.turn(3), "write A(hello) R=completed(hello);", "{update}");
    }
}

#[test]
fn another_process_has_a_clean_name() {
    let mut world = World::replaceable();
    world.turn(2);
    world.says("late");
    world.witnessed(3);
    world.daemon(r#"{"id":9,"method":"turnd/replace_agent","params":{"sessionId":"s","cwd":"/ws"}}"#);
    world.input(Input::Replaced(Ok(())));
    let greeting = format!(r#"{{"id":{},"result":{{"agentCapabilities":{{"loadSession":true}}}}}}"#, own(0));
    world.agent(&greeting);
    world.agent(&format!(r#"{{"id":{},"result":{{}}}}"#, own(1)));
    assert_eq!(world.turn(4), "write A(hello) R=completed(hello);");
}

/// A session `ses` that its agent has loaded, with a replay before the answer.
pub(super) fn loaded(mode: Mode) -> World {
    let mut world = World::new(mode, Some("ses"));
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(r#"{"id":0,"result":{"agentCapabilities":{"loadSession":true}}}"#);
    world.daemon(r#"{"id":1,"method":"session/load","params":{"sessionId":"ses","cwd":"/ws"}}"#);
    assert_eq!(world.says("replayed"), "");
    let answered = world.agent(&format!(r#"{{"id":{},"result":{{}}}}"#, own(0)));
    assert!(!answered.contains("strayed"), "a replay is none: {answered}");
    world
}

#[test]
fn what_is_said_behind_the_answer_to_a_load_is_told_of_once_and_shown_to_nobody() {
    for mode in [Mode::Recorded, Mode::Native] {
        let mut world = loaded(mode);
        let thought = r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#;
        assert_eq!(world.agent(&update_line(thought)), "", "that is no word of an answer");
        assert_eq!(world.says("late"), "daemon< turnd/strayed");
        assert_eq!(world.says("later"), "");
    }
    let mut world = loaded(Mode::Recorded);
    assert_eq!(world.turn(2), "write A(hello) R=completed(hello);");
    let mut world = loaded(Mode::Recorded);
    world.agent(&call_line());
    assert_eq!(world.turn(2), "write A(hello) R=completed(hello)!;");
}

#[test]
fn what_another_process_says_before_the_daemon_knows_it_is_told_behind_the_answer() {
    let mut world = World::replaceable();
    world.daemon(r#"{"id":8,"method":"session/set_mode","params":{"sessionId":"ses","modeId":"plan"}}"#);
    world.agent(r#"{"id":8,"result":{}}"#);
    world.witnessed(3);
    world.daemon(r#"{"id":9,"method":"turnd/replace_agent","params":{"sessionId":"s","cwd":"/ws"}}"#);
    world.input(Input::Replaced(Ok(())));
    world.agent(&format!(r#"{{"id":{},"result":{{"agentCapabilities":{{"loadSession":true}}}}}}"#, own(0)));
    world.agent(&format!(r#"{{"id":{},"result":{{}}}}"#, own(1)));
    assert_eq!(world.says("late"), "daemon< turnd/strayed");
    let told = world.agent(&format!(r#"{{"id":{},"result":{{}}}}"#, own(2)));
    assert!(told.starts_with("daemon< #9 ") && told.contains("; daemon< turnd/strayed"), "{told}");
    assert_eq!(world.turn(4), "write A(hello) R=completed(hello)!;");
}

#[test]
fn without_a_daemon_a_promised_answer_is_listened_behind_for_a_moment() {
    let mut world = World::ready();
    world.witnessed(2);
    assert_eq!(world.shown(Input::DaemonGone), "linger");
    assert_eq!(world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#), "write R=completed(); pause");
    assert_eq!(world.says("late"), "write late_output");
    assert_eq!(world.shown(Input::LingerExpired), "end");
}

#[test]
fn a_daemon_that_dies_in_that_moment_leaves_the_rest_of_it_to_the_host() {
    let mut world = World::ready();
    world.turn(2);
    assert_eq!(world.shown(Input::DaemonGone), "pause");
    assert_eq!(world.says("late"), "write late_output");
    assert_eq!(world.shown(Input::LingerExpired), "end");
    let mut world = World::ready();
    world.turn(2);
    world.at_ms += crate::limits::LATE_WORDS_MS;
    assert_eq!(world.shown(Input::DaemonGone), "end");
    let mut world = World::ready();
    world.prompt(2);
    world.answered(2);
    assert_eq!(world.shown(Input::DaemonGone), "end", "nothing was promised");
}

/// A piece of what the agent takes for its user's words. The prompt is `go`.
fn user_line(message_id: &str, text: &str) -> String {
    let content = format!(r#"{{"type":"text","text":"{text}"}}"#);
    update_line(&format!(r#"{{"sessionUpdate":"user_message_chunk","messageId":"{message_id}","content":{content}}}"#))
}

#[test]
fn scenarios_46_and_47_a_promised_turn_whose_agent_was_asked_something_else_says_so() {
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[], ""),
        (&[("m", "g"), ("m", "o")], ""),
        (&[("m", "gone")], "PromptMismatch"),
        (&[("m", "g")], "PromptMismatch"),
        (&[("m", "go"), ("n", "on")], "ExtraUserMessage"),
    ];
    for (pieces, said) in cases {
        let mut world = World::ready();
        world.witnessed(2);
        for (id, text) in pieces {
            world.agent(&user_line(id, text));
        }
        world.says("hello");
        assert_eq!(world.answered(2), format!("write A(hello) R=completed(hello){said};"), "{pieces:?}");
        world.prompt(3);
        world.agent(&user_line("o", "gone"));
        assert_eq!(world.answered(3), "write R=completed();", "of a plain one nothing is said");
    }
}

#[test]
fn a_promised_turn_says_so_where_nobody_can_tell_what_of_its_answer_a_piece_is() {
    let unnamed = says_line("X").replace(r#""sessionId":"ses","#, "");
    let untyped = update_line(r#"{"sessionUpdate":"agent_message_chunk","content":{"text":"X"}}"#);
    let numbered = says_line("X").replace(r#""ses""#, "7");
    let ours = says_line("X").replace(r#""ses""#, r#""ours""#);
    for line in [unnamed, untyped, numbered, ours] {
        let mut world = World::ready();
        world.machine.session = "ours".to_owned();
        world.witnessed(2);
        world.says("A");
        world.agent(&line);
        world.says("B");
        assert_eq!(world.answered(2), "write A(AB) R=completed(AB)!;", "{line}");
        assert_eq!(world.turn(3), "write A(hello) R=completed(hello);", "of that turn alone");
    }
}

#[test]
fn a_question_about_a_call_begins_the_answer_anew_where_it_is_its_first_sign() {
    let asks = |call: &str| {
        format!(
            r#"{{"id":"x","method":"session/request_permission","params":{{"sessionId":"ses","options":[],"toolCall":{call}}}}}"#
        )
    };
    for (call, end) in [
        (r#"{"toolCallId":"c"}"#, "write A(B) R=completed(B);"),
        (r#"{"toolCallId":"c","_meta":{"parentToolCallId":"p"}}"#, "write A(AB) R=completed(AB);"),
        ("{}", "write A(AB) R=completed(AB);"),
    ] {
        let mut world = World::ready();
        world.witnessed(2);
        world.says("A");
        world.agent(&asks(call));
        world.says("B");
        let ended = world.answered(2);
        assert_eq!(ended.replace("T#c- ", "").replace("Tc- ", ""), end, "{call}");
    }
}
