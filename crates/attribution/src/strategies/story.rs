//! What was written of a session, event by event.

/// How much later than the event before it an event is when nothing else is said, in milliseconds.
pub(super) const STEP_MS: i64 = 1_000;

/// A prompt's name in a story: one capital letter, which is its id in both files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(char);

/// Everything that was written, in the order in which it got to the disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Story {
    /// The events, oldest first.
    pub events: Vec<Event>,
}

/// One line of one of the two files, or the moment of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// How much later than the event before it, in milliseconds of the clock that dates both files; negative when the clock
    /// was set back.
    pub after_ms: i64,
    /// What was written.
    pub deed: Deed,
    /// How much of the line got to the disk, in thousandths of its bytes without the LF, when not all of it did. At 1,000
    /// nothing but the LF is missing.
    pub torn: Option<u16>,
    /// Whether the line is written right behind a torn one, without a newline to seal it.
    pub is_glued: bool,
    /// Whether a case says that everything hangs on this event.
    pub is_decisive: bool,
}

/// What an event is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// The ledger takes an admission.
    Admit {
        /// The prompt.
        prompt: Name,
        /// What the admission carries as its dispatch marker.
        marker: Marker,
    },
    /// The ledger takes a terminal.
    End {
        /// The prompt.
        prompt: Name,
        /// How it ended.
        ending: Ending,
    },
    /// The ledger takes a client's wish to cancel.
    Wish {
        /// The prompt.
        prompt: Name,
    },
    /// The transcript takes a record.
    Write(Entry),
    /// The load read both files here; what follows is written before it appends.
    Load,
}

/// The dispatch marker of an admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// None: a legacy admission, or one whose marker could not be captured.
    None,
    /// The transcript's last record, as [`transcript::tail_uuid`] finds it; none when it finds none.
    Tail,
    /// The record with this number, counted from 0 over all records of the story, whole or not.
    Record(usize),
    /// A uuid that no record has.
    Elsewhere,
}

/// A terminal in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Completed, with the agent's stop reason.
    Completed,
    /// Cancelled.
    Cancelled,
    /// The turn failed.
    Failed,
    /// The prompt ran into its deadline; its agent may go on.
    Deadline,
    /// The daemon shut down.
    Shutdown,
    /// An earlier load found the daemon lost.
    Lost,
}

/// A record of the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Whose it is. A user record and a turn result carry the name; for the others it is said for the reader alone.
    pub owner: Option<Name>,
    /// What it is.
    pub what: What,
    /// The record it names as its parent.
    pub parent: Parent,
    /// What is wrong with it.
    pub flaws: Vec<Flaw>,
}

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A prompt, stamped with its owner's name if it has one.
    User,
    /// The agent's text.
    Answer,
    /// Text that the agent only thought.
    Thought,
    /// A call with an id.
    Call,
    /// A call without an id, which nobody can answer.
    BlindCall,
    /// The answer to a call.
    Tool,
    /// The same, of a turn that works for a goal.
    GoalTool,
    /// The note that ends a turn that works for a goal, at its last tool's answer.
    GoalEnd,
    /// How a turn ended.
    Result(Outcome),
    /// A user record that is nothing but a reminder.
    Reminder,
    /// A user record that is a note on background work.
    Notification,
    /// The same, marked as the session's own.
    Job,
    /// What a user said into a running turn.
    MidTurn,
    /// What was spoken, which is no part of the history.
    Spoken,
    /// A command to the session.
    Command,
    /// The session's answer to it, which takes the command out of the history.
    CommandAnswered,
    /// Telemetry.
    Note,
    /// The note that a user began to run a command in the workspace.
    ShellCommand,
    /// The note of how that ended.
    ShellResult,
    /// The session's title.
    Title,
    /// An artifact, beside the branch.
    Artifact,
    /// A compression with the history that it leaves.
    Compression,
    /// A compression that left the history alone.
    EmptyCompression,
    /// The note of a rewind; its parent is where the branch goes on.
    Rewind,
}

/// The three ways in which a turn result says that a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Completed,
    /// By a cancel.
    Cancelled,
    /// With an error.
    Failed,
}

/// The record that a record names as its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The last one on the branch that is whole.
    Last,
    /// The one with this number, counted from 0 over all records of the story, whole or not.
    Record(usize),
    /// None: the record begins a branch.
    Nobody,
    /// One that is nowhere.
    Lost,
}

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Its timestamp names no instant.
    Undated,
    /// Its message's parts are no list; of a compression: its history is none.
    Unreadable,
    /// Its message has no parts; of a compression: its history has no entries.
    Mute,
    /// Its message is longer than what is looked at for a marker.
    Huge,
    /// It carries another session's id.
    Strange,
    /// It was written in another workspace.
    Abroad,
    /// It is a prompt that does not carry its owner's stamp.
    Bare,
    /// It is no prompt and carries its owner's stamp.
    Stamped,
}

impl Name {
    /// The name with this letter; none unless it is one of `A` to `Z`.
    #[must_use]
    pub fn new(letter: char) -> Option<Self> {
        letter.is_ascii_uppercase().then_some(Self(letter))
    }

    /// The letter.
    #[must_use]
    pub fn letter(self) -> char {
        self.0
    }

    /// The prompt's id.
    #[must_use]
    pub fn prompt_id(self) -> String {
        self.0.to_string()
    }
}

impl Story {
    /// The same story as it would be had the decisive events never been. Parents that are told by number go by the
    /// numbers of this story, so such events are no records, or nothing else is told by number.
    #[must_use]
    pub fn without_decisive(&self) -> Self {
        Self { events: self.events.iter().filter(|event| !event.is_decisive).cloned().collect() }
    }
}

impl Event {
    /// An event a second after the one before it, written whole.
    #[must_use]
    pub fn new(deed: Deed) -> Self {
        Self { after_ms: STEP_MS, deed, torn: None, is_glued: false, is_decisive: false }
    }
}

impl Entry {
    /// A record without a flaw, on the branch.
    #[must_use]
    pub fn new(owner: Option<Name>, what: What) -> Self {
        Self { owner, what, parent: Parent::Last, flaws: Vec::new() }
    }

    /// Whether something is wrong with it.
    #[must_use]
    pub fn has(&self, flaw: Flaw) -> bool {
        self.flaws.contains(&flaw)
    }
}

impl What {
    /// Whether records of this kind may be parents.
    #[must_use]
    pub fn is_on_branch(self) -> bool {
        self != Self::Artifact
    }
}
