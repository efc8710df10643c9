//! Stories as a person writes them: `[A if, B if, A term]`.
//!
//! Events are separated by commas, each a second later than the one before it. A word may begin with its prompt's name and end
//! with what is special about it:
//!
//! | words | event |
//! |---|---|
//! | `A if`, `A if marked`, `A if marked 3`, `A if marked elsewhere` | A's admission: legacy, with its marker, with a certain record for it, with one that is nowhere |
//! | `A term`, `A cancelled`, `A error`, `A deadline`, `A shutdown`, `A interrupted` | A's terminal |
//! | `A wish` | a client's wish to cancel A, in the ledger |
//! | `A user`, `user`, `answer`, `thought`, `call`, `blind call`, `tool` | records of a turn |
//! | `A result completed`, `A result cancelled`, `A result failed` | A's turn result |
//! | `reminder`, `notification`, `job`, `mid-turn`, `spoken`, `command`, `command answered`, `goal tool`, `goal end`, `note`, `shell command`, `shell result`, `title`, `artifact`, `compression`, `empty compression`, `rewind` | what else stands in a transcript |
//! | `… on 3`, `… on nobody`, `… on lost` | the record's parent, when it is not the last one |
//! | `… undated`, `unreadable`, `mute`, `huge`, `strange`, `abroad`, `bare`, `stamped` | its [`Flaw`]s |
//! | `… torn`, `… torn 250` | so many thousandths of the line got to the disk; half of it |
//! | `… glued` | nothing seals the torn line before it |
//! | `same ms`, `later 20ms`, `back 5s` | when the next event is |
//! | `load` | what follows is written while the evidence is weighed |
//! | `<…>` | everything hangs on this event |

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::story::{Deed, Ending, Entry, Event, Flaw, Marker, Name, Outcome, Parent, STEP_MS, Story, What};

/// How much of a torn line is left when no number is given, in thousandths.
const HALF: u16 = 500;

const ENDINGS: &[(&str, Ending)] = &[
    ("term", Ending::Completed),
    ("cancelled", Ending::Cancelled),
    ("error", Ending::Failed),
    ("deadline", Ending::Deadline),
    ("shutdown", Ending::Shutdown),
    ("interrupted", Ending::Lost),
];

const RECORDS: &[(&str, What)] = &[
    ("result completed", What::Result(Outcome::Completed)),
    ("result cancelled", What::Result(Outcome::Cancelled)),
    ("result failed", What::Result(Outcome::Failed)),
    ("blind call", What::BlindCall),
    ("goal tool", What::GoalTool),
    ("goal end", What::GoalEnd),
    ("command answered", What::CommandAnswered),
    ("shell command", What::ShellCommand),
    ("shell result", What::ShellResult),
    ("empty compression", What::EmptyCompression),
    ("user", What::User),
    ("answer", What::Answer),
    ("thought", What::Thought),
    ("call", What::Call),
    ("tool", What::Tool),
    ("reminder", What::Reminder),
    ("notification", What::Notification),
    ("job", What::Job),
    ("mid-turn", What::MidTurn),
    ("spoken", What::Spoken),
    ("command", What::Command),
    ("note", What::Note),
    ("title", What::Title),
    ("artifact", What::Artifact),
    ("compression", What::Compression),
    ("rewind", What::Rewind),
];

const FLAWS: &[(&str, Flaw)] = &[
    ("undated", Flaw::Undated),
    ("unreadable", Flaw::Unreadable),
    ("mute", Flaw::Mute),
    ("huge", Flaw::Huge),
    ("strange", Flaw::Strange),
    ("abroad", Flaw::Abroad),
    ("bare", Flaw::Bare),
    ("stamped", Flaw::Stamped),
];

/// What could not be read as part of a story.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no event of a story: {0:?}")]
pub struct NotationError(pub String);

