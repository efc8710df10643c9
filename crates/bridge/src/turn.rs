//! The prompt that the agent holds.

use acp::{Bearing, Course, Speech};

use crate::event::CancelNote;
use crate::limits::TEXT_UNITS_MAX;
use crate::moment::Moment;
use crate::queue::Entry;
use crate::text::{Clip, Clipped};
use crate::whole::Whole;
use crate::witness::FinalText;
use crate::{FlushOrigin, InputWritten, LivePrompt, PromptState};

/// A dispatched prompt that the agent has not answered. It may outlive its own outcome: a deadline releases the caller and leaves
/// the agent at work.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) entry: Entry,
    pub(crate) started: Moment,
    /// The last sign of the agent.
    pub(crate) heard_at_ms: Option<u64>,
    /// When a client's wish to cancel it went on record, by the ledger's time.
    pub(crate) wished_at_ms: Option<u64>,
    /// When a cancel was written to the agent. It hears it once.
    pub(crate) cancelled: Option<Moment>,
    /// What it was told to stop for, where that was the end of its session.
    pub(crate) stopped_by: Option<FlushOrigin>,
    /// A client wants it to stop, and not only its caller's deadline.
    pub(crate) stop_wanted: bool,
    /// A client removed it: it has left the list of unfinished prompts, though it runs until it settles.
    pub(crate) removed: bool,
    /// Its outcome is out. Nothing that the agent says can change it.
    pub(crate) over: bool,
    /// What was said after the last tool call.
    result: Clip,
    /// All that was said.
    said: Clip,
    /// The whole answer, of a witnessed prompt.
    whole: Option<Whole>,
    /// The host says that the agent has the whole prompt, or the agent's answer does.
    pub(crate) written: bool,
    /// Its agent has said words that belong to no turn, before it or in it, so that what is said in it may be another turn's; or words in it
    /// of which nobody can tell what of the answer they are.
    pub(crate) strayed: bool,
    /// Something that the agent wrote in it could not be read, or not exactly.
    pub(crate) unreadable: bool,
    /// Pieces of the user's messages that the witness has heard of.
    pub(crate) user_pieces: usize,
    /// The tool calls seen.
    course: Course,
}

impl Turn {
    pub(crate) fn new(entry: Entry, started: Moment) -> Self {
        Self {
            whole: entry.witnessed.then(Whole::default),
            entry,
            started,
            heard_at_ms: None,
            wished_at_ms: None,
            cancelled: None,
            stopped_by: None,
            stop_wanted: false,
            removed: false,
            over: false,
            result: Clip::new(TEXT_UNITS_MAX),
            said: Clip::new(TEXT_UNITS_MAX),
            written: false,
            strayed: false,
            unreadable: false,
            user_pieces: 0,
            course: Course::default(),
        }
    }

    /// Whether the agent may have read any of the prompt. Of one that is not witnessed nobody says that it has not.
    pub(crate) fn may_be_answered(&self) -> bool {
        self.written || !self.entry.witnessed
    }

