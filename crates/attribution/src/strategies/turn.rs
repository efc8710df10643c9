//! One turn of a simulated agent, and what is left of it to write.

use std::collections::VecDeque;

use super::story::{Name, Outcome, What};

/// A turn that was dispatched.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) prompt: Name,
    /// Whether its user record is on the disk.
    pub(super) has_asked: bool,
    /// Whether a call of it waits for its answer.
    pub(super) has_open_call: bool,
    /// Whether somebody asked to cancel it, before it began to end.
    pub(super) is_cancelling: bool,
    /// Whether a wish to cancel it was written, and is on the disk.
    pub(super) is_wished: Option<bool>,
    /// Whether its terminal has been published before it ended.
    pub(super) is_released: bool,
    /// What it will write yet, once it has begun to end.
    rest: VecDeque<Last>,
    is_ending: bool,
}

/// One of the last things that a turn writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// The answer to an open call.
    Tool,
    /// What it says in the end.
    Answer {
        /// Whether this is an answer, and not what was said before a turn was cut.
        is_final: bool,
    },
    /// Its result.
    Result(Outcome),
    /// A note of the session.
    Note,
    /// Its terminal, by the daemon.
    Terminal(Outcome),
}

impl Turn {
    pub(super) fn new(prompt: Name) -> Self {
        Self {
            prompt,
            has_asked: false,
            has_open_call: false,
            is_cancelling: false,
            is_wished: None,
            is_released: false,
            rest: VecDeque::new(),
            is_ending: false,
        }
    }

    /// Whether it can only write its rest.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Hears of the cancel that was wished, unless it ends already. What it does next may come before that.
    pub(super) fn hear(&mut self) {
        self.is_cancelling |= self.is_wished.is_some() && !self.is_ending;
    }

    /// Begins to end. Without a user record there was nothing to answer, and the turn fails without a trace.
    pub(super) fn end(&mut self, outcome: Outcome, has_said: bool, is_recorded: bool, is_result_first: bool) {
        if std::mem::replace(&mut self.is_ending, true) {
            return;
        }
        let outcome = if self.is_cancelling { Outcome::Cancelled } else { outcome };
        match outcome {
            _ if !self.has_asked => self.rest.push_back(Last::Terminal(Outcome::Failed)),
            Outcome::Completed => self.end_well(is_recorded),
            _ => self.end_badly(outcome, has_said, is_result_first),
        }
    }

    fn end_well(&mut self, is_recorded: bool) {
        self.rest.extend(self.has_open_call.then_some(Last::Tool));
        self.rest.extend([Last::Answer { is_final: true }, Last::Note]);
        self.rest.extend(is_recorded.then_some(Last::Result(Outcome::Completed)));
        self.rest.push_back(Last::Terminal(Outcome::Completed));
    }

    fn end_badly(&mut self, outcome: Outcome, has_said: bool, is_result_first: bool) {
        let said = has_said.then_some(Last::Answer { is_final: false });
        let said = self.has_open_call.then_some(Last::Tool).into_iter().chain(said);
        if is_result_first {
            self.rest.push_back(Last::Result(outcome));
            self.rest.extend(said);
        } else {
            self.rest.extend(said);
            self.rest.push_back(Last::Result(outcome));
        }
        self.rest.push_back(Last::Terminal(outcome));
    }

    /// Its prompt is told an end before the turn has one; the prompt, unless it was told before.
    pub(super) fn release(&mut self) -> Option<Name> {
        (!std::mem::replace(&mut self.is_released, true)).then_some(self.prompt)
    }

    /// The next thing of its rest.
    pub(super) fn next_of_rest(&mut self) -> Option<Last> {
        self.rest.pop_front()
    }

    /// What it writes of its own accord, or none where that makes no sense now.
    pub(super) fn can_write(&self, what: What) -> bool {
        match what {
            What::Tool => self.has_open_call,
            What::Call | What::BlindCall => !self.has_open_call,
            _ => true,
        }
    }
}
