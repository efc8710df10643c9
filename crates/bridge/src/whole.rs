//! The whole of a turn's final answer, up to a bound.

use std::sync::Arc;

use crate::limits::FINAL_TEXT_BYTES_MAX;
use crate::witness::FinalText;

/// A text that is whole or not there: a part of it would pass for the whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whole {
    text: String,
    is_beyond: bool,
}

impl Whole {
    pub(crate) fn push(&mut self, more: &str) {
        self.is_beyond |= self.text.len() + more.len() > FINAL_TEXT_BYTES_MAX;
        if self.is_beyond {
            // What is not told is not kept.
            self.text = String::new();
        } else {
            self.text.push_str(more);
        }
    }

    pub(crate) fn said(&self) -> FinalText {
        match self {
            Self { is_beyond: true, .. } => FinalText::Elsewhere,
            Self { text, .. } if text.is_empty() => FinalText::None,
            Self { text, .. } => FinalText::Whole(Arc::from(text.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_whole_up_to_its_bound_and_not_there_beyond() {
        let mut whole = Whole::default();
        assert_eq!(whole.said(), FinalText::None);
        whole.push("é");
        whole.push(&"x".repeat(FINAL_TEXT_BYTES_MAX - 2));
        let FinalText::Whole(text) = whole.said() else { panic!("it is whole") };
        assert_eq!(text.len(), FINAL_TEXT_BYTES_MAX);
        whole.push("y");
        assert_eq!(whole.said(), FinalText::Elsewhere);
        whole.push("z");
        assert_eq!((whole.said(), whole.text.len()), (FinalText::Elsewhere, 0), "nothing follows a hole");
    }
}
