//! One turn as it is recorded: what the agent reports goes in, records come out.
//!
//! The order of the records is a promise. Until the agent has answered, no record may end the conversation with an
//! assistant's words alone, because that is what a finished turn looks like to whoever reads the transcript after a
//! crash. So text stays in memory until either a tool call follows it, and is written together with the call, or the
//! turn is over. A turn that completed is closed by its last words and its result in one write; any other turn by its
//! result first, and only then by the words that were cut off. Cut the file anywhere: it never shows a clean answer to
//! a prompt that got none.

mod block;
mod calls;
pub(crate) mod echo;
pub(crate) mod json;

#[cfg(test)]
pub(crate) mod tests;

use acp::{Bearing, Course};
use serde_json::Value;
use transcript::{Body, Contradiction, TurnResult, TurnState};

use crate::limits::HELD_CALLS_MAX;
use block::Block;
use calls::{Calls, Fate};
use json::{CallFields, CallStatus, PromptText, Update};

/// A prompt as the daemon hands it over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) id: String,
    /// Raw JSON of the content blocks.
    pub(crate) raw_blocks: String,
    pub(crate) originator: Option<String>,
    /// The time on the daemon's record of the dispatch, epoch milliseconds; 0 when it was not told.
    pub(crate) after_ms: u64,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The agent answered.
    Completed { stop_reason: String },
    /// A cancel reached the agent, or the agent says that its turn was cancelled.
    Cancelled { cancelled_at: Option<u64>, agent_stop_reason: Option<String> },
    /// The agent, or the way to it, failed.
    Failed { message: String, code: String },
}

/// The turn under way.
#[derive(Debug)]
pub(crate) struct Turn {
    prompt_id: String,
    prompt_text: String,
    originator: Option<String>,
    started_at: u64,
    model: Option<String>,
    block: Block,
    calls: Calls,
    /// Its agent has said words that belong to no turn, and what is said in this one may be another one's.
    has_strayed: bool,
    /// Nobody can tell what of it is the answer.
    is_unclear: bool,
    /// Where the answer begins.
    course: Course,
    /// What it took for its user's words is not what was asked.
    contradiction: Option<Contradiction>,
    /// Something that the agent wrote in it could not be read, or not exactly.
    has_unreadable: bool,
}

impl Turn {
    /// A turn and its user record, which must be on disk before the prompt goes to the agent.
    pub(crate) fn begin(prompt: Prompt, at_ms: u64, model: Option<String>) -> (Self, Body) {
        let PromptText { parts, text } = PromptText::read(&prompt.raw_blocks);
        let record = Body::User { prompt_id: Some(prompt.id.clone()), parts };
        let turn = Self {
            prompt_id: prompt.id,
            prompt_text: text,
            originator: prompt.originator,
            started_at: at_ms,
            model,
            block: Block::default(),
            calls: Calls::default(),
            has_strayed: false,
            is_unclear: false,
            course: Course::default(),
            contradiction: None,
            has_unreadable: false,
        };
        (turn, record)
    }

    /// The agent says words that belong to no turn.
    pub(crate) fn note_strayed(&mut self) {
        self.has_strayed = true;
    }

    /// The agent has answered a prompt whose outcome is promised to somebody, and this is what its echo of it comes to.
    pub(crate) fn note_echo(&mut self, contradiction: Option<Contradiction>) {
        self.contradiction = contradiction;
        self.has_strayed |= self.is_unclear;
    }

    /// The agent writes something that cannot be read, or not exactly.
    pub(crate) fn note_unreadable(&mut self) {
        self.has_unreadable = true;
    }

    /// The prompt whose turn this is.
    pub(crate) fn prompt_id(&self) -> &str {
        &self.prompt_id
    }

    /// Takes an update of the agent and gives the records that it completes.
    pub(crate) fn observe(&mut self, update: Update) -> Vec<Body> {
        let bearing = self.course.hear(&update.bearing());
        let records = match update {
            Update::Text(chunk) => self.say(false, &chunk),
            Update::Thought(chunk) => self.say(true, &chunk),
            Update::CallBegins(fields) => self.call(&fields, true),
            Update::CallGoesOn(fields) => self.call(&fields, false),
            Update::Unclear | Update::User { .. } | Update::Echo | Update::State => Vec::new(),
        };
        self.bear(bearing);
        records
    }