impl FromStr for Story {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let inside = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let inside = inside.ok_or_else(|| NotationError(text.to_owned()))?;
        let mut events = Vec::new();
        let mut after_ms = STEP_MS;
        for item in inside.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            if let Some(passing_ms) = passing_ms(item) {
                after_ms = passing_ms;
                continue;
            }
            let event = event(item).ok_or_else(|| NotationError(item.to_owned()))?;
            events.push(Event { after_ms: std::mem::replace(&mut after_ms, STEP_MS), ..event });
        }
        Ok(Self { events })
    }
}

/// How much later the next event is, if the item says that.
fn passing_ms(item: &str) -> Option<i64> {
    if item == "same ms" {
        return Some(0);
    }
    let (sign, length) = match item.split_once(' ')? {
        ("later", length) => (1, length),
        ("back", length) => (-1, length),
        _ => return None,
    };
    let (digits, unit_ms) = match length.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (length.strip_suffix('s')?, 1_000),
    };
    digits.parse::<i64>().ok()?.checked_mul(sign * unit_ms)
}

fn event(item: &str) -> Option<Event> {
    let marked = item.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    let mut words: Vec<&str> = marked.unwrap_or(item).split_whitespace().collect();
    let owner = words.first().filter(|word| word.len() == 1).and_then(|word| Name::new(word.chars().next()?));
    if owner.is_some() {
        words.remove(0);
    }
    let (deed, rest) = deed(owner, &words)?;
    let mut event = Event { is_decisive: marked.is_some(), ..Event::new(deed) };
    qualify(&mut event, rest)?;
    Some(event)
}

/// The deed that the words begin with, and the words that are left.
fn deed<'a>(owner: Option<Name>, words: &'a [&'a str]) -> Option<(Deed, &'a [&'a str])> {
    let (first, rest) = words.split_first()?;
    if *first == "load" && owner.is_none() {
        return Some((Deed::Load, rest));
    }
    if *first == "if" {
        return Some((Deed::Admit { prompt: owner?, marker: Marker::None }, rest));
    }
    if *first == "wish" {
        return Some((Deed::Wish { prompt: owner? }, rest));
    }
    if let Some((_, ending)) = ENDINGS.iter().find(|(word, _)| word == first) {
        return Some((Deed::End { prompt: owner?, ending: *ending }, rest));
    }
    let is_prefix =
        |name: &str| name.split(' ').zip(words).all(|(a, b)| a == *b) && name.split(' ').count() <= words.len();
    let (name, what) = RECORDS.iter().find(|(name, _)| is_prefix(name))?;
    Some((Deed::Write(Entry::new(owner, *what)), &words[name.split(' ').count()..]))
}

/// Takes up what is said behind the deed.
fn qualify(event: &mut Event, words: &[&str]) -> Option<()> {
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        match (word, &mut event.deed) {
            ("torn", _) => {
                let given = words.peek().and_then(|next| next.parse::<u16>().ok());
                event.torn = Some(given.unwrap_or(HALF));
                words.next_if(|_| given.is_some());
            }
            ("glued", _) => event.is_glued = true,
            ("marked", Deed::Admit { marker, .. }) => {
                let number = words.peek().and_then(|next| next.parse().ok());
                *marker = match number {
                    Some(number) => Marker::Record(number),
                    None if words.next_if_eq(&"elsewhere").is_some() => Marker::Elsewhere,
                    None => Marker::Tail,
                };
                words.next_if(|_| number.is_some());
            }
            ("on", Deed::Write(entry)) => {
                entry.parent = match words.next()? {
                    "nobody" => Parent::Nobody,
                    "lost" => Parent::Lost,
                    number => Parent::Record(number.parse().ok()?),
                };
            }
            (flaw, Deed::Write(entry)) => entry.flaws.push(FLAWS.iter().find(|(word, _)| *word == flaw)?.1),
            _ => return None,
        }
    }
    Some(())
}

