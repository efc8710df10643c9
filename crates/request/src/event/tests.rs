use serde_json::Value;

use super::*;
use crate::machine::tests::notation::play;

fn event(script: &str, seq: u64, before: &Hash) -> TerminalEvent {
    TerminalEvent::new(&play(script).request, "s1", seq, before, 77)
}

fn body(script: &str) -> Value {
    serde_json::from_str(&event(script, 1, &genesis("s1")).payload).unwrap()
}

const COMPLETED: &str = "registered > admitted > dispatched > written > bound > end_turn \"hi\"";

#[test]
fn a_completed_one_says_all_of_it() {
    let event = event(COMPLETED, 5, &genesis("s1"));
    let expected = concat!(
        r#"{"v":1,"stream_id":"s1","terminal_event_sequence":5,"request_id":"r1","state":"completed","code":null,"#,
        r#""detail":null,"final_message":"hi","final_truncated":false,"final_bytes":2,"#,
        r#""final_sha256":"8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4","#,
        r#""stop_reason":"end_turn","evidence":"rpc_response","input_written":"yes","session_id":"s1","prompt_id":"p1","#,
        r#""incarnation_id":"i1","created_at":1,"submitted_at":12,"ended_at":14,"cursor":""#,
    );
    assert_eq!(event.payload, format!("{expected}{}\"}}", Cursor::new("s1", 5, &event.chain)));
}

#[test]
fn only_a_completed_one_has_anything_of_a_final_message() {
    for script in [
        "registered > cancel",
        "registered > dispatched > written > max_tokens \"hi\"",
        "registered > dispatched > written > deadline > end_turn \"hi\"",
        "registered > dispatched > written > mismatch(yes)",
        "registered > dispatched > write failed(part)",
    ] {
        let body = body(script);
        for member in ["final_message", "final_truncated", "final_bytes", "final_sha256"] {
            assert_eq!(body.get(member), None, "{script}: {member}");
        }
    }
    assert_eq!(body(COMPLETED)["final_message"], "hi");
}

#[test]
fn the_cursor_in_it_is_its_own_place() {
    let event = event(COMPLETED, 5, &genesis("s1"));
    let body: Value = serde_json::from_str(&event.payload).unwrap();
    let position = crate::Position::parse(body["cursor"].as_str().unwrap()).unwrap();
    assert_eq!(position, crate::Position::Cursor(Cursor::new("s1", 5, &event.chain)));
}

#[test]
fn the_chain_recomputes_from_the_bodies() {
    let first = event(COMPLETED, 1, &genesis("s1"));
    let second = event("registered > cancel", 2, &first.chain);
    assert_eq!(link(&genesis("s1"), &first.payload), first.chain);
    assert_eq!(link(&first.chain, &second.payload), second.chain);
}

#[test]
fn a_chain_tells_histories_apart() {
    let one = event(COMPLETED, 1, &genesis("s1"));
    assert_ne!(one.chain, event("registered > cancel", 1, &genesis("s1")).chain, "another body");
    assert_ne!(one.chain, event(COMPLETED, 1, &genesis("s2")).chain, "another history before");
    assert_ne!(one.chain, link(&genesis("s1"), &one.payload.replace("\"hi\"", "\"ho\"")), "a body that was changed");
    assert_ne!(genesis("s1"), genesis("s2"));
}

#[test]
fn a_text_that_looks_like_the_cursor_is_a_text() {
    let event = event("registered > dispatched > written > end_turn \",\"cursor\":", 1, &genesis("s1"));
    assert!(event.payload.contains("final_message"));
    assert_eq!(link(&genesis("s1"), &event.payload), event.chain);
}

#[test]
fn no_payload_panics() {
    for payload in ["", "}", "ä", ",\"cursor\":", "{}"] {
        let _ = link(&genesis("s1"), payload);
    }
}
