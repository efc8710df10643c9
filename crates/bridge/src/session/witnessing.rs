//! Prompts whose witness is asked before they run and before they end.
//!
//! One that is the next to run stays at the head of the queue until its witness lets it go: to everybody it waits, and whatever ends
//! a prompt that waits ends it without a word to the agent. A cancel ends it too, as without a witness it would run by then. One that
//! the agent has answered counts as running until its witness has the outcome; nothing that happens meanwhile changes that outcome.
//!
//! What an agent says late, behind its answer, comes soon behind it. So a witness is told of an answer that completes its prompt only when
//! a pause behind the answer is over, and is asked about the next prompt only then too; see `straying.rs` for what the pause is for. A longer
//! one is behind whatever else may make an agent speak: the opening of its session, another process in its place, and a change of what it
//! remembers.
//!
//! A session that is not open waits for no witness, and for no pause; but see `draining.rs`.

use std::sync::Arc;

use acp::Speech;

use super::ending::{Outcome, leave_list};
use super::{Phase, Session};
use crate::effect::{Reply, Step, Told, Word};
use crate::event::News;
use crate::input::Input;
use crate::limits::{HEARD_USER_MESSAGES_MAX, LATE_WORDS_MS, OPENING_WORDS_MS};
use crate::moment::Steady;
use crate::outcome::Answer;
use crate::prompt::PromptId;
use crate::queue::Entry;
use crate::turn::Turn;
use crate::witness::{Baseline, Cause, FinalText};
use crate::{InputWritten, Terminal};

/// What waits for a witness.
#[derive(Debug)]
pub(super) struct Witnessing {
    /// The head of the queue, whose witness is asked whether it may run.
    asked: Option<Asked>,
    /// The turn that the agent has answered, whose witness is told of the outcome.
    settling: Option<Settling>,
    /// The pause behind the last answer, or behind what else made the agent speak, until its end.
    pub(super) pause_until: Steady,
    /// The last turn that was settled.
    baseline: Baseline,
}

/// A prompt that may run when its witness lets it.
#[derive(Debug)]
struct Asked {
    prompt_id: PromptId,
    /// The witness knows.
    told: bool,
}

/// A turn with its outcome, which is not on record.
#[derive(Debug)]
struct Settling {
    turn: Turn,
    outcome: Outcome,
    /// The witness knows.
    told: bool,
}

impl Witnessing {
    /// Of a session that is opened then.
    pub(super) fn new(at: Steady) -> Self {
        Self { asked: None, settling: None, pause_until: at.after(OPENING_WORDS_MS), baseline: Baseline::default() }
    }
}

impl Session {
    /// The turn whose outcome waits for its witness. The agent holds nothing of it any more.
    pub(super) fn settling(&self) -> Option<&Turn> {
        self.witnessing.settling.as_ref().map(|settling| &settling.turn)
    }

    /// The prompt at the head of the queue whose witness was asked.
    #[cfg(test)]
    pub(super) fn asked(&self) -> Option<&PromptId> {
        self.witnessing.asked.as_ref().filter(|asked| asked.told).map(|asked| &asked.prompt_id)
    }

    /// The last turn that was settled.
    pub(crate) fn baseline(&self) -> &Baseline {
        &self.witnessing.baseline
    }

