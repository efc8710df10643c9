//! Events as JSON. The only file that knows the names on the wire.

use bytes::Bytes;

use crate::Frame;
use crate::bus::{Arrears, Bound, Gap};
use crate::event::{CancelNote, Event, Exit, News};
use crate::json::Object;
use crate::limits::{CODE_UNITS_MAX, MESSAGE_UNITS_MAX};
use crate::policy::Tally;
use crate::{Clipped, Decision, Resolution};

/// An envelope of an event: `{id?,v:1,type,data,promptId?,originatorClientId?,_meta:{serverTimestamp}}`.
pub(crate) fn event(event: &Event, session_id: &str, id: u64, at_ms: u64) -> Bytes {
    let data = data(event, session_id, at_ms);
    Object::new()
        .number("id", id)
        .number("v", 1)
        .text("type", kind(&event.news))
        .raw("data", &data)
        .maybe_text("promptId", event.prompt_id.as_deref())
        .maybe_text("originatorClientId", event.originator.as_deref())
        .raw("_meta", &stamp(at_ms))
        .finish()
        .into()
}

fn stamp(at_ms: u64) -> String {
    Object::new().number("serverTimestamp", at_ms).finish()
}

/// The type of an event.
pub(crate) fn kind(news: &News) -> &'static str {
    match news {
        News::Echo { .. } | News::Update { .. } => "session_update",
        News::PendingAdded { .. } => "pending_prompt_added",
        News::PendingStarted { .. } => "pending_prompt_started",
        News::PendingCompleted { .. } => "pending_prompt_completed",
        News::PromptCancelled { .. } => "prompt_cancelled",
        News::TurnComplete { .. } => "turn_complete",
        News::TurnError { .. } => "turn_error",
        News::PermissionRequest { .. } => "permission_request",
        News::PermissionPartialVote { .. } => "permission_partial_vote",
        News::PermissionForbidden { .. } => "permission_forbidden",
        News::PermissionResolved { .. } => "permission_resolved",
        News::PermissionAlreadyResolved { .. } => "permission_already_resolved",
        News::AgentReplaced { .. } => "agent_replaced",
        News::AgentKept { .. } => "agent_kept",
        News::SessionClosed { .. } => "session_closed",
        News::SessionDied { .. } => "session_died",
    }
}

fn data(event: &Event, session_id: &str, at_ms: u64) -> String {
    let session = || Object::new().text("sessionId", session_id);
    let prompt = || session().maybe_text("promptId", event.prompt_id.as_deref());
    let request = |id: &str| Object::new().text("requestId", id).text("sessionId", session_id);
    match &event.news {
        News::Echo { block } => session().raw("update", &echo(block, at_ms)).finish(),
        News::Update { raw } => session().raw("update", raw).finish(),
        News::PendingAdded { text, queued_at_ms } => {
            prompt().text("text", &text.text).number("queuedAt", *queued_at_ms).finish()
        }
        News::PendingStarted { text } => prompt().text("text", &text.text).finish(),
        News::PendingCompleted { removed } => {
            prompt().text("state", if *removed { "removed" } else { "completed" }).finish()
        }
        News::PromptCancelled { forward_failed } => {
            session().maybe_text("reason", forward_failed.then_some("forward_failed")).finish()
        }
        News::TurnComplete { stop_reason, branch_point, cancel, input_written } => prompt()
            .text("stopReason", stop_reason)
            .maybe_raw("branchPoint", branch_point.as_deref())
            .maybe_raw("promptCancelled", cancel.map(cancel_note).as_deref())
            .text("inputWritten", input_written.as_str())
            .finish(),
        News::TurnError { message, code, input_written, expiry } => failure(prompt(), message, code.as_deref())
            .maybe_text("deadline", expiry.map(|expiry| expiry.deadline.as_str()))
            .maybe_text("expiredWhile", expiry.map(|expiry| expiry.state.as_str()))
            .text("inputWritten", input_written.as_str())
            .finish(),
        News::PermissionRequest { request_id, tool_call, options, response_timeout_ms } => request(request_id)
            .raw("toolCall", tool_call)
            .raw("options", options)
            .maybe_number("responseTimeoutMs", *response_timeout_ms)
            .finish(),
        News::PermissionPartialVote { request_id, tally } => tallied(request(request_id), tally),
        News::PermissionForbidden { request_id, client_id, why } => {
            request(request_id).maybe_text("clientId", client_id.as_deref()).text("reason", why.as_str()).finish()
        }
        News::PermissionResolved { request_id, resolution: Resolution { decision, reason, voter, .. } } => {
            Object::new()
                .text("requestId", request_id)
                .raw("outcome", &outcome(decision))
                .maybe_text("voterClientId", voter.as_deref())
                .text("reason", reason.as_str())
                .finish()
        }
        News::PermissionAlreadyResolved { request_id, decision } => {
            request(request_id).raw("outcome", &outcome(decision)).finish()
        }
        News::AgentReplaced { reason, memory } => {
            prompt().text("reason", reason.as_str()).maybe_text("memory", memory.as_deref()).finish()
        }
        News::AgentKept { reason, code, message } => {
            prompt().text("reason", reason.as_str()).text("code", code).text("message", message).finish()
        }
        News::SessionClosed { reason, closed_by } => {
            session().text("reason", reason).maybe_text("closedBy", closed_by.as_deref()).finish()
        }
        News::SessionDied { reason, exit } => died(session().text("reason", reason), *exit),
    }
}

