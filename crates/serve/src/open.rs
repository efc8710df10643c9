//! Opening a session: a host is started, its agent greeted, and what goes wrong is said in HTTP.

use std::sync::Arc;

use bridge::{Kind, OpenError, OpenSession, Opened, Streams};
use hyper::StatusCode;
use serde_json::Value;

use crate::asked::RESOURCE_NOT_FOUND;
use crate::hosts::HostOrder;
use crate::limits::{LOCK_WAIT_MARGIN_MS, NEW_LOCK_WAIT_MS};
use crate::options::Mode;
use crate::refusal::Refusal;
use crate::workspace::{Workspace, session_limit};

/// Starts a host for `session` and opens the session there.
///
/// # Errors
/// As HTTP says it: 409 for a session that somebody else writes, 502 for an agent that does not work, 504 for one that is slow.
pub(crate) async fn open(workspace: &Arc<Workspace>, session: &str, kind: Kind) -> Result<Opened, Refusal> {
    let streams =
        workspace.hosts.start(&order(workspace, session, kind)).map_err(|error| unavailable(&error.to_string()))?;
    let request = OpenSession {
        session_id: session.to_owned(),
        workspace_cwd: workspace.cwd.clone(),
        kind,
        same_id: workspace.options.mode == Mode::Native,
    };
    let streams = Streams { reader: streams.reader, writer: streams.writer };
    let opened = workspace.bridge.open(request, streams).await.map_err(|error| refused(workspace, session, &error))?;
    workspace.greeted(opened.welcome());
    Ok(opened)
}

fn order(workspace: &Workspace, session: &str, kind: Kind) -> HostOrder {
    let options = &workspace.options;
    HostOrder {
        session_id: session.to_owned(),
        mode: options.mode,
        transcript: workspace.layout.transcript(session),
        workspace: workspace.folder.clone(),
        linger_ms: options.linger_ms,
        agent_input_ms: options.agent_input_ms,
        lock_wait_ms: match kind {
            Kind::New => NEW_LOCK_WAIT_MS,
            Kind::Restore => lock_wait_ms(options.restore_timeout_ms),
        },
        durability: options.durability,
        agent: options.agent.clone(),
    }
}

/// How long a restore waits for the session's lock: long enough for a lingering host to finish, short enough that the answer names
/// the holder instead of a timeout.
pub(crate) fn lock_wait_ms(restore_timeout_ms: u64) -> u64 {
    restore_timeout_ms - (restore_timeout_ms / 4).min(LOCK_WAIT_MARGIN_MS)
}

/// 409: a return request of an earlier life of the session is not decided yet, its host being at it still.
pub(crate) fn undecided(session: &str) -> Refusal {
    let message = format!("A return request of an earlier life of session {session} is not decided yet");
    Refusal::conflict("session_writer_conflict", message)
        .with("sessionId", session)
        .with("retryable", true)
        .retry_later()
}

/// 502 for an agent or a host that does not start.
fn unavailable(cause: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_GATEWAY, "agent_unavailable", "The agent could not be started").with("details", cause)
}

fn refused(workspace: &Workspace, session: &str, error: &OpenError) -> Refusal {
    match error {
        OpenError::SessionLimit { limit } => session_limit(*limit, "workspace"),
        OpenError::InUse => id_conflict(workspace, session, "live"),
        OpenError::ShuttingDown => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "daemon_draining", "Daemon is shutting down").retry_later()
        }
        OpenError::Timeout { method, timeout_ms } => timed_out(error.code(), method, *timeout_ms),
        OpenError::Refused { host_code, rpc_code, message, data, .. } => {
            let data = data.as_deref().and_then(|data| serde_json::from_str(data).ok()).unwrap_or(Value::Null);
            host_refused(session, host_code.as_deref(), *rpc_code, message, &data)
        }
        OpenError::ChannelClosed { stderr_tail } => {
            let refusal = unavailable(&error.to_string());
            match stderr_tail {
                Some(tail) => refusal.with("stderrTail", tail.as_str()),
                None => refusal,
            }
        }
        OpenError::IdNotHonored { .. } => {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "session_id_not_honored", error.to_string())
                .with("sessionId", session)
        }
        OpenError::Protocol { .. } => {
            Refusal { code: error.code().to_owned().into(), ..unavailable(&error.to_string()) }
        }
        OpenError::TooMuchEarly => unavailable(&error.to_string()),
    }
}

/// 504 for an agent that is too slow. Its start may have had effects, and trying again is allowed.
fn timed_out(code: &str, phase: &'static str, timeout_ms: u64) -> Refusal {
    let message = format!("The agent did not answer {phase} within {timeout_ms} ms");
    let mut refusal = Refusal::new(StatusCode::GATEWAY_TIMEOUT, "init_timeout", message);
    refusal.code = code.to_owned().into();
    refusal
        .with("retryable", true)
        .with("sideEffectPossible", true)
        .with("phase", phase)
        .with("timeoutMs", timeout_ms)
        .retry_later()
}

