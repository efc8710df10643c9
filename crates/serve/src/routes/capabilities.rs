//! `GET /capabilities` (wire rules, section 2.2). A tag is listed only for what works.

use std::sync::Arc;

use bridge::{Mediation, Policy};
use serde_json::{Value, json};

use crate::dispatch::Call;
use crate::limits::{HISTORY_PAGE_MAX, LIVE_STATE_POLL_MS, WORKSPACES_MAX};
use crate::reply::{Reply, ok};
use crate::workspace::Workspace;

/// What always works.
const TAGS: &[&str] = &[
    "health",
    "capabilities",
    "openapi",
    "session_create",
    "session_id_override",
    "session_scope_override",
    "session_load",
    "session_resume",
    "unstable_session_resume",
    "session_prompt",
    "prompt_id_override",
    "session_turn_status",
    "session_mid_turn_message_mutation",
    "session_mid_turn_message_query",
    "session_cancel",
    "session_events",
    "slow_client_warning",
    "typed_event_schema",
    "client_identity",
    "client_heartbeat",
    "session_branch",
    "session_permission_vote",
    "permission_vote",
    "session_status",
    "session_transcript",
    "session_transcript_pagination",
    "session_context",
    "session_info",
    "session_list",
    "workspace_session_live_state",
    "session_close",
    "session_archive",
    "session_metadata",
    "session_source_metadata",
    "permission_mediation",
    "non_blocking_prompt",
    "prompt_absolute_deadline",
    "prompt_run_deadline",
    "acp_websocket",
    "session_return_requests",
    "return_request_webhooks",
];

/// What works with an agent whose abilities are known before it is greeted. Any other is asked all the same, and may refuse.
const AGENT_TAGS: &[&str] = &[
    "session_set_model",
    "session_approval_mode_control",
    "session_rewind",
    "session_recap",
    "session_btw",
    "session_generation",
];

pub(crate) fn get(call: &Call<'_>) -> Reply {
    let options = &call.daemon.options;
    let limits = &options.limits;
    let mut tags = TAGS.to_vec();
    tags.extend(options.session_shell.then_some("session_shell_command"));
    if options.agent_is_known() {
        tags.extend(AGENT_TAGS);
    }
    tags.extend(options.require_auth.then_some("require_auth"));
    tags.extend(options.rates.map(|_| "rate_limit"));
    tags.extend((!options.allow_origins.is_empty()).then_some("allow_origin"));
    tags.extend(options.writer_idle_timeout_ms.map(|_| "writer_idle_timeout"));
    tags.extend((call.daemon.workspaces().count() > 1).then_some("multi_workspace_sessions"));
    let workspace = &call.daemon.primary().cwd;
    ok(&json!({
        "v": 1,
        "protocolVersions": { "current": "v1", "supported": ["v1"] },
        "turndVersion": options.version,
        "mode": "http-bridge",
        "features": tags,
        "sessionLiveStatePollIntervalMs": LIVE_STATE_POLL_MS,
        "modelServices": [],
        "workspaceCwd": workspace,
        "transports": ["rest", "acp-websocket"],
        "policy": policy(options.mediation),
        "limits": {
            "maxRegisteredWorkspaces": WORKSPACES_MAX,
            "maxPendingPromptsPerSession": nullable(limits.max_pending_prompts),
            "sessionRestoreTimeoutMs": options.restore_timeout_ms,
            "maxSessionsPerWorkspace": limits.max_sessions,
            "maxTotalSessions": limits.max_total_sessions,
            "maxHistoryPageSize": HISTORY_PAGE_MAX,
        },
        "workspaces": workspaces(call),
    }))
}

/// The folders of this daemon, the primary one first.
fn workspaces(call: &Call<'_>) -> Vec<Value> {
    let primary = call.daemon.primary();
    let entry = |workspace: &Arc<Workspace>| {
        let is_primary = Arc::ptr_eq(workspace, primary);
        json!({ "id": workspace.id, "cwd": workspace.cwd, "primary": is_primary, "trusted": true, "removable": false })
    };
    call.daemon.workspaces().map(entry).collect()
}

/// Who decides what agents ask. What is not limited is not shown.
fn policy(mediation: Mediation) -> Value {
    let mut policy = json!({ "permission": mediation.policy.as_str() });
    if let Policy::Consensus { quorum: Some(quorum) } = mediation.policy {
        policy["consensusQuorum"] = quorum.get().into();
    }
    if let Some(timeout_ms) = mediation.response_timeout_ms {
        policy["permissionResponseTimeoutMs"] = timeout_ms.into();
    }
    policy
}

/// A limit of 0 is none.
fn nullable(limit: usize) -> Value {
    if limit == 0 { Value::Null } else { limit.into() }
}
