//! A final message that stands in a transcript: as much as is kept, and the length and the hash of the whole, without holding the whole.

use std::path::Path;

use request::limits::FINAL_BYTES_MAX;
use request::{FinalText, Hash};
use sha2::{Digest as _, Sha256};
use transcript::{Answer, Recorded, find_answer};

/// The final message of a prompt's turn, as its transcript has it; none when it has none for certain. Blocks.
pub(crate) fn recorded(path: &Path, prompt: &str) -> Option<FinalText> {
    match find_answer(path, prompt) {
        Ok(Some(answered)) => of(&answered.answer),
        Ok(None) => None,
        Err(error) => {
            tracing::warn!(%error, "a final message cannot be read");
            None
        }
    }
}

/// The final message that an answer is; none when it says nothing, or is lost. Blocks.
pub(crate) fn of(answer: &Answer) -> Option<FinalText> {
    match answer {
        Answer::Short(text) => FinalText::new(text),
        Answer::Recorded(recorded) => streamed(recorded),
        Answer::Nothing | Answer::Lost(_) => None,
    }
}

fn streamed(recorded: &Recorded) -> Option<FinalText> {
    let (mut kept, mut hash) = (Vec::new(), Sha256::new());
    let mut is_blank = true;
    let read = recorded.read(0..recorded.bytes(), |piece| {
        hash.update(piece);
        // A character that is kept whole is cut behind the bound, so one more than a character is taken.
        let room = (FINAL_BYTES_MAX + 4).saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..piece.len().min(room)]);
        is_blank &= piece.iter().all(u8::is_ascii_whitespace);
        true
    });
    if !read.is_ok_and(|is_whole| is_whole) || is_blank {
        return None;
    }
    let text = match String::from_utf8(kept) {
        Ok(text) => text,
        // The last character was cut.
        Err(error) => {
            let whole = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(whole);
            String::from_utf8(bytes).ok()?
        }
    };
    let is_truncated = recorded.bytes() > FINAL_BYTES_MAX as u64;
    let end = if is_truncated { text.floor_char_boundary(FINAL_BYTES_MAX) } else { text.len() };
    Some(FinalText {
        text: text[..end].to_owned(),
        full_bytes: recorded.bytes(),
        sha256: Hash(hash.finalize().into()),
        is_truncated,
    })
}
