//! How long a prompt's caller waits. Two clocks run, and whoever is released is told which of them ran out.

use crate::PromptState;
use crate::moment::Steady;

/// Which clock ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// The one that starts with the admission; the time in the queue counts.
    Absolute,
    /// The one that starts with the dispatch; a prompt that only waits is never ended by it.
    Run,
}

impl Deadline {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absolute => "absolute",
            Self::Run => "run",
        }
    }
}

/// A deadline that ended a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The clock.
    pub deadline: Deadline,
    /// What the prompt did then. One that still waited never reached the agent.
    pub state: PromptState,
}

/// The two clocks of a prompt, in milliseconds; none runs for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    pub(crate) absolute_ms: Option<u64>,
    pub(crate) run_ms: Option<u64>,
}

impl Clocks {
    /// The clock that runs out first and when, of a prompt admitted and perhaps dispatched then. Of two at once it is the absolute one.
    pub(crate) fn next(self, queued: Steady, started: Option<Steady>) -> Option<(Steady, Deadline)> {
        let at = |from: Option<Steady>, after_ms: Option<u64>| Some(from?.after(after_ms?));
        let absolute = at(Some(queued), self.absolute_ms).map(|due| (due, Deadline::Absolute));
        let run = at(started, self.run_ms).map(|due| (due, Deadline::Run));
        absolute.into_iter().chain(run).min_by_key(|(due, _)| *due)
    }

    /// What is said for people about an expiry. The beginning is the peer's sentence (wire rules, section 8.7).
    pub(crate) fn message(self, expiry: Expiry) -> String {
        let (limit_ms, name, from) = match expiry.deadline {
            Deadline::Absolute => (self.absolute_ms, "deadline", "admission"),
            Deadline::Run => (self.run_ms, "run deadline", "dispatch"),
        };
        let (limit_ms, state) = (limit_ms.unwrap_or_default(), expiry.state.as_str());
        format!("prompt exceeded the {limit_ms}ms {name}, counted from its {from}, while it was {state}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clock_counts_from_its_own_beginning_and_does_not_overflow() {
        let next = |absolute_ms, run_ms, started: Option<u64>| {
            let next = Clocks { absolute_ms, run_ms }.next(Steady(10), started.map(Steady));
            next.map(|(due, deadline)| (due.0, deadline))
        };
        assert_eq!(next(None, None, Some(20)), None);
        assert_eq!(next(Some(300), None, None), Some((310, Deadline::Absolute)));
        assert_eq!(next(None, Some(300), None), None, "what waits has no run");
        assert_eq!(next(None, Some(300), Some(20)), Some((320, Deadline::Run)));
        assert_eq!(next(Some(u64::MAX), None, None), Some((u64::MAX, Deadline::Absolute)));
    }

    #[test]
    fn the_shorter_clock_wins_and_of_two_at_once_the_absolute_one() {
        let next = |absolute, run| {
            let next = Clocks { absolute_ms: Some(absolute), run_ms: Some(run) }.next(Steady(10), Some(Steady(20)));
            next.map(|(due, deadline)| (due.0, deadline))
        };
        assert_eq!(next(100, 100), Some((110, Deadline::Absolute)));
        assert_eq!(next(111, 100), Some((120, Deadline::Run)));
        assert_eq!(next(110, 100), Some((120, Deadline::Absolute)));
    }

    #[test]
    fn an_expiry_says_which_clock_ran_out_and_what_the_prompt_did() {
        let clocks = Clocks { absolute_ms: Some(300), run_ms: Some(20) };
        let said = |deadline, state| clocks.message(Expiry { deadline, state });
        assert_eq!(
            said(Deadline::Absolute, PromptState::Queued),
            "prompt exceeded the 300ms deadline, counted from its admission, while it was queued"
        );
        assert_eq!(
            said(Deadline::Run, PromptState::Running),
            "prompt exceeded the 20ms run deadline, counted from its dispatch, while it was running"
        );
    }
}
