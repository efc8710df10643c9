//! A return request as it is kept: one row.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Advance, ArmedCursor, Baseline, Code, Effect, Evidence, Hash, InputWritten, Phase, RequestId, State, Terminal,
};

/// What a caller may choose; kept as JSON with a version of its own. Members that are not known are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The version of this shape.
    pub v: u32,
    /// Whether the prompt may wait in the session's queue.
    #[serde(default)]
    pub queue: bool,
    /// Whether the deadline also cancels the agent's turn.
    #[serde(default)]
    pub cancel_on_timeout: bool,
    /// The agent process that the caller wants, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_incarnation: Option<String>,
    /// What a later version wrote.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl Options {
    /// The version that is written.
    pub const VERSION: u32 = 1;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            v: Self::VERSION,
            queue: false,
            cancel_on_timeout: false,
            expected_incarnation: None,
            others: Map::new(),
        }
    }
}

/// What a request begins as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The caller's id for it, or one made for it.
    pub request_id: RequestId,
    /// Whose it is; others are not told that it is there.
    pub owner: String,
    /// What the caller asked, as one hash.
    pub input_hash: Hash,
    /// The recipe of that hash.
    pub hash_version: u32,
    /// The session.
    pub session_id: String,
    /// The agent's process, where there is one already.
    pub incarnation_id: Option<String>,
    /// The prompt's id, made for it before admission: by it ledger and transcript are searched after a crash.
    pub prompt_id: String,
    /// What the caller chose.
    pub options: Options,
    /// Milliseconds until the deadline; 0 is none.
    pub timeout_ms: u64,
    /// The deadline in epoch milliseconds.
    pub deadline_at: Option<u64>,
    /// The prompt's content, as one hash; its text is not kept.
    pub prompt_hash: Hash,
    /// Bytes of that content.
    pub prompt_bytes: u64,
    /// The turn before it.
    pub baseline: Baseline,
    /// When, in epoch milliseconds.
    pub created_at: u64,
}

/// A return request: a row of the store, with all of its columns (return requests, section 2.5). Times are epoch milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it was registered with. The process and the turn before it are taken anew at the dispatch.
    pub registration: Registration,
    /// Where it is.
    pub state: State,
    /// How far it got while it was registered.
    pub phase: Phase,
    /// Whether the complete prompt reached the agent.
    pub input_written: InputWritten,
    /// Why it ended.
    pub code: Option<Code>,
    /// A fixed word beside the code.
    pub detail: Option<String>,
    /// How often the row was written; 1 when it was made.
    pub rev: u64,
    /// Where the session stood at the dispatch.
    pub armed: Option<ArmedCursor>,
    /// The agent's user message, or the transcript's user record.
    pub user_record_id: Option<String>,
    /// What ties the turn to the request.
    pub evidence: Option<Evidence>,
    /// When the ledger had the admission.
    pub admitted_at: Option<u64>,
    /// When the dispatch was on disk.
    pub dispatched_at: Option<u64>,
    /// When the whole prompt was known to be with the agent.
    pub submitted_at: Option<u64>,
    /// When a sign of the agent's own was tied to it.
    pub bound_at: Option<u64>,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// The agent's word.
    pub stop_reason: Option<String>,
    /// The answer; only with `completed`. The store reads a request without it, as its event has it.
    pub final_message: Option<String>,
    /// Bytes of the whole answer.
    pub final_bytes: Option<u64>,
    /// Of the whole answer.
    pub final_sha256: Option<Hash>,
    /// Whether the answer was cut.
    pub final_truncated: bool,
    /// The number of its event.
    pub terminal_seq: Option<u64>,
}

impl Request {
    /// The row of a registration.
    #[must_use]
    pub fn new(registration: Registration) -> Self {
        Self {
            registration,
            state: State::Registered,
            phase: Phase::Registered,
            input_written: InputWritten::No,
            code: None,
            detail: None,
            rev: 1,
            armed: None,
            user_record_id: None,
            evidence: None,
            admitted_at: None,
            dispatched_at: None,
            submitted_at: None,
            bound_at: None,
            ended_at: None,
            stop_reason: None,
            final_message: None,
            final_bytes: None,
            final_sha256: None,
            final_truncated: false,
            terminal_seq: None,
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.registration.request_id
    }

    /// The row after the effects of one step at a time in epoch milliseconds. Its revision rises by one when anything changed. Late
    /// evidence and a removal are no matter of the row. No time in it is before one that was there already, whatever the clock was set to.
    pub fn apply(&mut self, effects: &[Effect], at_ms: u64) {
        for effect in effects {
            match effect {
                Effect::Advance(advance) => self.advance(advance, at_ms.max(self.newest_ms())),
                Effect::End(terminal) => self.end(terminal),
                Effect::Late(_) | Effect::Remove => (),
            }
        }
        // A machine that has nothing to say of the row says nothing.
        if effects.iter().any(|effect| matches!(effect, Effect::Advance(_) | Effect::End(_))) {
            self.rev += 1;
        }
    }

    /// The newest of its times.
    fn newest_ms(&self) -> u64 {
        let times = [self.admitted_at, self.dispatched_at, self.submitted_at, self.bound_at];
        times.into_iter().flatten().fold(self.registration.created_at, u64::max)
    }

    fn advance(&mut self, advance: &Advance, at_ms: u64) {
        match advance {
            Advance::Admitted => {
                // Behind an idle session's admission the dispatch may be told first.
                self.phase = self.phase.max(Phase::Admitted);
                self.admitted_at.get_or_insert(at_ms);
            }
            Advance::Dispatching { armed, baseline, incarnation_id } => {
                self.phase = Phase::Dispatching;
                self.input_written = InputWritten::Maybe;
                self.dispatched_at = Some(at_ms);
                self.armed = Some(armed.clone());
                self.registration.baseline = baseline.clone();
                self.registration.incarnation_id.clone_from(incarnation_id);
            }
            Advance::Submitted => {
                self.state = State::Submitted;
                self.input_written = InputWritten::Yes;
                self.submitted_at = Some(at_ms);
            }
            Advance::Bound { evidence, user_record_id } => {
                self.state = State::Bound;
                self.evidence = Some(*evidence);
                self.user_record_id.clone_from(user_record_id);
                self.bound_at.get_or_insert(at_ms);
            }
        }
    }

    fn end(&mut self, terminal: &Terminal) {
        self.state = terminal.state;
        self.code.clone_from(&terminal.code);
        self.detail = terminal.detail.map(str::to_owned);
        self.input_written = terminal.input_written;
        self.stop_reason.clone_from(&terminal.stop_reason);
        self.evidence = terminal.evidence.or(self.evidence);
        self.ended_at = Some(terminal.at_ms.max(self.newest_ms()));
        if let Some(text) = &terminal.final_text {
            self.final_message = Some(text.text.clone());
            self.final_bytes = Some(text.full_bytes);
            self.final_sha256 = Some(text.sha256);
            self.final_truncated = text.is_truncated;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_keep_what_a_later_version_wrote() {
        let text = r#"{"v":9,"queue":true,"later":{"a":[1]}}"#;
        let options: Options = serde_json::from_str(text).unwrap();
        assert!(options.queue && !options.cancel_on_timeout && options.v == 9);
        let again: Value = serde_json::from_str(&serde_json::to_string(&options).unwrap()).unwrap();
        assert_eq!(again["later"]["a"][0], 1);
        assert_eq!(again["v"], 9);
    }
}