    /// The agent is still at a prompt whose caller was released.
    pub(crate) fn is_tainted(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.over)
    }

    /// The prompt is the next to run. Its witness is asked once.
    pub(super) fn ask_witness(&mut self, prompt_id: PromptId, step: &mut Step) {
        if self.witnessing.asked.as_ref().is_none_or(|asked| asked.prompt_id != prompt_id) {
            self.witnessing.asked = Some(Asked { prompt_id, told: false });
        }
        if self.is_pausing(step) {
            return;
        }
        if let Some(asked) = self.witnessing.asked.as_mut().filter(|asked| !asked.told) {
            asked.told = true;
            let (baseline, after_ms) = (self.witnessing.baseline.clone(), self.ledger_ms);
            step.witness(asked.prompt_id.clone(), Word::Dispatching { baseline, after_ms });
        }
    }

    /// What may make the agent speak, and is no turn, has happened: from now on it is listened for.
    pub(super) fn begin_long_pause(&mut self, step: &Step) {
        self.begin_pause(step, OPENING_WORDS_MS);
    }

    /// A longer pause that has begun already is not cut short.
    fn begin_pause(&mut self, step: &Step, length_ms: u64) {
        let until = step.at.steady.after(length_ms);
        self.witnessing.pause_until = self.witnessing.pause_until.max(until);
    }

    fn is_pausing(&self, step: &Step) -> bool {
        step.at.steady < self.witnessing.pause_until
    }

    /// When the pause is over, if anything waits for that.
    pub(super) fn pause_end(&self) -> Option<(Steady, Input)> {
        let Witnessing { asked, settling, pause_until, .. } = &self.witnessing;
        let waits = asked.as_ref().is_some_and(|asked| !asked.told);
        let waits = waits || settling.as_ref().is_some_and(|settling| !settling.told);
        waits.then_some((*pause_until, Input::PauseOver))
    }

    /// What waited for the end of the pause goes on.
    pub(super) fn end_pause(&mut self, step: &mut Step) {
        if !self.is_pausing(step) && matches!(self.phase, Phase::Open | Phase::Draining { .. }) {
            self.tell_settling(step);
            self.dispatch_next(step);
        }
    }

    /// The witness has decided. For a prompt that is gone that means nothing.
    pub(super) fn dispatch(&mut self, prompt_id: &str, go: bool, step: &mut Step) {
        if self.witnessing.asked.as_ref().is_some_and(|asked| !asked.told) {
            return;
        }
        let Some(entry) = self.leave_gate(Some(prompt_id)) else { return };
        if go {
            self.hand_on(entry, step);
        } else {
            self.end_removed(&entry, Cause::Dropped, step);
            self.dispatch_next(step);
        }
    }

    /// A client cancels what would run by now if it had no witness. Whether there was such a prompt.
    pub(super) fn cancel_asked(&mut self, prompt_id: Option<&str>, by: Option<Arc<str>>, step: &mut Step) -> bool {
        let Some(entry) = self.leave_gate(prompt_id) else { return false };
        step.publish(Some(entry.prompt_id.clone()), by, News::PromptCancelled { forward_failed: false });
        self.end(&entry, None, Outcome::unrun(Cause::TakenBack), step);
        leave_list(&entry, step);
        step.reply(Reply::Done);
        self.dispatch_next(step);
        true
    }

    /// Takes the prompt that waits for its witness, or only the one of that name, out of the queue.
    fn leave_gate(&mut self, prompt_id: Option<&str>) -> Option<Entry> {
        let is_meant = |asked: &mut Asked| prompt_id.is_none_or(|named| *asked.prompt_id == *named);
        let asked = self.witnessing.asked.take_if(is_meant)?;
        self.queue.remove(&asked.prompt_id)
    }

    /// A prompt has ended, so nobody is waited for on its account.
    pub(super) fn forget_asked(&mut self, prompt_id: &PromptId) {
        self.witnessing.asked.take_if(|asked| asked.prompt_id == *prompt_id);
    }

    /// The host says that the agent has the whole prompt.
    pub(super) fn note_written(&mut self, prompt_id: &str, step: &mut Step) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| *turn.entry.prompt_id == *prompt_id) {
            tell_written(turn, step);
        }
    }

    /// The agent has answered a prompt, whatever it said.
    pub(super) fn note_settled(&mut self, turn: &mut Turn, answer: &Answer, step: &mut Step) {
        let Baseline { prompt_id, turn: count } = &mut self.witnessing.baseline;
        (*prompt_id, *count) = (Some(turn.entry.prompt_id.shared()), *count + 1);
        self.begin_pause(step, LATE_WORDS_MS);
        if answer.is_agents() {
            tell_written(turn, step);
        }
    }

    /// What the last turn was is not known any more.
    pub(super) fn forget_baseline(&mut self) {
        self.witnessing.baseline.prompt_id = None;
    }

    /// The answer has come to a turn that nobody was released from. It ends now, or when its witness has the outcome.
    pub(super) fn end_answered(&mut self, turn: Turn, outcome: Outcome, may_wait: bool, step: &mut Step) {
        if turn.entry.witnessed && may_wait {
            // Only an answer can be mixed up with later words, and what is mixed up already is so for good.
            let pauses = matches!(outcome.terminal, Terminal::Completed { .. }) && !turn.is_doubtful();
            self.witnessing.settling = Some(Settling { turn, outcome, told: false });
            if !pauses {
                self.tell_settling(step);
            }
        } else {
            self.conclude(&turn, outcome, step);
        }
    }

    /// Tells the witness of the outcome, once. From here on nothing changes it.
    fn tell_settling(&mut self, step: &mut Step) {
        if let Some(Settling { turn, outcome, told: is_told }) = &mut self.witnessing.settling
            && !std::mem::replace(is_told, true)
        {
            step.witness(turn.entry.prompt_id.clone(), Word::Settling(told(Some(turn), outcome)));
        }
    }

    /// What nobody can tell any more whose words it has: the turn that runs, and the one whose outcome is told to nobody.
    pub(super) fn note_strayed(&mut self) {
        let settling = self.witnessing.settling.as_mut().filter(|settling| !settling.told);
        settling.into_iter().for_each(|settling| settling.turn.strayed = true);
        self.turn.iter_mut().for_each(|turn| turn.strayed = true);
    }

    /// Something that cannot be read was written, which may be a part of the turn whose outcome is told to nobody.
    pub(super) fn note_unreadable(&mut self) {
        let settling = self.witnessing.settling.as_mut().filter(|settling| !settling.told);
        settling.into_iter().for_each(|settling| settling.turn.unreadable = true);
    }

    /// The witness has the outcome. For a prompt that has ended that means nothing.
    pub(super) fn confirm(&mut self, prompt_id: &str, step: &mut Step) {
        let is_meant = |settling: &mut Settling| settling.told && *settling.turn.entry.prompt_id == *prompt_id;
        if let Some(Settling { turn, outcome, .. }) = self.witnessing.settling.take_if(is_meant) {
            self.active_at_ms = step.at.at_ms;
            self.conclude(&turn, outcome, step);
            self.dispatch_next(step);
            self.leave_when_drained(step);
        }
    }

    /// The session ends: an outcome that is known waits for nobody.
    pub(super) fn conclude_settling(&mut self, step: &mut Step) {
        if let Some(Settling { turn, outcome, .. }) = self.witnessing.settling.take() {
            self.conclude(&turn, outcome, step);
        }
    }
}

