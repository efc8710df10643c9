//! What an agent lets itself be set to and is set to: how it approves, and which model it uses. Its own answers and updates say it, in
//! one of two forms: lists of modes and models, or options of a category.
//!
//! A change that a client asked for is told to the readers when the agent has answered, with the value that was there before. What the
//! agent says of it on the way there (some send an update first, some after, some never) is part of that change, in the order in
//! which the agent made it: so two clients that change the same thing at once hear what happened and not what each of them saw before.

use acp::{lenient_value, raw_at, string_at, with_member};

use crate::json::quoted;
use crate::limits::LATEST_UPDATE_BYTES_MAX;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// When the agent asks before it acts.
    Mode,
    /// Which model it uses.
    Model,
}

impl Setting {
    /// The list in an agent's answer, its key for what is set, its key for what can be, and the key of an entry's id.
    fn words(self) -> [&'static str; 4] {
        match self {
            Self::Mode => ["modes", "currentModeId", "availableModes", "id"],
            Self::Model => ["models", "currentModelId", "availableModels", "modelId"],
        }
    }

    /// The category of an option that sets it.
    fn category(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Model => "model",
        }
    }
}

/// How an agent is told what to be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the method for it: it has a list, which may name the value or not.
    Method {
        /// Whether the value is on the list.
        listed: bool,
    },
    /// By the option of this id.
    Option {
        /// The id, which the agent gave.
        id: String,
        /// Whether the value is on the list.
        listed: bool,
    },
}

impl Way {
    /// Whether the agent offers the value.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        match self {
            Self::Method { listed } | Self::Option { listed, .. } => *listed,
        }
    }
}

/// A change that has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switched {
    /// What it was before, if the agent has ever said.
    pub previous: Option<String>,
    /// What it is now.
    pub next: String,
}

/// The settings of one agent's session.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The agent's answer to the opening request, with what was set since: raw JSON object text.
    answer: String,
    /// What clients have asked for and the agent has not answered, oldest first.
    asked: Vec<Change>,
    begun: u64,
}

#[derive(Debug)]
struct Change {
    number: u64,
    setting: Setting,
    value: String,
    /// Once the agent has said that it made the change: what was there before.
    made: Option<Option<String>>,
}

impl Settings {
    pub(crate) fn new(answer: String) -> Self {
        Self { answer, asked: Vec::new(), begun: 0 }
    }

    /// Raw JSON object text.
    pub(crate) fn answer(&self) -> &str {
        &self.answer
    }

    /// What it is set to, if the agent says.
    pub(crate) fn current(&self, setting: Setting) -> Option<String> {
        let [list, current, ..] = setting.words();
        string_at(&self.answer, &[list, current])
            .or_else(|| option(raw_at(&self.answer, &[OPTIONS])?, setting)?.current)
    }

    /// What it can be set to.
    pub(crate) fn offered(&self, setting: Setting) -> Vec<String> {
        let [list, _, available, id] = setting.words();
        match raw_at(&self.answer, &[list, available]).and_then(lenient_value) {
            Some(entries) => ids(&entries, id),
            None => raw_at(&self.answer, &[OPTIONS])
                .and_then(|options| option(options, setting))
                .map_or_else(Vec::new, |option| option.offered),
        }
    }

    /// How it is set to `value`; not at all where the agent has no word for it.
    pub(crate) fn way(&self, setting: Setting, value: &str) -> Option<Way> {
        let listed = self.offered(setting).iter().any(|offered| offered == value);
        let [list, ..] = setting.words();
        if raw_at(&self.answer, &[list]).is_some_and(|raw| raw.starts_with('{')) {
            return Some(Way::Method { listed });
        }
        let option = option(raw_at(&self.answer, &[OPTIONS])?, setting)?;
        Some(Way::Option { id: option.id, listed })
    }

    /// A client asks for a change. Its number is for [`Self::end`].
    pub(crate) fn begin(&mut self, setting: Setting, value: &str) -> u64 {
        self.begun += 1;
        self.asked.push(Change { number: self.begun, setting, value: value.to_owned(), made: None });
        self.begun
    }

