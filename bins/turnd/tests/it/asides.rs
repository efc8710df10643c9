//! What is asked of a session beside its conversation, with the whole program.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::world::{World, until};

/// An open request on a connection of its own.
pub(crate) fn open(address: SocketAddr, method: &str, path: &str, client: Option<&str>, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let client = client.map(|id| format!("x-qwen-client-id: {id}\r\n")).unwrap_or_default();
    let body = body.to_string();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{client}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// The status of an answer and its text, to the end of the connection.
pub(crate) fn read(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn post(world: &mut World, session: &str, what: &str, body: &Value) -> (u16, Value) {
    world.call("POST", &format!("/session/{session}/{what}"), &body.to_string())
}

#[test]
fn a_summary_is_told_and_is_null_where_nothing_was_said() {
    let mut world = World::new();
    let session = world.session();
    assert_eq!(post(&mut world, &session, "recap", &json!({})), (200, json!({"sessionId": session, "recap": null})));
    let prompt = world.prompt(&session, "hello");
    world.settle(&session, &prompt);
    let (status, body) = post(&mut world, &session, "recap", &json!({}));
    assert_eq!((status, &body["recap"]), (200, &json!("1 asked, the last one: hello")));
}

#[test]
fn a_question_beside_a_running_prompt_is_answered_and_leaves_no_trace() {
    let mut world = World::with(&["--linger-ms", "100"]);
    let session = world.session();
    let prompt = world.prompt(&session, "hang");
    world.until_chunk(&session, &prompt);
    let (status, body) = post(&mut world, &session, "btw", &json!({"question": "why?"}));
    assert_eq!((status, body), (200, json!({"sessionId": session, "answer": "echo: why?"})));
    assert!(!world.transcript(&session).contains("why?"));
    assert_eq!(world.get(&format!("/session/{session}/turns/{prompt}"))["state"], "running");
}

#[test]
fn a_question_without_words_or_with_too_many_is_refused() {
    let mut world = World::new();
    let session = world.session();
    for body in [json!({}), json!({"question": " "}), json!({"question": 7}), json!({"question": "x".repeat(4097)})] {
        let (status, answer) = post(&mut world, &session, "btw", &body);
        assert_eq!((status, &answer["code"]), (400, &json!("invalid_question")), "{body}");
    }
}

#[test]
fn what_the_agent_cannot_do_is_said_with_a_code() {
    let mut world = World::new();
    let session = world.session();
    let (status, body) = post(&mut world, &session, "fork", &json!({"directive": "go"}));
    assert_eq!((status, &body["code"]), (501, &json!("fork_not_supported")));
    let (status, body) = post(&mut world, &session, "continue", &json!({}));
    assert_eq!((status, &body["code"]), (501, &json!("continue_not_supported")));
    let (status, body) = post(&mut world, &session, "fork", &json!({}));
    assert_eq!((status, &body["code"]), (400, &json!("missing_directive")));
}

#[test]
fn a_text_comes_as_a_stream_of_its_own() {
    let mut world = World::new();
    let session = world.session();
    let path = format!("/session/{session}/generate");
    let (status, body) = read(open(world.address(), "POST", &path, None, &json!({"prompt": "say hi"})));
    assert_eq!(status, 200);
    let frames: Vec<&str> = body.lines().filter(|line| line.starts_with(':') || line.contains(": ")).collect();
    assert_eq!(frames[0], ": connected");
    let events: Vec<&str> = frames.iter().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["started", "delta", "delta", "done"]);
    let data: Vec<Value> =
        frames.iter().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    assert!(data.iter().all(|one| one["v"] == 1 && one["requestId"] == data[0]["requestId"]));
    assert_eq!((&data[2]["seq"], &data[2]["text"], &data[3]["outputTokens"]), (&json!(1), &json!("say hi"), &json!(2)));
    assert!(!body.contains("\nid:") && !body.contains("retry:"));
    assert_eq!(world.transcript(&session), "");
}

#[test]
fn a_text_that_fails_before_its_first_word_is_a_refusal_and_no_stream() {
    let mut world = World::new();
    let session = world.session();
    let (status, body) = post(&mut world, &session, "generate", &json!({"prompt": "fail"}));
    assert_eq!((status, &body["error"], &body["code"]), (500, &json!("failed on purpose"), &json!(-32603)));
    for body in [json!({}), json!({"prompt": ""}), json!({"prompt": "x".repeat(32 * 1024 + 1)})] {
        let (status, answer) = post(&mut world, &session, "generate", &body);
        assert_eq!((status, &answer["code"]), (400, &json!("invalid_prompt")));
    }
}

#[test]
fn who_leaves_a_text_cancels_it() {
    let mut world = World::journaled(&[]);
    let session = world.session();
    let path = format!("/session/{session}/generate");
    let mut stream = open(world.address(), "POST", &path, None, &json!({"prompt": "slow 600000"}));
    let mut seen = [0; 4096];
    assert!(stream.read(&mut seen).unwrap() > 0);
    drop(stream);
    let cancels = |world: &World| {
        let heard = world.journal();
        heard.iter().any(|line| line["heard"]["method"] == "qwen/control/session/generation/cancel").then_some(())
    };
    until("the agent is told that nobody reads on", || cancels(&world));
}
