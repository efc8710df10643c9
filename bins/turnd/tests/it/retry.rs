//! A caller that never heard its receipt sends its prompt again, whatever was killed in between. It must have run once at most.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::world::{World, chats};

/// Lives of the daemon that are ended while an admission is on its way.
const LIVES: usize = 12;

fn body(id: &str, text: &str) -> String {
    json!({ "prompt": [{ "type": "text", "text": text }], "promptId": id }).to_string()
}

/// How often the agent of a session was handed the prompt, as its host recorded.
fn dispatches(world: &World, session: &str, id: &str) -> usize {
    let transcript = std::fs::read_to_string(chats(world).join(format!("{session}.jsonl"))).unwrap_or_default();
    let records = transcript.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|record| record["daemonPromptId"] == id).count()
}

#[test]
fn a_prompt_that_ended_is_known_by_its_id_after_a_kill_of_everything() {
    let mut world = World::new();
    let session = world.session();
    let path = format!("/session/{session}/prompt");
    assert_eq!(world.call("POST", &path, &body("job", "hello")).0, 202);
    world.settle(&session, "job");
    world.kill_everything();
    world.load(&session);
    let (status, again) = world.call("POST", &path, &body("job", "hello"));
    assert_eq!((status, &again["promptId"], &again["replayed"]), (202, &json!("job"), &json!(true)));
    let (status, refused) = world.call("POST", &path, &body("job", "hello!"));
    assert_eq!((status, &refused["code"]), (409, &json!("prompt_id_conflict")));
    let other = world.session();
    let (status, refused) = world.call("POST", &format!("/session/{other}/prompt"), &body("job", "hello"));
    assert_eq!((status, &refused["code"]), (409, &json!("prompt_id_conflict")));
    assert_eq!(world.settle(&session, "job")["resultText"], "echo: hello");
    assert_eq!(dispatches(&world, &session, "job"), 1);
}

#[test]
fn a_prompt_sent_again_after_a_kill_at_any_moment_of_its_admission_runs_at_most_once() {
    let mut world = World::new();
    let session = world.session();
    let path = format!("/session/{session}/prompt");
    // A session that nobody ever asked anything cannot be loaded.
    let first = world.prompt(&session, "hello");
    world.settle(&session, &first);
    for life in 0..LIVES {
        let (id, text) = (format!("job-{life}"), format!("hello {life}"));
        // The request is on its way when the daemon is killed: it may be unread, claimed, admitted, dispatched or answered.
        let request = body(&id, &text);
        let mut sent = TcpStream::connect(world.address()).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", world.address());
        sent.write_all(format!("{head}content-length: {}\r\n\r\n{request}", request.len()).as_bytes()).unwrap();
        for _ in 0..life / 2 {
            world.get("/health");
        }
        world.kill_everything();
        world.load(&session);
        let (status, receipt) = world.call("POST", &path, &request);
        assert_eq!((status, &receipt["promptId"]), (202, &json!(id)), "{receipt}");
        if receipt["replayed"] == true {
            // It was admitted before the kill: whatever became of it, it is not begun anew.
            assert!(dispatches(&world, &session, &id) <= 1, "{id}");
        } else {
            assert_eq!(world.settle(&session, &id)["resultText"], format!("echo: {text}"));
            assert_eq!(dispatches(&world, &session, &id), 1, "{id}");
        }
        assert_eq!(world.call("POST", &path, &request).1["replayed"], true);
        let ledger = std::fs::read_to_string(chats(&world).join(format!("{session}.ledger.jsonl"))).unwrap();
        let admissions =
            ledger.lines().filter(|line| line.contains(&format!("\"{id}\"")) && line.contains("in_flight"));
        assert_eq!(admissions.count(), 1, "{id}");
    }
}
