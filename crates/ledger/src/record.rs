//! One fact about one prompt.

use crate::wire;

/// One line of a ledger: at a time, something became true of a prompt.
///
/// The fields are open, so that a record can be matched and, where no constructor fits, written as a literal. What is
/// written is what evidence rules, section 1, allow: an empty `tail_uuid` is left out, and a time that is not finite is
/// refused by the append.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The prompt. Compared exactly, without folding; the empty id is an id like any other.
    pub prompt_id: String,
    /// When, in milliseconds since the Unix epoch. Any finite number: a ledger of another writer may hold fractions.
    pub at_ms: f64,
    /// What.
    pub fact: Fact,
}

/// What became true of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The prompt was admitted and may have been dispatched.
    InFlight {
        /// The dispatch marker: the uuid of the transcript's last record at admission. Never empty when read; `None` is
        /// an admission without a marker, which falls back to evidence in time.
        tail_uuid: Option<String>,
    },
    /// The prompt ended.
    Terminal {
        /// How.
        terminal: Terminal,
        /// The code of the turn error, or of what flushed the prompt.
        code: Option<String>,
        /// The agent's stop reason.
        stop_reason: Option<String>,
    },
}

/// The four ways in which a prompt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// The agent finished its turn.
    Completed,
    /// Somebody cancelled the prompt.
    Cancelled,
    /// The turn failed, or the prompt was flushed.
    Error,
    /// The daemon was lost in the middle of the turn.
    Interrupted,
}

impl Terminal {
    /// All of them, in the order of the format's description.
    pub const ALL: [Self; 4] = [Self::Completed, Self::Cancelled, Self::Error, Self::Interrupted];

    /// The word that stands for it in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Writing. Times are whole milliseconds since the Unix epoch; above 2 to the power of 53 they are rounded to a double.
impl Record {
    /// An admission. `tail_uuid` is the dispatch marker; an empty one counts as none.
    pub fn in_flight(prompt_id: impl Into<String>, tail_uuid: Option<&str>, at_ms: u64) -> Self {
        let tail_uuid = tail_uuid.filter(|uuid| !uuid.is_empty()).map(str::to_owned);
        Self::new(prompt_id.into(), Fact::InFlight { tail_uuid }, at_ms)
    }

    /// The agent finished, with this stop reason.
    pub fn completed(prompt_id: impl Into<String>, stop_reason: &str, at_ms: u64) -> Self {
        Self::ended(prompt_id.into(), Terminal::Completed, (None, Some(stop_reason)), at_ms)
    }

    /// Somebody cancelled.
    pub fn cancelled(prompt_id: impl Into<String>, at_ms: u64) -> Self {
        Self::ended(prompt_id.into(), Terminal::Cancelled, (None, None), at_ms)
    }

    /// The turn failed or the prompt was flushed, with the code of that, if there is one.
    pub fn error(prompt_id: impl Into<String>, code: Option<&str>, at_ms: u64) -> Self {
        Self::ended(prompt_id.into(), Terminal::Error, (code, None), at_ms)
    }

    /// The daemon was lost; `code` says how that is known.
    pub fn interrupted(prompt_id: impl Into<String>, code: &str, at_ms: u64) -> Self {
        Self::ended(prompt_id.into(), Terminal::Interrupted, (Some(code), None), at_ms)
    }

    /// The line that stands for this record in the file, without its LF.
    ///
    /// Byte for byte what `JSON.stringify` gives for the same fact with the keys in the order of the format. A time that
    /// is not finite becomes `null`, which no reader accepts.
    pub fn to_line(&self) -> String {
        let mut line = String::new();
        wire::push_line(&mut line, self);
        line
    }

    fn ended(
        prompt_id: String,
        terminal: Terminal,
        (code, stop_reason): (Option<&str>, Option<&str>),
        at_ms: u64,
    ) -> Self {
        let code = code.map(str::to_owned);
        let stop_reason = stop_reason.map(str::to_owned);
        Self::new(prompt_id, Fact::Terminal { terminal, code, stop_reason }, at_ms)
    }

    fn new(prompt_id: String, fact: Fact, at_ms: u64) -> Self {
        Self { prompt_id, at_ms: at_ms as f64, fact }
    }
}

/// Reading.
impl Record {
    /// The record in one line, with or without its LF; `None` when the line is not a record of the format.
    ///
    /// As tolerant as a browser's `JSON.parse`: see the crate page for what that lets through.
    pub fn parse(line: &[u8]) -> Option<Self> {
        match wire::parse_line(line)? {
            wire::Read::Record(record) => Some(record),
            wire::Read::Wish(_) => None,
        }
    }

    /// Whether this is an admission.
    pub fn is_in_flight(&self) -> bool {
        matches!(self.fact, Fact::InFlight { .. })
    }

    /// How the prompt ended, if this record says that it did.
    pub fn terminal(&self) -> Option<Terminal> {
        match self.fact {
            Fact::Terminal { terminal, .. } => Some(terminal),
            Fact::InFlight { .. } => None,
        }
    }

    /// Whether `prompt_id` is surely the id that was written.
    ///
    /// An id with half a surrogate pair or with bytes that are not UTF-8 is kept, because dropping its line would hide
    /// an open prompt; but it reads with U+FFFD in those places, and several ids read alike. False for every id with
    /// that character in it. Nothing should be concluded about such a prompt.
    pub fn has_exact_id(&self) -> bool {
        !self.prompt_id.contains(char::REPLACEMENT_CHARACTER)
    }
}
