//! The machine, driven line by line. What it does is shown in words: `agent< x` and `daemon< x` are lines sent, `write x`
//! records appended, `admit x` the user record that must be confirmed.

mod about;
mod commands;
mod ending;
mod forging;
mod numbering;
mod properties;
mod replacing;
mod restoring;
mod rewinding;
mod setting;
mod steering;
mod straying;
mod unreadable;
mod written;

use acp::{Kind, Outcome};

use super::*;
use crate::turn::tests::shown;
use crate::wire;

/// A machine with somebody around it who confirms every user record.
pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) at_ms: u64,
    pub(super) writable: bool,
    /// What comes of a rewind's record.
    pub(super) rewound: Result<(), NotRewound>,
}

impl World {
    pub(super) fn new(mode: Mode, remembered: Option<&str>) -> Self {
        let machine = Machine::new(mode, remembered.map(str::to_owned));
        Self { machine, at_ms: 0, writable: true, rewound: Ok(()) }
    }

    /// A recorded session `ses` whose agent has answered everything up to the first prompt.
    pub(super) fn ready() -> Self {
        let mut world = Self::new(Mode::Recorded, None);
        world.daemon(r#"{"id":0,"method":"initialize"}"#);
        world.agent(r#"{"id":0,"result":{}}"#);
        world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
        world.agent(r#"{"id":1,"result":{"sessionId":"ses"}}"#);
        world
    }

    /// The same with an agent that can load.
    pub(super) fn replaceable() -> Self {
        let mut world = Self::new(Mode::Recorded, None);
        world.daemon(r#"{"id":0,"method":"initialize","params":{"protocolVersion":1}}"#);
        world.agent(r#"{"id":0,"result":{"agentCapabilities":{"loadSession":true}}}"#);
        world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
        world.agent(r#"{"id":1,"result":{"sessionId":"ses"}}"#);
        world
    }

    pub(super) fn input(&mut self, input: Input) -> Vec<Effect> {
        self.at_ms += 1;
        let mut effects = self.machine.handle(self.at_ms, input);
        if matches!(effects.last(), Some(Effect::Admit { .. })) {
            let confirmed = if self.writable { Ok(()) } else { Err("disk full".to_owned()) };
            effects.extend(self.machine.handle(self.at_ms, Input::Admitted(confirmed)));
        }
        if matches!(effects.last(), Some(Effect::Rewind { .. })) {
            effects.extend(self.machine.handle(self.at_ms, Input::Rewound(self.rewound.clone())));
        }
        if let Some(Effect::Record { request, .. }) = effects.last() {
            let result = if self.writable { Ok(()) } else { Err("disk full".to_owned()) };
            let recorded = Input::Recorded { request: request.clone(), result };
            effects.extend(self.machine.handle(self.at_ms, recorded));
        }
        effects
    }

    fn shown(&mut self, input: Input) -> String {
        self.input(input).iter().map(shown_effect).collect::<Vec<_>>().join("; ")
    }

    pub(super) fn daemon(&mut self, line: &str) -> String {
        self.shown(Input::Daemon(message(line)))
    }

    pub(super) fn agent(&mut self, line: &str) -> String {
        self.shown(Input::Agent(message(line)))
    }

    fn prompt(&mut self, id: u64) -> String {
        self.daemon(&prompt_line(id))
    }

    fn says(&mut self, text: &str) -> String {
        self.agent(&says_line(text))
    }
}

pub(super) fn message(line: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(line.as_bytes())).unwrap()
}

/// The id of the host's own request of this number.
pub(super) fn own(number: u64) -> u64 {
    OWN_ID_FIRST + number
}

/// The prompt `p<id>` under the request id `id`.
pub(super) fn prompt_line(id: u64) -> String {
    format!(
        r#"{{"id":{id},"method":"session/prompt","params":{{"sessionId":"ses","prompt":[{{"type":"text","text":"go"}}],
        "_meta":{{"qwen-code/invocation":{{"promptId":"p{id}"}}}}}}}}"#
    )
}

pub(super) fn says_line(text: &str) -> String {
    update_line(&format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#))
}

pub(super) fn update_line(update: &str) -> String {
    format!(r#"{{"method":"session/update","params":{{"sessionId":"ses","update":{update}}}}}"#)
}

fn shown_effect(effect: &Effect) -> String {
    let words = |records: &[Body]| records.iter().map(shown).collect::<Vec<_>>().join(" ");
    match effect {
        Effect::ToAgent(line) => format!("agent< {}", shown_line(line)),
        Effect::Feed(line) => format!("feed {}", shown_line(line)),
        Effect::ToDaemon(line) => format!("daemon< {}", shown_line(line)),
        Effect::Append(records) => format!("write {}", words(records)),
        Effect::Admit { record, .. } => format!("admit {}", shown(record)),
        Effect::Record { record, .. } => format!("record {}", shown(record)),
        Effect::Remember { agent_session, cwd } => format!("remember {agent_session} in {cwd}"),
        Effect::Keep(choices) => {
            format!("keep {}", choices.iter().map(|choice| choice.value.to_string()).collect::<Vec<_>>().join(" "))
        }
        Effect::Rewind { rewind, at_ms } => {
            format!("forget, rewind to {} at {at_ms}", rewind.before.as_deref().unwrap_or("nothing"))
        }
        Effect::RunCommand(text) => format!("run {text}"),
        Effect::StopCommand => "stop command".to_owned(),
        Effect::Linger => "linger".to_owned(),
        Effect::Pause => "pause".to_owned(),
        Effect::Replace => "replace".to_owned(),
        Effect::End => "end".to_owned(),
    }
}

/// A line in short: its method or id, and what of its content matters here.
pub(super) fn shown_line(line: &Bytes) -> String {
    assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'), "one line: {line:?}");
    let message = Message::parse(line.slice(..line.len() - 1)).unwrap();
    match message.kind() {
        Kind::Notification { method } => {
            match message.params().and_then(|it| acp::string_at(it, &["update", "content", "text"])) {
                Some(text) => format!("{method} {text}"),
                None => method.clone(),
            }
        }
        Kind::Request { id, method } => format!("{method}#{id}"),
        Kind::Response { id } => {
            let id = id.as_ref().map_or("?".to_owned(), ToString::to_string);
            match message.outcome().unwrap() {
                Outcome::Result(result) => format!("#{id} {result}"),
                Outcome::Error(error) => format!("#{id} error {}", wire::code_and_message(&error).0),
            }
        }
    }
}

#[test]
fn a_prompt_goes_to_the_agent_behind_its_record_and_its_answer_behind_its_result() {
    let mut world = World::ready();
    assert_eq!(world.prompt(2), "admit U(p2); agent< session/prompt#2");
    assert_eq!(world.says("hel"), "daemon< session/update hel");
    assert_eq!(world.says("lo"), "daemon< session/update lo");
    let answer = world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    let stamp = r#"{"_meta":{"turnd/turn":{"state":"completed"}},"stopReason":"end_turn"}"#;
    assert_eq!(answer, format!("write A(hello) R=completed(hello); daemon< #2 {stamp}"));
}

#[test]
fn a_new_session_is_noted() {
    let mut world = World::new(Mode::Recorded, None);
    let request = r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#;
    assert_eq!(world.daemon(request), "agent< session/new#1");
    let answer = world.agent(r#"{"id":1,"result":{"sessionId":"ses"}}"#);
    assert_eq!(answer, r#"remember ses in /ws; daemon< #1 {"sessionId":"ses"}"#);
}

#[test]
fn a_prompt_whose_record_cannot_be_written_is_refused_and_the_next_is_not() {
    let mut world = World::ready();
    world.writable = false;
    assert_eq!(world.prompt(2), "admit U(p2); daemon< #2 error transcript_unwritable");
    world.writable = true;
    assert_eq!(world.prompt(3), "admit U(p3); agent< session/prompt#3");
}

#[test]
fn a_prompt_whose_record_was_not_confirmed_has_no_turn_to_end() {
    let mut world = World::ready();
    let effects = world.machine.handle(9, Input::Daemon(message(&prompt_line(2))));
    assert!(matches!(effects[..], [Effect::Admit { .. }]), "{effects:?}");
    assert_eq!(world.shown(Input::Terminated), "daemon< #2 error host_terminated; end");
}

#[test]
fn a_refused_prompt_says_that_it_was_not_handed_on() {
    let mut world = World::ready();
    world.writable = false;
    let effects = world.input(Input::Daemon(message(&prompt_line(2))));
    let Some(Effect::ToDaemon(line)) = effects.last() else { panic!("{effects:?}") };
    let data = Message::parse(line.clone()).unwrap().rpc_error().unwrap().data.unwrap();
    assert_eq!(acp::string_at(&data, &["turnd/inputWritten"]).as_deref(), Some("no"));
}

#[test]
fn the_agent_never_has_two_prompts_and_no_other_session_under_a_turn() {
    let mut world = World::ready();
    world.prompt(2);
    assert_eq!(world.prompt(3), "daemon< #3 error turn_in_progress");
    for method in ["session/new", "session/load"] {
        let line = format!(r#"{{"id":3,"method":"{method}","params":{{"sessionId":"ses","cwd":"/ws"}}}}"#);
        assert_eq!(world.daemon(&line), "daemon< #3 error turn_in_progress", "{method}");
    }
    assert_eq!(world.daemon(r#"{"id":3,"method":"session/set_mode"}"#), "agent< session/set_mode#3");
}

#[test]
fn a_prompt_that_could_not_be_recorded_is_refused() {
    let mut world = World::ready();
    for params in [
        r#"{"sessionId":"ses","prompt":[]}"#,
        r#"{"sessionId":"ses","prompt":[],"_meta":{"qwen-code/invocation":{"promptId":""}}}"#,
        r#"{"sessionId":"other","prompt":[],"_meta":{"qwen-code/invocation":{"promptId":"p"}}}"#,
        r#"{"sessionId":"ses","_meta":{"qwen-code/invocation":{"promptId":"p"}}}"#,
    ] {
        let line = format!(r#"{{"id":2,"method":"session/prompt","params":{params}}}"#);
        assert_eq!(world.daemon(&line), "daemon< #2 error invalid_prompt", "{params}");
    }
}

#[test]
fn a_prompt_before_there_is_a_session_is_refused() {
    let mut world = World::new(Mode::Recorded, None);
    let params = r#"{"prompt":[],"_meta":{"qwen-code/invocation":{"promptId":"p"}}}"#;
    let line = format!(r#"{{"id":2,"method":"session/prompt","params":{params}}}"#);
    assert_eq!(world.daemon(&line), "daemon< #2 error invalid_prompt");
}

#[test]
fn once_cancelled_a_turn_is_cancelled_whatever_the_agent_says() {
    for (answer, own_word) in [
        (r#"{"id":2,"result":{"stopReason":"end_turn"}}"#, r#","agentStopReason":"end_turn""#),
        (r#"{"id":2,"result":null}"#, ""),
        (r#"{"id":2,"error":{"code":-32603,"message":"aborted"}}"#, ""),
    ] {
        let mut world = World::ready();
        world.prompt(2);
        world.says("hel");
        let cancel = r#"{"method":"session/cancel","params":{"sessionId":"ses"}}"#;
        assert_eq!(world.daemon(cancel), "agent< session/cancel");
        let stamp =
            format!(r#"{{"_meta":{{"turnd/turn":{{"state":"cancelled"{own_word}}}}},"stopReason":"cancelled"}}"#);
        assert_eq!(world.agent(answer), format!("write R=cancelled(hel) A(hel); daemon< #2 {stamp}"), "{answer}");
    }
}

#[test]
fn a_cancel_behind_the_end_of_a_turn_does_not_reach_the_next() {
    let mut world = World::ready();
    let cancel = r#"{"method":"session/cancel","params":{"sessionId":"ses"}}"#;
    assert_eq!(world.daemon(cancel), "");
    world.prompt(2);
    world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(world.daemon(cancel), "");
    world.prompt(3);
    assert!(world.agent(r#"{"id":3,"result":{"stopReason":"end_turn"}}"#).starts_with("write R=completed()"));
}

#[test]
fn an_agent_that_calls_its_turn_cancelled_has_not_completed_it() {
    let mut world = World::ready();
    world.prompt(2);
    let answer = world.agent(r#"{"id":2,"result":{"stopReason":"cancelled"}}"#);
    assert!(answer.starts_with("write R=cancelled()"), "{answer}");
    assert!(answer.contains(r#"{"state":"cancelled","agentStopReason":"cancelled"}"#), "{answer}");
}

#[test]
fn an_error_passes_as_it_came_behind_its_result() {
    let mut world = World::ready();
    world.prompt(2);
    world.says("hel");
    let answer = world.agent(r#"{"id":2,"error":{"code":400,"message":"bad"}}"#);
    assert_eq!(answer, "write R=error(hel) A(hel); daemon< #2 error 400");
}

#[test]
fn an_answer_without_a_stop_reason_is_no_answer() {
    for result in ["null", "{}", r#"{"stopReason":null}"#, r#"{"stopReason":""}"#] {
        let mut world = World::ready();
        world.prompt(2);
        let answer = world.agent(&format!(r#"{{"id":2,"result":{result}}}"#));
        assert_eq!(answer, "write R=error(); daemon< #2 error invalid_answer", "{result}");
    }
}

#[test]
fn a_second_answer_and_one_to_nothing_change_nothing() {
    let mut world = World::ready();
    world.prompt(2);
    assert_eq!(world.agent(r#"{"id":null,"error":{"code":1,"message":"?"}}"#), "daemon< #? error 1");
    world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    let second = world.agent(r#"{"id":2,"result":{"stopReason":"refusal"}}"#);
    assert_eq!(second, "", "the daemon may have given that number to something else");
}

#[test]
fn what_is_not_understood_passes_as_it_came() {
    let mut world = World::ready();
    for line in [
        r#"{"id":"a\ud83d","method":"craft/drain","params":{"x":[1, 2]}}"#,
        r#"{"method":"_auth/status_update","params":null}"#,
        r#"{"result":{"a":1},"id":77}"#,
    ] {
        world.daemon(r#"{"id":77,"method":"x/y"}"#);
        let sent = world.input(Input::Agent(message(line)));
        assert_eq!(sent, [Effect::ToDaemon(Bytes::from(format!("{line}\n")))]);
        let sent = world.input(Input::Daemon(message(line)));
        assert_eq!(sent, [Effect::ToAgent(Bytes::from(format!("{line}\n")))]);
    }
}

#[test]
fn a_permission_request_writes_the_call_it_is_about() {
    let mut world = World::ready();
    world.prompt(2);
    let call = r#"{"toolCallId":"1","title":"ls","rawInput":{"a":1}}"#;
    let ask = format!(
        r#"{{"id":"x","method":"session/request_permission","params":{{"sessionId":"ses","options":[],"toolCall":{call}}}}}"#
    );
    assert_eq!(world.agent(&ask), r#"write A(#1); daemon< session/request_permission#"x""#);
}

#[test]
fn another_sessions_words_pass_and_are_not_recorded() {
    let mut world = World::ready();
    world.prompt(2);
    let other = says_line("sub").replace("\"ses\"", "\"other\"");
    assert_eq!(world.agent(&other), "daemon< session/update sub");
    let answer = world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert!(answer.starts_with("write R=completed();"), "{answer}");
}

#[test]
fn words_outside_a_turn_are_kept_as_no_evidence() {
    let mut world = World::ready();
    world.prompt(2);
    world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(world.says("late"), "daemon< session/update late");
    assert_eq!(world.prompt(3), "write late_output; admit U(p3); agent< session/prompt#3");
    world.agent(r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    world.says("later");
    assert_eq!(world.daemon(r#"{"method":"turnd/close"}"#), "write late_output; end");
}

#[test]
fn a_native_agents_answer_passes_as_it_came_and_nothing_is_written() {
    let mut world = World::new(Mode::Native, None);
    world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
    let known = world.agent(r#"{"id":1,"result":{"sessionId":"ses"}}"#);
    assert_eq!(known, r#"daemon< #1 {"sessionId":"ses"}"#);
    assert_eq!(world.prompt(2), "agent< session/prompt#2");
    assert_eq!(world.prompt(3), "daemon< #3 error turn_in_progress");
    assert_eq!(world.says("hello"), "daemon< session/update hello");
    world.daemon(r#"{"method":"session/cancel","params":{"sessionId":"ses"}}"#);
    let answer = world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(answer, r#"daemon< #2 {"stopReason":"end_turn"}"#);
    assert_eq!(world.says("late"), "daemon< session/update late");
    world.prompt(4);
    let gone = world.shown(Input::AgentGone(Exit::default()));
    assert_eq!(gone, "daemon< #4 error channel_closed; daemon< turnd/agent_exited; end");
}

#[test]
fn a_host_without_an_agent_answers_once_and_ends() {
    let why = wire::refusal(wire::code::SESSION_WRITER_CONFLICT, "taken", "by process 1");
    let mut world = World::ready();
    world.machine = Machine::without_agent(Mode::Recorded, why);
    let answer = world.daemon(r#"{"id":0,"method":"initialize"}"#);
    assert_eq!(answer, "daemon< #0 error session_writer_conflict; end");
    assert_eq!(world.daemon(r#"{"id":1,"method":"session/new"}"#), "");
}

#[test]
fn more_questions_than_the_bound_are_refused() {
    let mut world = World::ready();
    for id in 0..crate::limits::ASKED_MAX {
        world.agent(&format!(r#"{{"id":{id},"method":"_q"}}"#));
    }
    assert_eq!(world.agent(r#"{"id":"one more","method":"_q"}"#), "agent< #\"one more\" error -32601");
}

#[test]
fn an_answer_too_long_to_be_read_ends_the_turn_with_its_own_code() {
    let mut world = World::ready();
    world.prompt(2);
    let told =
        world.input(Input::AnswerLost { limit_bytes: 64 }).iter().map(shown_effect).collect::<Vec<_>>().join("; ");
    assert!(told.contains("daemon< #2 error frame_too_long"), "{told}");
    assert_eq!(world.prompt(3), "admit U(p3); agent< session/prompt#3");
}

#[test]
fn an_agent_cannot_speak_with_our_codes() {
    let mut world = World::ready();
    world.prompt(2);
    let forged =
        r#"{"id":2,"error":{"code":-7,"message":"m","data":{"turnd/code":"prompt_deadline_exceeded","details":"d"}}}"#;
    let told = world.agent(forged);
    assert!(!told.contains("prompt_deadline_exceeded"), "{told}");
    assert!(told.contains("-7"), "{told}");
}
