//! Each event as it leaves, compared whole.

use serde_json::{Value, json};

use super::*;
use crate::event::StopCause;
use crate::{Clipped, Deadline, Expiry, FlushOrigin, Forbidden, InputWritten, PromptState, Reason};

/// The type and the data of an event about prompt `A`.
fn check(news: News, kind: &str, expected: Value) {
    let event = Event { prompt_id: Some("A".into()), originator: None, news };
    let envelope: Value = serde_json::from_slice(&super::event(&event, "s", 7, 9)).unwrap();
    let whole =
        json!({"id": 7, "v": 1, "type": kind, "data": expected, "promptId": "A", "_meta": {"serverTimestamp": 9}});
    assert_eq!(envelope, whole);
}

fn text(text: &str) -> Clipped {
    Clipped::new(text, 100)
}

#[test]
fn an_event_of_no_prompt_and_nobody_says_nothing_of_either() {
    let event = Event { prompt_id: None, originator: None, news: News::PromptCancelled { forward_failed: false } };
    let expected = r#"{"id":1,"v":1,"type":"prompt_cancelled","data":{"sessionId":"s"},"_meta":{"serverTimestamp":2}}"#;
    assert_eq!(super::event(&event, "s", 1, 2), expected);
}

#[test]
fn news_of_the_queue_name_the_prompt_in_their_data() {
    let added = News::PendingAdded { text: text("hi"), queued_at_ms: 5 };
    check(added, "pending_prompt_added", json!({"sessionId": "s", "promptId": "A", "text": "hi", "queuedAt": 5}));
    let started = News::PendingStarted { text: text("hi") };
    check(started, "pending_prompt_started", json!({"sessionId": "s", "promptId": "A", "text": "hi"}));
    for (removed, state) in [(true, "removed"), (false, "completed")] {
        let data = json!({"sessionId": "s", "promptId": "A", "state": state});
        check(News::PendingCompleted { removed }, "pending_prompt_completed", data);
    }
    let refused = json!({"sessionId": "s", "reason": "forward_failed"});
    check(News::PromptCancelled { forward_failed: true }, "prompt_cancelled", refused);
}

#[test]
fn a_cancelled_turn_says_when_and_after_how_long() {
    let news = News::TurnComplete {
        stop_reason: "cancelled".into(),
        branch_point: None,
        cancel: Some(CancelNote { cancelled_at_ms: 40, elapsed_ms: 30 }),
        input_written: InputWritten::Yes,
    };
    let data = json!({"sessionId": "s", "promptId": "A", "stopReason": "cancelled", "inputWritten": "yes",
        "promptCancelled": {"cancelledAt": 40, "elapsedMs": 30}});
    check(news, "turn_complete", data);
}

#[test]
fn an_error_may_lack_a_code() {
    let news = News::TurnError { message: "no".into(), code: None, input_written: InputWritten::Maybe, expiry: None };
    let data = json!({"sessionId": "s", "promptId": "A", "message": "no", "inputWritten": "maybe"});
    check(news, "turn_error", data);
}

#[test]
fn an_error_by_a_deadline_names_the_clock_and_what_the_prompt_did() {
    let expiry = Some(Expiry { deadline: Deadline::Absolute, state: PromptState::Queued });
    let code = Some("prompt_deadline_exceeded".to_owned());
    let news = News::TurnError { message: "late".into(), code, input_written: InputWritten::No, expiry };
    let data = json!({"sessionId": "s", "promptId": "A", "message": "late", "code": "prompt_deadline_exceeded",
        "deadline": "absolute", "expiredWhile": "queued", "inputWritten": "no"});
    check(news, "turn_error", data);
}