/// A sign of the agent in a turn.
pub(super) fn hear_sign(turn: &mut Turn, step: &mut Step) {
    let is_first = turn.heard_at_ms.replace(step.at.at_ms).is_none();
    if is_first && turn.entry.witnessed && !turn.over {
        step.witness(turn.entry.prompt_id.clone(), Word::HeardUpdate);
    }
}

/// What the agent takes for the user's words.
pub(super) fn hear_user(turn: &mut Turn, speech: &Speech, step: &mut Step) {
    let Speech::User { message_id, content } = speech else { return };
    if turn.entry.witnessed && turn.user_pieces < HEARD_USER_MESSAGES_MAX {
        turn.user_pieces += 1;
        let word = Word::HeardUser { message_id: message_id.clone(), content: content.clone() };
        step.witness(turn.entry.prompt_id.clone(), word);
    }
}

/// The agent has the whole prompt, which is told once and only before the end.
fn tell_written(turn: &mut Turn, step: &mut Step) {
    let is_news = !std::mem::replace(&mut turn.written, true);
    if is_news && turn.entry.witnessed && !turn.over {
        step.witness(turn.entry.prompt_id.clone(), Word::Written);
    }
}

/// An answer to a prompt that had ended. What was said after the end is not kept here.
pub(super) fn tell_late(turn: &Turn, outcome: &Outcome, step: &mut Step) {
    if turn.entry.witnessed {
        let completed = matches!(outcome.terminal, Terminal::Completed { .. });
        let text = if completed && !turn.is_doubtful() { FinalText::Elsewhere } else { FinalText::None };
        let told = Told { text, ..told(Some(turn), outcome) };
        step.witness(turn.entry.prompt_id.clone(), Word::Late(told));
    }
}

/// An outcome as the witness is told it.
pub(super) fn told(turn: Option<&Turn>, outcome: &Outcome) -> Told {
    let completed = matches!(outcome.terminal, Terminal::Completed { .. });
    Told {
        terminal: outcome.terminal.told(),
        input_written: outcome.input_written,
        text: turn.filter(|turn| completed && !turn.is_doubtful()).map(Turn::final_text).unwrap_or_default(),
        strayed: turn.is_some_and(|turn| turn.strayed),
        unreadable: turn.is_some_and(|turn| turn.unreadable),
        heard: turn.is_some_and(|turn| turn.heard_at_ms.is_some()),
        stopped_by: turn.and_then(|turn| turn.stopped_by),
    }
}

/// Whether the agent had the input of a prompt that was answered, when the answer does not say.
pub(super) fn written_when_answered(turn: &Turn, answer: &Answer) -> InputWritten {
    if answer.is_agents() { InputWritten::Yes } else { turn.input_written() }
}
