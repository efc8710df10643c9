//! A long answer made of parts that are there already: nothing of it is copied into one text, and nothing of it is read again.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use serde::Serialize;

use crate::limits::{PIECE_BYTES, SHARED_PART_BYTES};
use crate::reply::{Body, Reply, json, json_of};

/// The parts of a body, in order.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    parts: VecDeque<Bytes>,
    left: u64,
}

/// An array of an answer: its name, and its items, each JSON already.
pub(crate) type Array = (&'static str, Vec<Bytes>);

/// 200 with the members of `head`, a JSON object with at least one, and the arrays behind them.
pub(crate) fn ok_with(head: &impl Serialize, arrays: impl IntoIterator<Item = Array>) -> Reply {
    let Ok(mut text) = serde_json::to_vec(head) else { return json(StatusCode::OK, head) };
    // Its closing brace.
    text.pop();
    let mut pieces = Pieces::default();
    pieces.push(text.into());
    for (name, items) in arrays {
        pieces.push(format!(",\"{name}\":[").into());
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                pieces.push(Bytes::from_static(b","));
            }
            pieces.push(item);
        }
        pieces.push(Bytes::from_static(b"]"));
    }
    pieces.push(Bytes::from_static(b"}"));
    json_of(Body::Pieces(pieces))
}

impl Pieces {
    fn push(&mut self, part: Bytes) {
        self.left += part.len() as u64;
        self.parts.push_back(part);
    }

    /// How many bytes are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes: a large part as it is, small ones together; none at the end.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        let first = self.parts.pop_front()?;
        let next = if first.len() >= SHARED_PART_BYTES { first } else { self.together(&first) };
        self.left -= next.len() as u64;
        Some(next)
    }

    fn together(&mut self, first: &Bytes) -> Bytes {
        let mut together = BytesMut::with_capacity(PIECE_BYTES);
        together.extend_from_slice(first);
        while let Some(next) = self.parts.front()
            && next.len() < SHARED_PART_BYTES
            && together.len() + next.len() <= PIECE_BYTES
        {
            together.extend_from_slice(next);
            self.parts.pop_front();
        }
        together.freeze()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(reply: Reply) -> (Vec<usize>, String) {
        let Body::Pieces(mut pieces) = reply.into_body() else { panic!("no pieces") };
        let promised = pieces.left();
        let (mut sizes, mut text) = (Vec::new(), String::new());
        while let Some(next) = pieces.next() {
            sizes.push(next.len());
            text.push_str(std::str::from_utf8(&next).unwrap());
        }
        assert_eq!((promised, pieces.left()), (text.len() as u64, 0));
        (sizes, text)
    }

    #[test]
    fn arrays_stand_behind_the_other_members() {
        let items = vec![Bytes::from_static(b"1"), Bytes::from_static(b"{}")];
        let (sizes, text) = read(ok_with(&json!({"a": 1}), [("b", items), ("c", Vec::new())]));
        assert_eq!((sizes.len(), text.as_str()), (1, r#"{"a":1,"b":[1,{}],"c":[]}"#));
    }

    #[test]
    fn large_parts_are_sent_as_they_are_and_small_ones_together() {
        let large = Bytes::from(format!("\"{}\"", "x".repeat(SHARED_PART_BYTES)));
        let small = vec![Bytes::from_static(b"\"12345678\""); 2 * PIECE_BYTES / 10];
        let items: Vec<_> = [large.clone()].into_iter().chain(small).chain([large.clone()]).collect();
        let expected = items.len();
        let (sizes, text) = read(ok_with(&json!({"a": 1}), [("b", items)]));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["b"].as_array().unwrap().len(), expected);
        assert!(sizes.len() < 8 && sizes.iter().all(|size| *size <= PIECE_BYTES), "{sizes:?}");
        assert_eq!(sizes.iter().filter(|size| **size == large.len()).count(), 2);
    }
}
