//! What a caller wants of a session beside the session: the model, the mode of approval, and where it is said to come from.

use bridge::{Session, Source};
use serde_json::json;

use crate::body::{Fields, text};
use crate::limits::SETTING_TIMEOUT_MS;
use crate::options::Mode;
use crate::refusal::Refusal;
use crate::requests::{approval_mode, check_source};
use crate::settings::{set_mode, set_model};
use crate::workspace::Workspace;

/// Why a session ends that was not made as it was wanted, as its last event says (wire rules, section 6.1).
pub(crate) const NOT_AS_WANTED: &str = "approval_mode_initialization_failed";

/// The wishes of one body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) mode: Option<&'static str>,
    pub(crate) model: Option<String>,
    pub(crate) source: Option<Source>,
}

/// What became of those that a session goes on without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Whether the model is the one that was wanted.
    pub(crate) model: Option<bool>,
    /// Whether the source is on record.
    pub(crate) source: Option<bool>,
}

impl Wanted {
    /// Reads the wishes.
    ///
    /// # Errors
    /// 400 for the first one that is malformed.
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, Refusal> {
        let model = text(fields, "modelServiceId").ok().filter(|model| model.as_deref() != Some(""));
        let model = model.ok_or_else(|| {
            Refusal::bad_request("invalid_model_id", "`modelServiceId` must be a non-empty string when provided")
        })?;
        Ok(Self { mode: approval_mode(fields)?, model, source: check_source(fields)? })
    }

    /// The same for whoever comes to a session that is there already: where it comes from is said once.
    pub(crate) fn of_attached(self, session: &Session) -> Self {
        Self { source: self.source.filter(|_| session.status().source.is_none()), ..self }
    }

    /// Brings the session to be as it is wanted. The mode comes first: without it nothing else is done.
    ///
    /// # Errors
    /// When it cannot have the mode: to go on with another one could allow what its caller does not want allowed.
    pub(crate) async fn apply(
        &self,
        workspace: &Workspace,
        session: &Session,
        by: Option<&str>,
    ) -> Result<Applied, Refusal> {
        if let Some(mode) = self.mode {
            set_mode(workspace, session, mode, by).await.map_err(as_of_opening)?;
        }
        let model = match &self.model {
            Some(model) => Some(set_model(session, model, by).await.is_ok()),
            None => None,
        };
        let source = match &self.source {
            Some(source) => Some(originate(workspace, session, source).await),
            None => None,
        };
        Ok(Applied { model, source })
    }
}

/// An agent's own refusal in the words of one that could not be opened: its caller has not got to know the agent yet.
fn as_of_opening(refusal: Refusal) -> Refusal {
    if !refusal.code.is_empty() {
        return refusal;
    }
    let message = "The agent refused the approval mode that is wanted";
    Refusal::new(hyper::StatusCode::BAD_GATEWAY, "agent_refused", message).with("details", &*refusal.message)
}

/// Notes where the session comes from, and says whether that is on record too.
async fn originate(workspace: &Workspace, session: &Session, source: &Source) -> bool {
    let mut payload = json!({ "sourceType": source.kind });
    if let Some(id) = &source.id {
        payload["sourceId"] = id.as_str().into();
    }
    session.originate(source.clone());
    let (method, params) = match workspace.options.mode {
        Mode::Recorded => ("turnd/record", json!({ "subtype": "session_source", "payload": payload })),
        Mode::Native => ("qwen/control/session/source", payload),
    };
    match session.ask(method, &params.to_string(), SETTING_TIMEOUT_MS).await {
        Ok(answer) => workspace.options.mode == Mode::Recorded || answer.contains(r#""persisted":true"#),
        Err(error) => {
            tracing::warn!(session = session.id(), %error, "where the session comes from is not on record");
            false
        }
    }
}
