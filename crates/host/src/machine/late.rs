//! What an agent says while no turn runs.
//!
//! It belongs to the session's record, and to no prompt's answer. As an assistant record it would be visible evidence:
//! a prompt that was admitted and never dispatched could be taken for answered by it. So it is kept as a system record,
//! which no verdict looks at, written when the next prompt comes or the session ends. Should the host die before, only
//! words are lost that nobody waits for.

use transcript::Body;
use transcript::text::bounded;

use crate::limits::LATE_UNITS_MAX;
use crate::turn::json::late_payload;

/// The subtype of such a record.
pub(super) const LATE_OUTPUT_SUBTYPE: &str = "late_output";

#[derive(Debug, Default)]
pub(super) struct LateOutput {
    /// The prompt whose turn ended last.
    after: Option<String>,
    text: String,
}

impl LateOutput {
    pub(super) fn turn_ended(&mut self, prompt_id: &str) {
        self.after = Some(prompt_id.to_owned());
    }

    pub(super) fn push(&mut self, chunk: &str) {
        self.text.push_str(chunk);
        if self.text.len() > LATE_UNITS_MAX {
            self.text = bounded(&self.text, LATE_UNITS_MAX).text;
        }
    }

    pub(super) fn take(&mut self) -> Option<Body> {
        let text = std::mem::take(&mut self.text);
        let payload = late_payload(self.after.as_deref(), &text);
        (!text.is_empty()).then(|| Body::System { subtype: LATE_OUTPUT_SUBTYPE.to_owned(), payload })
    }
}
