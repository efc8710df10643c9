//! What is recorded about a session beside its turns.

use super::*;

fn title(id: u64) -> String {
    format!(
        r#"{{"id":{id},"method":"turnd/record","params":{{"sessionId":"ses","subtype":"custom_title","payload":{{"customTitle":"n"}}}}}}"#
    )
}

#[test]
fn a_name_is_on_record_before_the_daemon_hears_that_it_is_and_whatever_runs() {
    let mut world = World::ready();
    assert_eq!(world.daemon(&title(2)), "record custom_title; daemon< #2 {}");
    world.prompt(3);
    assert_eq!(world.daemon(&title(4)), "record custom_title; daemon< #4 {}");
    world.writable = false;
    assert_eq!(world.daemon(&title(5)), "record custom_title; daemon< #5 error transcript_unwritable");
}

#[test]
fn nothing_else_is_recorded_on_a_daemons_word() {
    let mut world = World::ready();
    for params in [
        r#"{"subtype":"turn_result","payload":{}}"#,
        r#"{"subtype":"custom_title","payload":"n"}"#,
        r#"{"subtype":"custom_title"}"#,
        "{}",
    ] {
        let line = format!(r#"{{"id":2,"method":"turnd/record","params":{params}}}"#);
        assert_eq!(world.daemon(&line), "daemon< #2 error not_recorded", "{params}");
    }
    let mut native = World::new(Mode::Native, None);
    assert_eq!(native.daemon(&title(2)), "daemon< #2 error not_recorded", "the agent writes its own");
}

#[test]
fn a_model_that_is_switched_is_on_record_before_the_daemon_hears_it_and_once() {
    let mut world = World::ready();
    let ask = r#"{"id":2,"method":"session/set_model","params":{"sessionId":"ses","modelId":"m-2"}}"#;
    assert_eq!(world.daemon(ask), "agent< session/set_model#2");
    assert_eq!(world.agent(r#"{"id":2,"result":{}}"#), r#"write session_model; keep "m-2"; daemon< #2 {}"#);
    assert_eq!(world.machine.model.as_deref(), Some("m-2"));
    assert_eq!(world.daemon(ask), "agent< session/set_model#2");
    assert_eq!(world.agent(r#"{"id":2,"result":{}}"#), "daemon< #2 {}");
    world.daemon(r#"{"id":3,"method":"session/set_model","params":{"sessionId":"ses","modelId":"m-9"}}"#);
    assert_eq!(world.agent(r#"{"id":3,"error":{"code":-32603,"message":"no"}}"#), "daemon< #3 error -32603");
    assert_eq!(world.machine.model.as_deref(), Some("m-2"));
}

#[test]
fn a_model_that_is_an_option_is_read_where_the_options_are_listed() {
    let options = |model| {
        format!(r#""configOptions":[{{"id":"x","currentValue":"y"}},{{"category":"model","currentValue":"{model}"}}]"#)
    };
    let mut world = World::ready();
    let update = update_line(&format!(r#"{{"sessionUpdate":"config_option_update",{}}}"#, options("m-2")));
    assert_eq!(world.agent(&update), "write session_model; daemon< session/update");
    world.daemon(
        r#"{"id":2,"method":"session/set_config_option","params":{"sessionId":"ses","configId":"m","value":"m-3"}}"#,
    );
    let answer = format!(r#"{{"id":2,"result":{{{}}}}}"#, options("m-3"));
    assert!(world.agent(&answer).starts_with(r#"write session_model; keep "m-3"; daemon< #2 "#));
    assert_eq!(world.machine.model.as_deref(), Some("m-3"));
}

fn idea(text: &str) -> String {
    update_line(&format!(r#"{{"sessionUpdate":"session_info_update","title":"{text}"}}"#))
}

#[test]
fn what_an_agent_calls_its_session_is_recorded_between_turns_once_and_at_the_end() {
    let mut world = World::ready();
    assert_eq!(world.agent(&idea("one")), "write custom_title; daemon< session/update");
    world.prompt(2);
    assert_eq!(world.agent(&idea("two")), "daemon< session/update");
    assert_eq!(world.agent(&idea("three")), "daemon< session/update");
    let done = world.agent(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert!(done.starts_with("write R=completed(); write custom_title; daemon< #2 "), "{done}");
    assert_eq!(world.agent(&idea("three")), "daemon< session/update");
    assert_eq!(world.agent(&idea(" ")), "daemon< session/update");
    assert_eq!(world.agent(&idea("four")), "daemon< session/update");
    let closed = world.input(Input::Daemon(message(r#"{"method":"turnd/close","params":{}}"#)));
    let Effect::Append(records) = &closed[0] else { panic!("{closed:?}") };
    let payload = serde_json::json!({ "customTitle": "four", "titleSource": "auto" });
    assert_eq!(records[..], [Body::System { subtype: "custom_title".into(), payload }]);
}

#[test]
fn a_persons_name_outlives_the_agents_ideas_also_under_the_next_host() {
    let mut world = World::ready();
    world.writable = false;
    world.daemon(&title(2));
    assert_eq!(world.agent(&idea("idea")), "write custom_title; daemon< session/update", "the name is not on record");
    world.writable = true;
    world.daemon(&title(3));
    world.agent(&idea("other"));
    assert_eq!(world.shown(Input::Terminated).matches("custom_title").count(), 0);
    for (source, count) in [(r#","titleSource":"manual""#, 0), ("", 0), (r#","titleSource":"auto""#, 1)] {
        let noted: serde_json::Value = serde_json::from_str(&format!(r#"{{"customTitle":"n"{source}}}"#)).unwrap();
        let mut world = World::ready();
        world.machine = std::mem::replace(&mut world.machine, Machine::new(Mode::Recorded, None)).named(Some(&noted));
        world.agent(&idea("idea"));
        assert_eq!(world.shown(Input::Terminated).matches("custom_title").count(), count, "{noted}");
    }
}