impl fmt::Display for Story {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[")?;
        for (index, event) in self.events.iter().enumerate() {
            formatter.write_str(if index > 0 { ", " } else { "" })?;
            write_passing(formatter, event.after_ms)?;
            write_event(formatter, event)?;
        }
        formatter.write_str("]")
    }
}

fn write_passing(formatter: &mut fmt::Formatter<'_>, after_ms: i64) -> fmt::Result {
    match after_ms {
        STEP_MS => Ok(()),
        0 => formatter.write_str("same ms, "),
        1.. => write!(formatter, "later {after_ms}ms, "),
        _ => write!(formatter, "back {}ms, ", after_ms.unsigned_abs()),
    }
}

fn write_event(formatter: &mut fmt::Formatter<'_>, event: &Event) -> fmt::Result {
    let (open, close) = if event.is_decisive { ("<", ">") } else { ("", "") };
    formatter.write_str(open)?;
    match &event.deed {
        Deed::Load => formatter.write_str("load")?,
        Deed::Admit { prompt, marker } => {
            write!(formatter, "{} if", prompt.letter())?;
            match marker {
                Marker::None => {}
                Marker::Tail => formatter.write_str(" marked")?,
                Marker::Record(number) => write!(formatter, " marked {number}")?,
                Marker::Elsewhere => formatter.write_str(" marked elsewhere")?,
            }
        }
        Deed::End { prompt, ending } => write!(formatter, "{} {}", prompt.letter(), word(ENDINGS, ending))?,
        Deed::Wish { prompt } => write!(formatter, "{} wish", prompt.letter())?,
        Deed::Write(entry) => write_entry(formatter, entry)?,
    }
    match event.torn {
        None => {}
        Some(HALF) => formatter.write_str(" torn")?,
        Some(thousandths) => write!(formatter, " torn {thousandths}")?,
    }
    formatter.write_str(if event.is_glued { " glued" } else { "" })?;
    formatter.write_str(close)
}

fn write_entry(formatter: &mut fmt::Formatter<'_>, entry: &Entry) -> fmt::Result {
    if let Some(owner) = entry.owner {
        write!(formatter, "{} ", owner.letter())?;
    }
    formatter.write_str(word(RECORDS, &entry.what))?;
    match entry.parent {
        Parent::Last => {}
        Parent::Record(number) => write!(formatter, " on {number}")?,
        Parent::Nobody => formatter.write_str(" on nobody")?,
        Parent::Lost => formatter.write_str(" on lost")?,
    }
    entry.flaws.iter().try_for_each(|flaw| write!(formatter, " {}", word(FLAWS, flaw)))
}

/// The word for a value; every value has one.
fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, named)| named == value).map_or("", |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_printed_as_it_was_written() {
        for text in [
            "[]",
            "[A if, B if, A term]",
            "[A if, A wish, B wish torn 250, same ms, <C wish>]",
            "[A if marked, A user, call, tool, answer torn, <A result cancelled>, load, B if marked elsewhere torn 250]",
            "[user, same ms, artifact, back 5000ms, answer on 0 undated bare glued, later 20ms, rewind on lost, Q deadline]",
            "[empty compression on nobody, blind call, goal tool, goal end, command, command answered]",
            "[answer huge, compression mute, A if marked 0, B if marked 12 torn]",
        ] {
            assert_eq!(text.parse::<Story>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_event_is_named() {
        for (text, found) in [
            ("A if", "A if"),
            ("[A if, answers]", "answers"),
            ("[if]", "if"),
            ("[wish]", "wish"),
            ("[A wish marked]", "A wish marked"),
            ("[A if undated]", "A if undated"),
            ("[answer on top]", "answer on top"),
            ("[later 5m]", "later 5m"),
            ("[later 9223372036854775807s]", "later 9223372036854775807s"),
        ] {
            assert_eq!(text.parse::<Story>(), Err(NotationError(found.to_owned())), "{text}");
        }
    }
}
