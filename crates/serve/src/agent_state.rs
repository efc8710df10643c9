//! The agent's state as clients know it.

use bridge::Session;
use serde_json::{Map, Value};

/// What of the agent's answer to its opening clients are shown.
const KEYS: [&str; 4] = ["modes", "models", "configOptions", "_meta"];

/// The modes, models and options that the agent told of when the session was opened.
pub(crate) fn agent_state(session: &Session) -> Value {
    let mut answer: Map<String, Value> = serde_json::from_str(&session.agent_state()).unwrap_or_default();
    answer.retain(|key, _| KEYS.contains(&key.as_str()));
    Value::Object(answer)
}
