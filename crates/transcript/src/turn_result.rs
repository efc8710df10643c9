//! How a turn ended, as the host writes it into the transcript and the poll reads it back.

use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::text::{Bounded, CODE_UNITS_MAX, MESSAGE_UNITS_MAX, TEXT_UNITS_MAX, bounded};

/// The subtype of the system record that carries a turn result.
pub const TURN_RESULT_SUBTYPE: &str = "turn_result";
/// Most UTF-16 units of an id or a stop reason in a turn result.
const IDENTIFIER_UNITS_MAX: usize = 256;
/// What an error says whose message is empty. A reader takes an error without a message for none.
const MESSAGE_MISSING: &str = "unknown error";
/// What `resultCode` says when the answer's text was cut (turn status seed).
pub const RESULT_TEXT_TRUNCATED: &str = "RESULT_TEXT_TRUNCATED";

/// The outcome of one turn: the payload of a `turn_result` record (wire, section 16.2), with the agent's own word and
/// the text said before a cancel (design, section 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnResult {
    /// The prompt whose turn this was.
    pub prompt_id: String,
    /// How it ended.
    pub state: TurnState,
    /// Why the agent stopped; `cancelled` for a cancelled turn. An open set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// What went wrong, for an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// When the prompt was dispatched, in epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// When a cancel was handed to the agent, in epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<u64>,
    /// When the turn ended, in epoch milliseconds.
    pub ended_at: u64,
    /// What the client asked, at most [`TEXT_UNITS_MAX`] UTF-16 units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_text: Option<String>,
    /// Whether `prompt_text` was cut.
    #[serde(skip_serializing_if = "is_false")]
    pub prompt_text_truncated: bool,
    /// The final answer, at most [`TEXT_UNITS_MAX`] UTF-16 units; none when the agent gave no final text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_text: Option<String>,
    /// Whether `result_text` was cut.
    #[serde(skip_serializing_if = "is_false")]
    pub result_truncated: bool,
    /// [`RESULT_TEXT_TRUNCATED`] when `result_text` was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_code: Option<String>,
    /// How long the final answer is in UTF-8 bytes, where `result_text` was cut: as much stands at the end of the answer's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// How many bytes of what was said are in no record, because the writer had no room for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_unrecorded_bytes: Option<u64>,
    /// The client that submitted the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originator_client_id: Option<String>,
    /// The agent's own stop reason, where the outcome says something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_stop_reason: Option<String>,
    /// What the agent had said when its turn was cancelled, at most [`TEXT_UNITS_MAX`] UTF-16 units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_text: Option<String>,
    /// How long that was in UTF-8 bytes, where `partial_text` was cut: as much stands in the record right behind this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_bytes: Option<u64>,
    /// The agent had said words that belong to no turn, so that what was said in this one may be another one's. Of turns whose outcome is
    /// promised to somebody.
    #[serde(skip_serializing_if = "is_false")]
    pub stray_words: bool,
    /// What the agent took for its user's words is not what was asked. Of turns whose outcome is promised to somebody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<Contradiction>,
    /// In this turn the agent wrote something that could not be read, or not exactly: what is on record of it may not be all that was said.
    /// Of turns whose outcome is promised to somebody.
    #[serde(skip_serializing_if = "is_false")]
    pub unreadable_words: bool,
}

/// How an agent can speak against having worked on what it was asked, in the word of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contradiction {
    /// It repeated another prompt.
    PromptMismatch,
    /// It was asked something else too.
    ExtraUserMessage,
}

impl Contradiction {
    /// Reads the word of the format.
    fn parse(word: &str) -> Option<Self> {
        match word {
            "prompt_mismatch" => Some(Self::PromptMismatch),
            "extra_user_message" => Some(Self::ExtraUserMessage),
            _ => None,
        }
    }
}

/// The three ways a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// The agent answered.
    Completed,
    /// A cancel reached the agent.
    Cancelled,
    /// The agent, or the way to it, failed.
    Error,
}

