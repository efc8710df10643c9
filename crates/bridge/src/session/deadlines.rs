//! What happens when a caller has waited long enough.

use super::Session;
use super::ending::{Outcome, leave_list};
use crate::effect::Step;
use crate::event::News;
use crate::prompt::PromptId;
use crate::queue::Entry;
use crate::witness::Cause;
use crate::{Deadline, Expiry, InputWritten, PromptState, Terminal};

/// The code of both clocks: the evidence rules know one, and hold it against everything that the same agent wrote later.
const CODE: &str = "prompt_deadline_exceeded";

impl Session {
    /// A prompt's caller stops waiting. One that waits is over; one that runs is cancelled and may still settle, and the next
    /// waits for that, as the agent never holds two.
    pub(super) fn expire(&mut self, prompt_id: &PromptId, deadline: Deadline, step: &mut Step) {
        // The clock of a run stands still while a prompt waits.
        if deadline == Deadline::Absolute
            && let Some(entry) = self.queue.remove(prompt_id)
        {
            let outcome = expired(&entry, Expiry { deadline, state: PromptState::Queued });
            self.end(&entry, None, outcome, step);
            leave_list(&entry, step);
            self.dispatch_next(step);
        } else if let Some(mut turn) = self.turn.take_if(|turn| turn.entry.prompt_id == *prompt_id && !turn.over) {
            let outcome = Outcome {
                input_written: turn.input_written(),
                ..expired(&turn.entry, Expiry { deadline, state: PromptState::Running })
            };
            self.end_turn(&turn, outcome, step);
            let cancel_is_news = turn.cancelled.is_none();
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

fn expired(entry: &Entry, expiry: Expiry) -> Outcome {
    let input_written = match expiry.state {
        PromptState::Queued => InputWritten::No,
        PromptState::Running => InputWritten::Yes,
    };
    let terminal = Terminal::Error { message: entry.clocks.message(expiry), code: Some(CODE.to_owned()) };
    Outcome { terminal, input_written, branch_point: None, cause: Cause::Expired(expiry) }
}