/// The answer for an error that the host or the agent gave.
fn host_refused(session: &str, host_code: Option<&str>, rpc_code: i64, message: &str, data: &Value) -> Refusal {
    let cause = data.get("details").and_then(Value::as_str).unwrap_or(message);
    match host_code {
        Some("session_writer_conflict") => {
            let refusal = Refusal::conflict("session_writer_conflict", still_written(session, data["pid"].as_u64()))
                .with("sessionId", session)
                .with("retryable", true)
                .with("details", message)
                .retry_later();
            with_members(refusal, data, &["pid", "startedAt"])
        }
        Some("transcript_unwritable") => {
            // Nothing is wrong with the agent: the store did not take the session's lock or its transcript.
            let message = "The session cannot be opened because its store cannot be written";
            Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "transcript_unwritable", message)
                .with("sessionId", session)
                .with("details", cause)
        }
        Some(code) => {
            let refusal = Refusal { code: code.to_owned().into(), ..unavailable(cause) };
            with_members(refusal, data, &["cause", "stderrTail", "exitCode", "signal"])
        }
        None if rpc_code == RESOURCE_NOT_FOUND => Refusal::session_not_found(session),
        None => {
            let refusal = Refusal::new(StatusCode::BAD_GATEWAY, "agent_refused", message.to_owned());
            let refusal = refusal.with("rpcCode", rpc_code);
            if data.is_null() { refusal } else { refusal.with("data", data.clone()) }
        }
    }
}

/// Copies what the host said into the answer, where it said it.
fn with_members(refusal: Refusal, data: &Value, keys: &[&'static str]) -> Refusal {
    keys.iter().fold(refusal, |refusal, key| match data.get(key) {
        Some(value) => refusal.with(key, value.clone()),
        None => refusal,
    })
}

/// What a caller can do about a session that another process writes: mostly wait.
fn still_written(session: &str, pid: Option<u64>) -> String {
    let writer = pid.map_or_else(|| "Another process".to_owned(), |pid| format!("Another process ({pid})"));
    format!(
        "{writer} still writes session \"{session}\". A host that lingers over a turn ends by itself when the turn does, or on \
         SIGTERM; retry later."
    )
}

/// 409 for a caller's id that exists already.
pub(crate) fn id_conflict(workspace: &Workspace, session: &str, conflict: &'static str) -> Refusal {
    let message = format!("Session \"{session}\" already exists or is being created.");
    Refusal::conflict("session_id_conflict", message)
        .with("sessionId", session)
        .with("conflict", conflict)
        .with("liveWorkspaceCwd", workspace.cwd.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(host_code: Option<&str>, rpc_code: i64, data: &Value) -> Value {
        let refusal = host_refused("s", host_code, rpc_code, "message", data);
        let mut body = serde_json::to_value(&refusal).unwrap();
        body["status"] = refusal.status.as_u16().into();
        body
    }

    #[test]
    fn the_wait_for_the_lock_ends_before_the_restore_does() {
        for (restore, wait) in [(60_000, 55_000), (10_000, 7_500), (300, 225), (0, 0)] {
            assert_eq!(lock_wait_ms(restore), wait);
        }
    }

    #[test]
    fn a_session_that_somebody_writes_names_its_writer() {
        let body = refusal(Some("session_writer_conflict"), -32000, &json!({"pid": 7, "startedAt": 9}));
        assert_eq!((&body["status"], &body["pid"], &body["startedAt"]), (&json!(409), &json!(7), &json!(9)));
        let said = body["error"].as_str().unwrap();
        assert!(said.starts_with("Another process (7) still writes session \"s\"."), "{said}");
        assert!(said.contains("ends by itself when the turn does, or on SIGTERM"), "{said}");
        let nameless = refusal(Some("session_writer_conflict"), -32000, &json!({}));
        assert!(nameless["error"].as_str().unwrap().starts_with("Another process still writes"), "{nameless}");
    }

    #[test]
    fn a_store_that_cannot_be_written_is_not_blamed_on_the_agent() {
        let body = refusal(Some("transcript_unwritable"), -32000, &json!({"details": "cannot lock /x: read-only"}));
        assert_eq!((&body["status"], &body["code"]), (&json!(507), &json!("transcript_unwritable")));
        assert_eq!(body["error"], "The session cannot be opened because its store cannot be written");
        assert_eq!(body["details"], "cannot lock /x: read-only");
    }

    #[test]
    fn an_agent_that_does_not_start_says_why() {
        let body = refusal(Some("agent_unavailable"), -32000, &json!({"details": "no such file", "stderrTail": "x"}));
        assert_eq!((&body["status"], &body["code"]), (&json!(502), &json!("agent_unavailable")));
        assert_eq!((&body["details"], &body["stderrTail"]), (&json!("no such file"), &json!("x")));
    }

    #[test]
    fn an_agents_own_refusal_keeps_its_number() {
        let body = refusal(None, -32000, &json!({"authMethods": []}));
        assert_eq!(
            (&body["status"], &body["code"], &body["rpcCode"]),
            (&json!(502), &json!("agent_refused"), &json!(-32000))
        );
        assert_eq!(refusal(None, RESOURCE_NOT_FOUND, &Value::Null)["code"], "session_not_found");
    }
}