/// The error of a failed turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnError {
    /// For people, at most [`MESSAGE_UNITS_MAX`] UTF-16 units.
    pub message: String,
    /// For programs, at most [`CODE_UNITS_MAX`] UTF-16 units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl TurnResult {
    /// A result without texts or an error; the caller adds what it knows.
    #[must_use]
    pub fn new(prompt_id: impl Into<String>, state: TurnState, ended_at_ms: u64) -> Self {
        Self {
            prompt_id: prompt_id.into(),
            state,
            stop_reason: None,
            error: None,
            started_at: None,
            cancelled_at: None,
            ended_at: ended_at_ms,
            prompt_text: None,
            prompt_text_truncated: false,
            result_text: None,
            result_truncated: false,
            result_code: None,
            result_bytes: None,
            result_unrecorded_bytes: None,
            originator_client_id: None,
            agent_stop_reason: None,
            partial_text: None,
            partial_bytes: None,
            stray_words: false,
            contradiction: None,
            unreadable_words: false,
        }
    }

    /// With the prompt's text, cut to its bound.
    #[must_use]
    pub fn with_prompt_text(mut self, text: &str) -> Self {
        let Bounded { text, truncated } = bounded(text, TEXT_UNITS_MAX);
        self.prompt_text = Some(text);
        self.prompt_text_truncated = truncated;
        self
    }

    /// With the final answer, cut to its bound. An empty answer is no answer.
    #[must_use]
    pub fn with_result_text(mut self, text: &str) -> Self {
        if text.is_empty() {
            return self;
        }
        self.result_bytes = Some(text.len() as u64);
        let Bounded { text, truncated } = bounded(text, TEXT_UNITS_MAX);
        self.result_text = Some(text);
        self.result_truncated = truncated;
        self.result_code = truncated.then(|| RESULT_TEXT_TRUNCATED.to_owned());
        self.result_bytes.take_if(|_| !truncated);
        self
    }

    /// With so many bytes said that are in no record. The answer is then cut, however short what is left of it.
    #[must_use]
    pub fn with_unrecorded(mut self, bytes: u64) -> Self {
        if bytes > 0 {
            self.result_unrecorded_bytes = Some(bytes);
            self.result_text.get_or_insert_default();
            self.result_truncated = true;
            self.result_code = Some(RESULT_TEXT_TRUNCATED.to_owned());
        }
        self
    }

    /// With what the agent had said before its turn was cut, itself cut to the bound of a text.
    #[must_use]
    pub fn with_partial_text(mut self, text: &str) -> Self {
        if text.is_empty() {
            return self;
        }
        let Bounded { text: cut, truncated } = bounded(text, TEXT_UNITS_MAX);
        self.partial_text = Some(cut);
        self.partial_bytes = truncated.then_some(text.len() as u64);
        self
    }

    /// With a partial text of which so many bytes are in no record: nobody can give all of it then.
    #[must_use]
    pub fn with_partial_unrecorded(mut self, bytes: u64) -> Self {
        self.partial_bytes.take_if(|_| bytes > 0);
        self
    }

    /// With an error, both parts cut to their bounds.
    #[must_use]
    pub fn with_error(mut self, message: &str, code: Option<&str>) -> Self {
        self.error = Some(TurnError::new(message, code));
        self
    }

    /// The same as a reader accepts it: a stop reason is the agent's own word and may be of any length, and a result that
    /// breaks a bound would be no result. A word is cut; an id that was cut would be another one, so it is left out.
    #[must_use]
    pub(crate) fn within_bounds(mut self) -> Self {
        let word = |word: String| bounded(&word, IDENTIFIER_UNITS_MAX).text;
        self.stop_reason = self.stop_reason.map(word);
        self.agent_stop_reason = self.agent_stop_reason.map(word);
        self.originator_client_id = self.originator_client_id.filter(|id| !bounded(id, IDENTIFIER_UNITS_MAX).truncated);
        self
    }

    /// Reads a payload. None unless it names a prompt, one of the three states and the time of the end, has an error if
    /// and only if the state is one, and keeps to every bound: whatever breaks a rule of its writers was not written by
    /// them.
    #[must_use]
    pub fn from_payload(payload: &Value) -> Option<Self> {
        let fields = Fields(payload.as_object()?);
        let state = TurnState::parse(&fields.text("state", IDENTIFIER_UNITS_MAX)??)?;
        let prompt_id = fields.text("promptId", IDENTIFIER_UNITS_MAX)?.filter(|id| !id.is_empty())?;
        let result = Self {
            prompt_id,
            state,
            stop_reason: fields.text("stopReason", IDENTIFIER_UNITS_MAX)?,
            error: fields.error()?,
            started_at: fields.whole("startedAt")?,
            cancelled_at: fields.whole("cancelledAt")?,
            ended_at: fields.whole("endedAt")??,
            prompt_text: fields.text("promptText", TEXT_UNITS_MAX)?,
            prompt_text_truncated: fields.flag("promptTextTruncated")?,
            result_text: fields.text("resultText", TEXT_UNITS_MAX)?,
            result_truncated: fields.flag("resultTruncated")?,
            result_code: fields.text("resultCode", IDENTIFIER_UNITS_MAX)?,
            result_bytes: fields.whole("resultBytes")?,
            result_unrecorded_bytes: fields.whole("resultUnrecordedBytes")?,
            originator_client_id: fields.text("originatorClientId", IDENTIFIER_UNITS_MAX)?,
            agent_stop_reason: fields.text("agentStopReason", IDENTIFIER_UNITS_MAX)?,
            partial_text: fields.text("partialText", TEXT_UNITS_MAX)?,
            partial_bytes: fields.whole("partialBytes")?,
            stray_words: fields.flag("strayWords")?,
            contradiction: match fields.text("contradiction", IDENTIFIER_UNITS_MAX)? {
                Some(word) => Some(Contradiction::parse(&word)?),
                None => None,
            },
            unreadable_words: fields.flag("unreadableWords")?,
        };
        result.is_consistent().then_some(result)
    }

    fn is_consistent(&self) -> bool {
        let code_is_known = match self.result_code.as_deref() {
            Some(code) => code == RESULT_TEXT_TRUNCATED && self.result_truncated,
            None => true,
        };
        code_is_known && self.error.is_some() == (self.state == TurnState::Error)
    }
}

