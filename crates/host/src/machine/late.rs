//! What an agent says while no turn runs.
//!
//! It belongs to the session's record, and to no prompt's answer. As an assistant record it would be visible evidence:
//! a prompt that was admitted and never dispatched could be taken for answered by it. So it is kept as a system record,
//! which no verdict on a plain prompt looks at, written when the next prompt comes or the session ends. Should the host die before, only
//! words are lost that nobody waits for. The first words behind a turn whose outcome is promised are written at once, as they speak
//! against it (`straying.rs`).

use transcript::text::bounded;
use transcript::{Body, LATE_OUTPUT_SUBTYPE};

use crate::limits::LATE_UNITS_MAX;
use crate::turn::json::late_payload;

#[derive(Debug, Default)]
pub(super) struct LateOutput {
    /// The prompt whose turn ended last.
    after: Option<String>,
    text: String,
    /// The outcome of that turn is promised to somebody, and nothing was said behind it.
    is_promised: bool,
}

impl LateOutput {
    pub(super) fn turn_ended(&mut self, prompt_id: &str, is_promised: bool) {
        self.after = Some(prompt_id.to_owned());
        self.is_promised = is_promised;
    }

    pub(super) fn push(&mut self, chunk: &str) {
        self.text.push_str(chunk);
        if self.text.len() > LATE_UNITS_MAX {
            self.text = bounded(&self.text, LATE_UNITS_MAX).text;
        }
    }

    pub(super) fn take(&mut self) -> Option<Body> {
        (!self.text.is_empty()).then(|| self.note())
    }

    /// The same behind a turn whose outcome is promised, of what was said first; that may be no text at all.
    pub(super) fn take_first(&mut self) -> Option<Body> {
        std::mem::take(&mut self.is_promised).then(|| self.note())
    }

    /// Nothing more is said behind that turn.
    pub(super) fn expect_no_more(&mut self) {
        self.is_promised = false;
    }

    fn note(&mut self) -> Body {
        let text = std::mem::take(&mut self.text);
        let payload = late_payload(self.after.as_deref(), &text);
        Body::System { subtype: LATE_OUTPUT_SUBTYPE.to_owned(), payload }
    }
}