    /// The answer begins where it begins for the daemon, whatever the records look like.
    fn bear(&mut self, bearing: Bearing) {
        match bearing {
            Bearing::GoesOn => {}
            Bearing::BeginsAnew => self.block.answer_starts_here(),
            Bearing::Unclear => self.is_unclear = true,
        }
    }

    /// The agent says something in it, or seems to, of which nobody can tell what of the answer it is.
    pub(crate) fn note_unclear(&mut self) {
        self.is_unclear = true;
    }

    /// The agent asks whether it may run a tool: its arguments will not change any more.
    pub(crate) fn permission_asked(&mut self, fields: &CallFields) -> Vec<Body> {
        let bearing = self.course.hear(&fields.news());
        let mut records = self.call(fields, false);
        records.extend(self.seal());
        self.bear(bearing);
        records
    }

    fn say(&mut self, thought: bool, chunk: &str) -> Vec<Body> {
        // Words behind an announced call are said after it, so the call's record comes first.
        let records = if chunk.is_empty() { None } else { self.seal() };
        self.block.push(thought, chunk);
        records.into_iter().collect()
    }

    fn call(&mut self, fields: &CallFields, announced: bool) -> Vec<Body> {
        let Some(call) = self.calls.note(fields, announced) else { return Vec::new() };
        let mut records = Vec::new();
        let settled = fields.args.is_some() || !matches!(fields.status, None | Some(CallStatus::Pending));
        if settled || self.calls.held() >= HELD_CALLS_MAX {
            records.extend(self.seal());
        }
        let fate = match fields.status {
            Some(CallStatus::Completed) => Fate::Success,
            Some(CallStatus::Failed) => Fate::Error,
            _ => return records,
        };
        if let Some(result) = self.calls.finish(call, fate) {
            records.push(result);
        }
        records
    }

    /// Ends the block with the calls that wait in it. Without one the block goes on.
    fn seal(&mut self) -> Option<Body> {
        if self.calls.held() == 0 {
            return None;
        }
        let mut parts = self.block.take_parts();
        parts.extend(self.calls.write_held());
        Some(self.assistant(parts))
    }

    fn assistant(&self, parts: Vec<Value>) -> Body {
        Body::Assistant { model: self.model.clone(), parts }
    }

    /// The records that end the turn, to be written at once. The turn's result is always among them.
    pub(crate) fn end(mut self, at_ms: u64, ending: Ending) -> Vec<Body> {
        let mut records: Vec<_> = self.seal().into_iter().collect();
        let fate = if matches!(ending, Ending::Cancelled { .. }) { Fate::Cancelled } else { Fate::Error };
        records.extend(self.calls.close_open(fate));
        let completed = matches!(ending, Ending::Completed { .. });
        let said = if completed { !self.block.is_empty() } else { self.block.has_text() };
        let result = self.result(at_ms, ending).into();
        let words = said.then(|| {
            let parts = self.block.take_parts();
            self.assistant(parts)
        });
        if completed {
            records.extend(words);
            records.push(result);
        } else {
            records.push(result);
            records.extend(words);
        }
        records
    }

    fn result(&self, at_ms: u64, ending: Ending) -> TurnResult {
        let state = match ending {
            Ending::Completed { .. } => TurnState::Completed,
            Ending::Cancelled { .. } => TurnState::Cancelled,
            Ending::Failed { .. } => TurnState::Error,
        };
        let mut result = TurnResult::new(&self.prompt_id, state, at_ms).with_prompt_text(&self.prompt_text);
        result.started_at = Some(self.started_at);
        result.originator_client_id.clone_from(&self.originator);
        result.stray_words = self.has_strayed;
        result.contradiction = self.contradiction;
        result.unreadable_words = self.has_unreadable;
        match ending {
            Ending::Completed { stop_reason } => {
                result.stop_reason = Some(stop_reason);
                result.with_result_text(&self.block.answer()).with_unrecorded(self.block.left_out_bytes())
            }
            Ending::Cancelled { cancelled_at, agent_stop_reason } => {
                result.stop_reason = Some("cancelled".to_owned());
                result.cancelled_at = cancelled_at;
                result.agent_stop_reason = agent_stop_reason;
                self.with_partial(result)
            }
            Ending::Failed { message, code } => self.with_partial(result.with_error(&message, Some(&code))),
        }
    }

    fn with_partial(&self, result: TurnResult) -> TurnResult {
        result.with_partial_text(&self.block.text()).with_partial_unrecorded(self.block.left_out_bytes())
    }
}
