//! What is recorded about a session beside its turns: its name, where it comes from, and which model the agent uses.

use acp::{Message, RequestId, compose};
use serde_json::json;
use transcript::{Body, TITLE_SUBTYPE};

use super::{Effect, Machine};
use crate::options::Mode;
use crate::wire::{self, code};

/// What the daemon may have recorded. Everything else in a transcript is the host's own.
const SUBTYPES: [&str; 2] = [TITLE_SUBTYPE, "session_source"];

impl Machine {
    /// The daemon wants something on record about the session, and to know whether it is.
    pub(super) fn record_about(&mut self, id: &RequestId, message: &Message) {
        let record = message.params().and_then(wire::about);
        match record.filter(|(subtype, _)| SUBTYPES.contains(&subtype.as_str())) {
            Some((subtype, payload)) if self.mode == Mode::Recorded => {
                self.title.asks(&subtype, &payload);
                self.effects.push(Effect::Record { request: id.clone(), record: Body::System { subtype, payload } });
            }
            _ => {
                let details = "it is no name and no source of a session that is recorded here";
                self.refuse(id, &wire::refusal(code::NOT_RECORDED, "this cannot be recorded", details));
            }
        }
    }

    pub(super) fn recorded(&mut self, request: &RequestId, result: Result<(), String>) {
        self.title.recorded(result.is_ok());
        match result {
            Ok(()) => self.tell_daemon(compose::response_raw(request, "{}")),
            Err(cause) => {
                let message = "the transcript cannot be written";
                self.refuse(request, &wire::refusal(code::TRANSCRIPT_UNWRITABLE, message, &cause));
            }
        }
    }

    /// The agent lists its options, of which one may be the model.
    pub(super) fn options_are(&mut self, raw: &str) {
        if let Some(model) = wire::model_among_options(raw) {
            self.model_is(model);
        }
    }

    /// From the next turn on its words are this model's.
    pub(super) fn model_is(&mut self, model: String) {
        if self.mode == Mode::Recorded && self.model.as_ref() != Some(&model) {
            let payload = json!({ "modelId": model });
            self.append(vec![Body::System { subtype: "session_model".to_owned(), payload }]);
            self.model = Some(model);
        }
    }
}
