//! `GET /health` (wire rules, section 2.1).

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::clock::{iso, now_ms};
use crate::dispatch::Call;
use crate::query;
use crate::reply::{Reply, json, raw_json};

/// What a healthy daemon says.
const OK: &[u8] = br#"{"status":"ok"}"#;

pub(crate) fn get(call: &Call<'_>) -> Reply {
    let sinks = || call.daemon.workspaces().map(|workspace| &workspace.sink);
    if sinks().any(|sink| sink.degraded()) {
        let failures: u64 = sinks().map(|sink| sink.failures()).sum();
        let body = json!({ "status": "degraded", "reason": "ledger_unwritable", "failedAppends": failures });
        return json(StatusCode::SERVICE_UNAVAILABLE, &body);
    }
    let recordings = call.daemon.sessions().into_iter().map(|session| session.status().recording);
    let degraded: Vec<_> = recordings.filter(bridge::Recording::is_degraded).collect();
    if !degraded.is_empty() {
        let held: u64 = degraded.iter().map(|recording| recording.held_records).sum();
        let body = json!({
            "status": "degraded",
            "reason": "transcript_unwritable",
            "degradedSessions": degraded.len(),
            "heldRecords": held,
        });
        return json(StatusCode::SERVICE_UNAVAILABLE, &body);
    }
    match query::value(call.head.uri.query(), "deep").as_deref() {
        Some("1" | "true" | "") => json(StatusCode::OK, &deep(call)),
        _ => raw_json(StatusCode::OK, OK.into()),
    }
}

fn deep(call: &Call<'_>) -> Value {
    let statuses: Vec<_> = call.daemon.sessions().iter().map(bridge::Session::status).collect();
    let count = |of: fn(&bridge::Status) -> usize| statuses.iter().map(of).sum::<usize>();
    let active = statuses.iter().filter(|status| status.has_active_prompt).count();
    let last = statuses.iter().map(|status| status.active_at_ms).max();
    let mut body = json!({
        "status": "ok",
        "workspaceCount": call.daemon.workspaces().count(),
        "sessions": statuses.len(),
        "pendingPermissions": count(|status| status.pending_permissions.len()),
        "activePrompts": active,
        "activeWork": active > 0,
        "activeWorkReporting": "full",
        "activeWorkStaleMs": 0,
        "connectedClients": count(|status| status.subscriber_count),
        "channelAlive": true,
        "returnRequests": call.daemon.returns.health(),
    });
    if let Some(hits) = call.daemon.gate.hits() {
        body["rateLimitHits"] = hits.into();
    }
    if let Some(last) = last {
        body["lastActivityAt"] = iso(last).into();
        body["idleSinceMs"] = if active > 0 { 0 } else { now_ms().saturating_sub(last) }.into();
    }
    body
}
