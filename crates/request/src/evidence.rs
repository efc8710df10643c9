//! What ties a turn to its request, and how much that is worth.

use serde::{Deserialize, Serialize};

/// What was seen of the agent that belongs to the prompt, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Some update, while ours was the only prompt in flight: it might as well be unrelated.
    FirstUpdate,
    /// The agent said that it accepted the prompt (second protocol version).
    V2Accepted,
    /// A user message with our prompt's id or text.
    UserRecord,
    /// The answer to our own call on this connection.
    RpcResponse,
    /// A turn record stamped with our prompt's id, behind a user record stamped likewise, and nothing in between.
    TranscriptExact,
}

impl Evidence {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::FirstUpdate, Self::V2Accepted, Self::UserRecord, Self::RpcResponse, Self::TranscriptExact];

    /// The word on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstUpdate => "first_update",
            Self::V2Accepted => "v2_accepted",
            Self::UserRecord => "user_record",
            Self::RpcResponse => "rpc_response",
            Self::TranscriptExact => "transcript_exact",
        }
    }

    /// The evidence of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|evidence| evidence.as_str() == word)
    }

    /// Whether it is enough for `completed`. What is not is enough for `bound`.
    #[must_use]
    pub fn is_strong(self) -> bool {
        self != Self::FirstUpdate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        Evidence::ALL.into_iter().for_each(|evidence| assert_eq!(Evidence::parse(evidence.as_str()), Some(evidence)));
        Evidence::ALL
            .into_iter()
            .for_each(|evidence| assert_eq!(serde_json::to_value(evidence).unwrap(), evidence.as_str()));
        assert_eq!(Evidence::parse("guess"), None);
    }

    #[test]
    fn only_an_update_that_might_be_unrelated_is_weak() {
        assert_eq!(Evidence::ALL.map(Evidence::is_strong), [false, true, true, true, true]);
    }
}
