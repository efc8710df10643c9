//! The times a host waits for. A table, not tasks.

use std::time::Duration;

use tokio::time::Instant;

/// What a time is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The turn has run long enough without a daemon.
    Linger,
    /// Held records are tried again.
    Retry,
    /// An agent that shows signs of its end is taken as gone.
    Fade,
    /// A witnessed prompt has waited long enough in front of the agent's input.
    Input,
    /// The next step towards the end of the tree.
    Step,
    /// A killed tree counts as gone.
    Kill,
    /// A command of a user has run long enough.
    Command,
    /// The output of a command that has ended was waited for long enough.
    CommandFade,
    /// The daemon had time enough to read what was said last.
    Flush,
}

/// At most one time for each purpose.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    armed: Vec<(Instant, Timer)>,
}

impl Timers {
    /// Sets a time, in the place of an earlier one for the same purpose.
    pub(crate) fn arm(&mut self, timer: Timer, after: Duration) {
        self.disarm(timer);
        self.armed.push((Instant::now() + after, timer));
    }

    pub(crate) fn disarm(&mut self, timer: Timer) {
        self.armed.retain(|(_, armed)| *armed != timer);
    }

    pub(crate) fn is_armed(&self, timer: Timer) -> bool {
        self.armed.iter().any(|(_, armed)| *armed == timer)
    }

    /// Waits for the next time and takes it out. Waits for ever when there is none; dropping it loses nothing.
    pub(crate) async fn next(&mut self) -> Timer {
        let Some((at, timer)) = self.armed.iter().min_by_key(|(at, _)| *at).copied() else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(at).await;
        self.disarm(timer);
        timer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn times_come_in_their_order_and_once() {
        let mut timers = Timers::default();
        timers.arm(Timer::Fade, Duration::from_millis(2));
        timers.arm(Timer::Linger, Duration::from_secs(600));
        timers.arm(Timer::Linger, Duration::ZERO);
        timers.arm(Timer::Retry, Duration::from_secs(600));
        timers.disarm(Timer::Retry);
        assert_eq!(timers.next().await, Timer::Linger);
        assert!(timers.is_armed(Timer::Fade));
        assert_eq!(timers.next().await, Timer::Fade);
        assert!(!timers.is_armed(Timer::Fade) && !timers.is_armed(Timer::Linger));
    }
}
