//! What a session can be set to: when it asks before it acts, and which model it says it is.

use acp::RpcError;
use acp::rpc_error::{INTERNAL_ERROR, INVALID_PARAMS};
use serde_json::{Value, json};

use crate::permission::Decision;

/// The modes, by id and name.
const MODES: [(&str, &str); 3] = [("default", "Ask first"), ("plan", "Only plan"), ("yolo", "Ask nothing")];
/// The models, by id and name. They say the same.
const MODELS: [(&str, &str); 2] = [("scripted", "Scripted"), ("scripted-2", "Scripted, the second")];

/// The settings of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    mode: &'static str,
    model: &'static str,
}

impl Default for Settings {
    /// The first of each.
    fn default() -> Self {
        Self { mode: MODES[0].0, model: MODELS[0].0 }
    }
}

impl Settings {
    /// What the answer that opens a session says of it.
    pub(crate) fn state(self) -> Value {
        let modes: Vec<_> = MODES.iter().map(|(id, name)| json!({ "id": id, "name": name })).collect();
        let models: Vec<_> = MODELS.iter().map(|(id, name)| json!({ "modelId": id, "name": name })).collect();
        json!({
            "modes": { "currentModeId": self.mode, "availableModes": modes },
            "models": { "currentModelId": self.model, "availableModels": models },
        })
    }

    /// Sets the mode.
    pub(crate) fn set_mode(&mut self, id: &str) -> Result<(), RpcError> {
        let known = MODES.iter().find(|(known, _)| *known == id);
        self.mode = known.ok_or_else(|| RpcError::new(INVALID_PARAMS, format!("no mode {id:?}")))?.0;
        Ok(())
    }

    /// Sets the model.
    pub(crate) fn set_model(&mut self, id: &str) -> Result<(), RpcError> {
        let unknown = || {
            RpcError::new(INTERNAL_ERROR, "Internal error").with_data(&json!({ "details": format!("no model {id:?}") }))
        };
        self.model = MODELS.iter().find(|(known, _)| *known == id).ok_or_else(unknown)?.0;
        Ok(())
    }

    /// The model that is set.
    pub(crate) fn model(self) -> &'static str {
        self.model
    }

    /// What the mode decides about tools without asking.
    pub(crate) fn decision(self) -> Option<Decision> {
        match self.mode {
            "plan" => Some(Decision::Reject),
            "yolo" => Some(Decision::Allow),
            _ => None,
        }
    }
}
