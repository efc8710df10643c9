//! The two files of a simulated session, as those who write them know them.

use super::story::{Deed, Ending, Entry, Event, Marker, Name, Parent, Story, What};

/// Where nothing is missing of a torn line but its LF, in thousandths.
const WHOLE: u16 = 1_000;

/// What was written, and what is about to happen to the next write.
#[derive(Debug, Default)]
pub(super) struct Disk {
    story: Story,
    records: Vec<Placed>,
    /// Each id by its latest line, in order of first appearance.
    ledger: Vec<(Name, bool)>,
    /// How much later the next event is; none is the pace of stories.
    wait_ms: Option<i64>,
    tear: Option<(u8, u16)>,
    /// Whether the next ledger line will be lost.
    is_losing_line: bool,
    /// Whether every line of the prompt that is admitted next will be lost.
    is_losing_prompt: bool,
    /// The prompts whose lines are all lost.
    lost: Vec<Name>,
    torn: Option<Torn>,
}

/// The file whose last line was torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Torn {
    /// The daemon was writing.
    Ledger,
    /// The session's writer was, or a second one.
    Transcript,
}

/// A record's place on the branch.
#[derive(Debug)]
struct Placed {
    parent: Option<usize>,
    is_prompt: bool,
    /// Whether it can be a parent.
    is_on_branch: bool,
}

/// A program that writes into the transcript. What others write after it has read the file, it does not see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writer {
    leaf: Option<usize>,
}

impl Disk {
    pub(super) fn into_story(self) -> Story {
        self.story
    }

    /// Lets time pass before the next event.
    pub(super) fn wait(&mut self, millis: i64) {
        self.wait_ms = Some(self.wait_ms.unwrap_or(0) + millis);
    }

    /// Lets so many writes get to the disk, and tears the next one.
    pub(super) fn tear(&mut self, after: u8, thousandths: u16) {
        self.tear = Some((after, thousandths));
    }

    /// Loses the next ledger line, or every line of the prompt that is admitted next.
    pub(super) fn lose(&mut self, is_whole_prompt: bool) {
        self.is_losing_prompt |= is_whole_prompt;
        self.is_losing_line |= !is_whole_prompt;
    }

    /// What was torn since this was last asked.
    pub(super) fn take_torn(&mut self) -> Option<Torn> {
        self.torn.take()
    }

    /// A program that reads the file now.
    pub(super) fn writer(&self) -> Writer {
        Writer { leaf: self.leaf() }
    }

    /// Takes an admission; whether it is on the disk.
    pub(super) fn admit(&mut self, name: Name, marker: Marker) -> bool {
        self.write_line(name, true, Deed::Admit { prompt: name, marker })
    }

    /// Takes a terminal; whether the daemon goes on.
    pub(super) fn end(&mut self, name: Name, ending: Ending) -> bool {
        self.write_line(name, false, Deed::End { prompt: name, ending });
        self.torn.is_none()
    }

    /// Takes a client's wish to cancel; whether it is on the disk. Which prompts are open is not changed by it.
    pub(super) fn wish(&mut self, name: Name) -> bool {
        let is_lost = self.lost.contains(&name) || std::mem::take(&mut self.is_losing_line);
        !is_lost && self.push(Deed::Wish { prompt: name })
    }

    /// Takes a record; whether all of it is on the disk.
    pub(super) fn write(&mut self, writer: &mut Writer, mut entry: Entry) -> bool {
        let parent = match entry.parent {
            Parent::Record(number) => Some(number),
            Parent::Nobody => None,
            Parent::Last | Parent::Lost => writer.leaf,
        };
        let is_last = entry.parent == Parent::Last && parent == self.leaf();
        if !is_last {
            entry.parent = parent.map_or(Parent::Nobody, Parent::Record);
        }
        let is_on_branch = entry.what.is_on_branch();
        let is_prompt = entry.what == What::User;
        let is_whole = self.push(Deed::Write(entry));
        self.records.push(Placed { parent, is_prompt, is_on_branch: is_on_branch && is_whole });
        if is_whole && is_on_branch {
            writer.leaf = Some(self.records.len() - 1);
        }
        is_whole
    }

    /// The ids whose latest line is an admission.
    pub(super) fn dangling(&self) -> Vec<Name> {
        self.ledger.iter().filter(|(_, is_open)| *is_open).map(|(name, _)| *name).collect()
    }

    /// The id that first appeared last, of those that have ended.
    pub(super) fn last_settled(&self) -> Option<Name> {
        self.ledger.iter().rev().find(|(_, is_open)| !is_open).map(|(name, _)| *name)
    }

    /// What stands before one of the last prompts of the writer's branch: another record, or nothing. None when there are not
    /// so many prompts.
    pub(super) fn before_prompt(&self, writer: &Writer, prompts_back: usize) -> Option<Option<usize>> {
        let branch = std::iter::successors(writer.leaf, |number| self.records[*number].parent);
        let prompt = branch.filter(|number| self.records[*number].is_prompt).nth(prompts_back)?;
        Some(self.records[prompt].parent)
    }

    fn leaf(&self) -> Option<usize> {
        self.records.iter().rposition(|record| record.is_on_branch)
    }

    fn write_line(&mut self, name: Name, is_open: bool, deed: Deed) -> bool {
        if is_open && std::mem::take(&mut self.is_losing_prompt) {
            self.lost.push(name);
        }
        if self.lost.contains(&name) || std::mem::take(&mut self.is_losing_line) {
            return false;
        }
        let is_whole = self.push(deed);
        if is_whole {
            match self.ledger.iter_mut().find(|(known, _)| *known == name) {
                Some(line) => line.1 = is_open,
                None => self.ledger.push((name, is_open)),
            }
        }
        is_whole
    }

    fn push(&mut self, deed: Deed) -> bool {
        let torn = match self.tear.take() {
            Some((0, thousandths)) => Some(thousandths),
            later => {
                self.tear = later.map(|(after, thousandths)| (after - 1, thousandths));
                None
            }
        };
        let file = if matches!(deed, Deed::Write(_)) { Torn::Transcript } else { Torn::Ledger };
        self.torn = self.torn.or(torn.map(|_| file));
        let event = Event::new(deed);
        let after_ms = self.wait_ms.take().unwrap_or(event.after_ms);
        self.story.events.push(Event { after_ms, torn, ..event });
        torn.is_none_or(|thousandths| thousandths >= WHOLE)
    }
}