/// Message and code of a failure, cut as the poll cuts them, and whether they were.
fn failure(data: Object, message: &str, code: Option<&str>) -> Object {
    let message = Clipped::new(message, MESSAGE_UNITS_MAX);
    let code = code.map(|code| Clipped::new(code, CODE_UNITS_MAX));
    let cut = |is_cut: bool| is_cut.then_some("true");
    data.text("message", &message.text)
        .maybe_raw("messageTruncated", cut(message.truncated))
        .maybe_text("code", code.as_ref().map(|code| code.text.as_str()))
        .maybe_raw("codeTruncated", cut(code.as_ref().is_some_and(|code| code.truncated)))
}

fn echo(block: &str, at_ms: u64) -> String {
    let meta = Object::new().number("serverTimestamp", at_ms).text("source", "bridge-echo").finish();
    Object::new().text("sessionUpdate", "user_message_chunk").raw("content", block).raw("_meta", &meta).finish()
}

fn tallied(data: Object, tally: &Tally) -> String {
    let by_option = tally.by_option.iter();
    let by_option = by_option.fold(Object::new(), |object, (id, votes)| object.member(id, &votes.to_string()));
    data.number("votesReceived", tally.received as u64)
        .number("votesNeeded", tally.needed as u64)
        .number("quorum", tally.quorum as u64)
        .raw("optionTallies", &by_option.finish())
        .finish()
}

fn cancel_note(note: CancelNote) -> String {
    Object::new().number("cancelledAt", note.cancelled_at_ms).number("elapsedMs", note.elapsed_ms).finish()
}

/// An outcome as clients and agents both write it.
pub(crate) fn outcome(decision: &Decision) -> String {
    match decision {
        Decision::Selected { option_id } => {
            Object::new().text("outcome", "selected").text("optionId", option_id).finish()
        }
        Decision::Cancelled => Object::new().text("outcome", "cancelled").finish(),
    }
}

/// Either half may be missing or null: a process ends by a code or by a signal.
fn died(data: Object, exit: Option<Exit>) -> String {
    let Some(exit) = exit else { return data.finish() };
    let code = exit.code.map_or("null".to_owned(), |code| code.to_string());
    let signal = exit.signal.map_or("null".to_owned(), |signal| crate::json::quoted(&signal_name(signal)));
    data.raw("exitCode", &code).raw("signalCode", &signal).finish()
}

fn signal_name(signal: i64) -> String {
    const NAMES: [(i64, &str); 9] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
    ];
    let known = NAMES.iter().find(|(number, _)| *number == signal);
    known.map_or_else(|| format!("SIG{signal}"), |(_, name)| (*name).to_owned())
}

/// The stream has a gap behind the reader's cursor.
pub(crate) fn resync(gap: Gap, last_delivered: u64, earliest: u64, at_ms: u64) -> Frame {
    let (reason, detail) = match gap {
        Gap::EpochReset => ("epoch_reset", None),
        Gap::EpochMismatch => ("epoch_reset", Some("epoch_mismatch")),
        Gap::RingEvicted => ("ring_evicted", None),
        Gap::SeededReplay => ("seeded_replay_not_in_ring", None),
        Gap::ReplayBudget => ("replay_budget_exceeded", None),
    };
    let data = Object::new()
        .text("reason", reason)
        .maybe_text("detail", detail)
        .number("lastDeliveredId", last_delivered)
        .number("earliestAvailableId", earliest);
    synthetic("state_resync_required", data, at_ms)
}

