//! The clocks: one is handed in from outside, the other one never steps.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::moment::{Moment, Steady};

/// Where the shell reads the time: once for each thing that happens.
#[derive(Clone)]
pub struct Clock {
    now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The zero of the clock that never steps.
    begun: Instant,
}

impl Clock {
    /// A clock that gives epoch milliseconds, for dates. It may be set at any time: what becomes due is not counted by it.
    pub fn new(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { now_ms: Arc::new(now_ms), begun: Instant::now() }
    }

    /// Epoch milliseconds.
    pub fn now_ms(&self) -> u64 {
        (self.now_ms)()
    }

    /// What becomes due is counted by this, which no setting of a clock moves.
    pub(crate) fn steady(&self) -> Steady {
        Steady(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The moment of what is dated so and happens now.
    pub(crate) fn moment(&self, at_ms: u64) -> Moment {
        Moment { at_ms, steady: self.steady() }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
