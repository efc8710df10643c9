//! Long answers in pieces: several lines of one uuid, which every reader of the format joins again.
//!
//! A line that is larger than a page stops whoever reads page by page. A record in pieces stops nobody, and a cut between two of them
//! costs what stands behind it and nothing before.

use serde_json::Value;

use crate::body::Body;

/// Bytes of text in one line. Escapes make six of one at worst, and a page has four megabytes.
pub(crate) const PIECE_BYTES_MAX: usize = 512 * 1024;

/// Hands on the record, or the pieces of it in order. Only an answer is ever taken apart, and only its texts.
pub(crate) fn each_piece<E>(body: &Body, mut take: impl FnMut(&Body) -> Result<(), E>) -> Result<(), E> {
    let Body::Assistant { model, parts } = body else { return take(body) };
    if parts.iter().map(text_bytes).sum::<usize>() <= PIECE_BYTES_MAX {
        return take(body);
    }
    let mut hand_on = |parts: &mut Vec<Value>| {
        let piece = Body::Assistant { model: model.clone(), parts: std::mem::take(parts) };
        take(&piece)
    };
    let (mut piece, mut room) = (Vec::new(), PIECE_BYTES_MAX);
    for part in parts {
        let mut rest = part["text"].as_str().unwrap_or_default();
        loop {
            // No character has more than four bytes, so a piece with room for them takes at least one.
            let taken = &rest[..rest.floor_char_boundary(room)];
            rest = &rest[taken.len()..];
            if !taken.is_empty() || rest.is_empty() {
                piece.push(with_text(part, taken));
            }
            room -= taken.len();
            if rest.is_empty() {
                break;
            }
            hand_on(&mut piece)?;
            room = PIECE_BYTES_MAX;
        }
    }
    hand_on(&mut piece)
}

fn text_bytes(part: &Value) -> usize {
    part["text"].as_str().map_or(0, str::len)
}

/// The same part with another text, if it has one.
fn with_text(part: &Value, text: &str) -> Value {
    let Some(members) = part.as_object().filter(|_| part["text"].is_string()) else { return part.clone() };
    let others = members.iter().filter(|(key, _)| *key != "text").map(|(key, value)| (key.clone(), value.clone()));
    Value::Object(others.chain([("text".to_owned(), text.into())]).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The pieces of an answer of these parts.
    fn pieces(parts: Vec<Value>) -> Vec<Vec<Value>> {
        let body = Body::Assistant { model: Some("m".into()), parts };
        let mut pieces = Vec::new();
        each_piece(&body, |piece| {
            let Body::Assistant { model, parts } = piece else { return Err(()) };
            assert_eq!(model.as_deref(), Some("m"));
            pieces.push(parts.clone());
            Ok(())
        })
        .unwrap();
        pieces
    }

    fn joined(parts: &[Value], thought: bool) -> String {
        let of_kind = parts.iter().filter(|part| part.get("thought").is_some() == thought);
        of_kind.filter_map(|part| part["text"].as_str()).collect()
    }

    #[test]
    fn a_short_answer_is_one_piece_as_it_is() {
        let parts = vec![json!({"text": "a"}), json!({"functionCall": {"name": "f"}})];
        assert_eq!(pieces(parts.clone()), [parts]);
    }

    #[test]
    fn the_pieces_of_a_long_answer_say_together_what_it_says() {
        let (thought, text) = ("ä".repeat(PIECE_BYTES_MAX / 2 + 7), "x😀".repeat(PIECE_BYTES_MAX / 3));
        let call = json!({"functionCall": {"name": "f"}});
        let parts =
            vec![json!({"text": thought, "thought": true}), json!({"text": ""}), json!({"text": text}), call.clone()];
        let pieces = pieces(parts);
        assert!(pieces.len() >= 3, "{}", pieces.len());
        for piece in &pieces {
            assert!(!piece.is_empty() && piece.iter().map(text_bytes).sum::<usize>() <= PIECE_BYTES_MAX);
        }
        let all = pieces.concat();
        assert_eq!((joined(&all, true), joined(&all, false)), (thought, text));
        assert_eq!(all.last(), Some(&call));
    }
}
