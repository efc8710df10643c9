//! What happens when a caller has waited long enough.

use super::Session;
use super::ending::{Outcome, leave_list};
use crate::InputWritten;
use crate::effect::Step;
use crate::event::News;
use crate::prompt::PromptId;
use crate::queue::Entry;

impl Session {
    /// A prompt's caller stops waiting. One that waits is over; one that runs is cancelled and may still settle, and the next
    /// waits for that, as the agent never holds two.
    pub(super) fn expire(&mut self, prompt_id: &PromptId, step: &mut Step) {
        const CODE: &str = "prompt_deadline_exceeded";
        let message =
            |entry: &Entry| format!("prompt exceeded the {}ms deadline", entry.deadline_ms.unwrap_or_default());
        if let Some(entry) = self.queue.remove(prompt_id) {
            let outcome = Outcome::error(CODE, &message(&entry), InputWritten::No);
            self.end(&entry, None, outcome, step);
            leave_list(&entry, step);
        } else if let Some(mut turn) = self.turn.take_if(|turn| turn.entry.prompt_id == *prompt_id && !turn.over) {
            let outcome = Outcome::error(CODE, &message(&turn.entry), InputWritten::Yes);
            self.end_turn(&turn, outcome, step);
            let cancel_is_news = turn.cancelled_at_ms.is_none();
            let (prompt_id, originator) = (turn.entry.prompt_id.clone(), turn.entry.originator.clone());
            turn.over = true;
            self.turn = Some(turn);
            if cancel_is_news {
                step.publish(Some(prompt_id), originator, News::PromptCancelled { forward_failed: false });
            }
            self.write_cancel(step);
        }
    }
}
