//! Words into a running turn.

use super::*;

const ASK: &str = r#"{"id":"d","method":"craft/drainMidTurnQueue","params":{"sessionId":"ses"}}"#;
const SAID: &str = r#"{"id":"d","result":{"messages":["left"],"items":[{"messageId":"m","content":[{"type":"text","text":"left"}]}]}}"#;

#[test]
fn what_the_agent_takes_is_on_record_before_the_agent_has_it_and_is_no_prompt() {
    let mut world = World::ready();
    world.prompt(2);
    world.agent(ASK);
    let effects = world.input(Input::Daemon(message(SAID)));
    let [Effect::Append(records), Effect::ToAgent(_)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(records[..], [Body::MidTurn { parts: vec![serde_json::json!({"text": "left"})] }]);
}

#[test]
fn nothing_taken_or_taken_for_another_session_leaves_no_record() {
    let mut world = World::ready();
    world.prompt(2);
    world.agent(ASK);
    let nothing = r#"{"id":"d","result":{"messages":[],"items":[]}}"#;
    assert!(world.daemon(nothing).starts_with("agent< "));
    world.agent(&ASK.replace(r#""ses""#, r#""sub""#));
    assert!(world.daemon(SAID).starts_with("agent< "));
    world.agent(r#"{"id":"d","method":"x/y","params":{"sessionId":"ses"}}"#);
    assert!(world.daemon(SAID).starts_with("agent< "));
}
