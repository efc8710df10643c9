//! One failure has one description: the event, the poll before and after a restart, the status, and the ledger's code agree.

use serde_json::{Value, json};

use crate::stream::follow;
use crate::world::{World, chats};

/// The description of a prompt's failure: its message and its code.
fn described(error: &Value) -> (Value, Value) {
    (error["message"].clone(), error["code"].clone())
}

/// The codes that the ledger's own lines give the prompt.
fn ledger_code(world: &World, session: &str, prompt: &str) -> Value {
    let text = std::fs::read_to_string(chats(world).join(format!("{session}.ledger.jsonl"))).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find(|line| line["promptId"] == prompt && line["terminal"] == "error").unwrap()["code"].clone()
}

/// The description in the prompt's `turn_error`, once the stream has ended.
fn in_event(frames: &[Value], prompt: &str) -> (Value, Value) {
    let error = frames.iter().find(|frame| frame["type"] == "turn_error" && frame["data"]["promptId"] == prompt);
    described(&error.unwrap()["data"])
}

/// Gathers a session's frames until its stream ends.
fn frames(world: &World, session: &str) -> std::thread::JoinHandle<Vec<Value>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = follow(world.address(), session, move |data| drop(sender.send(data.to_owned())));
    std::thread::spawn(move || {
        drop(reader.join());
        receiver.into_iter().map(|data| serde_json::from_str(&data).unwrap()).collect()
    })
}

/// Asserts that everything after a restart says of the prompt what its event said.
fn check_next_life(world: &mut World, session: &str, prompt: &str, event: &(Value, Value)) {
    world.kill_everything();
    let loaded = world.load(session);
    let terminals = loaded["promptTerminals"].as_array().unwrap();
    let terminal = terminals.iter().find(|terminal| terminal["promptId"] == prompt).unwrap();
    assert_eq!(terminal["code"], event.1, "{terminal}");
    let turn = world.get(&format!("/session/{session}/turns/{prompt}"));
    assert_eq!(&described(&turn["error"]), event, "{turn}");
    assert_eq!(ledger_code(world, session, prompt), event.1);
}

#[test]
fn an_agents_error_is_described_alike_everywhere() {
    for text in ["fail the model said no".to_owned(), format!("fail {}", "x".repeat(5_000))] {
        let mut world = World::new();
        let session = world.session();
        let reader = frames(&world, &session);
        let prompt = world.prompt(&session, &text);
        let turn = world.settle(&session, &prompt);
        let status = world.get(&format!("/session/{session}/status"));
        assert_eq!(described(&status["turnError"]), described(&turn["error"]));
        world.call("DELETE", &format!("/session/{session}"), "");
        let event = in_event(&reader.join().unwrap(), &prompt);
        assert_eq!(described(&turn["error"]), event);
        assert!(event.0.as_str().unwrap().len() <= 4_096 && event.1.is_string(), "{event:?}");
        check_next_life(&mut world, &session, &prompt, &event);
    }
}

#[test]
fn the_death_of_an_agent_is_described_alike_everywhere() {
    let mut world = World::new();
    let session = world.session();
    let reader = frames(&world, &session);
    let running = world.prompt(&session, "die");
    let queued = world.prompt(&session, "hello");
    world.until_gone(&session);
    let frames = reader.join().unwrap();
    for prompt in [&running, &queued] {
        let event = in_event(&frames, prompt);
        assert_eq!(event.1, "channel_closed");
        check_next_life(&mut world, &session, prompt, &event);
    }
}

#[test]
fn a_stop_of_the_daemon_is_described_alike_everywhere() {
    let mut world = World::new();
    let session = world.session();
    let reader = frames(&world, &session);
    let running = world.prompt(&session, "slow 60000");
    let queued = world.prompt(&session, "hello");
    world.until_chunk(&session, &running);
    assert_eq!(world.terminate(), Some(0));
    let frames = reader.join().unwrap();
    world.start_again();
    for prompt in [&running, &queued] {
        let event = in_event(&frames, prompt);
        assert_eq!(event, (json!("daemon shut down before the prompt completed"), json!("daemon_shutdown")));
        check_next_life(&mut world, &session, prompt, &event);
    }
}