/// Everything asked for has been sent; what follows is new.
pub(crate) fn replay_complete(count: u64, last_replayed: Option<u64>, tip: u64, at_ms: u64) -> Frame {
    let data = Object::new().number("replayedCount", count);
    let data = match last_replayed {
        Some(last) => data.number("lastReplayedEventId", last).number("lastEventId", tip),
        None => data,
    };
    synthetic("replay_complete", data, at_ms)
}

/// The reader falls behind.
pub(crate) fn slow(bound: Bound, arrears: Arrears, bounds: Arrears, last_event_id: u64, at_ms: u64) -> Frame {
    let threshold = match bound {
        Bound::Frames => "frames",
        Bound::Bytes => "bytes",
    };
    let data = queue(Object::new(), arrears, bounds).number("lastEventId", last_event_id).text("threshold", threshold);
    synthetic("slow_client_warning", data, at_ms)
}

/// The reader fell too far behind and gets nothing more.
pub(crate) fn evicted(bound: Bound, arrears: Arrears, bounds: Arrears, last_event_id: u64, at_ms: u64) -> Frame {
    let reason = match bound {
        Bound::Frames => "queue_overflow",
        Bound::Bytes => "queue_bytes_overflow",
    };
    let data = Object::new().text("reason", reason).number("droppedAfter", last_event_id);
    synthetic("client_evicted", queue(data, arrears, bounds), at_ms)
}

fn queue(data: Object, arrears: Arrears, bounds: Arrears) -> Object {
    data.number("queueSize", arrears.frames as u64)
        .number("maxQueued", bounds.frames as u64)
        .number("queuedBytes", arrears.bytes as u64)
        .number("maxQueuedBytes", bounds.bytes as u64)
}

/// An envelope about the stream itself, which has no number.
fn synthetic(kind: &'static str, data: Object, at_ms: u64) -> Frame {
    let envelope = Object::new().number("v", 1).text("type", kind).raw("data", &data.finish());
    Frame { id: None, kind, json: envelope.raw("_meta", &stamp(at_ms)).finish().into() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::StopWish;
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
        let expected =
            r#"{"id":1,"v":1,"type":"prompt_cancelled","data":{"sessionId":"s"},"_meta":{"serverTimestamp":2}}"#;
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
        let news =
            News::TurnError { message: "no".into(), code: None, input_written: InputWritten::Maybe, expiry: None };
        let data = json!({"sessionId": "s", "promptId": "A", "message": "no", "inputWritten": "maybe"});
        check(news, "turn_error", data);
    }

    #[test]
    fn a_long_error_is_cut_as_the_poll_cuts_it() {
        let (message, code) = ("m".repeat(MESSAGE_UNITS_MAX + 1), Some("c".repeat(CODE_UNITS_MAX + 1)));
        let news = News::TurnError { message, code, input_written: InputWritten::Yes, expiry: None };
        let data = json!({"sessionId": "s", "promptId": "A", "inputWritten": "yes", "messageTruncated": true, "codeTruncated": true,
            "message": "m".repeat(MESSAGE_UNITS_MAX), "code": "c".repeat(CODE_UNITS_MAX)});
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
        let data = json!({"requestId": "q", "sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": [{"optionId": "yes"}]});
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
        let asked =
            News::PermissionRequest { request_id: "q".into(), tool_call, options, response_timeout_ms: Some(900) };
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
        let replaced = |memory: Option<&str>| News::AgentReplaced {
            reason: StopWish::Deadline,
            memory: memory.map(str::to_owned),
        };
        let data = json!({"sessionId": "s", "promptId": "A", "reason": "deadline", "memory": "fresh"});
        check(replaced(Some("fresh")), "agent_replaced", data);
        check(replaced(None), "agent_replaced", json!({"sessionId": "s", "promptId": "A", "reason": "deadline"}));
        let kept = News::AgentKept { reason: StopWish::Cancel, code: "c".into(), message: "m".into() };
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
}
