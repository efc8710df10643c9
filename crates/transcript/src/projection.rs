//! The model's history, as far as it can be read off the branch (wire, section 16.6).

use std::collections::VecDeque;

use crate::interruption::HISTORY_TAIL_ENTRIES;
use crate::record::{Goal, GoalEnd, Kind, MID_TURN, Message, Payload, Record, Role, SlashCommand, Snapshot};

/// How many entries the records at hand must give before the walk back may stop. The oldest one may lack what it was
/// merged from, so one more than is asked for is needed, and one more for the command that a note may take out.
const ENTRIES_WANTED: usize = HISTORY_TAIL_ENTRIES + 2;

/// How much memory the records may take that the end of a history is made from. Fifty entries take a hundredth of it;
/// what takes more, like a million messages said into one turn, is not read to its end.
const RECORDS_WEIGHT_MAX: usize = 16 * 1024 * 1024;

/// The history cannot be built: a message's parts are no list of objects, a snapshot is no history, or its end is made
/// from too many records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// The end of the model's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// At most the last [`HISTORY_TAIL_ENTRIES`] entries, oldest first.
    pub entries: Vec<Message>,
    /// How many of the entries, from the oldest one, the end of a turn for a goal has closed: the last of them is the
    /// tool's answer that ended it, and nothing in them is open (evidence rules, section 9). 0 when there is no such end.
    pub closed_by_goal: usize,
    /// The commands that the session answered by itself, so that they left the history again.
    pub answered: Vec<AnsweredCommand>,
}

/// A command that the session answered by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredCommand {
    /// The record of the command.
    pub uuid: String,
    /// When it was answered, in epoch milliseconds; none when the answer does not say.
    pub answered_at_ms: Option<i64>,
}

/// Collects what the end of the history is made from, newest record first.
#[derive(Debug, Default)]
pub struct HistoryTail {
    /// Oldest first.
    records: VecDeque<Record>,
    entries: usize,
    taken_out: usize,
    /// How much memory the records take, in bytes.
    weight: usize,
    is_complete: bool,
    is_from_the_beginning: bool,
}

impl HistoryTail {
    /// Whether nothing further back can change the end of the history.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Says that the branch has no further record.
    pub fn reach_the_beginning(&mut self) {
        self.is_from_the_beginning |= !self.is_complete;
        self.is_complete = true;
    }

    /// Takes the next record towards the beginning.
    pub fn push(&mut self, record: &Record) {
        if self.is_complete {
            return;
        }
        match &record.payload {
            _ if record.is_material() => self.entries += usize::from(!record.is(MID_TURN)),
            Payload::SlashCommand(command) => self.taken_out += usize::from(command.answered.is_some()),
            Payload::Compression(Snapshot::Entries(_) | Snapshot::Unreadable) => {
                self.is_complete = true;
                self.is_from_the_beginning = true;
            }
            Payload::GoalEnd(_) => {}
            _ => return,
        }
        self.weight += record.weight();
        if self.weight > RECORDS_WEIGHT_MAX {
            self.records.clear();
            self.is_complete = true;
            return;
        }
        self.records.push_front(record.clone());
        self.is_complete |= self.entries >= ENTRIES_WANTED + self.taken_out;
    }

    /// The history as it ends now.
    pub fn finish(&self) -> Result<History, Unreadable> {
        if self.weight > RECORDS_WEIGHT_MAX {
            return Err(Unreadable);
        }
        let mut history = Accumulator { is_from_the_beginning: self.is_from_the_beginning, ..Accumulator::default() };
        for record in &self.records {
            history.add(record)?;
        }
        Ok(history.finish())
    }
}

/// Builds a history in the order of the branch.
#[derive(Default)]
struct Accumulator {
    entries: Vec<Message>,
    /// The record that made the last entry, while a note may still refer to it.
    last: Option<Record>,
    /// How many entries a goal's end has closed, and by which call.
    closed: Option<(usize, String)>,
    answered: Vec<AnsweredCommand>,
    is_from_the_beginning: bool,
}

