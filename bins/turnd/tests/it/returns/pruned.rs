//! What is said over HTTP of requests, ids and events that are not kept any more.

use request::store::{Options, Pruned, Retention, Store};
use serde_json::{Value, json};

use super::{all_events, body, ended, events, post, sent, submit, told, with, world};
use crate::world::{World, chats};

/// A version-7 id of July 2025.
const OLD_ID: &str = "01980000-0000-7000-8000-000000000001";

/// Ends the daemon, forgets in its store what would be forgotten a minute behind this end, with the ids if they are to be, and starts it
/// again.
fn forget(world: &mut World, last: &Value, kept_requests: u64, ids_too: bool) -> Pruned {
    assert_eq!(world.terminate(), Some(0));
    let now_ms = last["ended_at"].as_u64().unwrap();
    let (store, _) = Store::open(&chats(world).with_file_name("turnd-requests"), Options::default(), now_ms).unwrap();
    let tombstone_ms = if ids_too { 0 } else { u64::MAX };
    let retention = Retention { kept_ms: 0, kept_requests, bytes_max: u64::MAX, tombstone_ms };
    let pruned = store.prune(retention, now_ms + 60_000).unwrap();
    store.close(now_ms).unwrap();
    world.start_again();
    pruned
}

#[test]
fn scenario_07_the_same_again_of_a_pruned_id_is_answered_with_how_it_ended_and_other_input_is_refused() {
    let mut world = world();
    let session = world.session();
    let over = ["X", "Y"].map(|id| {
        submit(&mut world, &session, id, "hello");
        ended(&mut world, id)
    });
    assert_eq!(forget(&mut world, &over[1], 1, false).requests, 1);
    let fresh = world.session();
    let (status, again) = post(&mut world, &session, &body("X", "hello"));
    let remains = json!({
        "v": 1, "request_id": "X", "reply_pending": false, "replayed": true, "expired_payload": true,
        "state": "completed", "code": null, "terminal_event_sequence": 1, "ended_at": over[0]["ended_at"],
    });
    assert_eq!((status, again), (200, remains));
    for (session, text) in [(&session, "hello "), (&fresh, "hello")] {
        let (status, refusal) = post(&mut world, session, &body("X", text));
        assert_eq!((status, &refusal["code"]), (422, &json!("request_id_reused")), "{refusal}");
    }
    for (method, path) in [("GET", "/return-requests/X"), ("POST", "/return-requests/X/cancel")] {
        let (status, refusal) = world.call(method, path, if method == "GET" { "" } else { "{}" });
        assert_eq!((status, &refusal["code"]), (410, &json!("request_payload_expired")), "{method}: {refusal}");
        assert_eq!((&refusal["state"], &refusal["terminal_event_sequence"]), (&json!("completed"), &json!(1)));
    }
    let (status, again) = post(&mut world, &session, &body("Y", "hello"));
    assert_eq!((status, &again["terminal"]), (200, &over[1]["terminal"]), "it is among the newest");
    assert_eq!(events(&mut world, 1), [over[1]["terminal"].clone()]);
    sent(&world, 2);
}

#[test]
fn scenario_08_an_id_from_before_what_is_remembered_is_refused_as_one_that_may_have_been_sent() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, OLD_ID, "hello");
    let over = ended(&mut world, OLD_ID);
    assert_eq!(told(&over), "completed - yes");
    assert_eq!(forget(&mut world, &over, 0, true).tombstones, 1);
    world.load(&session);
    for text in ["hello", "something else"] {
        for queue in [false, true] {
            let (status, refusal) = post(&mut world, &session, &with(body(OLD_ID, text), &json!({ "queue": queue })));
            assert_eq!((status, &refusal["code"]), (410, &json!("request_id_expired")), "{refusal}");
            assert_eq!(refusal["input_written"], "maybe", "{refusal}");
        }
    }
    let (status, refusal) = world.call("GET", &format!("/return-requests/{OLD_ID}"), "");
    assert_eq!((status, &refusal["code"]), (410, &json!("request_id_expired")), "{refusal}");
    // One that is made now cannot have been forgotten.
    let nameless = json!({ "prompt": [{ "type": "text", "text": "hello" }] });
    let (status, receipt) = post(&mut world, &session, &nameless);
    assert_eq!(status, 202, "{receipt}");
    let over = ended(&mut world, receipt["request_id"].as_str().unwrap());
    assert_eq!((told(&over).as_str(), &over["terminal"]["terminal_event_sequence"]), ("completed - yes", &json!(2)));
    sent(&world, 2);
}

#[test]
fn scenario_72_a_place_before_what_is_kept_is_gone_in_every_form_and_says_where_the_stream_begins() {
    let mut world = world();
    let session = world.session();
    for id in ["X", "Y", "Z"] {
        submit(&mut world, &session, id, "hello");
        ended(&mut world, id);
    }
    let all = all_events(&mut world, 3);
    let cursor = |event: usize| all[event]["cursor"].as_str().unwrap().to_owned();
    assert_eq!(forget(&mut world, &all[2], 1, false).requests, 2);
    let [early, edge] = [0, 1].map(cursor);
    let forms = ["application/json", "application/x-ndjson", "text/event-stream"];
    for (accept, place) in forms
        .iter()
        .flat_map(|accept| ["after=0", "after=1", &format!("cursor={early}")].map(|place| (accept, place.to_owned())))
    {
        let (path, headers) = (format!("/return-requests/events?{place}"), format!("accept: {accept}\r\n"));
        let (status, text) = world.connect().try_call_with("GET", &path, &headers, "").unwrap();
        let refusal: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &refusal["code"]), (410, &json!("cursor_too_old")), "{accept} {place}: {refusal}");
        assert_eq!((&refusal["oldest"], &refusal["head"]), (&json!(3), &json!(3)), "{refusal}");
    }
    let seen = format!("accept: text/event-stream\r\nlast-event-id: {early}\r\n");
    let (status, _) = world.connect().try_call_with("GET", "/return-requests/events", &seen, "").unwrap();
    assert_eq!(status, 410, "a browser that was away for too long");
    let page = world.get(&format!("/return-requests/events?cursor={edge}"));
    assert_eq!(page["events"], json!([all[2]]), "whoever has read all that is gone has lost nothing");
    assert_eq!(world.get("/return-requests/stream")["oldest"], 3);
}
