//! A line of the file: its keys, their order, and what a reader makes of them.

use crate::json::{self, Value};
use crate::number::push_number;
use crate::record::{Fact, Record, Terminal};
use crate::text::{Text, push_quoted};
use crate::wish::Wish;

/// The version of the format. A line with another one is not ours to read.
const VERSION: f64 = 1.0;

/// The word of an admission.
const IN_FLIGHT: &str = "in_flight";

/// The word of a wish. Older readers know no such state and drop the line.
const CANCEL_REQUESTED: &str = "cancel_requested";

/// What a line says.
pub(crate) enum Read {
    /// A fact.
    Record(Record),
    /// A wish.
    Wish(Wish),
}

/// What can be appended as one line.
pub(crate) trait Line {
    /// Whether a reader would accept its time.
    fn is_dated(&self) -> bool;

    /// Appends the line, without LF.
    fn push(&self, line: &mut String);
}

impl Line for Record {
    fn is_dated(&self) -> bool {
        self.at_ms.is_finite()
    }

    fn push(&self, line: &mut String) {
        push_line(line, self);
    }
}

impl Line for Wish {
    fn is_dated(&self) -> bool {
        self.at_ms.is_finite()
    }

    fn push(&self, line: &mut String) {
        push_wish(line, self);
    }
}

/// Appends the line of `record`, without LF, keys in the order of evidence rules, section 1.
pub(crate) fn push_line(line: &mut String, record: &Record) {
    line.push_str(r#"{"v":1"#);
    push_text(line, "promptId", &record.prompt_id);
    match &record.fact {
        Fact::InFlight { tail_uuid } => {
            push_text(line, "state", IN_FLIGHT);
            push_optional(line, "tailUuid", tail_uuid.as_deref().filter(|uuid| !uuid.is_empty()));
        }
        Fact::Terminal { terminal, code, stop_reason } => {
            push_text(line, "terminal", terminal.as_str());
            push_optional(line, "code", code.as_deref());
            push_optional(line, "stopReason", stop_reason.as_deref());
        }
    }
    push_end(line, record.at_ms);
}

/// Appends the line of `wish`, without LF, its keys in the same order.
pub(crate) fn push_wish(line: &mut String, wish: &Wish) {
    line.push_str(r#"{"v":1"#);
    push_text(line, "promptId", &wish.prompt_id);
    push_text(line, "state", CANCEL_REQUESTED);
    push_end(line, wish.at_ms);
}

fn push_end(line: &mut String, at_ms: f64) {
    line.push_str(r#","at":"#);
    push_number(line, at_ms);
    line.push('}');
}

fn push_optional(line: &mut String, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        push_text(line, key, text);
    }
}

fn push_text(line: &mut String, key: &str, text: &str) {
    line.extend([",\"", key, "\":"]);
    push_quoted(line, text);
}

/// What `line` says, or `None` when it is not one JSON object of a known shape.
pub(crate) fn parse_line(line: &[u8]) -> Option<Read> {
    let mut members = Members::default();
    json::members(line, |key, value| members.set(key, value)).ok()?;
    members.into_read()
}

/// What the line says under the keys we read, whatever its type.
#[derive(Default)]
struct Members<'a> {
    version: Option<Value<'a>>,
    prompt_id: Option<Value<'a>>,
    state: Option<Value<'a>>,
    terminal: Option<Value<'a>>,
    tail_uuid: Option<Value<'a>>,
    code: Option<Value<'a>>,
    stop_reason: Option<Value<'a>>,
    at: Option<Value<'a>>,
}

impl<'a> Members<'a> {
    fn set(&mut self, key: Text<'a>, value: Value<'a>) {
        let slot = match &*key.bytes() {
            b"v" => &mut self.version,
            b"promptId" => &mut self.prompt_id,
            b"state" => &mut self.state,
            b"terminal" => &mut self.terminal,
            b"tailUuid" => &mut self.tail_uuid,
            b"code" => &mut self.code,
            b"stopReason" => &mut self.stop_reason,
            b"at" => &mut self.at,
            _ => return,
        };
        *slot = Some(value);
    }

    fn into_read(self) -> Option<Read> {
        if number(&self.version)? != VERSION {
            return None;
        }
        let at_ms = number(&self.at).filter(|at_ms| at_ms.is_finite())?;
        let prompt_id = text(&self.prompt_id)?.decode();
        // A terminal on the same line wins, as it does for readers that know no wish.
        let is_wish = text(&self.state).is_some_and(|state| state.is(CANCEL_REQUESTED));
        match self.into_fact() {
            Some(fact) => Some(Read::Record(Record { prompt_id, at_ms, fact })),
            None => is_wish.then_some(Read::Wish(Wish { prompt_id, at_ms })),
        }
    }

    /// An admission wins over a terminal on the same line: the prompt stays open, which is the closed reading.
    fn into_fact(self) -> Option<Fact> {
        if text(&self.state).is_some_and(|state| state.is(IN_FLIGHT)) {
            let tail_uuid = decoded(&self.tail_uuid).filter(|uuid| !uuid.is_empty());
            return Some(Fact::InFlight { tail_uuid });
        }
        let word = text(&self.terminal)?;
        let terminal = Terminal::ALL.into_iter().find(|terminal| word.is(terminal.as_str()))?;
        Some(Fact::Terminal { terminal, code: decoded(&self.code), stop_reason: decoded(&self.stop_reason) })
    }
}

fn number(value: &Option<Value<'_>>) -> Option<f64> {
    match value {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    }
}

fn text<'a>(value: &Option<Value<'a>>) -> Option<Text<'a>> {
    match value {
        Some(Value::Text(text)) => Some(*text),
        _ => None,
    }
}

fn decoded(value: &Option<Value<'_>>) -> Option<String> {
    text(value).map(|text| text.decode())
}

#[cfg(test)]
mod tests;
