//! Places where a test can stop, kill or fail this process. Compiled only with the feature `fail-points`; without it every function here
//! is nothing.
//!
//! A plan is text: `before:dispatched=kill; after:terminal=kill@3; commit=full*2; before:prune=stall`. The name of a place is the step, and
//! whether it is before its commit or after it. `stop` stops the process until somebody lets it go on (SIGSTOP). `@3` is the third time only,
//! `*2` the first two times; without either it is always.

use crate::store::StoreError;

/// When a step is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// In its transaction, before the commit.
    Before,
    /// After its commit, before anybody is told.
    After,
    /// A place that is no step of a request.
    At,
}

/// The plan of a process. The default is that nothing happens.
#[derive(Debug, Default)]
pub struct FailPoints {
    #[cfg(feature = "fail-points")]
    plans: std::sync::Mutex<Vec<planned::Plan>>,
}

#[cfg(not(feature = "fail-points"))]
impl FailPoints {
    /// The plan in the environment of this process: none, in this build.
    #[must_use]
    pub fn from_env() -> Self {
        Self::default()
    }

    /// Comes to a place: goes on, or fails with what is planned for it, or does not come back.
    ///
    /// # Errors
    /// What the plan says.
    #[inline]
    pub const fn reach(&self, _when: When, _step: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(feature = "fail-points")]
mod planned {
    use std::sync::PoisonError;

    use rustix::process::{Signal, getpid, kill_process};

    use super::{FailPoints, StoreError, When};

    /// The environment variable that holds the plan of a child process.
    const VARIABLE: &str = "TURND_FAIL_POINTS";

    #[derive(Debug, Clone)]
    pub(super) struct Plan {
        place: String,
        act: Act,
        /// How often it was reached.
        reached: u64,
        /// The times at which it acts.
        first: u64,
        last: u64,
    }

    #[derive(Debug, Clone)]
    enum Act {
        Kill,
        Stop,
        Stall,
        Fail(StoreError),
    }

    impl FailPoints {
        /// A plan from its text. What cannot be read is left out, so that a test with a typing error fails for lack of a fault.
        #[must_use]
        pub fn parse(text: &str) -> Self {
            let plans = text.split(';').filter_map(|part| plan(part.trim())).collect();
            Self { plans: std::sync::Mutex::new(plans) }
        }

        /// The plan in the environment of this process, `TURND_FAIL_POINTS`.
        #[must_use]
        #[expect(clippy::disallowed_methods, reason = "compiled only for tests, which start this process with a plan")]
        pub fn from_env() -> Self {
            Self::parse(&std::env::var(VARIABLE).unwrap_or_default())
        }

        /// Changes the plan.
        pub fn set(&self, text: &str) {
            *self.plans.lock().unwrap_or_else(PoisonError::into_inner) =
                Self::parse(text).plans.into_inner().unwrap_or_else(PoisonError::into_inner);
        }

        /// Comes to a place: goes on, or fails with what is planned for it, or does not come back.
        ///
        /// # Errors
        /// What the plan says.
        pub fn reach(&self, when: When, step: &str) -> Result<(), StoreError> {
            let act = {
                let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
                plans.iter_mut().find_map(|plan| plan.reach(when, step))
            };
            match act {
                None => Ok(()),
                Some(Act::Fail(error)) => Err(error),
                Some(Act::Stall) => loop {
                    std::thread::park();
                },
                Some(Act::Stop) => {
                    stop();
                    Ok(())
                }
                Some(Act::Kill) => {
                    let _ = kill_process(getpid(), Signal::KILL);
                    loop {
                        std::thread::park();
                    }
                }
            }
        }
    }

    impl Plan {
        fn reach(&mut self, when: When, step: &str) -> Option<Act> {
            let name = match when {
                When::Before => self.place.strip_prefix("before:"),
                When::After => self.place.strip_prefix("after:"),
                When::At => Some(&*self.place),
            };
            if name != Some(step) {
                return None;
            }
            self.reached += 1;
            (self.first..=self.last).contains(&self.reached).then(|| self.act.clone())
        }
    }

    /// Stops this process, and returns when somebody lets it go on. The signal may be taken by another thread: this one goes no further
    /// than to see that it was taken, and is stopped on its way back from that.
    fn stop() {
        let _ = kill_process(getpid(), Signal::STOP);
        while is_pending(Signal::STOP) {}
    }

    /// Whether a signal to this process waits to be taken.
    fn is_pending(signal: Signal) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        let signals = pending.and_then(|word| u64::from_str_radix(word.trim(), 16).ok()).unwrap_or_default();
        signals >> (signal.as_raw() - 1) & 1 == 1
    }

    fn plan(text: &str) -> Option<Plan> {
        let (place, act) = text.split_once('=')?;
        let (act, first, last) = if let Some((act, at)) = act.split_once('@') {
            let at = at.parse().ok()?;
            (act, at, at)
        } else if let Some((act, times)) = act.split_once('*') {
            (act, 1, times.parse().ok()?)
        } else {
            (act, 1, u64::MAX)
        };
        let act = match act {
            "kill" => Act::Kill,
            "stop" => Act::Stop,
            "stall" => Act::Stall,
            "busy" => Act::Fail(StoreError::Busy),
            "full" => Act::Fail(StoreError::Full),
            "io" => Act::Fail(StoreError::Io("planned".to_owned())),
            "corrupt" => Act::Fail(StoreError::Corrupt("planned".to_owned())),
            _ => return None,
        };
        Some(Plan { place: place.to_owned(), act, reached: 0, first, last })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_plan_acts_at_its_place_and_its_times() {
            let points = FailPoints::parse("before:bound=full@2; commit=io*1; after:bound=typo");
            assert_eq!(points.reach(When::Before, "bound"), Ok(()));
            assert_eq!(points.reach(When::Before, "bound"), Err(StoreError::Full));
            assert_eq!(points.reach(When::Before, "bound"), Ok(()));
            assert_eq!(points.reach(When::After, "bound"), Ok(()));
            assert!(points.reach(When::At, "commit").is_err());
            assert_eq!(points.reach(When::At, "commit"), Ok(()));
        }
    }
}
