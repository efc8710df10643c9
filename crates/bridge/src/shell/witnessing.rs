//! Between a session and the witness of its prompts.

use super::live::{Live, State};
use super::session::Session;
use crate::effect::{Told, Word};
use crate::input::Input;
use crate::prompt::PromptId;
use crate::witness::{Dispatch, Ended, Facts, Heard, Process, Settling};

impl Session {
    /// The witness's answer to [`dispatching`](crate::Witness::dispatching): the prompt runs now, or (`go` is false) ends as cancelled without
    /// that the agent has seen it. Without effect for a prompt that does not wait for that.
    pub fn dispatch(&self, prompt_id: &str, go: bool) {
        self.live.step(|_| Input::Dispatch { prompt_id: prompt_id.to_owned(), go });
    }

    /// The witness's answer to [`settling`](crate::Witness::settling): the outcome goes on record, and out to the readers. Without effect for a
    /// prompt that does not wait for that.
    pub fn confirm(&self, prompt_id: &str) {
        self.live.step(|_| Input::Confirm { prompt_id: prompt_id.to_owned() });
    }

    /// How the session stands, all of it at one moment.
    pub fn facts(&self) -> Facts {
        let state = self.live.state.lock();
        Facts {
            idle: !state.machine.is_busy(),
            baseline: state.machine.baseline().clone(),
            tainted: state.machine.is_tainted(),
            incarnation: state.agent.process.clone(),
            last_event_id: state.bus.tip(),
        }
    }
}

impl Live {
    /// Tells the witness. Without one no prompt is witnessed.
    pub(super) fn tell_witness(&self, state: &State, prompt_id: &PromptId, word: &Word) {
        let Some(witness) = &self.witness else { return };
        let incarnation = state.agent.process.as_ref();
        match word {
            Word::Dispatching { baseline, after_ms } => {
                let (last_event_id, after_ms) = (state.bus.tip(), *after_ms);
                let facts = Dispatch { baseline, incarnation, last_event_id, after_ms };
                witness.dispatching(&self.id, prompt_id, facts);
            }
            Word::Written => witness.written(&self.id, prompt_id),
            Word::HeardUpdate => witness.heard(&self.id, prompt_id, Heard::FirstUpdate),
            Word::HeardUser { message_id, content } => {
                let heard = Heard::UserMessage { message_id: message_id.as_deref(), content };
                witness.heard(&self.id, prompt_id, heard);
            }
            Word::Settling(told) => witness.settling(&self.id, prompt_id, settling(told, incarnation)),
            Word::Ended { cause, told } => {
                let Settling { terminal, input_written, text, strayed, unreadable, heard, stopped_by, incarnation } =
                    settling(told, incarnation);
                let cause = *cause;
                let ended =
                    Ended { cause, terminal, input_written, text, strayed, unreadable, heard, stopped_by, incarnation };
                witness.ended(&self.id, prompt_id, ended);
            }
            Word::Late(told) => witness.late(&self.id, prompt_id, settling(told, incarnation)),
        }
    }
}

fn settling<'a>(told: &'a Told, incarnation: Option<&'a Process>) -> Settling<'a> {
    let Told { terminal, input_written, text, heard, strayed, unreadable, stopped_by } = told;
    let (input_written, heard, stopped_by) = (*input_written, *heard, *stopped_by);
    let (strayed, unreadable) = (*strayed, *unreadable);
    Settling { terminal, input_written, text, strayed, unreadable, heard, stopped_by, incarnation }
}
