//! An agent may spell the number of what it answers in another way than it was asked.

use super::*;

#[test]
fn an_answer_under_the_same_number_ends_the_turn_for_the_host_as_for_the_daemon() {
    let mut world = World::new(Mode::Recorded, None);
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(r#"{"id":0.0,"result":{}}"#);
    world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
    assert!(world.agent(r#"{"id":1.0,"result":{"sessionId":"ses"}}"#).starts_with("remember ses in /ws"));
    world.prompt(2);
    world.says("an answer");
    let ended = world.agent(r#"{"id":2.0,"result":{"stopReason":"end_turn"}}"#);
    assert!(ended.contains("write ") && ended.contains("completed"), "{ended}");
    // A string of it is another id, and so is another number.
    world.prompt(3);
    assert!(!world.agent(r#"{"id":"3.0","result":{"stopReason":"end_turn"}}"#).contains("write "));
    assert!(!world.agent(r#"{"id":3.5,"result":{"stopReason":"end_turn"}}"#).contains("write "));
}