#[test]
fn a_deadline_is_described_alike_until_the_turn_settles_and_the_terminal_keeps_its_code() {
    let mut world = World::new();
    let session = world.session();
    let reader = frames(&world, &session);
    let body = json!({ "prompt": [{ "type": "text", "text": "deaf 60000" }], "deadlineMs": 300 }).to_string();
    let (status, receipt) = world.call("POST", &format!("/session/{session}/prompt"), &body);
    assert_eq!(status, 202, "{receipt}");
    let prompt = receipt["promptId"].as_str().unwrap().to_owned();
    let turn = world.settle(&session, &prompt);
    let shown = world.get(&format!("/session/{session}/status"));
    assert_eq!(described(&shown["turnError"]), described(&turn["error"]));
    assert_eq!(ledger_code(&world, &session, &prompt), "prompt_deadline_exceeded");
    assert_eq!(world.terminate(), Some(0));
    assert_eq!(in_event(&reader.join().unwrap(), &prompt), described(&turn["error"]));
    // Its turn failed once more, when the daemon stopped; that is not what ended the prompt.
    world.start_again();
    let loaded = world.load(&session);
    assert_eq!(loaded["promptTerminals"][0]["code"], "prompt_deadline_exceeded");
    let later = world.get(&format!("/session/{session}/turns/{prompt}"));
    assert_eq!((&later["state"], &later["error"]["code"]), (&json!("error"), &json!("prompt_deadline_exceeded")));
}

#[test]
fn a_close_that_its_turn_does_not_heed_is_described_alike_everywhere() {
    let mut world = World::with(&["--close-settle-ms", "50"]);
    let session = world.session();
    let reader = frames(&world, &session);
    let running = world.prompt(&session, "deaf 60000");
    let queued = world.prompt(&session, "hello");
    world.until_chunk(&session, &running);
    assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
    let frames = reader.join().unwrap();
    assert_eq!(frames.last().unwrap()["type"], "session_closed");
    world.load(&session);
    for prompt in [&running, &queued] {
        let ends = frames.iter().filter(|frame| frame["data"]["promptId"] == **prompt);
        let ends = ends.filter(|frame| frame["type"] == "turn_error" || frame["type"] == "turn_complete");
        assert_eq!(ends.count(), 1, "{frames:?}");
        let event = in_event(&frames, prompt);
        assert_eq!(event, (json!("session closed before the prompt completed"), json!("session_closed")));
        check_next_life(&mut world, &session, prompt, &event);
    }
}

#[test]
fn a_prompt_that_was_told_as_cancelled_is_polled_so_after_a_restart_whatever_its_record_says() {
    // A cancel and the end of the turn crossed between daemon and host: stream and ledger say `cancelled`, the record something else.
    for (text, said) in [("hello", Some("echo: hello")), ("fail no", None)] {
        let mut world = World::new();
        let session = world.session();
        let prompt = world.prompt(&session, text);
        world.settle(&session, &prompt);
        assert_eq!(world.terminate(), Some(0));
        let path = chats(&world).join(format!("{session}.ledger.jsonl"));
        let lines = std::fs::read_to_string(&path).unwrap();
        let admission = lines.lines().next().unwrap();
        let told = json!({ "v": 1, "promptId": prompt, "terminal": "cancelled", "at": 1_900_000_000_000_u64 });
        std::fs::write(&path, format!("{admission}\n{told}\n")).unwrap();
        world.start_again();
        world.load(&session);
        let turn = format!("/session/{session}/turns/{prompt}");
        let (status, whole) = world.call("GET", &format!("{turn}/result"), "");
        assert_eq!(
            (status, &whole["code"], &whole["state"]),
            (404, &json!("no_result"), &json!("cancelled")),
            "{whole}"
        );
        let polled = world.get(&turn);
        assert_eq!(
            (&polled["state"], &polled["error"], &polled["resultText"]),
            (&json!("cancelled"), &json!(null), &json!(null))
        );
        assert_eq!(polled["partialText"].as_str(), said, "{polled}");
        assert_eq!(world.get(&format!("/session/{session}/turns/current"))["state"], "cancelled");
    }
}
