//! Holding a session: nothing is handed to its agent while somebody changes what the agent remembers.
//!
//! Only an idle session can be held, and what comes meanwhile waits or is refused: no prompt slips in between the look that found the
//! session idle and the change, and none is lost. The hold has a time of its own on record: all that was on record before is older, and all that comes
//! later is younger, so that a reader of both files knows which endings the change has taken back.

use std::sync::Arc;

use super::Session;
use crate::announcement::Announcement;
use crate::effect::{Reply, Step};
use crate::event::News;
use crate::{HoldError, Meanwhile, NotOpen};

impl Session {
    pub(super) fn hold(&mut self, meanwhile: Meanwhile, step: &mut Step) {
        let held = match self.open() {
            Err(NotOpen::Closing) => Err(HoldError::Closing),
            Err(NotOpen::Gone) => Err(HoldError::Gone),
            Ok(()) if self.is_busy() || self.is_replacing() || self.held.is_some() => Err(HoldError::Busy),
            Ok(()) => Ok(()),
        };
        if let Err(error) = held {
            return step.reply(Reply::NotHeld(error));
        }
        self.held = Some(meanwhile);
        self.active_at_ms = step.at.at_ms;
        step.reply(Reply::Held { at_ms: self.ledger_ms + 1 });
        self.ledger_ms += 2;
    }

    pub(super) fn release(&mut self, step: &mut Step) {
        if self.held.take().is_some() {
            // Whatever was asked of the agent meanwhile, it may speak behind it: of a new session, or of one that was not made.
            self.begin_long_pause(step);
            self.dispatch_next(step);
        }
    }

    /// Forgets what ended before: the transcript decides what can still be asked for.
    pub(super) fn rewound(&mut self, announcement: Announcement, by: Option<Arc<str>>, step: &mut Step) {
        if self.held.is_none() {
            return;
        }
        self.overlay.take_back();
        self.rewinds += 1;
        self.forget_baseline();
        self.turn_error = None;
        if self.has_readers() {
            step.publish(None, by, News::Announced(announcement));
        }
    }

    /// How often the conversation was taken back. Who reads the transcript notes it before, and what was read before the last time is
    /// not taken in.
    pub(crate) fn rewinds(&self) -> u64 {
        self.rewinds
    }
}
