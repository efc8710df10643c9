//! A simulated session: what was written, and what is true.

use std::collections::BTreeMap;
use std::fmt;

use ledger::{Fact, Terminal};
use proptest::collection::vec;
use proptest::prelude::{Just, any};
use proptest::prop_oneof;
use proptest::strategy::Strategy;

use super::rules::Rules;
use super::simulation::simulate;
use super::step::{Step, last_step, step};
use super::story::{Name, Outcome, Story};

/// The most steps of a world before its last generation. Enough for two or three generations of a daemon with a few prompts
/// each.
const STEPS_MAX: usize = 40;
/// The most steps of the last generation, which ends wherever it is.
const LAST_STEPS_MAX: usize = 20;

/// What a simulation told.
#[derive(Clone)]
pub struct World {
    /// Everything that was written.
    pub story: Story,
    /// What became of every prompt that was submitted. Prompts of a second daemon, whose ledger this is not, are left out.
    pub truth: BTreeMap<Name, Truth>,
}

/// What is true of a prompt when everything has stopped. An outcome counts from the moment in which it is on the disk: what
/// nobody was told and no file holds has not happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// Nothing in the transcript is its own: it was never dispatched, or its turn was lost before it wrote anything.
    Silent,
    /// Its turn was running.
    Running,
    /// Its turn was running, and somebody had asked to cancel it.
    Cancelling,
    /// Its turn was running, and a client's wish to cancel it is on the disk.
    Wished,
    /// Its final answer is on the disk.
    Answered,
    /// Its outcome is on the disk.
    Ended(Outcome),
}

impl Truth {
    /// Whether a terminal says nothing but the truth.
    #[must_use]
    pub fn allows(self, fact: &Fact) -> bool {
        let Fact::Terminal { terminal, .. } = fact else { return false };
        let allowed = match self {
            Self::Silent => return false,
            Self::Running | Self::Cancelling => Terminal::Interrupted,
            Self::Wished => Terminal::Cancelled,
            Self::Answered | Self::Ended(Outcome::Completed) => Terminal::Completed,
            Self::Ended(Outcome::Cancelled) => Terminal::Cancelled,
            Self::Ended(Outcome::Failed) => Terminal::Error,
        };
        *terminal == allowed
    }
}

impl World {
    /// The world that these steps lead to.
    #[must_use]
    pub fn of(rules: Rules, steps: &[Step]) -> Self {
        simulate(rules, steps)
    }

    /// Whether a terminal for this prompt says nothing but the truth. A prompt that nobody submitted has no terminal.
    #[must_use]
    pub fn allows(&self, prompt_id: &str, fact: &Fact) -> bool {
        let mut truths = self.truth.iter().filter(|(name, _)| name.prompt_id() == prompt_id);
        truths.next().is_some_and(|(_, truth)| truth.allows(fact))
    }
}

/// Worlds in which these rules hold. A past of any length, then a load, at least one prompt, and an end at any moment.
pub fn worlds(rules: Rules) -> impl Strategy<Value = World> {
    let settles = prop_oneof![1 => any::<u8>(), 3 => Just(u8::MAX)];
    let last = vec(last_step(rules), 0..=LAST_STEPS_MAX);
    (vec(step(rules), 0..=STEPS_MAX), settles, any::<bool>(), last).prop_map(move |(past, settles, is_marked, last)| {
        let submit = Step::Submit { is_marked: is_marked || rules.marks_always, is_again: false };
        let steps = [past, vec![Step::Restart { settles }, submit], last].concat();
        World::of(rules, &steps)
    })
}

/// In the notation, so that a world that fails can be read aloud.
impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} where", self.story)?;
        for (index, (name, truth)) in self.truth.iter().enumerate() {
            write!(formatter, "{} {} is {truth:?}", if index > 0 { "," } else { "" }, name.letter())?;
        }
        Ok(())
    }
}
