//! How long to wait before the next try, and when to give up.

use std::time::Duration;

/// Before the second try.
const FIRST: Duration = Duration::from_millis(100);

/// The longest pause that we choose ourselves: a daemon that is back should not wait long for its callers.
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses that double, each shortened at random by up to a half, so that callers who were cut off together do not return together.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    /// Nothing for one who never gives up.
    tries_left: Option<u32>,
    pause: Duration,
}

impl Backoff {
    /// A first try and so many more.
    pub(crate) fn bounded(tries_more: u32) -> Self {
        Self { tries_left: Some(tries_more), pause: FIRST }
    }

    pub(crate) fn endless() -> Self {
        Self { tries_left: None, pause: FIRST }
    }

    /// The pause before the next try, no shorter than what the daemon asked for; nothing when it is time to give up. The dice decide by
    /// how much the pause is shortened.
    pub(crate) fn next(&mut self, asked: Option<Duration>, dice: u8) -> Option<Duration> {
        if let Some(left) = &mut self.tries_left {
            *left = left.checked_sub(1)?;
        }
        let shortened = self.pause - self.pause / 2 * u32::from(dice) / 255;
        self.pause = (self.pause * 2).min(LONGEST);
        Some(shortened.max(asked.unwrap_or_default()))
    }
}

/// A random byte. Where the system has none, everybody waits the whole pause.
pub(crate) fn dice() -> u8 {
    let mut byte = [0];
    getrandom::fill(&mut byte).map_or(0, |()| byte[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_end_where_they_are_bounded() {
        let mut backoff = Backoff::bounded(8);
        let pauses: Vec<u128> = std::iter::from_fn(|| backoff.next(None, 0)).map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        let mut endless = Backoff::endless();
        assert!((0..1000).all(|_| endless.next(None, 0).is_some_and(|pause| pause <= LONGEST)));
    }

    #[test]
    fn the_dice_take_a_half_at_most_and_what_the_daemon_asks_is_kept() {
        for (dice, asked_ms, expected_ms) in [(0, 0, 100), (255, 0, 50), (0, 3_000, 3_000), (255, 70, 70)] {
            let pause = Backoff::bounded(1).next(Some(Duration::from_millis(asked_ms)), dice);
            assert_eq!(pause, Some(Duration::from_millis(expected_ms)), "{dice} {asked_ms}");
        }
    }
}
