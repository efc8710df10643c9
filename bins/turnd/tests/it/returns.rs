//! Durable return requests with the whole program and the built-in agent, whose own journal counts the prompts that reached it. The tests
//! whose names begin with a number hold the scenario of that number (return requests, part 4); `docs/return-requests.md` lists them.

mod clock;
mod correlation;
mod crashes;
mod draining;
mod evidence;
mod forgotten;
mod idempotency;
mod interrupting;
mod kill_points;
mod lingering;
mod lying;
mod pruned;
mod racing;
mod reading;
mod straying;
mod stream;
mod submission;
mod terminals;
mod unread;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::world::{World, until};

/// A world whose agents keep a journal.
fn world() -> World {
    World::journaled(&["--linger-ms", "100"])
}

/// The body of a submission.
fn body(id: &str, text: &str) -> Value {
    json!({ "requestId": id, "prompt": [{ "type": "text", "text": text }] })
}

/// The same with further fields.
fn with(mut body: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn post(world: &mut World, session: &str, body: &Value) -> (u16, Value) {
    world.call("POST", &format!("/session/{session}/return-requests"), &body.to_string())
}

/// Posts a new request, which is taken.
fn submit(world: &mut World, session: &str, id: &str, text: &str) -> Value {
    submit_with(world, session, &body(id, text))
}

fn submit_with(world: &mut World, session: &str, body: &Value) -> Value {
    let (status, receipt) = post(world, session, body);
    assert_eq!(status, 202, "{receipt}");
    receipt
}

/// A request that is refused, with a proof that nothing of it was sent.
fn is_refused(world: &mut World, session: &str, body: &Value, status: u16, code: &str) {
    let (answered, refusal) = post(world, session, body);
    assert_eq!((answered, &refusal["code"]), (status, &json!(code)), "{refusal}");
    assert_eq!(refusal["input_written"], "no", "{refusal}");
}

fn get(world: &mut World, id: &str) -> Value {
    world.get(&format!("/return-requests/{id}"))
}

/// The clock that the daemon reads, too, in epoch milliseconds.
#[expect(clippy::disallowed_methods, reason = "what a daemon dates is compared with when it was looked at")]
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

/// Waits until a request has ended.
fn ended(world: &mut World, id: &str) -> Value {
    until("the request has ended", || {
        let receipt = world.get(&format!("/return-requests/{id}?wait_ms=500"));
        (receipt["reply_pending"] == false).then_some(receipt)
    })
}

/// Waits until a request is in this state.
fn reached(world: &mut World, id: &str, state: &str) -> Value {
    until(&format!("the request is {state}"), || {
        let receipt = get(world, id);
        (receipt["state"] == state).then_some(receipt)
    })
}

/// State, code and whether the input was written, as one short word.
fn told(receipt: &Value) -> String {
    let word = |key: &str| receipt[key].as_str().unwrap_or("-").to_owned();
    format!("{} {} {}", word("state"), word("code"), word("input_written"))
}

fn cancel(world: &mut World, id: &str, body: &Value) -> Value {
    let (status, receipt) = world.call("POST", &format!("/return-requests/{id}/cancel"), &body.to_string());
    assert_eq!(status, 200, "{receipt}");
    receipt
}

/// The agents were asked for so many prompts, and no more. What is in an agent's input it has yet to read.
fn sent(world: &World, count: usize) {
    until(&format!("{count} prompts were heard"), || (prompts(world) >= count).then_some(()));
    assert_eq!(prompts(world), count);
}

/// How many prompts the agents were asked for at all.
fn prompts(world: &World) -> usize {
    world.journal().iter().filter(|line| line["heard"]["method"] == "session/prompt").count()
}

/// How often the agents were told to stop.
fn interrupts(world: &World) -> usize {
    world.journal().iter().filter(|line| line["heard"]["method"] == "session/cancel").count()
}

/// All events behind a number.
fn events(world: &mut World, after: u64) -> Vec<Value> {
    world.get(&format!("/return-requests/events?after={after}&limit=1000"))["events"].as_array().unwrap().clone()
}

/// Waits until there are so many events, and checks that they are numbered in a row and tell of each request once.
fn all_events(world: &mut World, count: usize) -> Vec<Value> {
    let events = until(&format!("there are {count} events"), || {
        let events = events(world, 0);
        (events.len() >= count).then_some(events)
    });
    let numbers: Vec<_> = events.iter().map(|event| event["terminal_event_sequence"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=count as u64).collect::<Vec<_>>());
    let mut ids: Vec<_> = events.iter().map(|event| event["request_id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
    events
}
