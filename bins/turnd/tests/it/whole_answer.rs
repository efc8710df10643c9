//! A long answer, from the agent through its host and the transcript to whoever asks for all of it, in this life and the next.

use crate::http::Connection;
use crate::world::World;

#[test]
fn an_answer_of_three_megabytes_is_given_whole_after_a_kill_of_everything() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "long 3000000");
    let turn = world.settle(&session, &prompt);
    assert_eq!((&turn["state"], turn["resultTruncated"] == true), (&"completed".into(), true));
    world.kill_everything();
    world.load(&session);
    let path = format!("/session/{session}/turns/{prompt}/result");
    let (status, text) = Connection::open(world.address()).call("GET", &path, "");
    assert_eq!((status, text.len()), (200, 3_000_000));
    assert!(text.starts_with(turn["resultText"].as_str().unwrap()));
}
