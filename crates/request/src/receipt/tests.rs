use serde_json::Value;

use super::*;
use crate::Hash;
use crate::machine::tests::notation::play;

fn shown(script: &str) -> Value {
    let played = play(script);
    let event = TerminalEvent::new(&played.request, "s1", 1, &Hash([0; 32]), 77);
    let event = played.request.state.is_terminal().then_some(&event);
    let beside =
        Beside { stream_id: "s1", event, late: &played.late, waiting_on: Some("permission"), ..Beside::default() };
    serde_json::from_str(&receipt(&played.request, &beside)).unwrap()
}

#[test]
fn a_pending_one_says_where_it_stands() {
    let shown = shown("registered > admitted > dispatched > written");
    assert_eq!(shown["reply_pending"], true);
    assert_eq!((&shown["state"], &shown["input_written"]), (&"submitted".into(), &"yes".into()));
    assert_eq!(shown["baseline"], serde_json::json!({"turn": 3, "prompt_id": "p0"}));
    assert_eq!(shown["armed_cursor"], serde_json::json!({"event_id": 7, "transcript_tail": "t"}));
    assert_eq!(shown["waiting_on"], "permission");
    assert_eq!(shown.get("terminal"), None);
    assert_eq!(shown["incarnation"]["id"], "i1");
    assert_eq!(shown["incarnation"]["pid"], Value::Null);
}

#[test]
fn scenario_67_an_ended_one_carries_its_event_byte_for_byte() {
    let request = play("registered > dispatched > written > end_turn \"hi\"").request;
    let event = TerminalEvent::new(&request, "s1", 1, &Hash([0; 32]), 77);
    let beside = Beside { stream_id: "s1", event: Some(&event), ..Beside::default() };
    let shown = receipt(&request, &beside);
    assert!(shown.ends_with(&format!("\"terminal\":{}}}", event.payload)), "{shown}");
    assert!(shown.contains("\"reply_pending\":false"));
}

#[test]
fn a_phase_is_shown_of_a_registered_one_alone() {
    for (script, expected) in [
        ("registered", Some("registered")),
        ("registered > admitted", Some("admitted")),
        ("registered > admitted > dispatched", Some("dispatching")),
        ("registered > admitted > dispatched > written", None),
        ("registered > dispatched > written > end_turn \"hi\"", None),
        ("registered > cancel", None),
    ] {
        assert_eq!(shown(script)["phase"].as_str(), expected, "{script}");
    }
}

#[test]
fn what_came_late_stands_beside_the_end() {
    let shown = shown("registered > dispatched > deadline > written > end_turn \"hi\"");
    assert_eq!(shown["terminal"]["state"], "timed_out");
    assert_eq!(shown["late_outcome"]["state"], "completed");
    assert_eq!(shown["late_evidence"][0]["kind"], "write");
    assert_eq!(shown.get("waiting_on"), None, "it waits for nothing any more");
}

#[test]
fn a_process_is_shown_only_when_it_is_the_requests_own() {
    let request = play("registered").request;
    let process = |id: &str| Incarnation {
        incarnation_id: id.to_owned(),
        daemon_epoch: 4,
        boot_id: "b".to_owned(),
        child_pid: 42,
        child_start_ticks: 5,
        nonce: "n".to_owned(),
        agent_name: None,
        agent_version: None,
        protocol_version: None,
        workspace_key: "w".to_owned(),
        spawned_at: 1,
        ended_at: None,
        end_reason: None,
    };
    let shown = |id: &str| -> Value {
        let process = process(id);
        let beside = Beside { stream_id: "s1", incarnation: Some(&process), ..Beside::default() };
        serde_json::from_str(&receipt(&request, &beside)).unwrap()
    };
    assert_eq!(shown("i1")["incarnation"]["pid"], 42);
    assert_eq!(shown("i2")["incarnation"]["pid"], Value::Null);
}
