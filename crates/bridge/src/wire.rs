//! Events as JSON. The only file that knows the names on the wire.

use bytes::Bytes;

use crate::Frame;
use crate::bus::{Arrears, Bound, Gap};
use crate::event::{CancelNote, Event, Exit, News};
use crate::json::{Object, array, quoted};
use crate::policy::Tally;
use crate::session::steering::Said;
use crate::{Decision, Resolution};

#[cfg(test)]
mod tests;

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
        News::MidTurnInjected { .. } => "mid_turn_message_injected",
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
        News::Announced(announcement) => announcement.kind(),
        News::Recording(recording) => recording.kind(),
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
        News::MidTurnInjected { said } => injected(session(), said),
        News::PromptCancelled { forward_failed } => {
            session().maybe_text("reason", forward_failed.then_some("forward_failed")).finish()
        }
        News::TurnComplete { stop_reason, branch_point, cancel, input_written } => prompt()
            .text("stopReason", stop_reason)
            .maybe_raw("branchPoint", branch_point.as_deref())
            .maybe_raw("promptCancelled", cancel.map(cancel_note).as_deref())
            .text("inputWritten", input_written.as_str())
            .finish(),
        News::TurnError { message, code, input_written, expiry } => prompt()
            .text("message", message)
            .maybe_text("code", code.as_deref())
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
        News::Announced(announcement) => announcement.data(session()),
        News::Recording(recording) => recording.data(session()),
        News::SessionClosed { reason, closed_by } => {
            session().text("reason", reason).maybe_text("closedBy", closed_by.as_deref()).finish()
        }
        News::SessionDied { reason, exit } => died(session().text("reason", reason), *exit),
    }
}

fn echo(block: &str, at_ms: u64) -> String {
    let meta = Object::new().number("serverTimestamp", at_ms).text("source", "bridge-echo").finish();
    Object::new().text("sessionUpdate", "user_message_chunk").raw("content", block).raw("_meta", &meta).finish()
}

/// The same messages three times, as clients look for them.
fn injected(data: Object, said: &[Said]) -> String {
    data.raw("messages", &array(said.iter().map(|said| quoted(&said.text))))
        .raw("messageIds", &array(said.iter().map(|said| quoted(&said.id))))
        .raw("items", &array(said.iter().map(|said| Object::new().raw("content", &said.content).finish())))
        .finish()
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
    let signal = exit.signal.map_or("null".to_owned(), |signal| quoted(&signal_name(signal)));
    data.number_or_null("exitCode", exit.code).raw("signalCode", &signal).finish()
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
