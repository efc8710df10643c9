//! Sessions that nobody uses any more: those that everybody has left, and those that have rested for too long (wire rules, sections 6.5
//! and 6.7). Whether one is due is asked of it under its own lock, in the step that closes it: a prompt that arrives at the same instant
//! is either in the session that is asked, which then stays, or refused by the one that closes.

use std::sync::Arc;
use std::time::Duration;

use bridge::{Background, CloseError, Session, Status, Work};
use tokio::time::sleep;

use crate::clock::now_ms;
use crate::daemon::Daemon;
use crate::desk::Busy;
use crate::limits::{REAP_INTERVAL_MS, SESSION_IDLE_MS};
use crate::tasks::spawn;
use crate::workspace::Workspace;

/// Why a session ends that nobody is left to use.
const LAST_CLIENT_DETACHED: &str = "last_client_detached";
/// Why a session ends that nobody has used for long.
const IDLE_TIMEOUT: &str = "idle_timeout";

/// When a session counts as one that nobody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idleness {
    /// Between two looks at all sessions, in milliseconds; 0 looks never.
    pub reap_interval_ms: u64,
    /// How long a session may rest that nobody reads, in milliseconds; 0 lets it rest for ever.
    pub idle_timeout_ms: u64,
    /// How long a session stays behind the end of its prompts when everybody left while they ran, in milliseconds.
    pub settled_close_grace_ms: u64,
}

impl Default for Idleness {
    fn default() -> Self {
        Self { reap_interval_ms: REAP_INTERVAL_MS, idle_timeout_ms: SESSION_IDLE_MS, settled_close_grace_ms: 0 }
    }
}

impl Idleness {
    /// Whether sessions are looked at at all.
    pub(crate) fn reaps(&self) -> bool {
        self.reap_interval_ms > 0 && self.idle_timeout_ms > 0
    }
}

/// Whether a session has nothing to do, at this time in epoch milliseconds, and nobody waits for anything of it: no stream, no prompt
/// that runs or waits, no question and no inquiry that is open, no work in the background, no record that waits for the disk. What
/// is not known of its agent counts as work.
fn rests(status: &Status, now_ms: u64) -> bool {
    status.subscriber_count == 0
        && !status.has_active_prompt
        && status.pending_permissions.is_empty()
        && status.inquiry_count == 0
        && Background::work(status.background.as_ref(), now_ms) == Work::None
        && status.recording.held_records == 0
}

/// Whether everybody has left.
fn is_left(status: &Status, now_ms: u64) -> bool {
    status.client_count == 0 && rests(status, now_ms)
}

/// Whether it has rested for too long. A client that is registered and silent does not keep it.
fn is_idle(status: &Status, timeout_ms: u64, now_ms: u64) -> bool {
    timeout_ms > 0 && rests(status, now_ms) && now_ms >= status.active_at_ms.saturating_add(timeout_ms)
}

/// Closes the sessions of a daemon that have rested for too long. It waits for none of them.
pub(crate) fn reap(daemon: &Daemon) {
    let timeout_ms = daemon.options.idleness.idle_timeout_ms;
    for workspace in daemon.workspaces() {
        for session in workspace.bridge.sessions() {
            // Asked before it is fenced too, so that nobody is refused for the sake of a session that stays.
            if is_idle(&session.status(), timeout_ms, now_ms()) {
                close(workspace, session, IDLE_TIMEOUT, move |status| is_idle(status, timeout_ms, now_ms()));
            }
        }
    }
}

/// Closes a session once its prompts are over, unless somebody has come back by then. One watch a session is enough.
pub(crate) fn watch(workspace: &Arc<Workspace>, session: Session) {
    let workspace = Arc::clone(workspace);
    spawn(async move {
        let Some(_leaving) = workspace.desk.leave(session.id()) else { return };
        let grace = Duration::from_millis(workspace.options.idleness.settled_close_grace_ms);
        while session.status().has_active_prompt {
            session.idle().await;
            sleep(grace).await;
        }
        close(&workspace, session, LAST_CLIENT_DETACHED, |status| is_left(status, now_ms()));
    });
}

/// Closes a session that is due, in a task of its own, its id fenced meanwhile. One that is in transition already is left to whoever is
/// at it.
fn close(
    workspace: &Arc<Workspace>,
    session: Session,
    reason: &'static str,
    is_due: impl FnOnce(&Status) -> bool + Send + 'static,
) {
    let Ok(fence) = workspace.desk.take(session.id(), Busy::Closing) else { return };
    spawn(async move {
        match session.close_if(reason, is_due).await {
            Ok(true) => tracing::info!(session = session.id(), reason, "a session that nobody uses is closed"),
            // Somebody has come, or somebody else closes it.
            Ok(false) | Err(CloseError::Closing | CloseError::NotFound) => {}
        }
        drop(fence);
    });
}

#[cfg(test)]
mod tests {
    use bridge::{PendingPermission, Recording};

    use super::*;

    /// A session that has rested since the instant 1,000.
    fn resting() -> Status {
        Status { active_at_ms: 1_000, client_count: 1, ..Status::default() }
    }

    fn permission() -> PendingPermission {
        PendingPermission {
            request_id: "r".into(),
            created_at_ms: 0,
            expires_at_ms: None,
            prompt_id: None,
            tool_call: "{}".into(),
            options: "[]".into(),
        }
    }

    fn told(has_running_tasks: bool, is_held: bool, told_at_ms: u64) -> Option<Background> {
        Some(Background { has_running_tasks, is_held, told_at_ms })
    }

    #[test]
    fn a_session_is_idle_when_its_time_is_over_and_never_where_there_is_no_limit() {
        for (timeout_ms, now_ms, expected) in [
            (500, 1_499, false),
            (500, 1_500, true),
            (500, 9_999, true),
            (500, 0, false),
            (0, u64::MAX, false),
            (u64::MAX, u64::MAX - 1, false),
        ] {
            assert_eq!(is_idle(&resting(), timeout_ms, now_ms), expected, "{timeout_ms} at {now_ms}");
        }
    }

    #[test]
    fn whatever_is_done_or_waited_for_keeps_a_session() {
        let now_ms = 60_000;
        let held = Recording { held_records: 1, ..Recording::default() };
        let given_up = Recording { given_up: true, ..Recording::default() };
        for (status, keeps, what) in [
            (resting(), false, "nothing"),
            (Status { client_count: 9, ..resting() }, false, "clients that are silent"),
            (Status { subscriber_count: 1, ..resting() }, true, "a reader"),
            (Status { has_active_prompt: true, ..resting() }, true, "a prompt"),
            (Status { pending_permissions: vec![permission()], ..resting() }, true, "a question of the agent"),
            (Status { inquiry_count: 1, ..resting() }, true, "an inquiry to the agent"),
            (Status { background: told(false, false, now_ms), ..resting() }, false, "an agent that says it rests"),
            (Status { background: told(true, false, now_ms), ..resting() }, true, "a task in the background"),
            (Status { background: told(false, true, now_ms), ..resting() }, true, "something that is held"),
            (Status { background: told(false, false, 0), ..resting() }, true, "an agent that stopped telling"),
            (Status { recording: held, ..resting() }, true, "a record that waits for the disk"),
            (Status { recording: given_up, ..resting() }, false, "a recording that was given up"),
        ] {
            assert_eq!(is_idle(&status, 500, now_ms), !keeps, "{what}");
            let left = Status { client_count: 0, ..status };
            assert_eq!(is_left(&left, now_ms), !keeps, "{what}, and nobody is registered");
        }
        assert!(!is_left(&resting(), now_ms), "somebody is registered");
    }
}
