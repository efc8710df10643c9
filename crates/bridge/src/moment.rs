//! When something happens, by two clocks.
//!
//! The wall clock dates what goes on record and is shown, so that it can be compared with what other processes wrote. It may be set at any
//! time, and whoever waits must not notice. So what becomes due is counted by a clock that never steps.

/// Milliseconds by the clock that never steps. Its zero means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Steady(pub(crate) u64);

impl Steady {
    /// So many milliseconds later. What lies beyond the end of the clock never comes.
    pub(crate) fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The milliseconds since then; none if it is yet to come.
    pub(crate) fn since(self, then: Self) -> u64 {
        self.0.saturating_sub(then.0)
    }
}

/// A time, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The wall clock's, in epoch milliseconds: for dates.
    pub(crate) at_ms: u64,
    /// For what becomes due.
    pub(crate) steady: Steady,
}

#[cfg(test)]
impl Moment {
    /// The moment of that number by both clocks.
    pub(crate) fn of(ms: u64) -> Self {
        Self { at_ms: ms, steady: Steady(ms) }
    }
}
