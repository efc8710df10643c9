//! Setting a session's agent in the words that it understands: which model it uses, and when it asks before it acts.
//!
//! A recorded agent says at its start what it can be set to and by which of the protocol's two ways. A native one is asked by the
//! methods of its own. The modes of the wire are mapped to an agent's own only where they have the same name: a mode that means
//! something else under another name would be worse than none.

use bridge::{AskError, Change, Changed, Session, Setting, Way};
use serde_json::json;

use crate::asked::{is_method_unknown, refused};
use crate::limits::{DOOR_ASK_MS, SETTING_TIMEOUT_MS};
use crate::options::Mode;
use crate::refusal::Refusal;
use crate::workspace::Workspace;

/// The method of a native agent that sets its mode of approval.
const NATIVE_APPROVAL_MODE: &str = "qwen/control/session/approval_mode";

/// Sets the mode of approval.
///
/// # Errors
/// 409 `approval_mode_not_supported` for an agent that has no mode of that name, and whatever the agent says.
pub(crate) async fn set_mode(
    workspace: &Workspace,
    session: &Session,
    mode: &str,
    by: Option<&str>,
) -> Result<Changed, Refusal> {
    let way = session.way(Setting::Mode, mode);
    let (method, params) = match (workspace.options.mode, way) {
        (Mode::Native, _) => (NATIVE_APPROVAL_MODE, json!({ "mode": mode })),
        (Mode::Recorded, Some(way)) if way.is_listed() => asked(Setting::Mode, mode, &way),
        (Mode::Recorded, _) => return Err(not_supported(session, Setting::Mode)),
    };
    change(session, (Setting::Mode, mode), method, params.to_string(), by).await
}

/// Switches to another model. Whether it is one of the agent's is for the agent to say: some take more than they list.
///
/// # Errors
/// 409 `model_not_supported` for an agent that lets nobody choose, and whatever the agent says.
pub(crate) async fn set_model(session: &Session, model: &str, by: Option<&str>) -> Result<Changed, Refusal> {
    let way = session.way(Setting::Model, model).ok_or_else(|| not_supported(session, Setting::Model))?;
    let (method, params) = asked(Setting::Model, model, &way);
    change(session, (Setting::Model, model), method, params.to_string(), by).await
}

/// Hands on to the agent what an editor asks it in the protocol's own words. What sets its mode or its model is a change like any other:
/// it is told to the readers, and is what was there before the next one. Whether the agent has it is the agent's to say.
///
/// # Errors
/// When the agent did not do it, or nobody knows whether it did.
pub(crate) async fn pass_on(session: &Session, method: &str, params: &str, by: &str) -> Result<String, AskError> {
    let Some((setting, value)) = set_by(session, method, params) else {
        return session.ask(method, params, DOOR_ASK_MS).await;
    };
    let (method, params) = (method.to_owned(), params.to_owned());
    let change = Change { setting, value, method, params, timeout_ms: DOOR_ASK_MS };
    session.change(&change, Some(by)).await.map(|changed| changed.answer)
}

/// What a request in the protocol's words sets, and to what: [`asked`] the other way round.
fn set_by(session: &Session, method: &str, params: &str) -> Option<(Setting, String)> {
    let text = |key: &str| acp::string_at(params, &[key]);
    match method {
        "session/set_mode" => Some((Setting::Mode, text("modeId")?)),
        "session/set_model" => Some((Setting::Model, text("modelId")?)),
        _ => {
            let (option, value) = (text("configId")?, text("value")?);
            let is_it = |setting: &Setting| match session.way(*setting, &value) {
                Some(Way::Option { id, .. }) => id == option,
                _ => false,
            };
            let setting = [Setting::Mode, Setting::Model].into_iter().find(is_it)?;
            Some((setting, value))
        }
    }
}

async fn change(
    session: &Session,
    (setting, value): (Setting, &str),
    method: &str,
    params: String,
    by: Option<&str>,
) -> Result<Changed, Refusal> {
    let (value, method) = (value.to_owned(), method.to_owned());
    let change = Change { setting, value, method, params, timeout_ms: SETTING_TIMEOUT_MS };
    session.change(&change, by).await.map_err(|error| match &error {
        // It does not know the method after all.
        AskError::Refused(refused) if is_method_unknown(refused) => not_supported(session, setting),
        _ => refused(session.id(), &error),
    })
}

/// What the protocol has for it.
fn asked(setting: Setting, value: &str, way: &Way) -> (&'static str, serde_json::Value) {
    match (way, setting) {
        (Way::Method { .. }, Setting::Mode) => ("session/set_mode", json!({ "modeId": value })),
        (Way::Method { .. }, Setting::Model) => ("session/set_model", json!({ "modelId": value })),
        (Way::Option { id, .. }, _) => ("session/set_config_option", json!({ "configId": id, "value": value })),
    }
}

fn not_supported(session: &Session, setting: Setting) -> Refusal {
    let refusal = match setting {
        Setting::Mode => {
            Refusal::conflict("approval_mode_not_supported", "The agent has no approval mode of that name")
        }
        Setting::Model => Refusal::conflict("model_not_supported", "The agent lets nobody choose its model"),
    };
    refusal.with("sessionId", session.id()).with("available", session.offered(setting))
}