#[test]
fn a_completed_turn_may_name_where_to_branch() {
    let news = News::TurnComplete {
        stop_reason: "end_turn".into(),
        branch_point: Some(r#"{"checkpointUuid":"u"}"#.into()),
        cancel: None,
        input_written: InputWritten::Yes,
    };
    let data = json!({"sessionId": "s", "promptId": "A", "stopReason": "end_turn", "inputWritten": "yes",
        "branchPoint": {"checkpointUuid": "u"}});
    check(news, "turn_complete", data);
}

#[test]
fn updates_and_echoes_are_updates_of_the_session() {
    let raw = r#"{"sessionUpdate":"plan","entries":[]}"#;
    let data = json!({"sessionId": "s", "update": {"sessionUpdate": "plan", "entries": []}});
    check(News::Update { raw: raw.into() }, "session_update", data);
    let data = json!({"sessionId": "s", "update": {"sessionUpdate": "user_message_chunk",
        "content": {"type": "text", "text": "hi"}, "_meta": {"serverTimestamp": 9, "source": "bridge-echo"}}});
    check(News::Echo { block: r#"{"type":"text","text":"hi"}"#.into() }, "session_update", data);
}

#[test]
fn permissions_are_asked_for_and_decided_under_our_id() {
    let request_id: std::sync::Arc<str> = "q".into();
    let asked = News::PermissionRequest {
        request_id: request_id.clone(),
        tool_call: r#"{"toolCallId":"c"}"#.into(),
        options: r#"[{"optionId":"yes"}]"#.into(),
        response_timeout_ms: None,
    };
    let data =
        json!({"requestId": "q", "sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": [{"optionId": "yes"}]});
    check(asked, "permission_request", data);
    let decision = Decision::Selected { option_id: "yes".into() };
    let resolved = |decision, reason, voter: Option<&str>| News::PermissionResolved {
        request_id: "q".into(),
        resolution: Resolution { decision, reason, voter: voter.map(Into::into), at_ms: 1 },
    };
    let selected = json!({"outcome": "selected", "optionId": "yes"});
    let data = json!({"requestId": "q", "outcome": selected, "voterClientId": "v", "reason": "vote"});
    check(resolved(decision.clone(), Reason::Vote, Some("v")), "permission_resolved", data);
    let data = json!({"requestId": "q", "outcome": {"outcome": "cancelled"}, "reason": "session_closed"});
    let closed = Reason::Flushed(FlushOrigin::SessionClosed);
    check(resolved(Decision::Cancelled, closed, None), "permission_resolved", data);
    let data = json!({"requestId": "q", "sessionId": "s", "outcome": selected});
    check(News::PermissionAlreadyResolved { request_id, decision }, "permission_already_resolved", data);
}

#[test]
fn a_question_with_a_deadline_says_how_long_there_is_to_answer() {
    let (tool_call, options) = ("{}".to_owned(), "[]".to_owned());
    let asked = News::PermissionRequest { request_id: "q".into(), tool_call, options, response_timeout_ms: Some(900) };
    let data = json!({"requestId": "q", "sessionId": "s", "toolCall": {}, "options": [], "responseTimeoutMs": 900});
    check(asked, "permission_request", data);
}

#[test]
fn votes_that_do_not_decide_are_told_with_how_many_are_missing() {
    let by_option = [("yes".to_owned(), 2), ("a \"b\"".to_owned(), 1)].into();
    let tally = Tally { received: 3, needed: 1, quorum: 3, by_option };
    let data = json!({"requestId": "q", "sessionId": "s", "votesReceived": 3, "votesNeeded": 1, "quorum": 3,
        "optionTallies": {"yes": 2, "a \"b\"": 1}});
    check(News::PermissionPartialVote { request_id: "q".into(), tally }, "permission_partial_vote", data);
}

#[test]
fn a_vote_that_does_not_count_is_told_with_its_voter_and_why() {
    let forbidden = |client_id: Option<&str>, why| News::PermissionForbidden {
        request_id: "q".into(),
        client_id: client_id.map(Into::into),
        why,
    };
    let data = json!({"requestId": "q", "sessionId": "s", "clientId": "c", "reason": "designated_mismatch"});
    check(forbidden(Some("c"), Forbidden::DesignatedMismatch), "permission_forbidden", data);
    let data = json!({"requestId": "q", "sessionId": "s", "reason": "remote_not_allowed"});
    check(forbidden(None, Forbidden::RemoteNotAllowed), "permission_forbidden", data);
}

#[test]
fn a_replaced_agent_says_why_and_what_it_remembers_and_a_kept_one_why_it_was_kept() {
    let replaced =
        |memory: Option<&str>| News::AgentReplaced { reason: StopCause::Deadline, memory: memory.map(str::to_owned) };
    let data = json!({"sessionId": "s", "promptId": "A", "reason": "deadline", "memory": "fresh"});
    check(replaced(Some("fresh")), "agent_replaced", data);
    check(replaced(None), "agent_replaced", json!({"sessionId": "s", "promptId": "A", "reason": "deadline"}));
    let kept = News::AgentKept { reason: StopCause::Cancel, code: "c".into(), message: "m".into() };
    let data = json!({"sessionId": "s", "promptId": "A", "reason": "cancel", "code": "c", "message": "m"});
    check(kept, "agent_kept", data);
}

#[test]
fn a_slow_reader_is_told_how_slow() {
    let (arrears, bounds) = (Arrears { frames: 12, bytes: 34 }, Arrears { frames: 16, bytes: 100 });
    let data = |frame: &Frame| serde_json::from_slice::<Value>(&frame.json).unwrap()["data"].clone();
    let queue = json!({"queueSize": 12, "maxQueued": 16, "queuedBytes": 34, "maxQueuedBytes": 100});
    let with = |more: Value| {
        let mut whole = queue.clone();
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        whole
    };
    let slow = slow(Bound::Frames, arrears, bounds, 7, 0);
    assert_eq!(data(&slow), with(json!({"lastEventId": 7, "threshold": "frames"})));
    let evicted = evicted(Bound::Bytes, arrears, bounds, 7, 0);
    assert_eq!(data(&evicted), with(json!({"reason": "queue_bytes_overflow", "droppedAfter": 7})));
}

#[test]
fn the_end_of_a_session_says_why() {
    let closed = News::SessionClosed { reason: "client_close".into(), closed_by: Some("c".into()) };
    check(closed, "session_closed", json!({"sessionId": "s", "reason": "client_close", "closedBy": "c"}));
    let died = |exit| News::SessionDied { reason: "channel_closed", exit };
    check(died(None), "session_died", json!({"sessionId": "s", "reason": "channel_closed"}));
    let exited = Some(Exit { code: Some(1), signal: None });
    let data = json!({"sessionId": "s", "reason": "channel_closed", "exitCode": 1, "signalCode": null});
    check(died(exited), "session_died", data);
    for (signal, name) in [(15, "SIGTERM"), (64, "SIG64")] {
        let data = json!({"sessionId": "s", "reason": "channel_closed", "exitCode": null, "signalCode": name});
        check(died(Some(Exit { code: None, signal: Some(signal) })), "session_died", data);
    }
}

#[test]
fn frames_about_the_stream_have_no_number() {
    let frame = replay_complete(0, None, 9, 1);
    let expected = r#"{"v":1,"type":"replay_complete","data":{"replayedCount":0},"_meta":{"serverTimestamp":1}}"#;
    assert_eq!((frame.id, frame.kind, &*frame.json), (None, "replay_complete", expected.as_bytes()));
}
