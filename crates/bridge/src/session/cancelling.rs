//! How a client takes a prompt back: cancel what runs, remove what waits.

use std::sync::Arc;

use super::Session;
use crate::Reason;
use crate::effect::{Effect, Reply, Step, Tell};
use crate::event::News;
use crate::turn::Turn;
use crate::witness::Cause;

impl Session {
    /// Cancels what runs now. A client that means one prompt names it; a cancel that comes after the end of that one does nothing to
    /// the next.
    pub(super) fn cancel(&mut self, prompt_id: Option<&str>, by: Option<Arc<str>>, step: &mut Step) {
        if let Err(not_open) = self.open() {
            return step.reply(Reply::NotOpen(not_open));
        }
        if self.cancel_asked(prompt_id, by.clone(), step) {
            return;
        }
        // What has its outcome already, though nobody has heard of it, cannot be cancelled any more.
        if self.settling().is_some() {
            return step.reply(Reply::Done);
        }
        let held = self.turn.as_ref().map(|turn| &*turn.entry.prompt_id);
        if prompt_id.is_some_and(|named| held != Some(named)) {
            return step.reply(Reply::Done);
        }
        // Also a turn whose caller was released is to stop for good now.
        if let Some(turn) = &mut self.turn {
            turn.stop_wanted = true;
        }
        self.record_wish(step);
        match self.turn.as_ref().filter(|turn| !turn.over) {
            Some(turn) if turn.cancelled.is_some() => {}
            Some(turn) => {
                let prompt_id = turn.entry.prompt_id.clone();
                step.publish(Some(prompt_id), by, News::PromptCancelled { forward_failed: false });
                self.write_cancel(step);
            }
            None if self.idle_cancel_told => {}
            None => {
                self.idle_cancel_told = true;
                step.publish(None, by, News::PromptCancelled { forward_failed: false });
            }
        }
        step.reply(Reply::Done);
    }

    /// Puts on record, once, that a client wants the running prompt cancelled: before the agent or anybody else hears of it, so
    /// that no crash in between makes it a prompt that somebody still waits for. What ends a turn for another reason, a
    /// deadline, a close or a shutdown, has a terminal of its own.
    fn record_wish(&mut self, step: &mut Step) {
        let unwished = |turn: &&mut Turn| !turn.over && turn.wished_at_ms.is_none();
        let Some(turn) = self.turn.as_mut().filter(unwished) else { return };
        turn.wished_at_ms = Some(self.ledger_ms);
        step.push(Effect::RecordWish { prompt_id: turn.entry.prompt_id.clone(), at_ms: self.ledger_ms });
    }

    /// Tells the agent once to stop, and decides for it what it may be waiting for.
    pub(super) fn write_cancel(&mut self, step: &mut Step) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.cancelled.is_none()) else { return };
        turn.cancelled = Some(step.at);
        let prompt_id = turn.entry.prompt_id.clone();
        let reason = if turn.over { Reason::DeadlineExceeded } else { Reason::PromptCancelled };
        step.tell(Tell::Cancel);
        self.refuse_permissions(|open| open.about.prompt_id.as_ref() == Some(&prompt_id), reason, step);
    }

    pub(super) fn remove(&mut self, prompt_id: &str, by: Option<Arc<str>>, step: &mut Step) {
        if let Err(not_open) = self.open() {
            return step.reply(Reply::NotOpen(not_open));
        }
        let removed = self.remove_queued(prompt_id, step)
            || self.remove_steering(prompt_id, step)
            || self.remove_running(prompt_id, by, step);
        step.reply(Reply::Removed(removed));
        // It may have been the one that the others waited for.
        self.dispatch_next(step);
    }

    /// A prompt that waits is over at once; its slot is free and the agent never hears of it.
    fn remove_queued(&mut self, prompt_id: &str, step: &mut Step) -> bool {
        let Some(entry) = self.queue.remove(prompt_id) else { return false };
        self.end_removed(&entry, Cause::TakenBack, step);
        true
    }

    /// A prompt that runs leaves the list at once and ends when the agent settles it: nobody knows its outcome before.
    fn remove_running(&mut self, prompt_id: &str, by: Option<Arc<str>>, step: &mut Step) -> bool {
        let running = |turn: &&mut Turn| *turn.entry.prompt_id == *prompt_id && !turn.over && !turn.removed;
        let Some(turn) = self.turn.as_mut().filter(running) else { return false };
        (turn.removed, turn.stop_wanted) = (true, true);
        let (prompt_id, originator) = (turn.entry.prompt_id.clone(), turn.entry.originator.clone());
        let cancel_is_news = turn.cancelled.is_none();
        self.record_wish(step);
        if cancel_is_news {
            step.publish(Some(prompt_id.clone()), by, News::PromptCancelled { forward_failed: false });
        }
        step.publish(Some(prompt_id), originator, News::PendingCompleted { removed: true });
        self.write_cancel(step);
        true
    }
}