    /// The agent has answered, by doing it (`value` is what it is then) or not. What has happened, if it did.
    pub(crate) fn end(&mut self, number: u64, value: Option<&str>) -> Option<Switched> {
        let at = self.asked.iter().position(|change| change.number == number)?;
        let change = self.asked.remove(at);
        let next = value?.to_owned();
        let previous = match change.made {
            Some(previous) => previous,
            None => {
                let previous = self.current(change.setting);
                self.set(change.setting, &next);
                previous
            }
        };
        Some(Switched { previous, next })
    }

    /// The agent says what it is set to. What has happened, if that is a change that no client asked for.
    pub(crate) fn hear(&mut self, setting: Setting, value: &str) -> Option<Switched> {
        let previous = self.current(setting);
        let same = |change: &&mut Change| change.setting == setting && change.value == value && change.made.is_none();
        let asked = self.asked.iter_mut().find(same);
        let is_asked = asked.is_some();
        if let Some(change) = asked {
            change.made = Some(previous.clone());
        }
        if previous.as_deref() == Some(value) {
            return None;
        }
        self.set(setting, value);
        (!is_asked).then(|| Switched { previous, next: value.to_owned() })
    }

    /// The agent says what all of its options are now: raw JSON array text.
    pub(crate) fn hear_options(&mut self, options: &str) -> Vec<(Setting, Switched)> {
        if options.len() > LATEST_UPDATE_BYTES_MAX || !options.starts_with('[') {
            return Vec::new();
        }
        let each = [Setting::Mode, Setting::Model].into_iter();
        let said = each.filter_map(|setting| Some((setting, option(options, setting)?.current?)));
        let said: Vec<_> = said.collect();
        let switched = said.into_iter().filter_map(|(setting, value)| Some((setting, self.hear(setting, &value)?)));
        let switched = switched.collect();
        self.answer = with_member(&self.answer, OPTIONS, options);
        switched
    }

    /// Another agent has the session and answers so. What is different with it.
    pub(crate) fn succeed(&mut self, answer: String) -> Vec<(Setting, Switched)> {
        let before = std::mem::replace(self, Self { begun: self.begun, ..Self::new(answer) });
        let switched = [Setting::Mode, Setting::Model].into_iter().filter_map(|setting| {
            let (previous, next) = (before.current(setting), self.current(setting)?);
            (previous.as_deref() != Some(next.as_str())).then_some((setting, Switched { previous, next }))
        });
        switched.collect()
    }

    fn set(&mut self, setting: Setting, value: &str) {
        let [list, current, ..] = setting.words();
        if let Some(raw) = raw_at(&self.answer, &[list]).filter(|raw| raw.starts_with('{')) {
            let raw = with_member(raw, current, &quoted(value));
            self.answer = with_member(&self.answer, list, &raw);
        }
        let Some(mut options) = raw_at(&self.answer, &[OPTIONS]).and_then(lenient_value) else { return };
        let Some(entries) = options.as_array_mut() else { return };
        if let Some(entry) = entries.iter_mut().find(|entry| entry["category"] == setting.category()) {
            entry["currentValue"] = value.into();
            self.answer = with_member(&self.answer, OPTIONS, &options.to_string());
        }
    }
}

/// Where an agent's answers and updates list its options.
const OPTIONS: &str = "configOptions";

/// The option that sets something.
struct Choice {
    id: String,
    current: Option<String>,
    offered: Vec<String>,
}

fn option(options: &str, setting: Setting) -> Option<Choice> {
    let options = lenient_value(options)?;
    let entry = options.as_array()?.iter().find(|entry| entry["category"] == setting.category())?;
    Some(Choice {
        id: entry["id"].as_str()?.to_owned(),
        current: entry["currentValue"].as_str().map(str::to_owned),
        offered: ids(&entry["options"], "value"),
    })
}

fn ids(entries: &serde_json::Value, key: &str) -> Vec<String> {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| entry[key].as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests;
