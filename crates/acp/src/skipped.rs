//! Counting the lines that were no messages.

use crate::message::NotAMessage;

/// How many lines were skipped, by reason. An agent that only ever adds to these is broken in a way
/// worth showing; a few are normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Blank lines.
    pub blank: u64,
    /// Lines that are not JSON, or nest too deep to follow.
    pub not_json: u64,
    /// JSON that is no object: arrays, scalars.
    pub not_an_object: u64,
    /// Objects that are no messages.
    pub no_envelope: u64,
}

impl Skipped {
    /// Counts one.
    pub fn add(&mut self, reason: NotAMessage) {
        let count = match reason {
            NotAMessage::Blank => &mut self.blank,
            NotAMessage::NotJson { .. } | NotAMessage::TooDeep => &mut self.not_json,
            NotAMessage::NotAnObject => &mut self.not_an_object,
            NotAMessage::NoEnvelope | NotAMessage::BadId => &mut self.no_envelope,
        };
        *count += 1;
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.blank + self.not_json + self.not_an_object + self.no_envelope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_counted_under_its_name() {
        let mut skipped = Skipped::default();
        for reason in [
            NotAMessage::Blank,
            NotAMessage::NotJson { at: 3 },
            NotAMessage::TooDeep,
            NotAMessage::NotAnObject,
            NotAMessage::NoEnvelope,
            NotAMessage::BadId,
        ] {
            skipped.add(reason);
        }
        assert_eq!(skipped, Skipped { blank: 1, not_json: 2, not_an_object: 1, no_envelope: 2 });
        assert_eq!(skipped.total(), 6);
    }
}
