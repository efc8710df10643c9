//! Places on a prompt's way into the agent's input where a test stops or kills this host. Compiled only with the feature `fail-points`;
//! without it every function here is nothing.
//!
//! The plan is the daemon's own text (`TURND_FAIL_POINTS`), of which a host takes what is its: `host:half=stop; host:told=kill`. Each place
//! acts once, at the first witnessed prompt that comes there.

use bytes::Bytes;

/// A place on the way of a witnessed prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its line is taken, and nothing of it is written.
    Taken,
    /// The first half of its line is in the agent's input, and nothing else.
    #[cfg(feature = "fail-points")]
    Half,
    /// All of it is, and the daemon has not been told.
    Whole,
    /// The daemon has been told.
    Told,
}

/// The plan of a host. The default is that nothing happens.
#[derive(Debug, Default)]
pub(crate) struct FailPoints {
    #[cfg(feature = "fail-points")]
    plans: Vec<planned::Plan>,
    /// What of a line is to be written behind its half.
    #[cfg(feature = "fail-points")]
    rest: Option<Bytes>,
}

#[cfg(not(feature = "fail-points"))]
#[expect(clippy::unused_self, reason = "the plan is empty in this build")]
impl FailPoints {
    /// The plan in the environment of this process: none, in this build.
    pub(crate) fn from_env() -> Self {
        Self::default()
    }

    /// Comes to a place, and goes on.
    #[inline]
    pub(crate) const fn reach(&mut self, _place: Place) {}

    /// What of a line is to be written before the rest of it: no part, in this build.
    #[inline]
    pub(crate) const fn first_half(&mut self, _line: &Bytes) -> Option<Bytes> {
        None
    }

    /// The rest of a line whose first half is written: none, in this build.
    #[inline]
    pub(crate) const fn rest(&mut self) -> Option<Bytes> {
        None
    }
}

#[cfg(feature = "fail-points")]
mod planned {
    use bytes::Bytes;
    use rustix::process::{Signal, getpid, kill_process};

    use super::{FailPoints, Place};

    /// The environment variable that holds the plan of a test's daemon and its hosts.
    const VARIABLE: &str = "TURND_FAIL_POINTS";

    #[derive(Debug)]
    pub(super) struct Plan {
        place: Place,
        signal: Signal,
    }

    impl FailPoints {
        /// A plan from its text. What cannot be read is left out, so that a test with a typing error fails for lack of a fault.
        fn parse(text: &str) -> Self {
            Self { plans: text.split(';').filter_map(|part| plan(part.trim())).collect(), rest: None }
        }

        /// The plan in the environment of this process.
        #[expect(clippy::disallowed_methods, reason = "compiled only for tests, which start this process with a plan")]
        pub(crate) fn from_env() -> Self {
            Self::parse(&std::env::var(VARIABLE).unwrap_or_default())
        }

        /// Comes to a place: goes on, or is stopped, or does not come back.
        pub(crate) fn reach(&mut self, place: Place) {
            if let Some(at) = self.plans.iter().position(|plan| plan.place == place) {
                let _ = kill_process(getpid(), self.plans.remove(at).signal);
            }
        }

        /// The first half of a line, where a test has a plan for the moment behind it; the rest is kept.
        pub(crate) fn first_half(&mut self, line: &Bytes) -> Option<Bytes> {
            self.plans.iter().any(|plan| plan.place == Place::Half).then(|| {
                let half = line.len() / 2;
                self.rest = Some(line.slice(half..));
                line.slice(..half)
            })
        }

        /// The rest of the line whose first half is written, once. A test may do something before it.
        pub(crate) fn rest(&mut self) -> Option<Bytes> {
            let rest = self.rest.take()?;
            self.reach(Place::Half);
            Some(rest)
        }
    }

    fn plan(text: &str) -> Option<Plan> {
        let (place, act) = text.strip_prefix("host:")?.split_once('=')?;
        let place = match place {
            "taken" => Place::Taken,
            "half" => Place::Half,
            "whole" => Place::Whole,
            "told" => Place::Told,
            _ => return None,
        };
        let signal = match act {
            "stop" => Signal::STOP,
            "kill" => Signal::KILL,
            _ => return None,
        };
        Some(Plan { place, signal })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_host_takes_of_a_plan_what_is_its() {
            let points =
                FailPoints::parse("before:written=kill; host:half=stop; host:told=kill; host:typo=kill; host:half=x");
            let plans: Vec<_> = points.plans.iter().map(|plan| (plan.place, plan.signal)).collect();
            assert_eq!(plans, [(Place::Half, Signal::STOP), (Place::Told, Signal::KILL)]);
        }

        #[test]
        fn a_line_is_parted_only_for_a_test_that_stops_in_it() {
            let line = Bytes::from_static(b"0123456789\n");
            assert_eq!(FailPoints::parse("host:whole=stop").first_half(&line), None);
            let mut points = FailPoints::parse("host:half=stop");
            assert_eq!(points.first_half(&line).as_deref(), Some(&b"01234"[..]));
            assert_eq!(points.rest.as_deref(), Some(&b"56789\n"[..]));
        }
    }
}