impl Accumulator {
    fn add(&mut self, record: &Record) -> Result<(), Unreadable> {
        match &record.payload {
            _ if record.is_material() => self.add_message(record),
            Payload::SlashCommand(command) => {
                self.take_out(command, record.at_ms);
                Ok(())
            }
            Payload::GoalEnd(end) => {
                if let Some(call) = self.closing_call(record.goal.as_ref(), end) {
                    self.closed = Some((self.entries.len(), call));
                }
                Ok(())
            }
            Payload::Compression(snapshot) => self.replace(snapshot),
            _ => Ok(()),
        }
    }

    fn add_message(&mut self, record: &Record) -> Result<(), Unreadable> {
        let Some(message) = &record.message else { return Ok(()) };
        if !message.is_readable {
            return Err(Unreadable);
        }
        // A call made or answered again is not the one that was closed.
        let is_named = |id: &String| {
            message.calls.iter().any(|call| call.id.as_ref() == Some(id)) || message.responses.contains(id)
        };
        self.closed.take_if(|(_, call)| is_named(call));
        let is_closed = self.closed.as_ref().is_some_and(|(count, _)| *count == self.entries.len());
        match self.entries.pop() {
            Some(before) if record.is(MID_TURN) && before.role == Role::User && !is_closed => {
                self.entries.push(before.joined(message.clone()));
            }
            before => {
                self.entries.extend(before);
                self.entries.push(message.clone());
            }
        }
        self.last = Some(record.clone());
        Ok(())
    }

    /// A command that the session answered by itself is no part of the history. Any command is a fence: a later note
    /// does not refer to what was asked before it.
    fn take_out(&mut self, command: &SlashCommand, at_ms: Option<i64>) {
        let Some(asked) = self.last.take_if(|last| last.kind == Kind::User) else { return };
        let is_plain = asked.subtype.is_none();
        if is_plain && asked.message.is_some_and(|said| said.role == Role::User && said.is_only(command.answered)) {
            self.entries.pop();
            self.answered.push(AnsweredCommand { uuid: asked.uuid, answered_at_ms: at_ms });
        }
    }

    /// The call of the last answer, if the note ends the turn whose tool gave it.
    fn closing_call(&self, permit: Option<&Goal>, end: &GoalEnd) -> Option<String> {
        let (id, last) = end.tool_call_id.as_ref().zip(self.last.as_ref())?;
        let is_same_turn = permit.is_some() && last.goal.as_ref() == permit;
        let answers = |message: &Message| message.responses.contains(id);
        let is_closing = last.kind == Kind::ToolResult && is_same_turn && last.message.as_ref().is_some_and(answers);
        (is_closing && self.is_unique(id)).then(|| id.clone())
    }

    /// Whether the call was made once and answered once. Where the beginning of the history is not at hand, the call may
    /// stand there.
    fn is_unique(&self, id: &str) -> bool {
        let calls = self.entries.iter().flat_map(|entry| &entry.calls).filter(|call| call.id.as_deref() == Some(id));
        let calls = calls.count();
        let responses = self.entries.iter().flat_map(|entry| &entry.responses).filter(|answered| *answered == id);
        responses.count() == 1 && (calls == 1 || calls == 0 && !self.is_from_the_beginning)
    }

    fn replace(&mut self, snapshot: &Snapshot) -> Result<(), Unreadable> {
        match snapshot {
            Snapshot::Absent => return Ok(()),
            Snapshot::Entries(entries) if entries.iter().all(|entry| entry.is_readable) => {
                self.entries.clone_from(entries);
            }
            Snapshot::Entries(_) | Snapshot::Unreadable => return Err(Unreadable),
        }
        self.last = None;
        self.closed = None;
        Ok(())
    }

    fn finish(mut self) -> History {
        let closed = self.closed.take().filter(|(_, call)| self.is_unique(call)).map_or(0, |(count, _)| count);
        let forgotten = self.entries.len().saturating_sub(HISTORY_TAIL_ENTRIES);
        self.entries.drain(..forgotten);
        History { entries: self.entries, closed_by_goal: closed.saturating_sub(forgotten), answered: self.answered }
    }
}

#[cfg(test)]
mod tests;
