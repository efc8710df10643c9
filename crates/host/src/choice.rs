//! What a client has set its agent to, so that it can be said again to the next one.

use acp::{lenient_value, raw_at, with_member};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::limits::CHOICES_MAX;
use crate::wire;

/// Where an agent's answers list its options.
const OPTIONS: &str = "configOptions";

/// What is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    /// When the agent asks before it acts.
    Mode,
    /// An option that may be about that as well: nobody knows.
    Unknown,
    /// Which model it uses.
    Model,
    /// An option that allows nothing.
    Other,
}

/// One thing that a client has set, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Choice {
    pub(crate) kind: Kind,
    method: String,
    /// The option's id, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    option: Option<String>,
    pub(crate) value: Value,
}

impl Choice {
    /// What a request of the daemon sets; none where it sets nothing.
    pub(crate) fn read(method: &str, params: &str) -> Option<Self> {
        let (kind, key) = key_of(method)?;
        let value = raw_at(params, &[key]).and_then(lenient_value)?;
        let option = match method == wire::SET_OPTION {
            true => Some(acp::string_at(params, &["configId"])?),
            false => None,
        };
        Some(Self { kind, method: method.to_owned(), option, value })
    }

    /// Whether the method sets an agent.
    pub(crate) fn is_choice(method: &str) -> bool {
        key_of(method).is_some()
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    /// The parameters that set it in this session of the agent.
    pub(crate) fn params(&self, agent_session: &str) -> String {
        let mut params = json!({ "sessionId": agent_session });
        if let Some(option) = &self.option {
            params["configId"] = option.as_str().into();
        }
        if let Some((_, key)) = key_of(&self.method) {
            params[key] = self.value.clone();
        }
        params.to_string()
    }

    /// The same once the agent's answer, which lists its options, has said what the option is about. One that it does not name may
    /// be about anything.
    pub(crate) fn told(mut self, answer: &str) -> Self {
        if let Some(id) = &self.option {
            let options = raw_at(answer, &[OPTIONS]).and_then(lenient_value).unwrap_or_default();
            let entries = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let entry = entries.iter().find(|entry| entry["id"] == id.as_str());
            self.kind = match entry.and_then(|entry| entry["category"].as_str()) {
                Some("model") => Kind::Model,
                Some("thought_level") => Kind::Other,
                Some("mode") => Kind::Mode,
                _ => Kind::Unknown,
            };
        }
        self
    }

    /// The agent's answer with which its session began, as it is now that it has this choice too, of which it said `answer`.
    pub(crate) fn put_into(&self, result: &str, answer: &str) -> String {
        let mut result = match self.kind {
            Kind::Mode => with_current(result, "modes", "currentModeId", &self.value),
            Kind::Model => with_current(result, "models", "currentModelId", &self.value),
            Kind::Unknown | Kind::Other => result.to_owned(),
        };
        if let Some(options) = raw_at(answer, &[OPTIONS]).filter(|raw| raw.starts_with('[')) {
            return with_member(&result, OPTIONS, options);
        }
        let Some(Value::Array(mut entries)) = raw_at(&result, &[OPTIONS]).and_then(lenient_value) else {
            return result;
        };
        let category = match self.kind {
            Kind::Mode => "mode",
            Kind::Model => "model",
            Kind::Unknown | Kind::Other => "",
        };
        let is_it = |entry: &&mut Value| match &self.option {
            Some(id) => entry["id"] == id.as_str(),
            None => entry["category"] == category,
        };
        if let Some(entry) = entries.iter_mut().find(is_it).filter(|entry| entry.is_object()) {
            entry["currentValue"] = self.value.clone();
            result = with_member(&result, OPTIONS, &Value::Array(entries).to_string());
        }
        result
    }

    /// Whether an agent that is not set to it may do more than was wanted.
    pub(crate) fn is_guard(&self) -> bool {
        matches!(self.kind, Kind::Mode | Kind::Unknown)
    }

    /// Whether it takes the other's place.
    pub(crate) fn is_about_the_same(&self, other: &Self) -> bool {
        match (self.kind, other.kind) {
            (Kind::Model, Kind::Model) | (Kind::Mode, Kind::Mode) => true,
            _ => self.option.is_some() && self.option == other.option,
        }
    }
}

/// What a method sets, and under which key its value stands.
fn key_of(method: &str) -> Option<(Kind, &'static str)> {
    match method {
        wire::SET_MODE => Some((Kind::Mode, "modeId")),
        wire::NATIVE_MODE => Some((Kind::Mode, "mode")),
        wire::SET_MODEL => Some((Kind::Model, "modelId")),
        wire::SET_OPTION => Some((Kind::Unknown, "value")),
        _ => None,
    }
}

fn with_current(result: &str, list: &str, key: &str, value: &Value) -> String {
    match raw_at(result, &[list]).filter(|raw| raw.starts_with('{')) {
        Some(raw) => with_member(result, list, &with_member(raw, key, &value.to_string())),
        None => result.to_owned(),
    }
}

/// Notes a choice in the place of an earlier one about the same. The order is that in which they were made.
pub(crate) fn note(choices: &mut Vec<Choice>, choice: Choice) {
    choices.retain(|earlier| !choice.is_about_the_same(earlier));
    if choices.len() >= CHOICES_MAX {
        // What allows nothing goes first.
        let at = choices.iter().position(|earlier| !earlier.is_guard()).unwrap_or(0);
        choices.remove(at);
    }
    choices.push(choice);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(value: &str) -> Choice {
        Choice::read(wire::SET_MODE, &json!({ "sessionId": "s", "modeId": value }).to_string()).unwrap()
    }

    fn option(id: &str, value: &str, category: &str) -> Choice {
        let params = json!({ "sessionId": "s", "configId": id, "value": value }).to_string();
        let answer = json!({ "configOptions": [{ "id": id, "category": category }] }).to_string();
        Choice::read(wire::SET_OPTION, &params).unwrap().told(&answer)
    }

    #[test]
    fn a_choice_is_said_again_in_the_words_it_was_made_in() {
        assert_eq!(mode("plan").params("other"), r#"{"sessionId":"other","modeId":"plan"}"#);
        let again = option("m", "x", "model").params("other");
        assert_eq!(again, r#"{"sessionId":"other","configId":"m","value":"x"}"#);
        for (method, params) in
            [("session/prompt", r#"{"modeId":"x"}"#), (wire::SET_MODE, "{}"), (wire::SET_OPTION, r#"{"value":1}"#)]
        {
            assert_eq!(Choice::read(method, params), None, "{method}");
        }
    }

    #[test]
    fn the_last_choice_about_a_thing_counts_however_it_was_made_and_an_option_nobody_knows_may_be_the_mode() {
        let odd = option("m", "x", "odd");
        assert!(odd.is_guard() && !odd.is_about_the_same(&mode("plan")));
        let mut choices = Vec::new();
        for choice in [mode("plan"), option("m", "a", "model"), mode("default"), option("t", "high", "thought_level")] {
            note(&mut choices, choice);
        }
        assert_eq!(choices, [option("m", "a", "model"), mode("default"), option("t", "high", "thought_level")]);
        note(&mut choices, option("how", "plan", "mode"));
        assert_eq!(choices[2], option("how", "plan", "mode"));
        for number in 0..2 * CHOICES_MAX {
            note(&mut choices, option(&number.to_string(), "v", "thought_level"));
        }
        assert_eq!(choices.len(), CHOICES_MAX);
        assert!(choices.contains(&option("how", "plan", "mode")));
    }

    #[test]
    fn an_opening_answer_says_what_is_set_since() {
        let lists = r#"{"modes":{"currentModeId":"default"},"configOptions":[{"category":"mode","currentValue":"default","id":"how"}]}"#;
        let now = mode("plan").put_into(lists, "{}");
        assert_eq!(now, lists.replace("\"default\"", "\"plan\""));
        let now = option("how", "plan", "mode").put_into(lists, "null");
        assert_eq!(now, lists.replace("\"default\"", "\"plan\""));
        let now = option("how", "plan", "mode").put_into("{}", r#"{"configOptions":[1]}"#);
        assert_eq!(now, r#"{"configOptions":[1]}"#);
        assert_eq!(mode("plan").put_into("{}", "{}"), "{}");
    }
}