    /// Whether nobody can tell that all that was said in it is its answer, and the whole of it.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.strayed || self.unreadable
    }

    /// Takes what the agent says in this turn. What comes before a tool call is no answer (seed on turn status).
    pub(crate) fn hear(&mut self, speech: &Speech) {
        match self.course.hear(speech) {
            Bearing::GoesOn => {}
            Bearing::BeginsAnew => {
                self.result = Clip::new(TEXT_UNITS_MAX);
                self.whole = self.entry.witnessed.then(Whole::default);
            }
            Bearing::Unclear => self.strayed = true,
        }
        if let Speech::Text(text) = speech {
            self.result.push(text);
            self.said.push(text);
            if let Some(whole) = &mut self.whole {
                whole.push(text);
            }
        }
    }

    /// The answer so far.
    pub(crate) fn result_text(&self) -> Option<Clipped> {
        self.result.said()
    }

    /// The whole answer so far, of a witnessed prompt.
    pub(crate) fn final_text(&self) -> FinalText {
        self.whole.as_ref().map(Whole::said).unwrap_or_default()
    }

    /// Whether the agent has the prompt, as far as that is known before it answers. Of one that is not witnessed nobody says.
    pub(crate) fn input_written(&self) -> InputWritten {
        if self.entry.witnessed && !self.written { InputWritten::Maybe } else { InputWritten::Yes }
    }

    /// Everything said so far.
    pub(crate) fn partial_text(&self) -> Option<Clipped> {
        self.said.said()
    }

    pub(crate) fn cancel_note(&self) -> Option<CancelNote> {
        self.cancelled.map(|cancelled| CancelNote {
            cancelled_at_ms: cancelled.at_ms,
            elapsed_ms: cancelled.steady.since(self.started.steady),
        })
    }

    /// The poll's view while it runs.
    pub(crate) fn running(&self) -> LivePrompt {
        LivePrompt {
            state: PromptState::Running,
            started_at_ms: Some(self.started.at_ms),
            heard_at_ms: self.heard_at_ms,
            wished_at_ms: self.wished_at_ms,
            input_written: self.input_written(),
            ..self.entry.queued()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Steady;
    use crate::prompt::{Prompt, Receipt};

    /// Words are text, `[c` begins call c, `c` goes on with it, `c]` ends it, `*` is anything else.
    fn check(script: &str, result: Option<&str>, said: Option<&str>) {
        let receipt = Receipt { prompt_id: "A".into(), last_event_id: 0, event_epoch: "e".into() };
        let prompt = Prompt { content: "[]".into(), ..Prompt::default() };
        let mut turn = Turn::new(Entry::new(prompt, receipt, Moment::of(0)).unwrap(), Moment::of(0));
        for word in script.split_whitespace() {
            turn.hear(&match word {
                "*" => Speech::Other,
                _ if word.starts_with('[') => Speech::ToolCall { call_id: word[1..].into() },
                _ if word.ends_with(']') => {
                    Speech::ToolCallUpdate { call_id: word[..word.len() - 1].into(), over: true }
                }
                _ if word.len() == 1 => Speech::ToolCallUpdate { call_id: word.into(), over: false },
                _ => Speech::Text(word.into()),
            });
        }
        assert_eq!(turn.result_text().map(|clipped| clipped.text).as_deref(), result, "{script}");
        assert_eq!(turn.partial_text().map(|clipped| clipped.text).as_deref(), said, "{script}");
    }

    #[test]
    fn the_answer_is_what_was_said_after_the_last_tool_call() {
        check("let me see. [c c c] it is done", Some("itisdone"), Some("letmesee.itisdone"));
    }

    #[test]
    fn a_turn_may_end_without_an_answer() {
        check("", None, None);
        check("* *", None, None);
        check("look: [c c]", None, Some("look:"));
    }

    #[test]
    fn a_call_that_was_never_announced_is_a_call() {
        check("before c] after", Some("after"), Some("beforeafter"));
        check("before c after", Some("after"), Some("beforeafter"));
    }

    #[test]
    fn what_is_said_while_a_call_runs_is_no_answer() {
        check("[c between c] after", Some("after"), Some("betweenafter"));
    }

    #[test]
    fn news_of_a_call_that_ended_do_not_cost_the_answer() {
        check("[c c] after c] c", Some("after"), Some("after"));
    }

    fn turn() -> Turn {
        let receipt = Receipt { prompt_id: "A".into(), last_event_id: 0, event_epoch: "e".into() };
        let prompt = Prompt { content: "[]".into(), ..Prompt::default() };
        Turn::new(Entry::new(prompt, receipt, Moment::of(5)).unwrap(), Moment::of(10))
    }

    #[test]
    fn a_running_turn_shows_when_it_started_and_when_it_was_last_heard() {
        let turn = Turn { heard_at_ms: Some(12), ..turn() };
        let running = turn.running();
        assert_eq!((running.state, running.queued_at_ms), (PromptState::Running, 5));
        assert_eq!((running.started_at_ms, running.heard_at_ms), (Some(10), Some(12)));
        assert_eq!(running.input_written, InputWritten::Yes);
    }

    #[test]
    fn a_cancel_is_noted_with_the_time_the_turn_had_run() {
        assert_eq!(turn().cancel_note(), None);
        let note = Turn { cancelled: Some(Moment::of(25)), ..turn() }.cancel_note();
        assert_eq!(note, Some(CancelNote { cancelled_at_ms: 25, elapsed_ms: 15 }));
        let clock_was_set_back = Moment { at_ms: 3, steady: Steady(25) };
        let note = Turn { cancelled: Some(clock_was_set_back), ..turn() }.cancel_note();
        assert_eq!(note, Some(CancelNote { cancelled_at_ms: 3, elapsed_ms: 15 }));
    }

    #[test]
    fn a_long_answer_is_clipped_and_a_tool_call_begins_it_anew() {
        let mut turn = turn();
        turn.hear(&Speech::Text("x".repeat(TEXT_UNITS_MAX + 1)));
        assert!(turn.result_text().unwrap().truncated);
        turn.hear(&Speech::ToolCall { call_id: "c".into() });
        turn.hear(&Speech::Text("short".into()));
        assert_eq!(turn.result_text(), Some(Clipped { text: "short".into(), truncated: false }));
        assert!(turn.partial_text().unwrap().truncated);
    }

    #[test]
    fn calls_beyond_those_told_apart_still_begin_an_answer_anew() {
        let mut turn = turn();
        for number in 0..=acp::TURN_CALLS_MAX {
            turn.hear(&Speech::ToolCall { call_id: number.to_string() });
        }
        turn.hear(&Speech::Text("answer".into()));
        assert!(!turn.strayed);
        turn.hear(&Speech::ToolCallUpdate { call_id: acp::TURN_CALLS_MAX.to_string(), over: true });
        assert_eq!(turn.result_text().map(|clipped| clipped.text).as_deref(), Some("answer"));
        assert!(turn.strayed, "nobody knows that call");
        turn.hear(&Speech::ToolCall { call_id: "one more".into() });
        assert_eq!(turn.result_text(), None);
    }
}
