//! Where a watch stands in the stream: behind the last line that was flushed, and nowhere else.

use serde_json::Value;

use crate::exit::{Exit, Failure};

/// Where a watch stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    /// The stream that is read; nothing until a line or the caller says which it is.
    stream: Option<String>,
    /// Where to go on as the daemon calls it, which also tells another history of the same numbers.
    cursor: Option<String>,
    /// The number of the last line, or the one that the caller gave; with a caller's cursor 0, which is no event's.
    number: u64,
    /// Whether a line was flushed.
    has_flushed: bool,
}

/// What makes an event the next one to go on behind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    stream: Option<String>,
    cursor: Option<String>,
    number: u64,
}

/// Where a line belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind all that was flushed.
    Next(Event),
    /// It was flushed before over another connection, or the caller has it.
    Told,
}

/// Why a line is not printed and nothing behind it is either.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is no event at all.
    Form,
    /// It is one of another stream.
    Foreign(String),
}

impl From<Unusable> for Failure {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Form => Self::new(Exit::Failed, "unexpected answer: a line of the stream is no event"),
            Unusable::Foreign(stream) => {
                Self::new(Exit::Ahead, format!("stream_changed: the daemon tells another stream now, {stream:?}"))
            }
        }
    }
}

impl Position {
    /// Where the caller wants to begin.
    pub(super) fn begin(stream: Option<String>, cursor: Option<String>, number: u64) -> Self {
        Self { stream, cursor, number, has_flushed: false }
    }

    /// How a daemon is told where to go on.
    pub(super) fn query(&self) -> (&'static str, String) {
        match &self.cursor {
            Some(cursor) => ("cursor", cursor.clone()),
            None => ("after", self.number.to_string()),
        }
    }

    /// Finds where a line belongs. Nothing moves: only a line that was flushed does that.
    pub(super) fn place(&self, line: &[u8]) -> Result<Place, Unusable> {
        let event: Value = serde_json::from_slice(line).map_err(|_| Unusable::Form)?;
        let Some(number) = event["terminal_event_sequence"].as_u64() else {
            return Err(Unusable::Form);
        };
        let stream = event["stream_id"].as_str().map(str::to_owned);
        if let (Some(known), Some(told)) = (&self.stream, &stream)
            && known != told
        {
            return Err(Unusable::Foreign(told.clone()));
        }
        if number <= self.number {
            return Ok(Place::Told);
        }
        let cursor = event["cursor"].as_str().map(str::to_owned);
        Ok(Place::Next(Event { stream, cursor, number }))
    }

    /// The line of this event was handed on.
    pub(super) fn flush(&mut self, event: Event) {
        *self = Self {
            stream: event.stream.or_else(|| self.stream.take()),
            cursor: event.cursor,
            number: event.number,
            has_flushed: true,
        };
    }

    /// Everything up to a number was read, and nothing of it left out but by a filter.
    pub(super) fn pass(&mut self, number: u64, cursor: Option<String>) {
        (self.number, self.cursor) = (number, cursor);
    }

    /// The number behind which it goes on; 0 with a caller's cursor.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cursor {
            Some(_) if !self.has_flushed => f.write_str("the cursor"),
            _ => write!(f, "{}", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64, stream: &str) -> Vec<u8> {
        format!(r#"{{"terminal_event_sequence":{number},"cursor":"{stream}.{number}","stream_id":"{stream}"}}"#).into()
    }

    /// What a watch that has flushed these lines of the stream `a` makes of one more.
    fn check(begin: Position, flushed: &[u64], next: &[u8], expected: &str) {
        let mut position = begin;
        for number in flushed {
            let Ok(Place::Next(event)) = position.place(&line(*number, "a")) else {
                panic!("{number} is the next one")
            };
            position.flush(event);
        }
        let place = match position.place(next) {
            Ok(Place::Next(event)) => {
                position.flush(event);
                let (key, value) = position.query();
                format!("{key}={value}")
            }
            Ok(Place::Told) => "told".to_owned(),
            Err(unusable) => format!("{unusable:?}"),
        };
        assert_eq!(place, expected, "{flushed:?} {}", String::from_utf8_lossy(next));
    }

    #[test]
    fn a_line_is_the_next_one_was_told_or_is_of_no_use() {
        let at = |number| Position::begin(None, None, number);
        let cursor = || Position::begin(None, Some("a.7".into()), 0);
        let stream = || Position::begin(Some("b".into()), None, 0);
        check(at(0), &[], &line(1, "a"), "cursor=a.1");
        check(at(6), &[], &line(6, "a"), "told");
        check(at(6), &[], &line(7, "a"), "cursor=a.7");
        check(at(0), &[1, 2, 5], &line(5, "a"), "told");
        check(at(0), &[1, 2, 5], &line(4, "a"), "told");
        // A filter leaves numbers out.
        check(at(0), &[1, 2, 5], &line(9, "a"), "cursor=a.9");
        check(at(0), &[1], &line(2, "b"), r#"Foreign("b")"#);
        check(stream(), &[], &line(1, "a"), r#"Foreign("a")"#);
        check(stream(), &[], &line(1, "b"), "cursor=b.1");
        check(cursor(), &[], &line(8, "a"), "cursor=a.8");
        check(at(0), &[], br#"{"terminal_event_sequence":3}"#, "after=3");
        check(at(0), &[], br#"{"terminal_event_sequence":-3}"#, "Form");
        check(at(0), &[], b"{", "Form");
        check(at(0), &[], br#"{"error":"x","code":"y"}"#, "Form");
    }

    #[test]
    fn a_watch_asks_behind_its_cursor_or_its_number() {
        let query = |cursor: Option<&str>, number| Position::begin(None, cursor.map(str::to_owned), number).query();
        assert_eq!(query(None, 0), ("after", "0".to_owned()));
        assert_eq!(query(None, 42), ("after", "42".to_owned()));
        assert_eq!(query(Some("a.7"), 0), ("cursor", "a.7".to_owned()));
    }
}
