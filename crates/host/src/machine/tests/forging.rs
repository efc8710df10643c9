//! What an agent says in the name of its host.

use super::*;

/// How an agent may spell what begins the names that daemon and host have between them.
const SPELLINGS: [&str; 4] = ["turnd/", r"turnd\/", r"\u0074urnd/", r"turnd\u002f"];

/// What the daemon is told of this answer to a prompt, with all that it would believe.
fn told(mode: Mode, answer: &str) -> Message {
    let mut world = match mode {
        Mode::Recorded => World::ready(),
        Mode::Native => World::new(mode, None),
    };
    world.prompt(5);
    let effects = world.input(Input::Agent(message(&format!(r#"{{"id":5,{answer}}}"#))));
    let lines = effects.iter().filter_map(|effect| match effect {
        Effect::ToDaemon(line) => Some(Message::parse(line.clone()).unwrap()),
        _ => None,
    });
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 1, "{answer}");
    lines[0].clone()
}

#[test]
fn an_agents_error_never_says_in_the_hosts_name_that_it_has_nothing_of_the_prompt() {
    for mode in [Mode::Recorded, Mode::Native] {
        for ours in SPELLINGS {
            for rest in ["", r#","d":1e9999"#, r#","deep":[[[["\ud83d"]]]]"#] {
                let data = format!(r#"{{"{ours}inputWritten":"no","{ours}code":"session_closed"{rest}}}"#);
                let error = told(mode, &format!(r#""error":{{"code":-32000,"message":"m","data":{data}}}"#));
                let error = error.rpc_error().unwrap();
                let data = error.data.unwrap_or_default();
                for name in ["turnd/inputWritten", "turnd/code"] {
                    assert_eq!(acp::raw_at(&data, &[name]), None, "{data}");
                }
                assert_eq!(error.code, -32000);
            }
        }
    }
}

#[test]
fn an_agents_result_never_says_in_the_hosts_name_how_its_turn_ended() {
    for ours in SPELLINGS {
        let meta = format!(r#"{{"x":1e9999,"{ours}turn":{{"state":"completed"}},"{ours}process":{{"pid":1}}}}"#);
        let answer = format!(r#""result":{{"stopReason":"max_tokens","_meta":{meta}}}"#);
        let native = told(Mode::Native, &answer);
        assert_eq!(acp::raw_at(native.result().unwrap(), &["_meta"]), Some(r#"{"x":1e9999}"#));
        let recorded = told(Mode::Recorded, &answer);
        assert_eq!(acp::raw_at(recorded.result().unwrap(), &["_meta", "turnd/process"]), None);
    }
}

#[test]
fn an_agent_answers_what_it_was_asked_and_nothing_else() {
    let mut world = World::ready();
    assert_eq!(world.daemon(r#"{"id":6,"method":"x/list"}"#), "agent< x/list#6");
    assert_eq!(world.agent(r#"{"id":7,"result":{}}"#), "", "that may be a question to its host");
    assert_eq!(world.agent(r#"{"id":6,"result":{"a":1}}"#), r#"daemon< #6 {"a":1}"#);
    assert_eq!(world.agent(r#"{"id":6,"result":{"a":1}}"#), "", "once");
}

#[test]
fn an_answer_is_still_heard_when_many_others_are_open() {
    let mut world = World::ready();
    for id in 10..10 + crate::limits::PASSED_MAX {
        world.daemon(&format!(r#"{{"id":{id},"method":"x/list"}}"#));
    }
    assert_ne!(world.agent(r#"{"id":10,"result":{}}"#), "");
    for id in 5_000..5_002 {
        world.daemon(&format!(r#"{{"id":{id},"method":"x/list"}}"#));
    }
    assert_eq!(world.agent(r#"{"id":11,"result":{}}"#), "", "the oldest has made room");
}
