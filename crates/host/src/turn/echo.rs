//! What the agent takes for its user's words, in the turn of a prompt whose outcome is promised to somebody.

use acp::Echoed;
use transcript::{Contradiction, block_text, prompt_texts};

/// The prompt as it was asked, and how much of it the agent has repeated.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    /// All of its texts, one behind the other.
    asked: String,
    /// Bytes of it that were repeated.
    repeated: usize,
    has_other: bool,
    pieces: acp::Echo,
}

impl Echo {
    /// Of a prompt with these content blocks, raw JSON.
    pub(crate) fn of(raw_blocks: &str) -> Self {
        let asked = acp::lenient_value(raw_blocks).as_ref().map(prompt_texts).unwrap_or_default().concat();
        Self { asked, ..Self::default() }
    }

    /// Takes a piece in: a content block, raw JSON.
    pub(crate) fn hear(&mut self, message_id: Option<&str>, content: &str) {
        self.pieces.take(message_id);
        let text = block_text(&acp::lenient_value(content).unwrap_or_default());
        self.has_other |= !self.asked[self.repeated..].starts_with(&text);
        if !self.has_other {
            self.repeated += text.len();
        }
    }

    /// What speaks against its being what was asked.
    pub(crate) fn contradiction(&self) -> Option<Contradiction> {
        match self.pieces.echoed(!self.has_other && self.repeated == self.asked.len()) {
            Echoed::Differs => Some(Contradiction::PromptMismatch),
            Echoed::Several => Some(Contradiction::ExtraUserMessage),
            Echoed::Agrees | Echoed::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[(Option<&str>, &str)], expected: Option<Contradiction>) {
        let mut echo = Echo::of(r#"[{"type":"text","text":"one "},{"type":"text","text":"two"}]"#);
        for (id, text) in pieces {
            echo.hear(*id, &format!(r#"{{"type":"text","text":"{text}"}}"#));
        }
        assert_eq!(echo.contradiction(), expected, "{pieces:?}");
    }

    #[test]
    fn scenario_46_an_echo_is_what_was_asked_or_it_is_not_whatever_its_pieces_are() {
        check(&[], None);
        check(&[(None, "one two")], None);
        check(&[(Some("m"), "one"), (Some("m"), " two")], None);
        let other = Some(Contradiction::PromptMismatch);
        check(&[(Some("m"), "one")], other);
        check(&[(None, "one two ")], other);
        check(&[(None, "x"), (None, "one two")], other);
        check(&[(Some("m"), "one two"), (Some("n"), "")], Some(Contradiction::ExtraUserMessage));
        check(&[(None, "x"); acp::ECHO_PIECES_MAX], None);
    }
}
