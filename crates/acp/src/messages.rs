//! Which turn a message of the agent's began in, where the agent numbers its messages (`messageId`, which is not stable yet).

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Messages that are remembered. Their pieces come one behind the other, and what comes late belongs to one of the last.
const MESSAGES_MAX: usize = 256;

/// The last messages of one agent, each with the turn that it began in. Of their ids only hashes are held.
#[derive(Debug, Default)]
pub struct Messages {
    known: VecDeque<(u64, u64)>,
}

impl Messages {
    /// Takes a piece of a message in and says whether that message began in another turn than this one. A turn is whatever number its
    /// caller gives it.
    pub fn is_of_another_turn(&mut self, message_id: &str, turn: u64) -> bool {
        let mut hasher = DefaultHasher::new();
        message_id.hash(&mut hasher);
        let message = hasher.finish();
        if let Some((_, began_in)) = self.known.iter().find(|(known, _)| *known == message) {
            return *began_in != turn;
        }
        if self.known.len() == MESSAGES_MAX {
            self.known.pop_front();
        }
        self.known.push_back((message, turn));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_of_the_turn_that_it_began_in() {
        let mut messages = Messages::default();
        assert!(!messages.is_of_another_turn("m", 1));
        assert!(!messages.is_of_another_turn("m", 1));
        assert!(!messages.is_of_another_turn("n", 2));
        assert!(messages.is_of_another_turn("m", 2));
        assert!(messages.is_of_another_turn("m", 2), "it does not become this one's");
    }

    #[test]
    fn no_more_messages_are_held_than_are_of_use() {
        let mut messages = Messages::default();
        for number in 0..=MESSAGES_MAX {
            assert!(!messages.is_of_another_turn(&number.to_string(), 1));
        }
        assert_eq!(messages.known.len(), MESSAGES_MAX);
        assert!(messages.is_of_another_turn(&MESSAGES_MAX.to_string(), 2));
        assert!(!messages.is_of_another_turn("0", 2), "the oldest is forgotten");
    }
}
