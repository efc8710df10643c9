//! A time in which the daemon, or its store, is away: how long it is borne, and what is said of it.
//!
//! That a command waits is said in one line, also where no person looks: a program that reads stderr, or a log, tells why nothing happens.
//! Each further try is a person's business only.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::backoff::{Backoff, dice};
use crate::output::{complain, progress};

/// What every try has at least, so that the last one is one.
const TRY_MIN: Duration = Duration::from_secs(1);

/// How long it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// So often.
    Tries(u32),
    /// So long.
    Within(Duration),
    /// Until it is back.
    Endless,
}

/// An outage, from its first try that failed.
#[derive(Debug)]
pub(crate) struct Outage {
    bound: Bound,
    backoff: Backoff,
    /// When the first try failed.
    began: Option<Instant>,
    /// Tries that may fail before anybody is told.
    untold: u32,
    /// Tries that failed.
    failed: u32,
    /// When the caller does something else, at the latest.
    deadline: Option<Instant>,
}

impl Outage {
    /// None so far.
    pub(crate) fn new(bound: Bound) -> Self {
        let backoff = match bound {
            Bound::Tries(tries) => Backoff::bounded(tries),
            Bound::Within(_) | Bound::Endless => Backoff::endless(),
        };
        Self { bound, backoff, began: None, untold: 0, failed: 0, deadline: None }
    }

    /// The same where one failed try is nothing to speak of: a connection that is open for hours is cut by whoever stands between.
    pub(crate) fn of_a_stream(bound: Bound) -> Self {
        Self { untold: 1, ..Self::new(bound) }
    }

    /// The same with no pause beyond a time.
    pub(crate) fn until(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// The daemon is there.
    pub(crate) fn over(&mut self) {
        *self = Self { untold: self.untold, deadline: self.deadline, ..Self::new(self.bound) };
    }

    /// Where nobody set a time, it is borne until it is over.
    pub(crate) fn endure(&mut self) {
        if matches!(self.bound, Bound::Tries(_)) {
            self.bound = Bound::Endless;
            self.backoff = Backoff::endless();
        }
    }

    /// What is left of the time, where there is a bound in time.
    fn left(&self) -> Option<Duration> {
        let Bound::Within(limit) = self.bound else { return None };
        Some(self.began.map_or(limit, |began| limit.saturating_sub(began.elapsed())))
    }

    /// How long the next try may take, where it could take `limit`.
    pub(crate) fn room(&self, limit: Duration) -> Duration {
        match (self.began, self.left()) {
            (Some(_), Some(left)) => limit.min(left.max(TRY_MIN)),
            _ => limit,
        }
    }

    /// Waits for the next try, no shorter than the daemon wants; whether there is one. `what` says what is done behind the pause.
    pub(crate) async fn wait(&mut self, why: impl Display, after: Option<Duration>, what: impl Display) -> bool {
        self.began.get_or_insert_with(Instant::now);
        self.failed += 1;
        let left = self.left();
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        let Some(pause) = self.backoff.next(after, dice()) else { return false };
        let until = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let pause = [left, until].into_iter().flatten().fold(pause, Duration::min);
        if self.failed == self.untold + 1 {
            complain(format_args!("turnd: {why}; {what}, {}", told(self.bound)));
        } else {
            progress(format_args!("{why}; {what} in {} ms", pause.as_millis()));
        }
        sleep(pause).await;
        true
    }
}

/// A bound in words.
fn told(bound: Bound) -> String {
    match bound {
        Bound::Tries(tries) => format!("up to {tries} times"),
        Bound::Within(limit) => format!("for up to {} ms", limit.as_millis()),
        Bound::Endless => "as long as it takes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_borne_to_its_bound_and_not_longer() {
        let limit = Duration::from_millis(7_000);
        let mut outage = Outage::new(Bound::Within(limit));
        let began = Instant::now();
        assert_eq!(outage.room(Duration::from_secs(60)), Duration::from_secs(60), "the first try has all its time");
        let mut tries = 0;
        while outage.wait("away", None, "again").await {
            tries += 1;
            let room = outage.room(Duration::from_secs(60));
            assert_eq!(room, (limit - began.elapsed()).max(TRY_MIN), "try {tries}");
        }
        assert_eq!(began.elapsed(), limit, "and the last one is at its end");
        assert!(tries > 3, "{tries}");
        outage.over();
        assert!(outage.wait("away", None, "again").await, "another one has a bound of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_of_tries_is_kept_none_is_none_and_what_is_to_be_endured_has_no_end() {
        for (bound, expected) in [(Bound::Tries(3), 3), (Bound::Tries(0), 0), (Bound::Within(Duration::ZERO), 0)] {
            let (mut outage, mut tries) = (Outage::new(bound), 0);
            while outage.wait("away", None, "again").await {
                tries += 1;
            }
            assert_eq!(tries, expected, "{bound:?}");
        }
        let mut outage = Outage::new(Bound::Tries(0));
        outage.endure();
        for _ in 0..100 {
            assert!(outage.wait("away", None, "again").await);
        }
    }
}
