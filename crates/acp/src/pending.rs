//! Requests of ours that wait for an answer.

use std::collections::BTreeMap;

use crate::request_id::RequestId;

/// What each unanswered request of ours is about, under the number it was sent with.
///
/// Numbers start at 0, rise by one, and are never used twice, so a second answer to one request
/// finds nothing and cannot be taken for the answer to another.
#[derive(Debug)]
pub struct Pending<T> {
    next: u64,
    waiting: BTreeMap<u64, T>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { next: 0, waiting: BTreeMap::new() }
    }
}

impl<T> Pending<T> {
    /// Nothing waits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a request about to be sent and gives the number to send it with.
    pub fn insert(&mut self, about: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, about);
        number
    }

    /// What an answer with this id is about; `None` for one that was not asked for or has been
    /// answered before.
    pub fn take(&mut self, id: &RequestId) -> Option<T> {
        self.waiting.remove(&id.as_u64()?)
    }

    /// Everything that still waits, oldest first, and forgets it: the channel is gone.
    pub fn drain(&mut self) -> Vec<(u64, T)> {
        std::mem::take(&mut self.waiting).into_iter().collect()
    }

    /// What still waits, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.waiting.iter().map(|(number, about)| (*number, about))
    }

    /// How many requests wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_finds_its_request_once_and_in_any_order() {
        let mut pending = Pending::new();
        let (first, second) = (pending.insert("first"), pending.insert("second"));
        assert_eq!(pending.take(&RequestId::from(second)), Some("second"));
        assert_eq!(pending.take(&RequestId::from(first)), Some("first"));
        assert_eq!(pending.take(&RequestId::from(first)), None);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_foreign_id_finds_nothing() {
        let mut pending = Pending::new();
        pending.insert("ours");
        for raw in ["1", "\"0\"", "-0.5", "null"] {
            assert_eq!(pending.take(&RequestId::parse(raw).unwrap()), None, "{raw}");
        }
        assert_eq!(pending.len(), 1);
    }

    #[test]
    fn a_number_is_never_used_twice() {
        let mut pending = Pending::new();
        let first = pending.insert(());
        assert_eq!(pending.drain(), [(first, ())]);
        assert_ne!(pending.insert(()), first);
    }

    #[test]
    fn draining_gives_the_oldest_first() {
        let mut pending = Pending::new();
        let numbers: Vec<u64> = ["a", "b", "c"].map(|about| pending.insert(about)).to_vec();
        pending.take(&RequestId::from(numbers[1]));
        assert_eq!(pending.iter().count(), 2);
        assert_eq!(pending.drain(), [(numbers[0], "a"), (numbers[2], "c")]);
        assert!(pending.is_empty());
    }
}
