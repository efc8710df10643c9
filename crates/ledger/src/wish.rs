//! The wish to cancel a prompt that runs.

use std::collections::HashMap;

use crate::read::Reading;
use crate::reduction::dangling;
use crate::wire;

/// The line that says that somebody wished a running prompt cancelled. It is on disk before the agent hears of it.
///
/// It is no [`Record`](crate::Record): it neither admits a prompt nor ends one, and whoever knows only those two drops its
/// line. So it changes nothing about which prompts are open; it tells, of one that a crash left open, that nobody wants it
/// any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// The prompt. Compared exactly, as in a record.
    pub prompt_id: String,
    /// When, in milliseconds since the Unix epoch. Any finite number, as in a record.
    pub at_ms: f64,
}

impl Wish {
    /// A wish, at a time in whole milliseconds since the Unix epoch.
    pub fn new(prompt_id: impl Into<String>, at_ms: u64) -> Self {
        Self { prompt_id: prompt_id.into(), at_ms: at_ms as f64 }
    }

    /// The line that stands for it in the file, without its LF, byte for byte what `JSON.stringify` gives.
    pub fn to_line(&self) -> String {
        let mut line = String::new();
        wire::push_wish(&mut line, self);
        line
    }

    /// The wish in one line, with or without its LF; `None` when the line says something else.
    pub fn parse(line: &[u8]) -> Option<Self> {
        match wire::parse_line(line)? {
            wire::Read::Wish(wish) => Some(wish),
            wire::Read::Record(_) => None,
        }
    }
}

impl Reading {
    /// The wishes that still count, in file order: of each dangling prompt the first one behind its last record, which is
    /// its admission.
    ///
    /// A wish before the admission was for an earlier use of the id, and one of a prompt that ended has nothing to say any
    /// more. Of a tail these are the wishes that its lines alone show.
    pub fn open_wishes(&self) -> Vec<&Wish> {
        // Most ledgers hold none.
        if self.wishes.is_empty() {
            return Vec::new();
        }
        let last = self.records.iter().enumerate().map(|(index, record)| (record.prompt_id.as_str(), index));
        let last: HashMap<&str, usize> = last.collect();
        let open = dangling(&self.records).into_iter().filter_map(|id| Some((id, *last.get(id)?)));
        let mut open: HashMap<&str, usize> = open.collect();
        let mut counting = Vec::new();
        for (records_before, wish) in &self.wishes {
            let id = wish.prompt_id.as_str();
            if open.get(id).is_some_and(|last| last < records_before) {
                open.remove(id);
                counting.push(wish);
            }
        }
        counting
    }

    /// The wish that the record at this place answers: the first one of its prompt between it and the record of that prompt
    /// before it. Of an admission there is none. An ending that no wish was before may still be `cancelled`: of a prompt that
    /// waited, or by the agent's own word.
    pub fn wish_before(&self, place: usize) -> Option<&Wish> {
        let record = self.records.get(place).filter(|record| !record.is_in_flight())?;
        let before = self.records[..place].iter().rposition(|earlier| earlier.prompt_id == record.prompt_id);
        let since = before.map_or(0, |before| before + 1);
        let between = self.wishes.iter().filter(|(records_before, _)| (since..=place).contains(records_before));
        between.map(|(_, wish)| wish).find(|wish| wish.prompt_id == record.prompt_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    /// Cases in the notation of the design: `A if` is an admission, `A term` a terminal, `A wish` a wish. Times are the
    /// places of the steps.
    fn check(script: &str, expected: &[(&str, f64)]) {
        let reading = reading(script);
        let open = reading.open_wishes();
        let open: Vec<_> = open.iter().map(|wish| (wish.prompt_id.as_str(), wish.at_ms)).collect();
        assert_eq!(open, expected, "[{script}]");
    }

    fn reading(script: &str) -> Reading {
        let mut reading = Reading::default();
        for (number, step) in (1..).zip(script.split(", ")) {
            match step.rsplit_once(' ') {
                Some((id, "if")) => reading.records.push(Record::in_flight(id, None, number)),
                Some((id, "term")) => reading.records.push(Record::cancelled(id, number)),
                Some((id, "wish")) => reading.wishes.push((reading.records.len(), Wish::new(id, number))),
                _ => panic!("not a step: {step}"),
            }
        }
        reading
    }

    #[test]
    fn an_ending_answers_the_first_wish_since_its_admission() {
        for (script, expected) in [
            ("A if, A wish, A wish, A term", Some(2.0)),
            ("A if, A wish, B if, B wish, B term, A term", Some(2.0)),
            ("A if, B if, B wish, A term", None),
            ("A if, A term, A wish", None),
            ("A if, A wish, A term, A if, A term", None),
            ("A if, A wish, A term, A if, A wish, A term", Some(5.0)),
            ("A if, A wish", None),
            ("A wish, A term", Some(1.0)),
        ] {
            let reading = reading(script);
            let wish = reading.wish_before(reading.records.len() - 1);
            assert_eq!(wish.map(|wish| wish.at_ms), expected, "[{script}]");
        }
        assert_eq!(Reading::default().wish_before(0), None);
    }

    #[test]
    fn a_wish_counts_behind_the_admission_that_is_open() {
        check("A if, A wish", &[("A", 2.0)]);
        check("A if, B if, A wish", &[("A", 3.0)]);
        check("A if, B if, B wish, A wish", &[("B", 3.0), ("A", 4.0)]);
        check("A if, A wish, B term, B if", &[("A", 2.0)]);
        check("A wish, A if", &[]);
        check("A wish", &[]);
        check("A if, B wish", &[]);
    }

    #[test]
    fn a_wish_is_over_when_its_prompt_is() {
        check("A if, A wish, A term", &[]);
        check("A if, A term, A wish", &[]);
        check("A if, A wish, A term, A if", &[]);
        check("A if, A wish, A if", &[]);
        check("A if, A wish, A term, A if, A wish", &[("A", 5.0)]);
    }

    #[test]
    fn the_first_of_several_counts() {
        check("A if, A wish, A wish", &[("A", 2.0)]);
        check("A if, A wish, A if, A wish, A wish", &[("A", 4.0)]);
    }

    #[test]
    fn ids_are_compared_exactly() {
        check("p if, P wish, p  wish,  p wish", &[]);
        check("x\u{fffd} if, x\u{fffd} wish", &[("x\u{fffd}", 2.0)]);
    }
}