impl TurnState {
    /// Reads the word of the format.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "completed" => Some(Self::Completed),
            "cancelled" => Some(Self::Cancelled),
            "error" => Some(Self::Error),
            _ => None,
        }
    }

    /// The word of the format.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

impl TurnError {
    /// An error with both parts cut to their bounds. An empty message is replaced by one that says as little.
    #[must_use]
    pub fn new(message: &str, code: Option<&str>) -> Self {
        let message = if message.is_empty() { MESSAGE_MISSING } else { message };
        Self {
            message: bounded(message, MESSAGE_UNITS_MAX).text,
            code: code.map(|code| bounded(code, CODE_UNITS_MAX).text),
        }
    }
}

/// The fields of a payload. Every read gives none when the field breaks a rule, and an inner none when it is not there.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, key: &str, units_max: usize) -> Option<Option<String>> {
        match self.0.get(key) {
            None => Some(None),
            Some(Value::String(text)) => (!bounded(text, units_max).truncated).then(|| Some(text.clone())),
            Some(_) => None,
        }
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.0.get(key).map_or(Some(false), Value::as_bool)
    }

    fn whole(&self, key: &str) -> Option<Option<u64>> {
        match self.0.get(key) {
            None => Some(None),
            Some(value) => value.as_u64().or_else(|| whole_number(value.as_f64()?)).map(Some),
        }
    }

    fn error(&self) -> Option<Option<TurnError>> {
        let Some(error) = self.0.get("error") else { return Some(None) };
        let fields = Fields(error.as_object()?);
        let message = fields.text("message", MESSAGE_UNITS_MAX)?.filter(|message| !message.is_empty())?;
        let code = match fields.0.get("code") {
            // A numeric code becomes text (evidence rules, section 7).
            Some(Value::Number(code)) => Some(number_text(code)),
            _ => fields.text("code", CODE_UNITS_MAX)?,
        };
        Some(Some(TurnError { message, code }))
    }
}

/// A number as JavaScript says it, so that `-32603.0` is the code `-32603`.
fn number_text(number: &Number) -> String {
    let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT_MAX);
    whole.map_or_else(|| number.to_string(), |whole| (whole as i64).to_string())
}

/// The largest double below which every whole number is exact.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A time or a length of the format, however the number is written. What is finer than a millisecond is cut off.
fn whole_number(number: f64) -> Option<u64> {
    (0.0..=EXACT_MAX).contains(&number).then_some(number as u64)
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests;
