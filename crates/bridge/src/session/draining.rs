//! The daemon stops (return requests, section 2.11).
//!
//! A session ends at once, unless the turn that runs has a witness. Then what waits ends, nothing new is taken, and the turn is waited for
//! within a bound. First it goes on undisturbed: what its agent answers before it was told to cancel is an answer like any other, and
//! nothing is behind a cancel, where several agents say `end_turn` for what was cut. Then the agent is told, and has a little longer to obey.
//! An agent that asks for a permission is told at once, since nobody decides any more and what it would say then is not what it was asked.
//!
//! An answer in time is waited on as in an open session: for late words, and for the witness. An agent that is lost meanwhile has not
//! answered, and whoever stops the daemon may have stopped it too.

use super::{Phase, Session};
use crate::effect::Step;
use crate::moment::Steady;
use crate::{FlushOrigin, Reason};

impl Session {
    /// The daemon is stopping. Being told so twice, a session waits for nothing.
    pub(super) fn shut_down(&mut self, step: &mut Step) {
        let latest = step.at.steady.after(self.timeouts.drain_ms());
        let settle_until = match self.phase {
            Phase::Open => latest,
            Phase::Closing { settle_until, .. } => settle_until.min(latest),
            Phase::Draining { .. } => return self.die_with_daemon(step),
            Phase::Ending { .. } | Phase::Over => return,
        };
        if self.turn.as_ref().is_none_or(|turn| turn.over || !turn.entry.witnessed) {
            return self.die_with_daemon(step);
        }
        let is_stuck = !self.permissions.pending().is_empty();
        let cancel_at = step.at.steady.after(self.timeouts.answer_ms);
        self.phase = Phase::Draining { cancel_at, settle_until };
        self.refuse_permissions(|_| true, Reason::Flushed(FlushOrigin::DaemonShutdown), step);
        self.flush_queue(FlushOrigin::DaemonShutdown, step);
        if is_stuck {
            self.cancel_drained(step);
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. })
    }

    /// When the turn is told to cancel, if it is yet to be.
    pub(super) fn drain_cancel(&self) -> Option<Steady> {
        let Phase::Draining { cancel_at, .. } = self.phase else { return None };
        let is_untold = self.turn.as_ref().is_some_and(|turn| !turn.over && turn.cancelled.is_none());
        is_untold.then_some(cancel_at)
    }

    /// The turn has had its time to answer undisturbed, or cannot use it.
    pub(super) fn cancel_drained(&mut self, step: &mut Step) {
        if self.drain_cancel().is_some() {
            self.turn.iter_mut().for_each(|turn| turn.stopped_by = Some(FlushOrigin::DaemonShutdown));
            self.write_cancel(step);
        }
    }

    /// Once nothing is waited for any more the session ends.
    pub(super) fn leave_when_drained(&mut self, step: &mut Step) {
        if self.is_draining() && !self.is_busy() {
            self.die_with_daemon(step);
        }
    }

    pub(super) fn die_with_daemon(&mut self, step: &mut Step) {
        self.die(FlushOrigin::DaemonShutdown, "daemon_shutdown", step);
    }
}
