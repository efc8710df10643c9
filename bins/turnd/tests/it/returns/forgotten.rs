//! Ids that a store may have forgotten: of none of them is it said that nothing was sent under it, whatever else keeps a prompt out.

use request::RequestId;
use serde_json::{Value, json};

use super::{body, ended, get, now_ms, post, prompts, sent, submit, with, world};
use crate::commands::{stdout, turnd};
use crate::requests::stderr;
use crate::world::{World, chats};

const MINUTE_MS: u64 = 60_000;

/// An id of version 7 that was made then.
fn made_at(at_ms: u64) -> String {
    RequestId::version_7(at_ms, [5; 10]).as_str().to_owned()
}

/// Ends the daemon, loses the whole database, makes a store of the nothing that is left, and starts another daemon on it.
fn lose(world: &mut World) {
    assert_eq!(world.terminate(), Some(0));
    let folder = chats(world).with_file_name("turnd-requests");
    std::fs::write(folder.join("requests.db"), vec![0xa5; 50_000]).unwrap();
    let _ = std::fs::remove_file(folder.join("requests.db-wal"));
    let rescue = request::store::recover(&folder, 0, now_ms()).unwrap();
    assert!(rescue.is_unreadable, "{rescue:?}");
    world.start_again();
}

/// Status, code, and what is said of the input.
fn said((status, refusal): &(u16, Value)) -> String {
    let word = |key: &str| refusal[key].as_str().unwrap_or("-").to_owned();
    format!("{status} {} {}", word("code"), word("input_written"))
}

const EXPIRED: &str = "410 request_id_expired maybe";

#[test]
fn scenario_08_an_id_that_may_be_forgotten_is_said_to_be_whatever_else_keeps_its_prompt_out() {
    let mut world = world();
    let session = world.session();
    let id = made_at(now_ms());
    submit(&mut world, &session, &id, "hello");
    ended(&mut world, &id);
    lose(&mut world);
    assert_eq!(said(&post(&mut world, &session, &body(&id, "hello"))), EXPIRED, "no session is loaded");
    for wrong in [json!({ "foo": 1 }), json!({ "timeoutMs": -1 }), json!({ "prompt": [] })] {
        let malformed = with(body(&id, "hello"), &wrong);
        assert_eq!(said(&post(&mut world, &session, &malformed)), EXPIRED, "{malformed}");
    }
    assert_eq!(said(&world.call("GET", &format!("/return-requests/{id}"), "")), EXPIRED);
    assert_eq!(said(&world.call("POST", &format!("/return-requests/{id}/cancel"), "{}")), EXPIRED);
    world.load(&session);
    world.prompt(&session, "hang");
    assert_eq!(said(&post(&mut world, &session, &body(&id, "hello"))), EXPIRED, "it is busy");
    let stale = with(body(&id, "hello"), &json!({ "expectedIncarnation": "old", "queue": true }));
    assert_eq!(said(&post(&mut world, &session, &stale)), EXPIRED);
    world.call("POST", &format!("/session/{session}/cancel"), "{}");
    let daemon = format!("http://{}", world.address());
    for words in [["get", &id], ["wait", &id], ["cancel", &id]] {
        let output = turnd(&[&["request"], &words[..], &["--url", &daemon]].concat());
        assert_eq!(output.status.code(), Some(3), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("request_id_expired"), "{}", stderr(&output));
    }
    let again = ["send", &session, "--return-final", "--request-id", &id, "--url", &daemon, "hello"];
    assert_eq!(turnd(&again).status.code(), Some(3));
    sent(&world, 2);
}

#[test]
fn an_id_of_a_clock_that_is_a_little_ahead_is_not_sent_again_behind_a_loss_and_one_that_is_far_ahead_never() {
    let mut world = world();
    let session = world.session();
    let (near, far) = (made_at(now_ms() + MINUTE_MS / 2), made_at(now_ms() + 2 * MINUTE_MS));
    submit(&mut world, &session, &near, "hello");
    ended(&mut world, &near);
    let refused = post(&mut world, &session, &body(&far, "hello"));
    assert_eq!(said(&refused), "400 request_id_ahead no");
    assert_eq!(refused.1["ahead_ms_max"], MINUTE_MS);
    assert_eq!(said(&world.call("GET", &format!("/return-requests/{far}"), "")), "404 request_not_found -");
    lose(&mut world);
    world.load(&session);
    assert_eq!(said(&post(&mut world, &session, &body(&near, "hello"))), EXPIRED);
    sent(&world, 1);
}

#[test]
fn behind_a_loss_whoever_lets_an_id_be_made_is_served_at_once() {
    let mut world = world();
    lose(&mut world);
    let session = world.session();
    let floor = world.get("/return-requests/stream")["tombstone_floor"].as_u64().unwrap();
    assert!(floor > now_ms(), "{floor}");
    let (status, receipt) = post(&mut world, &session, &json!({ "prompt": [{ "type": "text", "text": "hello" }] }));
    assert_eq!(status, 202, "{receipt}");
    ended(&mut world, receipt["request_id"].as_str().unwrap());
    let daemon = format!("http://{}", world.address());
    let output = turnd(&["send", &session, "--return-final", "--url", &daemon, "hello"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let receipt: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let id = receipt["request_id"].as_str().unwrap();
    assert_eq!(ended(&mut world, id)["state"], "completed");
    assert_eq!(get(&mut world, id)["request_id"], id);
    assert_eq!(prompts(&world), 2);
}
