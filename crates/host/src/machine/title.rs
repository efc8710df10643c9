//! What an agent calls its session, on record, so that a list tells it also when the session is closed.
//!
//! A person's name outlives the agent's ideas. Those are recorded between turns, the newest one only: an agent may have one with each
//! word. The first one of all is recorded at once where no turn runs.

use serde_json::{Value, json};
use transcript::text::bounded;
use transcript::{Body, TITLE_SUBTYPE};

use super::Machine;
use crate::limits::TITLE_UNITS_MAX;

/// Who named the session, as far as a host has to know.
#[derive(Debug, Default)]
pub(super) struct Title {
    /// The name on record.
    text: Option<String>,
    /// A person gave it.
    is_chosen: bool,
    /// What the agent calls the session since.
    idea: Option<String>,
    /// The name that is about to be recorded on a daemon's word, and whether a person gave it.
    asked: Option<(String, bool)>,
}

impl Title {
    /// A record is written next.
    pub(super) fn asks(&mut self, subtype: &str, payload: &Value) {
        self.asked = name_of(payload).filter(|_| subtype == TITLE_SUBTYPE);
    }

    pub(super) fn recorded(&mut self, is_written: bool) {
        if let Some((text, is_chosen)) = self.asked.take().filter(|_| is_written) {
            (self.text, self.is_chosen) = (Some(text), is_chosen);
        }
    }
}

impl Machine {
    /// The same of a session that has a name on record, with this payload.
    pub(crate) fn named(mut self, title: Option<&Value>) -> Self {
        if let Some((text, is_chosen)) = title.and_then(name_of) {
            (self.title.text, self.title.is_chosen) = (Some(text), is_chosen);
        }
        self
    }

    pub(super) fn agent_entitles(&mut self, title: &str) {
        self.title.idea = Some(bounded(title, TITLE_UNITS_MAX).text);
        if self.running.is_none() && self.title.text.is_none() {
            self.record_idea();
        }
    }

    pub(super) fn record_idea(&mut self) {
        let Some(idea) = self.title.idea.take() else { return };
        if self.title.is_chosen || self.title.text.as_ref() == Some(&idea) {
            return;
        }
        let payload = json!({ "customTitle": idea, "titleSource": "auto" });
        self.append(vec![Body::System { subtype: TITLE_SUBTYPE.to_owned(), payload }]);
        self.title.text = Some(idea);
    }
}

/// The name that a record gives, and whether a person gave it. Whoever does not say who it was is taken for a person: so are the records
/// of the peer that are older than the word.
fn name_of(payload: &Value) -> Option<(String, bool)> {
    Some((payload["customTitle"].as_str()?.to_owned(), payload["titleSource"] != "auto"))
}
