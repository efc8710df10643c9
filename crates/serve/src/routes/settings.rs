//! A session's name, its agent's model and its mode of approval (wire rules, section 13.7).

use bridge::{Announcement, Inquiry, Title};
use serde_json::json;

use crate::asked::refused;
use crate::body::text;
use crate::dispatch::Call;
use crate::identity::is_uuid;
use crate::limits::{NAME_CHARS_MAX, SETTING_TIMEOUT_MS};
use crate::options::Mode;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok, raw_json};
use crate::requests::{APPROVAL_MODES, approval_mode_in};
use crate::settings;

/// `PATCH /session/:id/metadata`. The name is on record, or with a native agent, before anybody hears of it.
pub(crate) async fn rename(call: &Call<'_>) -> Result<Reply, Refusal> {
    if !is_uuid(call.matched.id()) {
        return Err(Refusal::bad_request("invalid_session_id", "`sessionId` must be a valid session id"));
    }
    let (session, client) = call.open_session_and_client()?;
    let name = display_name(call)?;
    let (method, params) = match call.workspace.options.mode {
        Mode::Recorded => {
            let payload = json!({ "customTitle": name, "titleSource": Title::MANUAL });
            ("turnd/record", json!({ "subtype": "custom_title", "payload": payload }))
        }
        Mode::Native => ("qwen/control/session/title", json!({ "displayName": name, "titleSource": Title::MANUAL })),
    };
    let renamed = Announcement::MetadataUpdated { display_name: name.clone(), title_source: Title::MANUAL.to_owned() };
    let params = params.to_string();
    let inquiry = Inquiry { method, params: &params, timeout_ms: SETTING_TIMEOUT_MS };
    let asked = session.ask_and_announce(&inquiry, renamed, client).await;
    asked.map_err(|error| refused(session.id(), &error))?;
    Ok(ok(&json!({ "sessionId": session.id(), "displayName": name })))
}

fn display_name(call: &Call<'_>) -> Result<String, Refusal> {
    let invalid = |what: &str| {
        Refusal::bad_request("invalid_metadata", format!("Invalid session metadata: displayName {what}"))
            .with("field", "displayName")
    };
    let name = text(&call.fields, "displayName").map_err(|_| invalid("must be a string"))?;
    let name = name.ok_or_else(|| invalid("is required"))?;
    if name.trim().is_empty() {
        return Err(invalid("must not be empty"));
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(invalid(&format!("must have at most {NAME_CHARS_MAX} characters")));
    }
    if name.chars().any(char::is_control) {
        return Err(invalid("must not contain control characters"));
    }
    Ok(name)
}

/// `POST /session/:id/model`: the agent's answer as it is.
pub(crate) async fn model(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.open_session_and_client()?;
    let model = text(&call.fields, "modelId").ok().flatten().filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| {
        Refusal::bad_request("invalid_model_id", "`modelId` is required and must be a non-empty string")
    })?;
    let changed = settings::set_model(&session, &model, client).await?;
    Ok(raw_json(hyper::StatusCode::OK, changed.answer.into()))
}

/// `POST /session/:id/approval-mode`. Nothing of it is kept beyond the session: what an agent asks for by default is its own setting.
pub(crate) async fn approval_mode(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, client) = call.open_session_and_client()?;
    let mode = approval_mode_in(&call.fields, "mode").ok().flatten().ok_or_else(|| {
        let message = "`mode` is required and must be one of the allowed values";
        Refusal::bad_request("invalid_approval_mode", message).with("allowed", APPROVAL_MODES.as_slice())
    })?;
    if call.fields.get("persist").is_some_and(|raw| !matches!(raw.get(), "true" | "false")) {
        return Err(Refusal::bad_request("invalid_request", "`persist` must be a boolean when provided"));
    }
    let changed = settings::set_mode(call.workspace, &session, mode, client).await?;
    let switched = changed.switched;
    Ok(ok(&json!({
        "sessionId": session.id(),
        "mode": switched.next,
        "previous": switched.previous,
        "persisted": false,
    })))
}
